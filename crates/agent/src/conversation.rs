//! The conversation, assembled from the events of a log. The turn loop decides by it, so that a turn continues in
//! another process exactly as in its own.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use toolwright_orchestrator::Orchestrator;
use toolwright_orchestrator::store::{self, ConversationLog, LogEntry};

use crate::event::{Event, EventBody, TurnOutcome, UserMessage};
use crate::message::{AssistantMessage, Decision, Message, Part, Step, ToolPart};
use crate::turn_context::TurnContext;

/// How many entries are read at a time.
const PAGE: usize = 512;

/// The turns of a log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conversation {
    pub turns: Vec<LoggedTurn>,
    /// The position of the last event.
    pub end: u64,
    /// The ids of all calls.
    pub call_ids: HashSet<String>,
}

/// One turn: a user message and the answer.
#[derive(Debug, Clone)]
pub(crate) struct LoggedTurn {
    pub id: Arc<str>,
    /// The position before its first event.
    pub start: u64,
    /// The position of its last event.
    pub end: u64,
    pub message: UserMessage,
    pub note: Option<String>,
    pub context: Arc<TurnContext>,
    pub reply: AssistantMessage,
    /// How many steps were begun.
    pub steps_begun: u32,
    /// The number of the next part.
    pub next_part: u32,
    /// The number of the open part.
    open_part: Option<u32>,
}

/// The body of an entry.
#[derive(Serialize, Deserialize)]
struct StoredEvent<'a> {
    turn: std::borrow::Cow<'a, str>,
    at: i64,
    #[serde(flatten)]
    body: std::borrow::Cow<'a, EventBody>,
}

/// The entry of an event.
pub(crate) fn to_entry(event: &Event) -> store::Result<LogEntry> {
    use std::borrow::Cow::Borrowed;
    let stored = StoredEvent { turn: Borrowed(&event.turn), at: event.at, body: Borrowed(&event.body) };
    let body = serde_json::to_string(&stored).map_err(|error| store::Error::Corrupt(error.to_string()))?;
    Ok(LogEntry { position: event.position, body: body.into() })
}

/// The event of an entry.
pub(crate) fn from_entry(entry: &LogEntry) -> store::Result<Event> {
    let stored: StoredEvent<'_> = serde_json::from_str(&entry.body)
        .map_err(|error| store::Error::Corrupt(format!("an event of a conversation: {error}")))?;
    let (turn, body) = (stored.turn.as_ref().into(), stored.body.into_owned());
    Ok(Event { position: entry.position, turn, at: stored.at, body })
}

impl Conversation {
    /// Reads the log of a session.
    pub async fn load(orchestrator: &Orchestrator, session: &str) -> store::Result<Self> {
        let mut conversation = Self::default();
        loop {
            let entries = orchestrator.store().log_entries(session, conversation.end, PAGE).await?;
            for entry in &entries {
                conversation.apply(&from_entry(entry)?);
            }
            if entries.len() < PAGE {
                return Ok(conversation);
            }
        }
    }

    pub fn turn(&self, id: &str) -> Option<&LoggedTurn> {
        self.turns.iter().rfind(|turn| *turn.id == *id)
    }

    /// The turn that a call belongs to.
    pub fn turn_of_call(&self, call_id: &str) -> Option<&LoggedTurn> {
        self.turns.iter().rfind(|turn| turn.reply.tools().any(|tool| tool.call.id == call_id))
    }

    /// The call of a confirmation request, and its turn.
    pub fn approval(&self, id: &str) -> Option<(&LoggedTurn, &ToolPart)> {
        let is_about = |tool: &&ToolPart| tool.approval.as_ref().is_some_and(|approval| approval.id == id);
        self.turns.iter().rev().find_map(|turn| turn.reply.tools().find(is_about).map(|tool| (turn, tool)))
    }

    /// All messages.
    pub fn messages(&self) -> Vec<Message> {
        let messages = self.turns.iter().flat_map(|turn| {
            let reply = Message::Assistant(turn.reply.clone());
            [Message::User(turn.message.clone()), reply]
        });
        messages.collect()
    }

    /// Adds the next event.
    pub fn apply(&mut self, event: &Event) {
        let start = self.end;
        self.end = event.position;
        if let EventBody::TurnStarted { message, reply, note, replaces, context } = &event.body {
            if let Some(replaced) = self.turns.iter().position(|turn| Some(&*turn.id) == replaces.as_deref())
            {
                self.turns.truncate(replaced);
            }
            let reply = AssistantMessage {
                id: reply.clone(),
                turn: event.turn.to_string(),
                ..AssistantMessage::default()
            };
            self.turns.push(LoggedTurn {
                id: Arc::clone(&event.turn),
                start,
                end: event.position,
                message: message.clone(),
                note: note.clone(),
                context: Arc::clone(context),
                reply,
                steps_begun: 0,
                next_part: 0,
                open_part: None,
            });
            return;
        }
        if let EventBody::ToolCalled { call, .. } = &event.body {
            self.call_ids.insert(call.id.clone());
        }
        if let Some(turn) = self.turns.iter_mut().rfind(|turn| turn.id == event.turn) {
            turn.end = event.position;
            turn.apply(&event.body);
        }
    }
}

impl LoggedTurn {
    /// The number of the open part.
    pub const fn open_part(&self) -> Option<u32> {
        self.open_part
    }

    /// Whether it pauses for a confirmation although all of its calls are answered.
    pub fn is_answered(&self) -> bool {
        let waits = |tool: &ToolPart| tool.approval.is_some() && tool.result.is_none();
        self.reply.outcome == Some(TurnOutcome::AwaitsApproval) && !self.reply.tools().any(waits)
    }

    pub fn last_step(&self) -> Option<&Step> {
        self.reply.steps.last()
    }

    fn apply(&mut self, body: &EventBody) {
        match body {
            EventBody::TurnStarted { .. } => {}
            EventBody::TurnResumed => self.reply.outcome = None,
            EventBody::StepStarted { step, .. } => {
                self.steps_begun = *step;
                self.reply.steps.push(Step::default());
            }
            EventBody::StepDiscarded { .. } => {
                self.reply.steps.pop();
                self.open_part = None;
            }
            EventBody::Text { part, text } => self.add_text(*part, text, false),
            EventBody::Reasoning { part, text } => self.add_text(*part, text, true),
            EventBody::PartEnded { provider_data, .. } => {
                self.open_part = None;
                let last = self.reply.steps.last_mut().and_then(|step| step.parts.last_mut());
                if let Some(
                    Part::Text { provider_data: own, .. } | Part::Reasoning { provider_data: own, .. },
                ) = last
                {
                    own.clone_from(provider_data);
                }
            }
            EventBody::StepFinished { finish, usage, .. } => {
                if let Some(step) = self.reply.steps.last_mut() {
                    step.finish = Some(*finish);
                }
                self.reply.usage = self.reply.usage + usage.unwrap_or_default();
            }
            EventBody::ToolCalled { call, provider_data } => {
                let (call, provider_data) = (call.clone(), provider_data.clone());
                let tool = ToolPart { call, provider_data, approval: None, decision: None, result: None };
                if let Some(step) = self.reply.steps.last_mut() {
                    step.parts.push(Part::Tool(Box::new(tool)));
                }
            }
            EventBody::ToolFinished { result } => self.add_result(result),
            EventBody::ClientResults { results } => results.iter().for_each(|result| self.add_result(result)),
            EventBody::ApprovalRequested { approval } => {
                self.with_call(&approval.call_id, |tool| tool.approval = Some(approval.clone()));
            }
            EventBody::ApprovalDecided { call_id, approved, by, reason, .. } => {
                let decision = Decision { approved: *approved, by: by.clone(), reason: reason.clone() };
                self.with_call(call_id, |tool| tool.decision = Some(decision));
            }
            EventBody::TurnEnded { outcome } => self.reply.outcome = Some(outcome.clone()),
        }
    }

    fn add_text(&mut self, part: u32, more: &str, is_reasoning: bool) {
        let Some(step) = self.reply.steps.last_mut() else { return };
        if self.open_part == Some(part)
            && let Some(Part::Text { text, .. } | Part::Reasoning { text, .. }) = step.parts.last_mut()
        {
            text.push_str(more);
            return;
        }
        let (text, provider_data) = (more.to_owned(), None);
        step.parts.push(match is_reasoning {
            true => Part::Reasoning { text, provider_data },
            false => Part::Text { text, provider_data },
        });
        self.open_part = Some(part);
        self.next_part = part + 1;
    }

    fn add_result(&mut self, result: &crate::event::ToolResultPart) {
        self.with_call(&result.call_id, |tool| tool.result = Some(result.clone()));
    }

    fn with_call(&mut self, call_id: &str, change: impl FnOnce(&mut ToolPart)) {
        let tool =
            self.reply.steps.iter_mut().rev().flat_map(Step::tools_mut).find(|tool| tool.call.id == call_id);
        if let Some(tool) = tool {
            change(tool);
        }
    }
}
