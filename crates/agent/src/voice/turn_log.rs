//! Writes voice turns to the conversation log of the session, in the form of text turns, so that one history shows
//! both.
//!
//! A turn is collected while it runs, because transcripts arrive late and out of order. It is written when it is
//! complete, when it asks for confirmation, and at the end of the session.

use std::sync::Arc;

use toolwright_orchestrator::Orchestrator;

use crate::conversation::Conversation;
use crate::event::{EventBody, FinishReason, InputPart, ToolCallPart, TurnOutcome, UserMessage};
use crate::ids;
use crate::log_writer::{LogWriter, OpenOutcome, WriteError};

/// Maximum length of the transcripts of one turn; longer ones are cut.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// The turn that is being collected.
#[derive(Debug)]
pub(super) struct TurnLog {
    orchestrator: Orchestrator,
    session: String,
    model: String,
    draft: VoiceTurnDraft,
    /// Events of turns that are already written.
    late: Vec<(Arc<str>, EventBody)>,
}

#[derive(Debug, Default)]
struct VoiceTurnDraft {
    user: String,
    assistant: String,
    calls: Vec<ToolCallPart>,
    results: Vec<EventBody>,
    is_interrupted: bool,
}

impl TurnLog {
    pub fn new(orchestrator: Orchestrator, session: &str, model: &str) -> Self {
        let (session, model) = (session.to_owned(), model.to_owned());
        Self { orchestrator, session, model, draft: VoiceTurnDraft::default(), late: Vec::new() }
    }

    /// Sets the user's words in this turn.
    pub fn user(&mut self, text: &str) {
        self.draft.user = text.to_owned();
        truncate(&mut self.draft.user);
    }

    pub fn assistant(&mut self, text: &str) {
        self.draft.assistant.push_str(text);
        truncate(&mut self.draft.assistant);
    }

    pub fn call(&mut self, call: ToolCallPart) {
        self.draft.calls.push(call);
    }

    /// A result, a confirmation request or a decision. It may belong to an earlier turn.
    pub fn event(&mut self, turn: Option<&Arc<str>>, event: EventBody) {
        match turn {
            Some(turn) => self.late.push((Arc::clone(turn), event)),
            None => self.draft.results.push(event),
        }
    }

    pub const fn interrupted(&mut self) {
        self.draft.is_interrupted = true;
    }

    pub fn has_user_text(&self) -> bool {
        !self.draft.user.trim().is_empty()
    }

    pub fn is_empty(&self) -> bool {
        let VoiceTurnDraft { user, assistant, calls, results, .. } = &self.draft;
        user.trim().is_empty() && assistant.trim().is_empty() && calls.is_empty() && results.is_empty()
    }

    /// Writes the turn and begins the next one. Returns the id of the written turn.
    ///
    /// If another process writes to the log, or the store fails, this is logged and the turn is kept for the next
    /// attempt.
    pub async fn end_turn(&mut self) -> Option<Arc<str>> {
        if self.is_empty() && self.late.is_empty() {
            return None;
        }
        let id: Arc<str> = format!("voice_{}", ids::random()).into();
        match self.write(&id).await {
            Ok(true) => {
                self.draft = VoiceTurnDraft::default();
                self.late.clear();
                Some(id)
            }
            Ok(false) => None,
            Err(error) => {
                tracing::error!(session = self.session, "could not store a voice turn: {error}");
                None
            }
        }
    }

    async fn write(&self, id: &Arc<str>) -> Result<bool, WriteError> {
        let opening = LogWriter::open(&self.orchestrator, &self.session, id, Conversation::default()).await?;
        let OpenOutcome::Opened(mut writer) = opening else { return Ok(false) };
        for (turn, event) in &self.late {
            writer.push_to(turn, event.clone());
        }
        let events = if self.is_empty() { Vec::new() } else { self.events(id) };
        let written = writer.commit(events).await;
        writer.close().await;
        written.map(|()| true)
    }

    /// The turn as events.
    fn events(&self, id: &str) -> Vec<EventBody> {
        let VoiceTurnDraft { user, assistant, calls, results, is_interrupted } = &self.draft;
        let parts = match user.trim() {
            "" => Vec::new(),
            text => vec![InputPart::Text { text: text.to_owned() }],
        };
        let message = UserMessage { id: id.to_owned(), parts };
        let reply = format!("msg_{}", ids::random());
        let mut events = vec![EventBody::TurnStarted {
            message,
            reply,
            note: None,
            replaces: None,
            context: Arc::default(),
        }];
        let mut step = 0;
        if !calls.is_empty() {
            step += 1;
            events.push(EventBody::StepStarted { step, model: self.model.clone() });
            events.push(EventBody::StepFinished { step, finish: FinishReason::ToolCalls, usage: None });
            let called =
                calls.iter().map(|call| EventBody::ToolCalled { call: call.clone(), provider_data: None });
            events.extend(called);
            events.extend(results.iter().cloned());
        }
        let waits = |event: &EventBody| matches!(event, EventBody::ApprovalRequested { .. });
        let text = assistant.trim();
        if !text.is_empty() {
            step += 1;
            events.push(EventBody::StepStarted { step, model: self.model.clone() });
            events.push(EventBody::Text { part: 0, text: text.to_owned() });
            events.push(EventBody::PartEnded { part: 0, provider_data: None });
            // An interrupted step would count as incomplete and lose its text, so the end of the turn records the
            // interruption.
            events.push(EventBody::StepFinished { step, finish: FinishReason::Stop, usage: None });
        }
        let outcome = match () {
            () if results.iter().any(waits) => TurnOutcome::AwaitsApproval,
            () if *is_interrupted => TurnOutcome::Stopped,
            () => TurnOutcome::Completed,
        };
        events.push(EventBody::TurnEnded { outcome });
        events
    }
}

fn truncate(text: &mut String) {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
}
