//! `tools/call`: one call through the orchestrator, with progress and cancellation, and a person's answer if it takes one.

use std::pin::pin;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ContentBlock, NumberOrString, ProgressToken, RequestId,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::time::timeout;
use toolwright_contract::Envelope;
use toolwright_orchestrator::capabilities::Client;
use toolwright_orchestrator::confirm::{Approver, Error, Proof};
use toolwright_orchestrator::store::{Backend, ConfirmationRecord, ExecutionStatus, SessionRecord};
use toolwright_orchestrator::{CallRequest, Orchestrator, SessionRef, ToolCall};
use toolwright_registry::hex;

use super::caller::{Caller, unreachable};
use super::catalog::{Catalog, Row};
use super::confirm::{self, Question, Said, Way};
use super::progress;
use super::result;
use super::shared::Shared;
use crate::counters::Counters;

/// The member of `_meta` by which a host names a call, so that a resend is recognised wherever it comes from.
const EXECUTION_ID: &str = "toolwright/executionId";
/// Longer ids of requests are told apart by their digest.
const LONGEST_ID: usize = 128;

/// One request to call a tool.
pub(super) struct Calling<'a> {
    pub shared: &'a Shared,
    pub caller: &'a Caller,
    /// None for a request that stands alone.
    pub session: Option<Arc<SessionRecord>>,
    pub catalog: &'a Catalog,
    pub context: &'a RequestContext<RoleServer>,
}

impl Calling<'_> {
    pub async fn run(mut self, request: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let _counted = Counters::begin(&self.shared.calls);
        let row = self.catalog.get(&request.name);
        let id = self.id();
        let args = Value::Object(request.arguments.unwrap_or_default());
        let call = ToolCall { id, tool: request.name.into_owned(), args };
        if let Some(state) = &request.request_state {
            let said = confirm::said(request.input_responses.as_ref())?;
            return Box::pin(self.resume(row, call, state, said)).await;
        }
        let mut left = None;
        if let Some(session) = self.session.take() {
            let (session, message) = begin_turn(self.orchestrator(), session, row).await?;
            (self.session, left) = (Some(session), message);
        }
        let envelope = self.perform(call).await?;
        let mut answer = self.settle(row, envelope).await?;
        if let (Some(message), CallToolResponse::Complete(result)) = (left, &mut answer) {
            result.content.push(ContentBlock::text(message));
        }
        Ok(answer)
    }

    /// Runs the call; the host may cancel it.
    async fn perform(&self, call: ToolCall) -> Result<Arc<Envelope>, ErrorData> {
        if let Some(token) = self.context.meta.get_progress_token() {
            return Box::pin(self.perform_told(call, token)).await;
        }
        tokio::select! {
            envelope = self.through(call, None) => envelope,
            () = self.context.ct.cancelled() => Err(cancelled()),
        }
    }

    /// As [`perform`](Self::perform), and the host hears of its progress.
    async fn perform_told(&self, call: ToolCall, token: ProgressToken) -> Result<Arc<Envelope>, ErrorData> {
        let (client, reporter) = progress::pair(self.context.peer.clone(), token);
        let (over, ended) = oneshot::channel();
        let mut call = pin!(self.through(call, Some(client)));
        let mut telling = pin!(reporter.tell_until(ended));
        // Side by side: a host that does not read holds up what it is told, never its call.
        let envelope = tokio::select! {
            envelope = &mut call => envelope?,
            () = self.context.ct.cancelled() => return Err(cancelled()),
            () = &mut telling => return Err(cancelled()), // It ends after the call.
        };
        // The answer must not overtake what was told before it, if the host does read.
        let _ = over.send(());
        let _ = timeout(progress::PATIENCE, telling).await;
        Ok(envelope)
    }

    /// Through the orchestrator, in the session or in one of the call's own.
    async fn through(
        &self,
        call: ToolCall,
        client: Option<Arc<dyn Client>>,
    ) -> Result<Arc<Envelope>, ErrorData> {
        let session = match &self.session {
            Some(session) => SessionRef::Loaded(Arc::clone(session)),
            None => {
                let own = self.caller.begin(None, self.shared.mode);
                self.orchestrator().session_for(own, &call).await.map_err(unreachable)?
            }
        };
        let mut request = CallRequest::new(session, call);
        request.client = client;
        Ok(self.orchestrator().call(request).await)
    }

    /// Asks the person if it takes one and the host can; otherwise tells what came of the call.
    async fn settle(
        &self,
        row: Option<&Row>,
        envelope: Arc<Envelope>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(question) = Question::of(&envelope) else { return self.tell(row, envelope) };
        match Way::of(self.context) {
            Way::None => self.tell(row, envelope),
            Way::InputRequired => Ok(question.required()),
            Way::Elicitation => Box::pin(self.elicit(row, &question, envelope)).await,
        }
    }

    /// Asks, and waits for the answer.
    async fn elicit(
        &self,
        row: Option<&Row>,
        question: &Question,
        envelope: Arc<Envelope>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(said) = question.elicit(self.context).await else { return self.tell(row, envelope) };
        let asked = self.asked(&question.token).await?;
        match self.answer(&asked, &question.token, said).await {
            Ok(envelope) => self.tell(row, envelope),
            // Somebody else has answered meanwhile: what came of that is on record.
            Err(Error::Refused) => {
                let recorded = self.recorded(&asked).await?;
                self.tell(row, recorded.unwrap_or(envelope))
            }
            Err(error) => Err(refused(&error)),
        }
    }

    /// The same request again, with the person's answer.
    async fn resume(
        &self,
        row: Option<&Row>,
        call: ToolCall,
        state: &str,
        said: Option<Said>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asked = self.asked(state).await?;
        if !asked.is_about(&call.tool, &call.args) {
            return Err(foreign_state());
        }
        let Some(said) = said else {
            // The host has not asked yet.
            let session = self.orchestrator().session(&asked.session).await.map_err(unreachable)?;
            let session = session.ok_or_else(foreign_state)?;
            let same = ToolCall { id: Some(asked.execution.clone()), ..call };
            let envelope = self.orchestrator().call(CallRequest::new(session, same)).await;
            return self.settle(row, envelope).await;
        };
        match self.answer(&asked, state, said).await {
            Ok(envelope) => self.tell(row, envelope),
            // The answer may have come before, and its response was lost.
            Err(Error::Refused) => {
                let recorded = self.recorded(&asked).await?;
                self.tell(row, recorded.ok_or_else(foreign_state)?)
            }
            Err(error) => Err(refused(&error)),
        }
    }

    /// The question of a token, if it was put to this caller.
    async fn asked(&self, token: &str) -> Result<Arc<ConfirmationRecord>, ErrorData> {
        let id = token.split('.').next().unwrap_or_default();
        let asked = self.orchestrator().store().confirmation(id).await.map_err(unreachable)?;
        let asked = asked.ok_or_else(foreign_state)?;
        let session = self.orchestrator().session(&asked.session).await.map_err(unreachable)?;
        match session {
            Some(session) if self.caller.owns(&session) => Ok(asked),
            _ => Err(foreign_state()),
        }
    }

    async fn answer(
        &self,
        asked: &ConfirmationRecord,
        token: &str,
        said: Said,
    ) -> Result<Arc<Envelope>, Error> {
        let approver = Approver {
            token,
            proof: Proof::Token,
            session: &asked.session,
            client_id: &asked.client_id,
            by: &self.caller.principal.id,
        };
        match said {
            Said::Yes => self.orchestrator().approve(&approver, None).await,
            Said::No => self.orchestrator().reject(&approver, None).await,
            Said::Dismissed => {
                self.orchestrator().reject(&approver, Some("the question was put aside".to_owned())).await
            }
        }
    }

    /// What the call of a question came to, if it is over.
    async fn recorded(&self, asked: &ConfirmationRecord) -> Result<Option<Arc<Envelope>>, ErrorData> {
        let standing = self.orchestrator().store().execution(&asked.session, &asked.execution).await;
        Ok(match standing.map_err(unreachable)?.map(|standing| standing.status) {
            Some(ExecutionStatus::Finished(envelope)) => Some(envelope),
            _ => None,
        })
    }

    fn tell(&self, row: Option<&Row>, envelope: Arc<Envelope>) -> Result<CallToolResponse, ErrorData> {
        if envelope.is_ok() {
            let Envelope { outcome, meta } = result::unshared(envelope);
            return Ok(result::success(row, outcome.unwrap_or_default(), &meta).into());
        }
        let words = match &self.session {
            Some(session) => self.orchestrator().for_model(session, &envelope),
            None => self.orchestrator().for_model_ephemeral(self.shared.mode, &envelope),
        };
        if row.is_none() {
            let message = words.get("error").and_then(Value::as_str).unwrap_or("There is no such tool.");
            return Err(ErrorData::invalid_params(message.to_owned(), Some(words)));
        }
        Ok(result::failure(row, words, &envelope.meta).into())
    }

    /// The call's id: the host's name for it, or in a session the request's id. Requests that stand alone have ids that
    /// begin anew with each connection, so they say nothing. A name outlives connections: such a call has a session of
    /// its own, which is found again by the name and the principal.
    fn id(&mut self) -> Option<String> {
        if let Some(id) = self.context.meta.get(EXECUTION_ID).and_then(Value::as_str) {
            self.session = None;
            return Some(id.to_owned());
        }
        self.session.as_ref()?;
        Some(id_of(&self.context.id))
    }

    fn orchestrator(&self) -> &Orchestrator {
        &self.shared.orchestrator
    }
}

/// MCP does not tell turns, so a retrieval in a session is a turn of its own. Returns the session as it is then, and the
/// message that a tool left for this moment.
pub(super) async fn begin_turn(
    orchestrator: &Orchestrator,
    session: Arc<SessionRecord>,
    row: Option<&Row>,
) -> Result<(Arc<SessionRecord>, Option<String>), ErrorData> {
    // A new turn would be the end of a session that is to end with this one.
    if session.is_ending() || !row.is_some_and(|row| row.is_retrieval) {
        return Ok((session, None));
    }
    let turn = orchestrator.begin_turn(&session.id).await.map_err(unreachable)?;
    let now = orchestrator.session(&session.id).await.map_err(unreachable)?;
    Ok((now.unwrap_or(session), turn.message))
}

/// The id of a call in a session, from that of its request.
pub(super) fn id_of(request: &RequestId) -> String {
    match request {
        NumberOrString::Number(number) => format!("mcp_{number}"),
        NumberOrString::String(text) if text.len() <= LONGEST_ID => format!("mcp_s_{text}"),
        NumberOrString::String(text) => {
            let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
            format!("mcp_d_{}", hex(&digest))
        }
    }
}

pub(super) fn cancelled() -> ErrorData {
    ErrorData::internal_error("The call was cancelled.", None)
}

fn foreign_state() -> ErrorData {
    let message = "`requestState` is not of this call, was used already, or has expired: call without it.";
    ErrorData::invalid_params(message, None)
}

fn refused(error: &Error) -> ErrorData {
    tracing::error!("{error}");
    ErrorData::internal_error("The answer could not be recorded. Try again.", None)
}
