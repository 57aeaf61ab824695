//! The agent: starts turns, continues them, stops them, and reads their logs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwright_contract::Principal;
use toolwright_orchestrator::spans::Span;
use toolwright_orchestrator::store::{ConversationLog, SessionRecord, SessionStatus};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_providers::Provider;

use crate::conversation::{Conversation, LoggedTurn};
use crate::error::Error;
use crate::event::{EventBody, InputPart, TurnOutcome, UserMessage};
use crate::event_stream::EventStream;
use crate::ids;
use crate::live_turn::LiveTurn;
use crate::log_writer::{LogWriter, OpenOutcome, WriteError, turn_of_writer};
use crate::message::Message;
use crate::metrics::{AgentMetrics, Metrics};
use crate::model::Model;
use crate::pending_turns::Waiting;
use crate::request::{ClientResult, TurnInput, TurnRequest};
use crate::settings::AgentOptions;
use crate::spans::AgentObserver;
use crate::toolbox::{Toolbox, ToolboxCache};
use crate::turn::TurnRun;
use crate::turn_context::TurnContext;

/// The longest id of a message.
const MAX_MESSAGE_ID_BYTES: usize = 256;

/// Converses with one model in any number of sessions. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Agent(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub orchestrator: Orchestrator,
    pub model: Model,
    pub options: Arc<AgentOptions>,
    toolboxes: ToolboxCache,
    /// The turns that run in this process, by session.
    running: Mutex<HashMap<String, Arc<LiveTurn>>>,
    /// The turns that wait for a confirmation.
    pub waiting: Waiting,
    pub metrics: Metrics,
    pub observer: Option<Arc<dyn AgentObserver>>,
}

/// A turn that was started, continued or already present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub session: String,
    /// The id of the user message.
    pub id: String,
    /// The id of the assistant's message.
    pub reply: String,
    /// The position before the turn's first event: reading the log after it replays the whole turn.
    pub start: u64,
    /// The position before the first event of this request; the end of the log when the request added nothing.
    pub resumed_at: u64,
    /// False when the message was already in the log and nothing had to run.
    pub is_new: bool,
}

/// Options of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunOptions {
    pub principal: Option<Arc<Principal>>,
    pub context: Arc<TurnContext>,
    pub replaces: Option<String>,
}

impl Agent {
    /// An agent with this model. Must be called in a tokio runtime: a background task receives the results of calls
    /// that waited for approval.
    pub fn new(orchestrator: Orchestrator, model: Model, options: AgentOptions) -> Self {
        Self::with_observer(orchestrator, model, options, None)
    }

    /// As [`Self::new`], with an observer of turns and requests.
    pub fn with_observer(
        orchestrator: Orchestrator,
        model: Model,
        options: AgentOptions,
        observer: Option<Arc<dyn AgentObserver>>,
    ) -> Self {
        let agent = Self(Arc::new(Inner {
            metrics: Metrics::new(model.provider(), model.name()),
            observer,
            orchestrator,
            model,
            options: Arc::new(options),
            toolboxes: ToolboxCache::default(),
            running: Mutex::default(),
            waiting: Waiting::default(),
        }));
        agent.receive_deferred_results();
        agent.watch_waiting();
        agent
    }

    pub fn model(&self) -> &Model {
        &self.0.model
    }

    /// Turns, steps, tokens and errors since the start.
    pub fn metrics(&self) -> AgentMetrics {
        self.0.metrics.read()
    }

    pub fn options(&self) -> &AgentOptions {
        &self.0.options
    }

    /// Starts a turn, or returns the one that this message has started before. The turn runs in a task of its own.
    ///
    /// A turn whose process has died, or whose model failed, is continued; any other is returned unchanged.
    pub async fn start(&self, request: TurnRequest) -> Result<Turn, Error> {
        let TurnRequest {
            session,
            mode,
            input,
            principal,
            history,
            instructions,
            tools,
            client_tools,
            replaces,
        } = request;
        // Voice sessions belong to the voice agent.
        if self.session(&session).await?.mode != mode {
            return Err(Error::WrongMode(session));
        }
        let context = Arc::new(TurnContext { history, instructions, access: tools, client_tools });
        let run = RunOptions { principal, context, replaces };
        match input {
            TurnInput::Message(message) => {
                check_message(&message, self.0.options.max_message_bytes)?;
                self.start_message(&session, message, run).await
            }
            TurnInput::Continue { id }
                if run.context.history.as_ref().is_some_and(|history| !history.is_empty()) =>
            {
                check_id(&id)?;
                self.start_message(&session, UserMessage { id, parts: Vec::new() }, run).await
            }
            TurnInput::Continue { .. } => Err(Error::EmptyMessage),
            TurnInput::ClientResults(results) => self.continue_with_results(&session, results, run).await,
        }
    }

    async fn start_message(
        &self,
        id: &str,
        message: UserMessage,
        mut run: RunOptions,
    ) -> Result<Turn, Error> {
        let conversation = Conversation::load(&self.0.orchestrator, id).await?;
        // Also when the session has ended: the turn is in the log.
        if let Some(turn) = conversation.turn(&message.id)
            && (!is_resumable(turn) || self.is_run(id, &message.id).await?)
        {
            return Ok(existing_turn(id, turn, conversation.end));
        }
        let session = self.active_session(id).await?;
        let mut writer = match self.open_log(id, &message.id, conversation).await? {
            OpenOutcome::Opened(writer) => writer,
            // The same message was sent twice at once.
            OpenOutcome::Busy(turn) if turn == message.id => return self.found_running(id, &turn).await,
            OpenOutcome::Busy(turn) => return Err(Error::Busy { turn }),
        };
        let resumed_at = writer.conversation.end;
        // The turn may have been started, or have ended, before the log was opened.
        let known = writer.conversation.turn(&message.id).map(|turn| (turn.clone(), is_resumable(turn)));
        if let Some((turn, false)) = &known {
            let turn = existing_turn(id, turn, resumed_at);
            writer.close().await;
            return Ok(turn);
        }
        if let Some((turn, _)) = &known {
            run.context = Arc::clone(&turn.context);
        }
        let prepared = self.prepare(&session, &run, &message.id, &writer.conversation, known.is_some());
        let (context, note) = match prepared.await {
            Ok(prepared) => prepared,
            Err(error) => {
                writer.close().await;
                return Err(error);
            }
        };
        let events = match &known {
            Some(_) => vec![EventBody::TurnResumed],
            None => {
                let reply = format!("msg_{}", ids::random());
                let (replaces, context) = (run.replaces, run.context);
                vec![EventBody::TurnStarted { message: message.clone(), reply, note, replaces, context }]
            }
        };
        self.settle_earlier_turns(&session, &mut writer, &message.id).await?;
        writer.extend(events);
        let mut run = self.run(*writer, context);
        if known.is_none() {
            run.sent_ahead = Some(run.send_request());
        }
        commit_events(&mut run.writer, Vec::new()).await?;
        self.spawn(run, resumed_at)
    }

    /// The session's tools for this run. For a new turn, resets the budget and rejects the calls that still wait in
    /// the turns that it replaces.
    async fn prepare(
        &self,
        session: &Arc<SessionRecord>,
        run: &RunOptions,
        turn: &str,
        conversation: &Conversation,
        is_known: bool,
    ) -> Result<(RunContext, Option<String>), Error> {
        let context = self.run_context(session, run, turn).await?;
        if let Some(replaced) = run.replaces.as_deref().filter(|_| !is_known) {
            self.decline_replaced(&context, conversation, replaced).await?;
        }
        let note = match is_known {
            true => None,
            false => self.0.orchestrator.begin_turn(&session.id).await?.message,
        };
        Ok((context, note))
    }

    /// What a run needs in addition to its log.
    pub(crate) async fn run_context(
        &self,
        session: &Arc<SessionRecord>,
        run: &RunOptions,
        turn: &str,
    ) -> Result<RunContext, Error> {
        let Inner { orchestrator, model, .. } = &*self.0;
        let principal = run.principal.clone().unwrap_or_else(|| Arc::new(session.principal.clone()));
        let session = match session.principal == *principal {
            true => Arc::clone(session),
            false => Arc::new(SessionRecord { principal: (*principal).clone(), ..(**session).clone() }),
        };
        let runtime = orchestrator.runtime_for(&session).await?;
        let runtime = runtime.ok_or_else(|| Error::ToolsetUnloaded(session.id.clone()))?;
        let toolbox = self.toolbox(&runtime, &session, model.view_provider(), &run.context)?;
        Ok(RunContext { session, principal, turn: turn.into(), toolbox, context: Arc::clone(&run.context) })
    }

    /// The prompt and the tools of a session, in the form of a provider.
    pub(crate) fn toolbox(
        &self,
        runtime: &Runtime,
        session: &SessionRecord,
        provider: &'static Provider,
        additions: &TurnContext,
    ) -> Result<Toolbox, Error> {
        let Inner { orchestrator, options, toolboxes, .. } = &*self.0;
        toolboxes.get(orchestrator, runtime, session, provider, options, additions)
    }

    async fn continue_with_results(
        &self,
        id: &str,
        results: Vec<ClientResult>,
        mut run: RunOptions,
    ) -> Result<Turn, Error> {
        let session = self.active_session(id).await?;
        let conversation = Conversation::load(&self.0.orchestrator, id).await?;
        let first = results.first().map(|result| result.call_id.clone()).unwrap_or_default();
        let turn = conversation.turn_of_call(&first).map(|turn| turn.id.to_string());
        let turn = turn.ok_or_else(|| Error::UnknownClientCall(first.clone()))?;
        let mut writer = match self.open_log(id, &turn, conversation).await? {
            OpenOutcome::Opened(writer) => writer,
            OpenOutcome::Busy(turn) => return Err(Error::Busy { turn }),
        };
        let resumed_at = writer.conversation.end;
        let Some(logged) = writer.conversation.turn(&turn) else {
            return Err(Error::UnknownClientCall(first));
        };
        let parts = match crate::client_results::parts(logged, results) {
            Ok(parts) => parts,
            Err(error) => {
                writer.close().await;
                return Err(error);
            }
        };
        // All results were sent before.
        if parts.is_empty() {
            let turn = existing_turn(id, logged, resumed_at);
            writer.close().await;
            return Ok(turn);
        }
        run.context = Arc::clone(&logged.context).continued_by(&run.context);
        let context = match self.run_context(&session, &run, &turn).await {
            Ok(context) => context,
            Err(error) => {
                writer.close().await;
                return Err(error);
            }
        };
        commit_events(&mut writer, vec![EventBody::TurnResumed, EventBody::ClientResults { results: parts }])
            .await?;
        self.spawn(self.run(*writer, context), resumed_at)
    }

    /// Runs a turn in a task of its own.
    pub(crate) fn spawn(&self, run: TurnRun, resumed_at: u64) -> Result<Turn, Error> {
        let session = run.session.id.clone();
        let logged = run.logged().ok_or_else(|| Error::UnknownSession(session.clone()))?;
        let turn = Turn { is_new: true, ..existing_turn(&session, logged, resumed_at) };
        let live = Arc::clone(&run.writer.live);
        self.running().insert(session.clone(), Arc::clone(&live));
        let agent = self.clone();
        tokio::spawn(async move {
            run.run().await;
            agent.remove_running(&session, &live);
        });
        Ok(turn)
    }

    pub(crate) fn run(&self, writer: LogWriter, context: RunContext) -> TurnRun {
        let RunContext { session, principal, turn, toolbox, context } = context;
        TurnRun {
            agent: Arc::clone(&self.0),
            orchestrator: self.0.orchestrator.clone(),
            options: Arc::clone(&self.0.options),
            span: self.0.observer.is_some().then(|| Span::begin(None)),
            cancelled: TurnRun::cancellation(&writer, &self.0.options),
            session,
            principal,
            writer,
            turn,
            toolbox,
            context,
            sent_ahead: None,
            secret_args: HashMap::new(),
        }
    }

    /// The events of a session after a position; 0 for all. The stream follows the turn that runs, in this process or
    /// in another, and ends when it ends or pauses. If the process of a turn dies, the stream ends without
    /// [`EventBody::TurnEnded`].
    pub async fn events(&self, session: &str, after: u64) -> Result<EventStream, Error> {
        self.session(session).await?;
        let live = self.running().get(session).cloned();
        Ok(EventStream::new(self.0.orchestrator.clone(), session.to_owned(), after, live))
    }

    /// The turn that runs now, in this process or in another.
    pub async fn running_turn(&self, session: &str) -> Result<Option<Turn>, Error> {
        self.session(session).await?;
        let Some(writer) = self.0.orchestrator.store().log_writer(session).await? else { return Ok(None) };
        let conversation = Conversation::load(&self.0.orchestrator, session).await?;
        Ok(conversation
            .turn(turn_of_writer(&writer))
            .map(|logged| existing_turn(session, logged, conversation.end)))
    }

    /// Stops the running turn: reads are cancelled, writes finish and are recorded. Returns false when no turn runs.
    pub async fn stop(&self, session: &str) -> Result<bool, Error> {
        let record = self.session(session).await?;
        let live = self.running().get(session).cloned();
        if let Some(live) = live {
            live.stop();
            return Ok(true);
        }
        self.stop_elsewhere(&record).await
    }

    /// All messages of a session, including calls that wait for approval. First records what a crash has left
    /// unrecorded.
    pub async fn history(&self, session: &str) -> Result<Vec<Message>, Error> {
        let record = self.session(session).await?;
        Ok(self.load_recovered(&record).await?.messages())
    }

    /// Waits until no turn runs in this process, for a clean shutdown. Does not stop turns.
    pub async fn wait_until_idle(&self) {
        loop {
            let Some(live) = self.running().values().next().cloned() else { return };
            let mut progress = live.progress();
            // An error means that the turn has ended.
            let _ = progress.wait_for(|progress| progress.is_over).await;
            tokio::task::yield_now().await;
        }
    }

    /// Stops all turns of this process.
    pub fn stop_all(&self) {
        self.running().values().for_each(|live| live.stop());
    }

    pub(crate) async fn session(&self, id: &str) -> Result<Arc<SessionRecord>, Error> {
        let session = self.0.orchestrator.session(id).await?;
        session.ok_or_else(|| Error::UnknownSession(id.to_owned()))
    }

    pub(crate) async fn active_session(&self, id: &str) -> Result<Arc<SessionRecord>, Error> {
        let session = self.session(id).await?;
        if session.status == SessionStatus::Active {
            Ok(session)
        } else {
            Err(Error::SessionEnded(id.to_owned()))
        }
    }

    /// Whether a process runs this turn.
    async fn is_run(&self, session: &str, turn: &str) -> Result<bool, Error> {
        let writer = self.0.orchestrator.store().log_writer(session).await?;
        Ok(writer.is_some_and(|writer| turn_of_writer(&writer) == turn))
    }

    async fn found_running(&self, session: &str, turn: &str) -> Result<Turn, Error> {
        let conversation = Conversation::load(&self.0.orchestrator, session).await?;
        let logged = conversation.turn(turn).ok_or_else(|| Error::Busy { turn: turn.to_owned() })?;
        Ok(existing_turn(session, logged, conversation.end))
    }

    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveTurn>>> {
        self.0.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn remove_running(&self, session: &str, live: &Arc<LiveTurn>) {
        let mut running = self.running();
        if running.get(session).is_some_and(|known| Arc::ptr_eq(known, live)) {
            running.remove(session);
        }
    }
}

/// What a run needs in addition to its log.
#[derive(Debug)]
pub(crate) struct RunContext {
    /// With the principal of the current request.
    pub session: Arc<SessionRecord>,
    pub principal: Arc<Principal>,
    pub turn: Arc<str>,
    pub toolbox: crate::toolbox::Toolbox,
    pub context: Arc<TurnContext>,
}

pub(crate) fn existing_turn(session: &str, turn: &LoggedTurn, resumed_at: u64) -> Turn {
    Turn {
        session: session.to_owned(),
        id: turn.id.to_string(),
        reply: turn.reply.id.clone(),
        start: turn.start,
        resumed_at,
        is_new: false,
    }
}

/// Whether the turn continues when its message is sent again: its process has died, or its model failed.
fn is_resumable(turn: &LoggedTurn) -> bool {
    matches!(turn.reply.outcome, None | Some(TurnOutcome::Failed { .. }))
}

pub(crate) async fn commit_events(writer: &mut LogWriter, events: Vec<EventBody>) -> Result<(), Error> {
    writer.commit(events).await.map_err(|error| match error {
        WriteError::Store(error) => Error::Store(error),
        WriteError::Lost => Error::Busy { turn: String::new() },
    })
}

fn check_id(id: &str) -> Result<(), Error> {
    let is_valid = !id.is_empty() && id.len() <= MAX_MESSAGE_ID_BYTES;
    if is_valid { Ok(()) } else { Err(Error::MessageId { limit: MAX_MESSAGE_ID_BYTES }) }
}

fn check_message(message: &UserMessage, limit: usize) -> Result<(), Error> {
    check_id(&message.id)?;
    let bytes = message.bytes();
    if bytes > limit {
        return Err(Error::MessageTooLarge { bytes, limit });
    }
    let is_empty = |part: &InputPart| matches!(part, InputPart::Text { text } if text.trim().is_empty());
    if message.parts.iter().all(is_empty) {
        return Err(Error::EmptyMessage);
    }
    let is_image = |part: &InputPart| match part {
        InputPart::Image { url } => url.starts_with("https://") || url.starts_with("data:image/"),
        InputPart::Text { .. } => true,
    };
    if message.parts.iter().all(is_image) { Ok(()) } else { Err(Error::Image) }
}
