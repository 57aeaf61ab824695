//! Runs a task: its execution takes the path of every call, and its end is recorded and delivered once. A task whose
//! process has died is run again only if its claim may be.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use toolwright_capabilities::{Client, SendFuture};
use toolwright_contract::{Envelope, ErrorKind};

use crate::deferred_results::DeferredResult;
use crate::orchestrator::Orchestrator;
use crate::request::{CallRequest, ToolCall};
use crate::store::{self, Backend, ExecutionStatus, TaskChange, TaskRecord, TaskStatus};
use crate::tasks::TaskSlot;

/// How often progress is stored.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);
/// How many reports there are to one look for a cancellation that was requested in another process.
const REPORTS_PER_LOOK: u32 = 4;
/// The pauses before a task is tried again that could not begin: it found no seat, or no store.
const FIRST_RETRY: Duration = Duration::from_millis(200);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// How often a task that has run is looked at again until its end is recorded.
const LOOKS_FOR_AN_END: u32 = 8;

/// The outcome of an attempt to run a task.
enum Attempt {
    Ended {
        status: TaskStatus,
        envelope: Arc<Envelope>,
        is_recorded: bool,
    },
    /// It could not begin, and nothing was done.
    TryAgain,
    /// It has run here, with this result, and the store has not recorded its end yet.
    Unsettled(Arc<Envelope>),
    /// It has ended, was deleted, or another process runs it.
    NotOurs,
}

type Progress = Option<(f64, Option<String>)>;

/// The client of a task: passes everything on to the client that its session has by then.
#[derive(Debug)]
struct TaskClient {
    orchestrator: Orchestrator,
    session: String,
    progress: watch::Sender<Progress>,
}

impl Client for TaskClient {
    fn send(&self, message: Value) -> SendFuture {
        self.orchestrator.client(&self.session).send(message)
    }

    fn progress(&self, fraction: f64, message: Option<&str>) {
        self.progress.send_replace(Some((fraction, message.map(str::to_owned))));
        self.orchestrator.client(&self.session).progress(fraction, message);
    }
}

impl Orchestrator {
    /// Runs a task in this process, as soon as there is room for it.
    pub(crate) fn start_task(&self, task: Arc<TaskRecord>) {
        let Some(slot) = self.enter_task(&task.id) else { return };
        let this = self.clone();
        tokio::spawn(async move {
            // A task that is to be cancelled waits for no room: it does not run.
            let permit = tokio::select! {
                permit = this.0.tasks.permits.acquire() => Some(permit),
                () = slot.cancel.cancelled() => None,
            };
            // The process is about to end.
            if matches!(permit, Some(Err(_))) {
                return;
            }
            let _running = Arc::clone(&this.0.detached);
            this.run_task(&task, &slot).await;
        });
    }

    async fn run_task(&self, task: &Arc<TaskRecord>, slot: &TaskSlot) {
        let mut pause = FIRST_RETRY;
        let mut unsettled = None;
        let mut looks = 0;
        loop {
            let attempt = match unsettled.clone() {
                None => self.attempt_task(task, slot).await,
                Some(envelope) => self.look_for_end(task, slot, envelope, looks).await,
            };
            let ended = match attempt {
                Ok(Attempt::Ended { status, envelope, is_recorded }) => {
                    self.end_task(task, status, &envelope, is_recorded).await
                }
                Ok(Attempt::NotOurs) => return,
                Ok(Attempt::TryAgain) => {
                    unsettled = None;
                    Ok(false)
                }
                Ok(Attempt::Unsettled(envelope)) => {
                    unsettled = Some(envelope);
                    looks += 1;
                    Ok(false)
                }
                Err(error) => Err(error),
            };
            match ended {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(task = task.id, "could not run a task, will try again: {error}"),
            }
            let was_cancelled = slot.cancel.is_cancelled();
            tokio::select! {
                () = sleep(pause) => {}
                () = slot.cancel.cancelled(), if !was_cancelled => {}
            }
            pause = (pause * 2).min(LAST_RETRY);
        }
    }

    async fn attempt_task(&self, task: &Arc<TaskRecord>, slot: &TaskSlot) -> store::Result<Attempt> {
        let Some(stored) = self.0.store.task(&task.id).await? else { return Ok(Attempt::NotOurs) };
        if stored.has_ended() {
            return Ok(Attempt::NotOurs);
        }
        if stored.is_cancel_requested {
            slot.cancel.cancel();
        }
        match self.task_execution(task).await? {
            Some(ExecutionStatus::Running) => return Ok(Attempt::NotOurs),
            // The process before has died between the end of the execution and that of the task.
            Some(ExecutionStatus::Finished(envelope)) => return Ok(recorded_end(envelope, slot)),
            Some(ExecutionStatus::InDoubt | ExecutionStatus::Abandoned) | None => {}
        }
        if !slot.cancel.is_cancelled() {
            let begin = TaskChange::Begin(TaskStatus::Running);
            if self.0.store.change_task(&task.id, begin, self.0.clock.now()).await?.is_none() {
                return Ok(Attempt::NotOurs);
            }
            self.0.tasks.report_change(&task.id);
        }
        let envelope = self.call_task(task, slot).await;
        Ok(match self.task_execution(task).await? {
            Some(ExecutionStatus::Finished(envelope)) => recorded_end(envelope, slot),
            Some(ExecutionStatus::Running) => Attempt::Unsettled(envelope),
            Some(ExecutionStatus::InDoubt) => unrecorded_end(TaskStatus::InDoubt, envelope),
            _ if slot.cancel.is_cancelled() => unrecorded_end(TaskStatus::Cancelled, envelope),
            abandoned if may_run_later(&envelope, abandoned.is_some()) => Attempt::TryAgain,
            _ => unrecorded_end(TaskStatus::Failed, envelope),
        })
    }

    /// The end of a task that has run here. Its claim may still be ours: a settlement is sent again while the store
    /// cannot be reached, and one that the store has refused leaves the claim a moment later.
    async fn look_for_end(
        &self,
        task: &TaskRecord,
        slot: &TaskSlot,
        envelope: Arc<Envelope>,
        looks: u32,
    ) -> store::Result<Attempt> {
        Ok(match self.task_execution(task).await? {
            Some(ExecutionStatus::Finished(envelope)) => recorded_end(envelope, slot),
            Some(ExecutionStatus::Running) if looks < LOOKS_FOR_AN_END => Attempt::Unsettled(envelope),
            Some(ExecutionStatus::Running | ExecutionStatus::InDoubt) => {
                unrecorded_end(TaskStatus::InDoubt, envelope)
            }
            _ if slot.cancel.is_cancelled() => unrecorded_end(TaskStatus::Cancelled, envelope),
            Some(ExecutionStatus::Abandoned) | None => Attempt::TryAgain,
        })
    }

    async fn task_execution(&self, task: &TaskRecord) -> store::Result<Option<ExecutionStatus>> {
        let record = self.0.store.execution(&task.session, &task.id).await?;
        Ok(record.map(|record| record.status))
    }

    /// Makes the call of a task, and stores its progress while it runs.
    async fn call_task(&self, task: &Arc<TaskRecord>, slot: &TaskSlot) -> Arc<Envelope> {
        let (progress, mut reports) = watch::channel(None);
        let client = TaskClient { orchestrator: self.clone(), session: task.session.clone(), progress };
        let call = ToolCall { id: Some(task.id.clone()), tool: task.tool.clone(), args: task.args.clone() };
        let request = CallRequest {
            task: Some(Arc::clone(task)),
            principal: Some(Arc::new(task.principal.clone())),
            client: Some(Arc::new(client)),
            cancel: Some(slot.cancel.clone()),
            ..CallRequest::new(&task.session, call)
        };
        let call = self.call(request);
        let mut stored = None;
        // Stores progress beside the call, which must not wait for it.
        let watch = async {
            let mut ticks = interval(REPORT_INTERVAL);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let mut tick = 0_u32;
            loop {
                ticks.tick().await;
                tick = tick.wrapping_add(1);
                let is_new = reports.has_changed().unwrap_or(false);
                let report = if is_new { reports.borrow_and_update().clone() } else { None };
                let looks = tick.is_multiple_of(REPORTS_PER_LOOK);
                match self.follow_task(task, slot, report.clone(), looks).await {
                    Ok(()) => stored = report.or(stored.take()),
                    Err(error) => {
                        tracing::warn!(task = task.id, "could not store the progress of a task: {error}");
                    }
                }
            }
        };
        let envelope = tokio::select! {
            biased;
            envelope = call => envelope,
            never = watch => never,
        };
        let last = reports.borrow().clone();
        if last != stored
            && let Err(error) = self.follow_task(task, slot, last, false).await
        {
            tracing::warn!(task = task.id, "could not store the last progress of a task: {error}");
        }
        envelope
    }

    /// Stores progress, and checks for a request to cancel the task.
    async fn follow_task(
        &self,
        task: &TaskRecord,
        slot: &TaskSlot,
        report: Progress,
        looks: bool,
    ) -> store::Result<()> {
        if let Some((progress, message)) = report {
            let change = TaskChange::Progress { progress, message };
            self.0.store.change_task(&task.id, change, self.0.clock.now()).await?;
            self.0.tasks.report_change(&task.id);
        }
        if looks && self.0.store.task(&task.id).await?.is_some_and(|stored| stored.is_cancel_requested) {
            slot.cancel.cancel();
        }
        Ok(())
    }

    /// Records and delivers the end of a task. Only the first end counts.
    async fn end_task(
        &self,
        task: &TaskRecord,
        status: TaskStatus,
        envelope: &Arc<Envelope>,
        is_recorded: bool,
    ) -> store::Result<bool> {
        let unrecorded = (!is_recorded).then(|| Arc::clone(envelope));
        let end = TaskChange::End { status, unrecorded };
        let ended = self.0.store.change_task(&task.id, end, self.0.clock.now()).await?;
        self.0.tasks.report_change(&task.id);
        if ended.is_some() {
            self.0.deferred_results.send(&DeferredResult {
                session: task.session.clone(),
                execution_id: task.id.clone(),
                envelope: Arc::clone(envelope),
            });
        }
        Ok(true)
    }
}

fn recorded_end(envelope: Arc<Envelope>, slot: &TaskSlot) -> Attempt {
    let status = match &envelope.outcome {
        Ok(_) => TaskStatus::Completed,
        Err(_) if slot.cancel.is_cancelled() => TaskStatus::Cancelled,
        Err(_) => TaskStatus::Failed,
    };
    Attempt::Ended { status, envelope, is_recorded: true }
}

fn unrecorded_end(status: TaskStatus, envelope: Arc<Envelope>) -> Attempt {
    Attempt::Ended { status, envelope, is_recorded: false }
}

/// Whether a task that has no recorded end finds a seat later, or the store. One that has run, and may be run again,
/// could not record its end.
fn may_run_later(envelope: &Envelope, has_run: bool) -> bool {
    let Err(failure) = &envelope.outcome else { return false };
    failure.retryable
        || failure.kind == ErrorKind::Transient
        || (failure.kind == ErrorKind::Internal && has_run)
}
