//! Confirmation by voice: the model reads the preview back, then the user's next utterance decides, or a button. The
//! model's own words never count as an answer.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use toolwright_contract::ConfirmationRequest;
use toolwright_orchestrator::DeferredResult;
use toolwright_orchestrator::confirmation_token::{self, AnswerProof, Approver};
use toolwright_orchestrator::store::{Backend, ConfirmationRecord, ConfirmationStatus};

use super::Bridge;
use crate::event::{ConfirmationPart, EventBody, ToolResultPart, TurnOutcome};
use crate::voice::client::{ClientOutput, ConfirmationPrompt, DecidedBy, Outcome};
use crate::voice::lexicon::Answer;
use crate::voice::transport::ToolUse;

/// Maximum number of read-backs after unclear answers. Then only the button remains, until the request expires.
const MAX_REPEATS: u32 = 3;

/// The open confirmation requests, oldest first.
#[derive(Debug, Default)]
pub(super) struct Confirmations(Vec<OpenConfirmation>);

#[derive(Debug)]
struct OpenConfirmation {
    question: ConfirmationPrompt,
    execution: String,
    turn: Option<Arc<str>>,
    progress: Progress,
    repeats: u32,
    /// Model turns since the request that did not contain the read-back.
    unread: u32,
    decided_by: Option<DecidedBy>,
}

/// The state of the read-back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The model was asked for the read-back.
    Requested,
    /// The read-back must be requested once the model is idle: it was interrupted, or the answer was unclear.
    ToRepeat,
    /// The read-back was played, and ended at this time.
    ReadBack(Instant),
}

impl Confirmations {
    pub fn open(&self) -> impl Iterator<Item = ConfirmationPrompt> {
        self.0.iter().map(|open| open.question.clone())
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
        content["suggestion"] = "Read `readBack` to the user now, and ask whether that should be done, yes or no. Then \
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
        let open =
            OpenConfirmation { question, execution, turn, progress, repeats: 0, unread: 0, decided_by: None };
        self.confirmations.0.push(open);
    }

    /// The confirmation request of a delegation, whose preview is spoken as commentary.
    pub(super) fn ask_delegated(&mut self, approval: &ConfirmationPart) {
        let ConfirmationPart { id, call_id, tool, args, preview, expires_at, .. } = approval.clone();
        let question = ConfirmationPrompt { id, tool, args, preview, expires_at };
        self.open_question(question, call_id, None, Progress::Requested);
    }

    /// The model has ended its turn. If its audio ended and contained the preview, the read-back is done.
    pub(super) fn model_has_spoken(&mut self, has_audio: bool, said: &str) {
        let is_interrupted = self.turn.is_interrupted;
        let heard = self.speech.play_end();
        if let Some(open) = self.confirmations.0.first_mut()
            && open.progress == Progress::Requested
        {
            // A translation has few words of the preview, so the second turn counts in any case.
            let is_read = said.is_empty() || open.unread > 0 || is_about(said, &open.question.preview);
            open.progress = match heard {
                Some(heard) if has_audio && !is_interrupted && is_read => Progress::ReadBack(heard),
                _ if is_interrupted => Progress::ToRepeat,
                // The model has not started the read-back.
                _ => Progress::Requested,
            };
            open.unread += u32::from(has_audio && !is_read);
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

    /// Asks the model for another read-back.
    fn repeat_question(&mut self) {
        let Some(open) = self.confirmations.0.first_mut() else { return };
        if open.progress != Progress::ToRepeat || open.repeats >= MAX_REPEATS {
            return;
        }
        open.progress = Progress::Requested;
        open.unread = 0;
        open.repeats += 1;
        let preview = &open.question.preview;
        self.notes.push(format!(
            "[The user has not answered clearly yet. Read this to them and ask whether that should be done, yes or no: \
             {preview}]"
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

    /// A call that waited for confirmation has its result (approved, rejected or expired, here or through another
    /// wire), or a background call has ended.
    pub(super) async fn deferred_result(&mut self, result: Result<DeferredResult, RecvError>) {
        let result = match result {
            Ok(result) => result,
            // Missed results are in the store; recovery writes them to the log later.
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => {
                self.deferred = self.orchestrator.deferred_results_for(&self.session.id);
                return;
            }
        };
        self.timers.activity();
        let DeferredResult { execution_id, envelope, .. } = result;
        if self.delegations.has_asked(&execution_id) {
            let closed = self.close_question(&execution_id).await;
            if closed.is_some_and(|(open, _)| open.decided_by.is_none()) {
                self.continue_delegated();
            }
            return;
        }
        if let Ok(Some(task)) = self.orchestrator.task(&execution_id).await {
            let content = self.orchestrator.for_model(&self.session, &envelope);
            self.notes
                .push(format!("[The background call of `{}` has ended. Its result: {content}]", task.tool));
            self.refresh().await;
            self.flush_notes();
            return;
        }
        let Some((open, record)) = self.close_question(&execution_id).await else { return };
        let is_declined = !matches!(record.status, ConfirmationStatus::Approved | ConfirmationStatus::Used);
        let content = self.orchestrator.for_model(&self.session, &envelope);
        let tool = open.question.tool.clone();
        self.log_decision(&open, &record, is_declined, content.clone(), envelope.meta.duration);
        let error = envelope.outcome.as_ref().err().map(|failure| failure.kind.as_str().to_owned());
        let call_id = execution_id.clone();
        self.send_to_client(ClientOutput::ToolStarted { call_id: call_id.clone(), tool: tool.clone() });
        self.send_to_client(ClientOutput::ToolFinished { call_id, tool: tool.clone(), error });
        self.notes.push(match is_declined {
            true => format!("[`{tool}` was not approved and has not run: {content}]"),
            false => format!("[The user has approved `{tool}`. Its result: {content}]"),
        });
        self.refresh().await;
        self.flush_notes();
    }

    /// Closes a request and reports its outcome to the client.
    async fn close_question(
        &mut self,
        execution: &str,
    ) -> Option<(OpenConfirmation, Arc<ConfirmationRecord>)> {
        let position = self.confirmations.0.iter().position(|open| open.execution == execution)?;
        let open = self.confirmations.0.remove(position);
        let id = open.question.id.clone();
        let record = self
            .orchestrator
            .store()
            .confirmation(confirmation_token::request_id(&id))
            .await
            .ok()
            .flatten()?;
        let outcome = match record.status {
            ConfirmationStatus::Approved | ConfirmationStatus::Used => Outcome::Approved,
            ConfirmationStatus::Rejected => Outcome::Rejected,
            ConfirmationStatus::Expired | ConfirmationStatus::Pending => Outcome::Expired,
        };
        let by = match outcome {
            Outcome::Expired => DecidedBy::Expiry,
            _ => open.decided_by.unwrap_or(DecidedBy::Elsewhere),
        };
        self.send_to_client(ClientOutput::ConfirmationDecided { id, outcome, by });
        Some((open, record))
    }

    fn log_decision(
        &mut self,
        open: &OpenConfirmation,
        record: &ConfirmationRecord,
        is_declined: bool,
        content: Value,
        duration_ms: u64,
    ) {
        let turn = open.turn.as_ref();
        let is_written = turn.is_some();
        if is_written {
            self.log.event(turn, EventBody::TurnResumed);
        }
        if let Some(by) = &record.decided_by {
            self.log.event(
                turn,
                EventBody::ApprovalDecided {
                    approval_id: open.question.id.clone(),
                    call_id: open.execution.clone(),
                    approved: !is_declined,
                    by: by.clone(),
                    reason: record.reason.clone(),
                },
            );
        }
        let is_error = content.get("ok") != Some(&Value::Bool(true));
        let result = ToolResultPart {
            call_id: open.execution.clone(),
            tool: open.question.tool.clone(),
            content: Arc::new(content),
            is_error,
            is_declined,
            duration_ms,
            task: None,
        };
        self.log.event(turn, EventBody::ToolFinished { result });
        if is_written {
            self.log.event(turn, EventBody::TurnEnded { outcome: TurnOutcome::Completed });
        }
    }
}

/// Whether an utterance contains a third of the longer words of the preview.
fn is_about(said: &str, preview: &str) -> bool {
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= 3);
        words.map(str::to_lowercase).collect()
    };
    let (said, preview) = (words(said), words(preview));
    preview.intersection(&said).count() * 3 >= preview.len()
}

#[cfg(test)]
mod tests {
    use super::is_about;

    #[test]
    fn a_preview_is_read_back_with_other_words_too() {
        let preview = "Send the note \"see you on Friday\" to mira@studio.example";
        assert!(is_about("I would send Mira a note that says: see you on Friday. Shall I?", preview));
        assert!(!is_about("One moment.", preview));
        assert!(is_about("Anything.", ""));
    }
}
