//! Confirmation by voice: the model reads the preview back, then the user's next utterance decides, or a button. The
//! model's own words never count as an answer. `decisions` handles what was decided.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;
use toolwright_contract::ConfirmationRequest;
use toolwright_orchestrator::confirmation_token::{self, AnswerProof, Approver};
use toolwright_orchestrator::store::ConfirmationRecord;

use super::read_back::is_read_back;
use super::{Bridge, TurnState};
use crate::event::{ConfirmationPart, EventBody};
use crate::voice::client::{ClientOutput, ConfirmationPrompt, DecidedBy};
use crate::voice::lexicon::Answer;
use crate::voice::transport::ToolUse;

/// Maximum number of further read-backs, after unclear answers and after speech that did not contain the preview. Then
/// only the button remains, until the request expires.
const MAX_REPEATS: u32 = 3;

/// The open confirmation requests, oldest first.
#[derive(Debug, Default)]
pub(super) struct Confirmations(pub Vec<OpenConfirmation>);

#[derive(Debug)]
pub(super) struct OpenConfirmation {
    pub question: ConfirmationPrompt,
    pub execution: String,
    pub turn: Option<Arc<str>>,
    pub decided_by: Option<DecidedBy>,
    progress: Progress,
    repeats: u32,
    /// The model may say something else first, such as "one moment".
    may_begin_later: bool,
}

/// The state of the read-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The model was asked for the read-back.
    Requested,
    /// The read-back must be requested once the model is idle: it was interrupted, not audible or without the preview,
    /// or the answer was unclear.
    ToRepeat,
    /// The read-back was played, and ended at this time.
    ReadBack(Instant),
    /// No further read-back is requested.
    ButtonOnly,
}

impl OpenConfirmation {
    /// The ids of its call and of its request.
    pub fn ids(&self) -> (String, String) {
        (self.execution.clone(), self.question.id.clone())
    }
}

impl Confirmations {
    pub fn open(&self) -> impl Iterator<Item = ConfirmationPrompt> {
        self.0.iter().map(|open| open.question.clone())
    }

    pub fn is_open(&self, execution: &str) -> bool {
        self.0.iter().any(|open| open.execution == execution)
    }

    pub fn turn_written(&mut self, turn: &Arc<str>) {
        for open in self.0.iter_mut().filter(|open| open.turn.is_none()) {
            open.turn = Some(Arc::clone(turn));
        }
    }
}

impl Bridge {
    /// The open requests of this session in the store.
    pub(super) async fn load_questions(&mut self) {
        let pending = match self.orchestrator.pending_confirmations(Some(&self.session.id)).await {
            Ok(pending) => pending,
            Err(error) => return tracing::error!("could not read open confirmation requests: {error}"),
        };
        for request in pending {
            let args = self.orchestrator.redacted_args(&request).await.unwrap_or_default();
            let ConfirmationRecord { tool, preview, expires_at, execution, .. } = &*request;
            let id = confirmation_token::answer_id(&request, &self.session.principal);
            let (tool, preview, expires_at) = (tool.clone(), preview.clone(), *expires_at);
            let question = ConfirmationPrompt { id, tool, args, preview, expires_at };
            self.open_question(question, execution.clone(), None, Progress::ToRepeat);
        }
        self.repeat_question();
    }

    /// A call needs confirmation. The model reads the preview back as the result of its call.
    pub(super) fn ask(
        &mut self,
        tool: &str,
        execution: &str,
        turn: Option<&Arc<str>>,
        request: &ConfirmationRequest,
        content: &mut Value,
    ) {
        content["readBack"] = request.preview.clone().into();
        content["suggestion"] = "Read `readBack` to the user now, word for word; in another language keep its names, \
            numbers and times. Ask whether that should be done, yes or no. Then \
            wait: the user's answer is understood by the system, and the call runs by itself once it is approved. \
            Do not call it again, and do not say that it is done before you are told so."
            .into();
        let question = ConfirmationPrompt {
            id: confirmation_token::new_answer_id(request, &self.session.id, &self.principal),
            tool: tool.to_owned(),
            args: request.args.clone(),
            preview: request.preview.clone(),
            expires_at: request.expires_at,
        };
        let approval = ConfirmationPart {
            id: question.id.clone(),
            call_id: execution.to_owned(),
            tool: question.tool.clone(),
            args: question.args.clone(),
            preview: question.preview.clone(),
            expires_at: question.expires_at,
            content: Arc::new(content.clone()),
        };
        self.log.event(turn, EventBody::ApprovalRequested { approval });
        self.open_question(question, execution.to_owned(), turn.cloned(), Progress::Requested);
    }

    fn open_question(
        &mut self,
        question: ConfirmationPrompt,
        execution: String,
        turn: Option<Arc<str>>,
        progress: Progress,
    ) {
        self.confirmations.0.retain(|open| open.execution != execution);
        self.send_to_client(ClientOutput::ConfirmationRequested(question.clone()));
        let open = OpenConfirmation {
            question,
            execution,
            turn,
            decided_by: None,
            progress,
            repeats: 0,
            may_begin_later: true,
        };
        self.confirmations.0.push(open);
        self.turn.requested_at = self.turn.assistant_text.len();
    }

    /// The confirmation request of a delegation, whose preview is spoken as commentary.
    pub(super) fn ask_delegated(&mut self, approval: &ConfirmationPart) {
        let ConfirmationPart { id, call_id, tool, args, preview, expires_at, .. } = approval.clone();
        let question = ConfirmationPrompt { id, tool, args, preview, expires_at };
        self.open_question(question, call_id, None, Progress::Requested);
    }

    /// The model's words in this turn since the last request; `None` without any.
    pub(super) fn said_since_request(&self) -> Option<String> {
        let TurnState { assistant_text, requested_at, .. } = &self.turn;
        let said = assistant_text.get(*requested_at..).unwrap_or_default();
        (*requested_at == 0 || !said.trim().is_empty()).then(|| said.to_owned())
    }

    /// The model has ended its turn. The read-back is done if the user could hear the whole utterance, and its
    /// transcript contains the preview.
    pub(super) fn model_has_spoken(&mut self, has_audio: bool, said: Option<&str>) {
        let is_interrupted = self.turn.is_interrupted;
        let end = self.speech.play_end();
        let is_withheld = self.speech.item.as_ref().is_some_and(|item| item.is_withheld);
        if let Some(open) = self.confirmations.0.first_mut()
            && open.progress == Progress::Requested
            && (is_interrupted || has_audio && said.is_some())
        {
            let is_heard = !is_interrupted && !is_withheld;
            let is_read = said.is_some_and(|said| is_read_back(said, &open.question.preview));
            open.progress = match end {
                Some(end) if is_heard && is_read => Progress::ReadBack(end),
                _ if !is_interrupted && !is_read && std::mem::take(&mut open.may_begin_later) => {
                    Progress::Requested
                }
                _ => Progress::ToRepeat,
            };
        }
        self.repeat_question();
    }

    /// The client has played the model's last utterance to its end, and with it any read-back.
    pub(super) fn speech_played(&mut self) {
        if let Some(open) = self.confirmations.0.first_mut()
            && let Progress::ReadBack(heard) = &mut open.progress
        {
            *heard = (*heard).min(Instant::now());
        }
    }

    /// Playback was interrupted. A read-back that was still being played has not been heard.
    pub(super) fn playback_interrupted(&mut self) {
        if let Some(open) = self.confirmations.0.first_mut()
            && matches!(open.progress, Progress::ReadBack(end) if end > Instant::now())
        {
            open.progress = Progress::ToRepeat;
        }
    }

    /// Asks the model for another read-back, unless the user could not hear it.
    pub(super) fn repeat_question(&mut self) {
        if self.is_audio_suppressed() {
            return;
        }
        let Some(open) = self.confirmations.0.first_mut() else { return };
        if open.progress != Progress::ToRepeat || open.decided_by.is_some() {
            return;
        }
        if open.repeats >= MAX_REPEATS {
            open.progress = Progress::ButtonOnly;
            let note =
                "[Speech no longer answers the open question. Ask the user to use the button on the screen.]";
            return self.notes.push(note.to_owned());
        }
        open.progress = Progress::Requested;
        open.may_begin_later = false;
        self.turn.requested_at = self.turn.assistant_text.len();
        open.repeats += 1;
        let preview = &open.question.preview;
        self.notes.push(format!(
            "[The user has not answered clearly yet. Read this to them word for word, in another language with its \
             names, numbers and times, and ask whether that should be done, yes or no: {preview}]"
        ));
    }

    /// The user has spoken. After the read-back, the utterance is the answer.
    pub(super) async fn user_answered(&mut self, utterance: &str, started: Option<Instant>) {
        let Some(open) = self.confirmations.0.first_mut().filter(|open| open.decided_by.is_none()) else {
            return;
        };
        let Progress::ReadBack(heard) = open.progress else { return };
        if started.is_none_or(|started| started < heard) {
            return;
        }
        let id = open.question.id.clone();
        let answer = self.shared.lexicon.answer(self.format.language.as_deref(), utterance);
        let meaning = match answer {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Unclear => "unclear",
        };
        self.shared.metrics.count(|metrics| *metrics.spoken_answers.entry(meaning).or_default() += 1);
        match answer {
            Answer::Yes => self.decide(&id, true, DecidedBy::Voice).await,
            Answer::No => self.decide(&id, false, DecidedBy::Voice).await,
            // The model answers the utterance first; then it asks again.
            Answer::Unclear => {
                if let Some(open) = self.confirmations.0.first_mut() {
                    open.progress = Progress::ToRepeat;
                }
            }
        }
    }

    /// Answers a request for the session's user, in a task of its own, because an approved call may take long.
    pub(super) async fn decide(&mut self, id: &str, approved: bool, by: DecidedBy) {
        let Some(open) = self.confirmations.0.iter_mut().find(|open| open.question.id == id) else { return };
        if open.decided_by.is_some() {
            return;
        }
        open.decided_by = Some(by);
        let execution = open.execution.clone();
        if self.shared.options.provider.tools == ToolUse::Delegates && self.delegations.has_asked(&execution)
        {
            return self.answer_delegated(id, approved).await;
        }
        let (orchestrator, session, principal, id) = (
            self.orchestrator.clone(),
            Arc::clone(&self.session),
            Arc::clone(&self.principal),
            id.to_owned(),
        );
        tokio::spawn(async move {
            let approver = Approver {
                token: &id,
                proof: AnswerProof::Conversation,
                session: &session.id,
                client_id: &session.client_id,
                by: &principal.id,
                principal: Some(&principal),
            };
            let decided = match approved {
                true => orchestrator.approve(&approver, None).await.map(drop),
                false => orchestrator.reject(&approver, None).await.map(drop),
            };
            if let Err(error) = decided {
                tracing::warn!(
                    session = session.id,
                    "an answer to a confirmation request does not count: {error}"
                );
            }
        });
    }
}
