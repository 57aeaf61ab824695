//! Tasks: stores the task of a background tool's call, and answers queries about it. `task_run` runs them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::{Semaphore, watch};
use toolwright_contract::{Envelope, ExecutionMode, Failure, SideEffects, Success};
use toolwright_engine::Cancel;
use toolwright_registry::hex;

use crate::execution::Execution;
use crate::ids;
use crate::orchestrator::Orchestrator;
use crate::prepared_tool::PreparedTool;
use crate::redaction;
use crate::refusal::unstored_task;
use crate::store::{self, Backend, ExecutionStatus, TaskChange, TaskQuery, TaskRecord, TaskStatus};

/// How many tasks of dead processes are adopted at a time.
const ADOPTED_AT_A_TIME: usize = 1000;
/// How often the record of a task is read that runs in another process.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// A page of tasks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskPage {
    pub tasks: Vec<Arc<TaskRecord>>,
    /// The time and id before which the next page begins; `None` on the last page.
    pub next: Option<(i64, String)>,
}

/// The tasks of this process.
pub(crate) struct Tasks {
    running: Mutex<HashMap<String, RunningTask>>,
    /// One permit for each task that may run at a time. Closed when the process is about to end.
    pub permits: Semaphore,
}

struct RunningTask {
    cancel: Cancel,
    changed: watch::Sender<()>,
}

/// The entry of a task that waits or runs in this process. Dropping it removes the entry.
pub(crate) struct TaskSlot {
    orchestrator: Orchestrator,
    id: String,
    pub cancel: Cancel,
}

impl Drop for TaskSlot {
    fn drop(&mut self) {
        self.orchestrator.0.tasks.running().remove(&self.id);
    }
}

impl Tasks {
    pub fn new(at_a_time: usize) -> Self {
        let at_a_time = at_a_time.clamp(1, Semaphore::MAX_PERMITS);
        Self { running: Mutex::default(), permits: Semaphore::new(at_a_time) }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<String, RunningTask>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those who follow a task.
    pub fn report_change(&self, id: &str) {
        if let Some(running) = self.running().get(id) {
            running.changed.send_replace(());
        }
    }
}

/// The id of the task that a call has begun, instead of running.
pub fn begun_task(envelope: &Envelope) -> Option<&str> {
    envelope.meta.more.get("task").and_then(serde_json::Value::as_str)
}

impl Execution {
    /// Whether it answers with a task, instead of running the handler.
    pub fn begins_task(&self, prepared: &PreparedTool) -> bool {
        let is_background = prepared.tool.spec.execution == Some(ExecutionMode::Background);
        is_background && self.task.is_none() && !self.is_test()
    }

    /// Whether its handler runs within this call, and holds a seat.
    pub fn needs_seat(&self, prepared: &PreparedTool) -> bool {
        prepared.handler.needs_seat() && !self.begins_task(prepared)
    }
}

impl Orchestrator {
    /// Stores the task of a claimed execution, and answers with it. The task's id follows from that of the execution,
    /// so the same execution never begins two.
    pub(crate) async fn begin_task(
        &self,
        execution: &mut Execution,
        prepared: &PreparedTool,
    ) -> Result<Success, Failure> {
        execution.note_args();
        let args = std::mem::take(&mut execution.args);
        let spec = &prepared.tool.spec;
        let id = ids::hash_of_parts([&execution.session.id, &execution.id, "", ""]);
        let new = TaskRecord {
            id: format!("task_{}", hex(&id[..12])),
            session: execution.session.id.clone(),
            call: execution.id.as_ref().to_owned(),
            principal: execution.session.principal.clone(),
            tool: spec.tool_id.clone(),
            tool_version: spec.version.clone(),
            redacted_args: prepared.has_secrets.then(|| redaction::redacted(&spec.json_schema, &args)),
            args,
            status: TaskStatus::Queued,
            progress: None,
            message: None,
            is_cancel_requested: false,
            unrecorded: None,
            created_at: execution.now,
            updated_at: execution.now,
            ended_at: None,
            revision: 0,
        };
        let task = match self.0.store.create_task(new.clone()).await {
            Ok(task) => task,
            // The reply may have been lost after the task was stored.
            Err(error) => match self.0.store.create_task(new).await {
                Ok(task) => task,
                Err(_) => {
                    tracing::error!("could not store a task: {error}");
                    return Err(unstored_task(spec.side_effects == SideEffects::Writes));
                }
            },
        };
        let data = json!({
            "task": { "taskId": task.id, "status": task.status, "createdAt": task.created_at },
            "message": "This call runs in the background. Its result is delivered when it is done: do not repeat it.",
        });
        execution.more_meta.insert("task".to_owned(), task.id.clone().into());
        execution.begun_task = Some(task);
        Ok(data.into())
    }

    pub fn task<'a>(&'a self, id: &'a str) -> BoxFuture<'a, store::Result<Option<Arc<TaskRecord>>>> {
        Box::pin(self.0.store.task(id))
    }

    /// A page of the tasks, newest first.
    pub fn task_page<'a>(&'a self, query: TaskQuery<'a>) -> BoxFuture<'a, store::Result<TaskPage>> {
        Box::pin(async move {
            let tasks = self.0.store.task_page(query).await?;
            let last = tasks.last().filter(|_| tasks.len() >= query.limit);
            let next = last.map(|last| (last.created_at, last.id.clone()));
            Ok(TaskPage { tasks, next })
        })
    }

    /// The envelope of a task that has ended. `None` while it runs, and when its record is gone.
    pub fn task_envelope<'a>(
        &'a self,
        task: &'a TaskRecord,
    ) -> BoxFuture<'a, store::Result<Option<Arc<Envelope>>>> {
        Box::pin(async move {
            if !task.has_ended() || task.unrecorded.is_some() {
                return Ok(task.unrecorded.clone());
            }
            let record = self.0.store.execution(&task.session, &task.id).await?;
            Ok(record.and_then(|record| match record.status {
                ExecutionStatus::Finished(envelope) => Some(envelope),
                _ => None,
            }))
        })
    }

    /// Asks for the end of a task. Returns its record, or `None` if there is none. A task that has ended stays as it
    /// is; one of another process is cancelled as soon as that process reads the request.
    pub fn cancel_task<'a>(&'a self, id: &'a str) -> BoxFuture<'a, store::Result<Option<Arc<TaskRecord>>>> {
        Box::pin(async move {
            let Some(task) =
                self.0.store.change_task(id, TaskChange::RequestCancel, self.0.clock.now()).await?
            else {
                return self.0.store.task(id).await;
            };
            let cancel = self.0.tasks.running().get(id).map(|running| running.cancel.clone());
            if let Some(cancel) = cancel {
                cancel.cancel();
            }
            self.0.tasks.report_change(id);
            Ok(Some(task))
        })
    }

    /// Reports changes of a task that runs in this process, and ends with it. `None` for any other task: its record has
    /// to be read from time to time.
    pub fn task_changes(&self, id: &str) -> Option<watch::Receiver<()>> {
        self.0.tasks.running().get(id).map(|running| running.changed.subscribe())
    }

    /// Waits until a task has ended, here or in another process. `None` if there is none.
    pub fn wait_for_task<'a>(&'a self, id: &'a str) -> BoxFuture<'a, store::Result<Option<Arc<TaskRecord>>>> {
        Box::pin(async move {
            loop {
                // Subscribed before the record is read, so that no change is missed.
                let changes = self.task_changes(id);
                let task = self.0.store.task(id).await?;
                if task.as_ref().is_none_or(|task| task.has_ended()) {
                    return Ok(task);
                }
                self.wait_for_task_change(changes).await;
            }
        })
    }

    /// Waits for a change that `changes` of [`Self::task_changes`] reports, or as long as it may take to notice one in
    /// another process.
    pub async fn wait_for_task_change(&self, changes: Option<watch::Receiver<()>>) {
        let has_changed = match changes {
            // An error means that the task has ended in this process, or was left to another.
            Some(mut changes) => changes.changed().await.is_ok(),
            None => false,
        };
        if !has_changed {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Runs the tasks of dead processes. Returns their number.
    pub fn resume_tasks(&self) -> BoxFuture<'_, store::Result<usize>> {
        Box::pin(async move {
            let adopted = self.0.store.adopt_tasks(ADOPTED_AT_A_TIME).await?;
            let count = adopted.len();
            adopted.into_iter().for_each(|task| self.start_task(task));
            Ok(count)
        })
    }

    /// Begins no task any more: those that wait are left to other processes, or to the next one.
    pub fn stop_tasks(&self) {
        self.0.tasks.permits.close();
    }

    /// The slot of a task; `None` if it waits or runs in this process already.
    pub(crate) fn enter_task(&self, id: &str) -> Option<TaskSlot> {
        let mut running = self.0.tasks.running();
        if running.contains_key(id) {
            return None;
        }
        let (cancel, changed) = (Cancel::new(), watch::Sender::new(()));
        running.insert(id.to_owned(), RunningTask { cancel: cancel.clone(), changed });
        Some(TaskSlot { orchestrator: self.clone(), id: id.to_owned(), cancel })
    }
}
