//! The bridge of one session between a client and a voice model. One task owns all state; it does not know the
//! provider.
//!
//! ```text
//! client ⇄ ClientQueue ⇄ bridge ⇄ Connection ⇄ model
//!                          ├─► orchestrator: calls, in tasks of their own; their results come back here
//!                          └─► conversation log
//! ```

mod client_side;
mod confirmations;
mod decisions;
mod delegations;
mod ending;
mod model_side;
mod read_back;
mod reconnect;
mod speech;
mod timers;
mod tool_calls;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::Instant;
use toolwright_contract::Principal;
use toolwright_orchestrator::capabilities::{Client, SendFuture};
use toolwright_orchestrator::store::SessionRecord;
use toolwright_orchestrator::{DeferredResult, Orchestrator};

use self::confirmations::Confirmations;
use self::delegations::Delegations;
use self::ending::Ending;
use self::speech::Speech;
use self::timers::Timers;
use self::tool_calls::{FinishedCall, ToolCalls};
use super::client::{
    ClientInput, ClientOutput, ClientQueue, CloseReason, ConfirmationPrompt, EndReason, SessionReady,
};
use super::resampler::Resampler;
use super::transport::{ConnectError, Connection, Event};
use super::turn_log::TurnLog;
use super::voice_agent::Shared;
use crate::ids;

/// Capacity of a client's input queue: 64 frames of 20 ms are more than a second.
const INPUT_QUEUE: usize = 64;

/// A client's connection to the bridge.
#[derive(Debug)]
pub struct VoiceClient {
    /// The client's messages and audio. Closed when the connection is lost.
    pub input: mpsc::Sender<ClientInput>,
    pub output: Arc<ClientQueue>,
}

/// The rates and the language of a connection.
#[derive(Debug, Clone)]
pub(super) struct ClientFormat {
    pub input_rate: u32,
    pub output_rate: u32,
    pub language: Option<String>,
}

/// Commands of the voice agent to a bridge.
#[derive(Debug)]
pub(super) enum BridgeCommand {
    /// A new connection replaces the current one.
    Attach {
        format: ClientFormat,
        reply: oneshot::Sender<VoiceClient>,
    },
    Shutdown,
}

/// A message of a tool to the client.
#[derive(Debug)]
struct ToolMessages(mpsc::UnboundedSender<Value>);

impl Client for ToolMessages {
    fn send(&self, message: Value) -> SendFuture {
        // The bridge receives until the session ends.
        let _ = self.0.send(message);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The state of a turn, from the user's input to the model's answer.
#[derive(Debug, Default)]
struct TurnState {
    /// The user's input has no answer of the model yet.
    is_open: bool,
    /// The user's words that are transcribed so far.
    user_text: String,
    user_started: Option<Instant>,
    /// When the last piece arrived; `None` once the utterance is complete.
    user_piece_at: Option<Instant>,
    assistant_text: String,
    /// The length of the model's text when it was last asked to read a preview back.
    requested_at: usize,
    has_audio: bool,
    has_calls: bool,
    is_interrupted: bool,
    /// The model has ended its turn, but the transcript of the user is still missing.
    awaits_transcript: bool,
}

/// One session.
pub(super) struct Bridge {
    shared: Arc<Shared>,
    orchestrator: Orchestrator,
    session: Arc<SessionRecord>,
    principal: Arc<Principal>,
    format: ClientFormat,
    queue: Arc<ClientQueue>,
    /// `None` while no client is connected.
    input: Option<mpsc::Receiver<ClientInput>>,
    control: mpsc::Receiver<BridgeCommand>,
    connection: Option<Connection>,
    connecting: Option<BoxFuture<'static, Result<Connection, ConnectError>>>,
    reconnect: reconnect::Reconnect,
    to_model: Resampler,
    to_client: Resampler,
    speech: Speech,
    turn: TurnState,
    calls: ToolCalls,
    finished_calls: mpsc::UnboundedReceiver<FinishedCall>,
    deferred: broadcast::Receiver<DeferredResult>,
    tool_messages: mpsc::UnboundedReceiver<Value>,
    client: Arc<dyn Client>,
    confirmations: Confirmations,
    delegations: Delegations,
    ending: Option<Ending>,
    /// Texts of the server that wait until the model can receive them.
    notes: Vec<String>,
    log: TurnLog,
    timers: Timers,
    suppress_audio: bool,
    suppress_transcript: bool,
    is_muted: bool,
    is_blocked: bool,
    end: Option<EndReason>,
}

/// The initial parts of a bridge.
pub(super) struct NewBridge {
    pub shared: Arc<Shared>,
    pub session: Arc<SessionRecord>,
    pub principal: Arc<Principal>,
    pub format: ClientFormat,
    pub control: mpsc::Receiver<BridgeCommand>,
    pub connection: Connection,
}

impl Bridge {
    /// A session with a connected model, and the client's connection to it.
    pub fn new(new: NewBridge, resume_token: String) -> (Self, VoiceClient) {
        let NewBridge { shared, session, principal, format, control, connection } = new;
        let orchestrator = shared.orchestrator().clone();
        let (finished, finished_calls) = mpsc::unbounded_channel();
        let (messages, tool_messages) = mpsc::unbounded_channel();
        let client: Arc<dyn Client> = Arc::new(ToolMessages(messages));
        orchestrator.attach(&session.id, Arc::clone(&client));
        let (input, received) = mpsc::channel(INPUT_QUEUE);
        let queue = Arc::<ClientQueue>::default();
        let options = &shared.options;
        let bridge = Self {
            deferred: orchestrator.deferred_results_for(&session.id),
            log: TurnLog::new(orchestrator.clone(), &session.id, &options.model),
            to_model: Resampler::new(format.input_rate, options.provider.input_rate),
            to_client: Resampler::new(options.provider.output_rate, format.output_rate),
            speech: Speech::new(format.output_rate),
            timers: Timers::new(options),
            delegations: Delegations::new(),
            queue: Arc::clone(&queue),
            input: Some(received),
            connection: Some(connection),
            connecting: None,
            reconnect: reconnect::Reconnect::default(),
            turn: TurnState::default(),
            calls: ToolCalls::new(finished),
            finished_calls,
            tool_messages,
            client,
            confirmations: Confirmations::default(),
            ending: None,
            notes: Vec::new(),
            suppress_audio: false,
            suppress_transcript: false,
            is_muted: false,
            is_blocked: false,
            end: None,
            shared,
            orchestrator,
            session,
            principal,
            format,
            control,
        };
        bridge.send_to_client(ClientOutput::Ready(bridge.ready(resume_token, false)));
        (bridge, VoiceClient { input, output: queue })
    }

    fn ready(&self, resume_token: String, is_resumed: bool) -> SessionReady {
        let options = &self.shared.options;
        SessionReady {
            session: self.session.id.clone(),
            resume_token,
            is_resumed,
            input_rate: self.format.input_rate,
            output_rate: self.format.output_rate,
            grace_s: options.grace.as_secs(),
            idle_s: options.idle.as_secs(),
            max_s: options.max.as_secs(),
        }
    }

    /// Runs the session to its end.
    pub async fn run(mut self) {
        // The state of an earlier process or connection: suppressed output, a requested end, open requests.
        self.refresh().await;
        self.load_questions().await;
        self.flush_notes();
        while self.end.is_none() {
            self.step().await;
        }
        self.close().await;
    }

    async fn step(&mut self) {
        let is_detached = self.input.is_none();
        let queue = Arc::clone(&self.queue);
        let deadline = self.next_deadline();
        tokio::select! {
            Some(control) = self.control.recv() => self.control(control).await,
            input = receive(&mut self.input) => match input {
                Some(input) => self.client_input(input).await,
                None => self.client_lost(),
            },
            // A slow client delays reading from the model, so that memory stays bounded.
            event = next_event(&mut self.connection, &queue, is_detached) => self.model_event(event).await,
            connected = connected(&mut self.connecting) => self.connected(connected).await,
            Some(finished) = self.finished_calls.recv() => self.call_finished(finished).await,
            deferred = self.deferred.recv() => self.deferred_result(deferred).await,
            Some(message) = self.tool_messages.recv() => self.tool_message(&message).await,
            Some(update) = self.delegations.updates.recv() => self.delegation_update(update).await,
            () = tokio::time::sleep_until(deadline) => self.deadline().await,
        }
    }

    async fn control(&mut self, control: BridgeCommand) {
        match control {
            BridgeCommand::Shutdown => self.end = Some(EndReason::Shutdown),
            BridgeCommand::Attach { format, reply } => self.attach(format, reply),
        }
    }

    /// Gives the session to a new connection, which also receives what was not sent on the old one.
    fn attach(&mut self, format: ClientFormat, reply: oneshot::Sender<VoiceClient>) {
        let token = self.shared.new_token(&self.session.id);
        let (input, received) = mpsc::channel(INPUT_QUEUE);
        let old = std::mem::take(&mut self.queue);
        old.move_to(&self.queue);
        old.push(ClientOutput::Closed(CloseReason::Replaced));
        let options = &self.shared.options;
        self.to_model = Resampler::new(format.input_rate, options.provider.input_rate);
        if format.output_rate != self.format.output_rate {
            self.queue.drop_audio();
            self.to_client = Resampler::new(options.provider.output_rate, format.output_rate);
            self.speech.change_rate(format.output_rate);
        }
        self.format = format;
        for question in self.confirmations.open() {
            self.queue.push(ClientOutput::ConfirmationRequested(question));
        }
        if self.suppress_audio || self.suppress_transcript {
            let (audio, transcript) = (self.suppress_audio, self.suppress_transcript);
            self.queue.push(ClientOutput::Suppressed { audio, transcript });
        }
        self.queue.push_first(ClientOutput::Ready(self.ready(token, true)));
        self.input = Some(received);
        self.timers.client_is_back();
        self.shared.metrics.count(|metrics| metrics.resumes += 1);
        // Write errors are reported by the read side.
        let _ = reply.send(VoiceClient { input, output: Arc::clone(&self.queue) });
    }

    fn client_lost(&mut self) {
        self.input = None;
        self.timers.client_is_gone(self.shared.options.grace);
    }

    /// Sends an output to the client, unless it is a suppressed transcript. Audio goes through `send_audio`.
    fn send_to_client(&self, output: ClientOutput) {
        if self.suppress_transcript && matches!(output, ClientOutput::Transcript { .. }) {
            return;
        }
        self.queue.push(output);
        if self.input.is_none() {
            self.queue.trim();
        }
    }

    /// The farewell is played even while audio is suppressed.
    fn is_audio_suppressed(&self) -> bool {
        self.suppress_audio && !self.ending.as_ref().is_some_and(Ending::awaits_farewell)
    }

    async fn tool_message(&mut self, message: &Value) {
        if message.get("type").is_some_and(|kind| kind == "timeout") {
            return self.blocked(message).await;
        }
        self.send_to_client(ClientOutput::Message { text: None, data: Some(message.clone()) });
    }

    fn question(&self, id: &str) -> Option<ConfirmationPrompt> {
        self.confirmations.open().find(|question| question.id == id)
    }

    fn new_item_id() -> String {
        format!("item_{}", ids::random())
    }
}

async fn receive(input: &mut Option<mpsc::Receiver<ClientInput>>) -> Option<ClientInput> {
    match input {
        Some(input) => input.recv().await,
        None => std::future::pending().await,
    }
}

async fn next_event(connection: &mut Option<Connection>, queue: &ClientQueue, is_detached: bool) -> Event {
    // Without a client, the oldest audio is dropped.
    if !is_detached {
        queue.has_room().await;
    }
    match connection {
        Some(connection) => connection.next().await,
        None => std::future::pending().await,
    }
}

async fn connected(
    connecting: &mut Option<BoxFuture<'static, Result<Connection, ConnectError>>>,
) -> Result<Connection, ConnectError> {
    match connecting {
        Some(future) => {
            let result = future.await;
            *connecting = None;
            result
        }
        None => std::future::pending().await,
    }
}
