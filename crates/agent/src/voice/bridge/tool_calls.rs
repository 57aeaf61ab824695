//! The model's calls: each runs once, in a task of its own, and each id is answered exactly once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};
use toolwright_contract::{Envelope, ErrorKind, Failure, SideEffects};
use toolwright_orchestrator::store::SessionRecord;
use toolwright_orchestrator::{CallRequest, Cancel, Orchestrator, SessionRef, ToolCall, begun_task};

use super::Bridge;
use crate::calls::result_part;
use crate::event::{EventBody, ToolCallPart};
use crate::ids;
use crate::metrics::series;
use crate::voice::client::ClientOutput;
use crate::voice::transport::{Command, Connection, ModelCall};

/// Maximum number of concurrent calls; further ones are refused.
const MAX_OPEN: usize = 16;
/// Number of remembered ids, to recognise repeated calls.
const MAX_KNOWN: usize = 1000;

/// How long the end of a session waits for running writes.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);

/// A result, with the execution id of its call.
pub(super) type FinishedCall = (String, Arc<Envelope>);

/// The calls of a session, by execution id.
#[derive(Debug)]
pub(super) struct ToolCalls {
    open: HashMap<String, OpenCall>,
    /// The ids of the provider, with their connection and their execution ids.
    known: HashSet<(u32, String)>,
    known_order: VecDeque<(u32, String)>,
    digests: HashMap<String, [u8; 32]>,
    finished: mpsc::UnboundedSender<FinishedCall>,
    connection: u32,
    has_filled: bool,
    /// The ids of background calls that have not ended.
    pub background: HashSet<String>,
    /// Results that were sent but not yet mentioned by the model: they may be lost with the connection.
    unheard: Vec<(Instant, String)>,
}

#[derive(Debug)]
struct OpenCall {
    /// The provider's id.
    id: String,
    tool: String,
    /// The number of the connection on which it was made.
    connection: u32,
    started: Instant,
    cancel: Cancel,
    /// A read-only call, which may be cancelled.
    reads: bool,
    /// The model no longer waits for it.
    is_withdrawn: bool,
    /// The turn in the log, once that is written.
    turn: Option<Arc<str>>,
}

impl ToolCalls {
    pub fn new(finished: mpsc::UnboundedSender<FinishedCall>) -> Self {
        Self {
            open: HashMap::new(),
            known: HashSet::new(),
            known_order: VecDeque::new(),
            digests: HashMap::new(),
            finished,
            connection: 0,
            has_filled: false,
            background: HashSet::new(),
            unheard: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Begins a new connection, which does not know earlier calls. Returns the results that may have been lost.
    pub fn new_connection(&mut self) -> Vec<String> {
        self.connection += 1;
        self.unheard.drain(..).map(|(_, note)| note).collect()
    }

    /// The model has spoken since this time, so it has received the results before it.
    pub fn model_has_spoken(&mut self, since: Instant) {
        self.unheard.retain(|(sent, _)| *sent > since);
    }

    /// Whether the model waits for a result.
    pub fn blocks_model(&self) -> bool {
        self.open.values().any(|call| call.connection == self.connection && !call.is_withdrawn)
    }

    pub fn turn_written(&mut self, turn: &Arc<str>) {
        for call in self.open.values_mut().filter(|call| call.turn.is_none()) {
            call.turn = Some(Arc::clone(turn));
        }
    }

    fn oldest(&self) -> Option<Instant> {
        self.open.values().filter(|call| !call.is_withdrawn).map(|call| call.started).min()
    }

    /// Returns false for a repeated call on the same connection.
    fn remember(&mut self, id: &str) -> bool {
        let key = (self.connection, id.to_owned());
        if !self.known.insert(key.clone()) {
            return false;
        }
        self.known_order.push_back(key);
        if self.known_order.len() > MAX_KNOWN
            && let Some(oldest) = self.known_order.pop_front()
        {
            self.known.remove(&oldest);
            self.digests.remove(&oldest.1);
        }
        true
    }

    /// The provider's id, unless it is unusable or belongs to another call.
    fn execution_id(&mut self, call: &ToolCall, id: &str) -> String {
        let digest = call.digest();
        let is_taken = self.digests.get(id).is_some_and(|known| *known != digest);
        let execution = match ids::is_usable(id) && !is_taken {
            true => id.to_owned(),
            false => format!("call_{}", ids::random()),
        };
        self.digests.insert(execution.clone(), digest);
        execution
    }

    /// Cancels the calls that only read.
    pub fn cancel_reads(&self) {
        self.open.values().filter(|call| call.reads).for_each(|call| call.cancel.cancel());
    }
}

impl Bridge {
    /// Runs the calls of one message: reads concurrently, writes in order.
    pub(super) async fn model_calls(&mut self, calls: Vec<ModelCall>) {
        self.timers.activity();
        self.turn.has_calls = true;
        self.end_item();
        let (mut requests, mut executions) = (Vec::new(), Vec::new());
        for call in calls {
            if !self.calls.remember(&call.id) {
                tracing::warn!(session = self.session.id, call = call.id, "the model made a call twice");
                continue;
            }
            let (execution, request) = self.open_call(call).await;
            requests.push(request.position(executions.len()));
            executions.push(execution);
        }
        self.run_calls(requests, executions);
    }

    /// Logs and announces a call. Returns its execution id and its request, which says if the call is refused.
    async fn open_call(&mut self, call: ModelCall) -> (String, CallRequest) {
        let ModelCall { id, name: tool, args } = call;
        let (args, invalid) = match args {
            Ok(args) => (args, None),
            Err(invalid) => {
                (Value::String(invalid.text.chars().take(2000).collect()), Some(invalid.failure()))
            }
        };
        let refusal = invalid.or_else(|| (self.calls.open.len() >= MAX_OPEN).then(too_many));
        let mut tool_call = ToolCall { id: None, tool: tool.clone(), args };
        let execution = self.calls.execution_id(&tool_call, &id);
        tool_call.id = Some(execution.clone());
        let redacted = self.orchestrator.without_secrets(&self.session, &tool, &tool_call.args).await;
        self.log.call(ToolCallPart {
            id: execution.clone(),
            tool: tool.clone(),
            is_redacted: redacted.is_some(),
            args: redacted.unwrap_or_else(|| tool_call.args.clone()),
            is_client_tool: false,
        });
        self.send_to_client(ClientOutput::ToolStarted { call_id: execution.clone(), tool: tool.clone() });
        let reads = only_reads(&self.orchestrator, &self.session, &tool).await;
        let cancel = Cancel::new();
        let open = OpenCall {
            id,
            tool,
            connection: self.calls.connection,
            started: Instant::now(),
            cancel: cancel.clone(),
            reads,
            is_withdrawn: false,
            turn: None,
        };
        self.calls.open.insert(execution.clone(), open);
        let mut request =
            CallRequest::new(SessionRef::Id(self.session.id.clone()), tool_call).principal(&self.principal);
        request.cancel = reads.then_some(cancel);
        request.refusal = refusal;
        (execution, request)
    }

    fn run_calls(&self, requests: Vec<CallRequest>, executions: Vec<String>) {
        if requests.is_empty() {
            return;
        }
        let (orchestrator, session, finished) =
            (self.orchestrator.clone(), Arc::clone(&self.session), self.calls.finished.clone());
        tokio::spawn(async move {
            let report = |position: usize, envelope: &Arc<Envelope>| {
                if let Some(execution) = executions.get(position) {
                    // The bridge may have ended; the store has the result.
                    let _ = finished.send((execution.clone(), Arc::clone(envelope)));
                }
            };
            orchestrator.calls(&session, requests, report).await;
        });
    }

    /// A call has its envelope, which is logged, reported to the client and sent to the model.
    pub(super) async fn call_finished(&mut self, (execution, envelope): FinishedCall) {
        self.end_call(execution, Ok(&envelope)).await;
    }

    /// `Err` says why a call has no envelope.
    async fn end_call(&mut self, execution: String, end: Result<&Envelope, &Failure>) {
        let Some(call) = self.calls.open.remove(&execution) else { return };
        self.timers.activity();
        if self.calls.is_empty() {
            self.calls.has_filled = false;
        }
        self.shared.metrics.count(|metrics| metrics.tool_time.add_duration(call.started.elapsed()));
        self.orchestrator.measure(series::VOICE_CALL, call.started.elapsed());
        let failure = end.map_or_else(Some, |envelope| envelope.outcome.as_ref().err());
        let error = failure.map(|failure| failure.kind.as_str().to_owned());
        self.send_to_client(ClientOutput::ToolFinished {
            call_id: execution.clone(),
            tool: call.tool.clone(),
            error,
        });
        self.calls.background.extend(end.ok().and_then(begun_task).map(str::to_owned));
        let result = result_part(&self.orchestrator, &self.session, (&execution, &call.tool), end);
        let mut content = (*result.content).clone();
        match failure.and_then(|failure| failure.confirmation.as_deref()) {
            Some(request) => self.ask(&call.tool, &execution, call.turn.as_ref(), request, &mut content),
            None => self.log.event(call.turn.as_ref(), EventBody::ToolFinished { result }),
        }
        self.deliver(call, failure, content);
        self.refresh().await;
        self.reconnect_when_idle().await;
        self.flush_notes();
    }

    /// Answers the call on the connection that made it, even if the model has cancelled it. Late results, and results
    /// of cancelled writes, are sent as text.
    fn deliver(&mut self, call: OpenCall, failure: Option<&Failure>, content: Value) {
        let OpenCall { id, tool, connection, is_withdrawn, .. } = call;
        let is_current = connection == self.calls.connection && self.connection.is_some();
        let note = format!("[The result of the earlier call of `{tool}`: {content}]");
        if is_current {
            self.send(Command::Result { id, name: tool, content: Arc::new(content) });
            if !is_withdrawn {
                self.calls.unheard.truncate(MAX_OPEN);
                return self.calls.unheard.push((Instant::now(), note));
            }
        }
        let took_effect =
            failure.is_none_or(|failure| failure.partial_side_effects || failure.confirmation.is_some());
        if !is_withdrawn || took_effect {
            self.notes.push(note);
        }
    }

    /// The model has cancelled these calls: reads are cancelled, writes continue, and their results are sent later.
    pub(super) fn calls_cancelled(&mut self, ids: &[String]) {
        let current = self.calls.connection;
        for call in self.calls.open.values_mut() {
            if call.connection == current && ids.contains(&call.id) {
                call.is_withdrawn = true;
                if call.reads {
                    call.cancel.cancel();
                }
            }
        }
    }

    /// When to speak a filler.
    pub(super) fn filler_at(&self) -> Option<Instant> {
        let options = &self.shared.options;
        let can_say = self.connection.as_ref().is_some_and(Connection::can_say_filler);
        let is_due =
            can_say && options.filler.is_some() && !self.calls.has_filled && !self.speech.is_playing();
        is_due.then(|| self.calls.oldest()).flatten().map(|started| started + options.filler_after)
    }

    /// Speaks a filler while a tool runs.
    pub(super) fn say_filler(&mut self) {
        self.calls.has_filled = true;
        if let Some(filler) = self.shared.options.filler.clone() {
            self.shared.metrics.count(|metrics| metrics.fillers += 1);
            self.send(Command::Filler(filler));
        }
    }

    /// At the end of the session: cancels reads and waits for running writes, so that every call is answered. A
    /// longer write continues; the store gets its result.
    pub(super) async fn finish_calls(&mut self) {
        self.calls.cancel_reads();
        let deadline = Instant::now() + FINISH_TIMEOUT;
        while !self.calls.is_empty() || self.delegations.is_running() {
            tokio::select! {
                Some(finished) = self.finished_calls.recv() => self.call_finished(finished).await,
                Some(update) = self.delegations.updates.recv() => self.delegation_update(update).await,
                () = tokio::time::sleep_until(deadline) => break,
            }
        }
        let unfinished: Vec<_> =
            self.calls.open.iter().map(|(id, call)| (id.clone(), call.tool.clone())).collect();
        for (execution, tool) in unfinished {
            tracing::warn!(session = self.session.id, execution, tool, "a call outlasts its voice session");
            let failure = still_running(&execution);
            self.end_call(execution, Err(&failure)).await;
        }
    }
}

/// Whether cancelling a call of this tool has no side effects.
async fn only_reads(orchestrator: &Orchestrator, session: &SessionRecord, tool: &str) -> bool {
    let runtime = orchestrator.runtime_for(session).await.ok().flatten();
    let spec = runtime.as_ref().and_then(|runtime| runtime.toolset().metadata(tool));
    spec.is_some_and(|spec| spec.side_effects != SideEffects::Writes && spec.idempotent)
}

fn too_many() -> Failure {
    Failure::new(ErrorKind::RateLimit, format!("At most {MAX_OPEN} calls of a voice session run at a time."))
        .retry_after(1000)
        .suggest("Wait for the results of the other calls.")
}

fn still_running(execution: &str) -> Failure {
    let message = "The session ended while the call was running; it may still take effect.";
    let mut failure = Failure::new(ErrorKind::Transient, message)
        .suggest(format!("Look up the call `{execution}` in the history of calls."));
    failure.partial_side_effects = true;
    failure
}
