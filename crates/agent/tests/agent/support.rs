//! An agent with native tools that record their runs, on any store.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use toolwright_agent::{
    Agent, AgentOptions, ApprovalAnswer, AssistantMessage, Event, EventBody, Message, Model, ModelSettings,
    Timeouts, Turn, TurnOutcome, TurnRequest, UserMessage,
};
use toolwright_contract::{ExecutionMode, Mode, Principal, Success, ToolSpec};
use toolwright_orchestrator::capabilities::Secret;
use toolwright_orchestrator::clock::Clock;
use toolwright_orchestrator::policy::Policy;
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{Memory, Store};
use toolwright_orchestrator::{Orchestrator, Runtime};
use toolwright_registry::prompt::{PromptFiles, SharedPromptFiles};
use toolwright_registry::toolset::{Implementation, Tool, Toolset};

use crate::scripted_model::ScriptedModel;

pub const KEY: &str = "sk-secret-key";

pub struct Fixture {
    pub agent: Agent,
    pub orchestrator: Orchestrator,
    /// Tool and arguments of every run.
    pub runs: Arc<Mutex<Vec<(String, Value)>>>,
    pub started: Arc<AtomicUsize>,
    /// Opened for calls with `wait`.
    pub open: Arc<Semaphore>,
    pub clock: Clock,
}

pub fn settings(server: &ScriptedModel, provider: &str) -> ModelSettings {
    let base = match provider {
        "openai-chat" | "openai-responses" => "/v1",
        _ => "",
    };
    ModelSettings {
        provider: provider.to_owned(),
        model: "test-model".to_owned(),
        base_url: Some(format!("http://{}{base}", server.address)),
        key: Some(Secret(KEY.to_owned())),
        timeouts: Timeouts {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(20),
            idle: Duration::from_secs(20),
            retries: 2,
            backoff: Duration::from_millis(1),
        },
    }
}

pub fn options() -> AgentOptions {
    let files = PromptFiles { core: "# Core\n\nBe brief.".to_owned(), ..PromptFiles::default() };
    AgentOptions { max_steps: 6, prompt_files: SharedPromptFiles::new(files), ..AgentOptions::default() }
}

impl Fixture {
    pub fn new(server: &ScriptedModel, provider: &str) -> Self {
        Self::on(
            Store::Memory(Memory::default()),
            Model::remote(settings(server, provider)).unwrap(),
            options(),
        )
    }

    pub fn on(store: Store, model: Model, options: AgentOptions) -> Self {
        let (runs, open, started) =
            (Arc::<Mutex<Vec<(String, Value)>>>::default(), Arc::new(Semaphore::new(0)), Arc::default());
        let (toolset, errors) = Toolset::empty().with_declared(Path::new("tools.json"), tools());
        assert_eq!(errors, []);
        let mut builder = Runtime::builder(Arc::new(toolset), ".");
        for name in ["kb_search", "note_add", "mail_send", "login", "report_write", "session_change"] {
            let (runs, open, started): (_, _, Arc<AtomicUsize>) =
                (Arc::clone(&runs), Arc::clone(&open), Arc::clone(&started));
            builder = builder.native(name, move |args: Value, _| {
                let (runs, open, started) = (Arc::clone(&runs), Arc::clone(&open), Arc::clone(&started));
                async move {
                    started.fetch_add(1, Ordering::SeqCst);
                    if args["wait"] == true || args["query"] == "wait" {
                        open.acquire().await.unwrap().forget();
                    }
                    runs.lock().unwrap().push((name.to_owned(), args.clone()));
                    let intents = args["intents"].as_array().cloned().unwrap_or_default();
                    let data = match name {
                        "kb_search" if args["query"] == "nothing" => json!({ "results": [] }),
                        "kb_search" => json!({ "results": [{ "id": "doc:quiet-room", "title": "Quiet room",
                            "snippet": "Studio B is quiet.", "url": null, "score": 0.9 }] }),
                        _ => json!({ "done": name }),
                    };
                    Ok(Success { intents, ..Success::from(data) })
                }
            });
        }
        let clock = Clock::manual(1_000_000);
        let orchestrator = Orchestrator::builder(builder.build()).store(store).policy(Policy::default());
        let orchestrator = orchestrator.clock(clock.clone()).build().unwrap();
        let agent = Agent::new(orchestrator.clone(), model, options);
        Self { agent, orchestrator, runs, started, open, clock }
    }

    /// A process that has no agent.
    pub fn without_agent(self) -> Orchestrator {
        self.orchestrator
    }

    pub fn principal() -> Principal {
        Principal { id: "mira".to_owned(), org: Some("studio".to_owned()), roles: Vec::new() }
    }

    pub async fn session(&self) -> String {
        let mut new = NewSession::new("browser", Mode::Text);
        new.principal = Self::principal();
        self.orchestrator.create_session(new).await.unwrap().id.clone()
    }

    pub async fn start(&self, session: &str, id: &str, text: &str) -> Turn {
        let request = TurnRequest::message(session, UserMessage::text(id, text));
        self.agent.start(request).await.unwrap()
    }

    /// Sends a message and waits until its turn ends or pauses. Returns all of its events.
    pub async fn say(&self, session: &str, id: &str, text: &str) -> Vec<Event> {
        let turn = self.start(session, id, text).await;
        self.events(session, turn.start).await
    }

    pub async fn events(&self, session: &str, after: u64) -> Vec<Event> {
        let mut stream = self.agent.events(session, after).await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = stream.next().await.unwrap() {
            events.push(event);
        }
        events
    }

    pub async fn answer(&self, session: &str, approval_id: &str, approved: bool) -> Vec<Event> {
        let turn = self.agent.answer(answer(session, approval_id, approved)).await.unwrap();
        self.events(session, turn.start).await
    }

    /// The last message of the assistant.
    pub async fn reply(&self, session: &str) -> AssistantMessage {
        match self.agent.history(session).await.unwrap().pop() {
            Some(Message::Assistant(reply)) => reply,
            other => panic!("{other:?}"),
        }
    }

    pub fn runs(&self) -> Vec<(String, Value)> {
        self.runs.lock().unwrap().clone()
    }

    /// The approval that the last reply waits for.
    pub async fn pending_approval(&self, session: &str) -> String {
        let reply = self.reply(session).await;
        let waiting = reply.tools().find(|tool| tool.awaits_approval());
        waiting.expect("a call waits").approval.clone().unwrap().id
    }
}

pub fn answer(session: &str, approval_id: &str, approved: bool) -> ApprovalAnswer {
    ApprovalAnswer {
        session: session.to_owned(),
        approval_id: approval_id.to_owned(),
        approved,
        reason: None,
        args: None,
        principal: Arc::new(Fixture::principal()),
    }
}

pub fn outcome(events: &[Event]) -> TurnOutcome {
    match &events.last().unwrap().body {
        EventBody::TurnEnded { outcome } => outcome.clone(),
        other => panic!("the turn has not ended: {other:?}"),
    }
}

/// The text of all events.
pub fn text(events: &[Event]) -> String {
    let texts = events.iter().filter_map(|event| match &event.body {
        EventBody::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The results of all calls.
pub fn results(events: &[Event]) -> Vec<Value> {
    let results = events.iter().filter_map(|event| match &event.body {
        EventBody::ToolFinished { result } => Some((*result.content).clone()),
        _ => None,
    });
    results.collect()
}

/// Waits until a condition is true.
pub async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}

fn tools() -> Vec<Tool> {
    let query = json!({ "type": "object", "additionalProperties": false, "required": ["query"],
        "properties": { "query": { "type": "string", "description": "What to look for." } } });
    let text = json!({ "type": "object", "additionalProperties": false, "required": ["text"],
        "properties": { "text": { "type": "string" }, "wait": { "type": "boolean" } } });
    let login = json!({ "type": "object", "additionalProperties": false, "required": ["password"],
        "properties": { "password": { "type": "string", "writeOnly": true } } });
    let intents = json!({ "type": "object", "additionalProperties": false, "required": ["intents"],
        "properties": { "intents": { "type": "array", "items": { "type": "object" } } } });
    let report = tool("report_write", "action", "writes", false, false, text.clone());
    let spec = ToolSpec { execution: Some(ExecutionMode::Background), ..report.spec };
    vec![
        Tool { spec, ..report },
        tool("kb_search", "retrieval", "read_only", true, false, query),
        tool("note_add", "action", "writes", false, false, text.clone()),
        tool("mail_send", "action", "writes", false, true, text),
        tool("login", "action", "writes", false, false, login),
        tool("session_change", "action", "writes", false, false, intents),
    ]
}

fn tool(id: &str, category: &str, effects: &str, idempotent: bool, confirm: bool, schema: Value) -> Tool {
    let spec = json!({
        "toolId": id, "version": "1.0.0", "description": format!("The tool {id}."), "category": category,
        "sideEffects": effects, "idempotent": idempotent, "requiresConfirmation": confirm,
        "allowedModes": ["text", "voice"], "latencyBudgetMs": 1000, "jsonSchema": schema
    });
    let spec = serde_json::from_value(spec).unwrap();
    Tool { spec, summary: format!("Summary of {id}."), implementation: Implementation::Native(id.to_owned()) }
}
