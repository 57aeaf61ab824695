//! `tools/call`: one call through the orchestrator. Calls that come through the library also have progress,
//! cancellation and confirmation.

use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitationAction, NumberOrString, ProgressToken, RequestId,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::time::timeout;
use toolwright_contract::{Envelope, join_sentences};
use toolwright_orchestrator::capabilities::Client;
use toolwright_orchestrator::confirmation_token::{AnswerProof, Approver, Error};
use toolwright_orchestrator::session::NewSession;
use toolwright_orchestrator::store::{self, Backend, ConfirmationRecord, ExecutionStatus, SessionRecord};
use toolwright_orchestrator::{CallRequest, Orchestrator, SessionRef, ToolCall};
use toolwright_registry::hex;

use super::caller::{Caller, store_unavailable};
use super::catalog::CatalogTool;
use super::elicitation::{self, ConfirmationPrompt};
use super::progress;
use super::reply::CallReply;
use super::state::McpState;
use super::turns::{self, Turn};
use crate::counters::Counters;
use crate::request::{new_session, owns};

/// The member of `_meta` by which an MCP host names a call, so that a resend is recognised on any connection.
const EXECUTION_ID: &str = "toolwright/executionId";
/// Longer request ids are replaced by their digest.
const MAX_REQUEST_ID_BYTES: usize = 128;

/// A call, and the session that it runs in.
pub(super) struct CallScope<'a> {
    pub state: &'a McpState,
    pub caller: &'a Caller,
    /// `None`: the call gets a session of its own.
    pub session: Option<Arc<SessionRecord>>,
    /// `None`: the tool is unknown.
    pub tool: Option<&'a CatalogTool>,
}

impl CallScope<'_> {
    /// Places the call in its turn; `marker` is the MCP host's name of it. A call that begins a turn in a session
    /// returns the message that a tool left for it.
    pub async fn begin_turn(&mut self, marker: Option<&str>) -> Result<Option<String>, ErrorData> {
        let Some(session) = &self.session else {
            if self.tool.is_some_and(|tool| tool.is_retrieval) {
                self.session = Some(self.turn_session(marker).await.map_err(store_unavailable)?);
            }
            return Ok(None);
        };
        // A session that is ending would end with a new turn.
        if !self.state.turns.place(&session.id, marker, Instant::now()).is_first || session.is_ending() {
            return Ok(None);
        }
        let turn = self.orchestrator().begin_turn(&session.id).await.map_err(store_unavailable)?;
        self.session = Some(turn.session);
        Ok(turn.message)
    }

    /// The stored session in which the retrieval calls of one turn of a stateless MCP host spend their budget.
    async fn turn_session(&self, marker: Option<&str>) -> store::Result<Arc<SessionRecord>> {
        let (orchestrator, principal) = (self.orchestrator(), &self.caller.principal);
        let id = |turn: &Turn| format!("mcp_turn_{}", turn.id);
        let placed = self.state.turns.place(&principal.key(), marker, Instant::now());
        if let Some(before) = &placed.before {
            // One that was never stored need not end.
            match orchestrator.end_session(&id(before)).await {
                Ok(()) | Err(store::Error::NoSession(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let id = id(&placed.turn);
        if let Some(known) = orchestrator.session(&id).await? {
            return Ok(known);
        }
        let new = NewSession { id: Some(id.clone()), ..new_session(principal, self.state.mode) };
        match orchestrator.create_session(new).await {
            Err(store::Error::Exists(_)) => {
                orchestrator.session(&id).await?.ok_or(store::Error::NoSession(id))
            }
            created => created,
        }
    }

    /// Runs the call in its session.
    pub async fn execute(
        &self,
        mut call: ToolCall,
        client: Option<Arc<dyn Client>>,
    ) -> Result<Arc<Envelope>, ErrorData> {
        if self.session.is_some() {
            // Two equal calls in a turn are two calls.
            call.id.get_or_insert_with(|| format!("mcp_r_{}", turns::random_id()));
        }
        let session = match &self.session {
            Some(session) => SessionRef::Loaded(Arc::clone(session)),
            None => {
                let session = new_session(&self.caller.principal, self.state.mode);
                self.orchestrator().session_for(session, &call).await.map_err(store_unavailable)?
            }
        };
        let mut request = CallRequest::new(session, call).principal(&self.caller.principal);
        request.client = client;
        Ok(self.orchestrator().call(request).await)
    }

    pub fn reply<'e>(&self, envelope: &'e Envelope, message: Option<String>) -> CallReply<'e> {
        CallReply::new(self.tool, envelope, || self.failure(envelope), message)
    }

    /// The model's form of a failed envelope.
    fn failure(&self, envelope: &Envelope) -> Value {
        match &self.session {
            Some(session) => self.orchestrator().for_model(session, envelope),
            None => self.orchestrator().for_model_ephemeral(self.state.mode, envelope),
        }
    }

    fn orchestrator(&self) -> &Orchestrator {
        &self.state.orchestrator
    }
}

/// A call that came through the library.
pub(super) struct LibraryCall<'a> {
    pub scope: CallScope<'a>,
    pub context: &'a RequestContext<RoleServer>,
}

impl LibraryCall<'_> {
    pub async fn run(mut self, params: CallToolRequestParams) -> Result<CallToolResponse, ErrorData> {
        let _counted = Counters::begin(&self.scope.state.call_count);
        let id = self.execution_id();
        let args = Value::Object(params.arguments.unwrap_or_default());
        let call = ToolCall { id, tool: params.name.into_owned(), args };
        if let Some(token) = &params.request_state {
            let decision = elicitation::decision(params.input_responses.as_ref())?;
            return Box::pin(self.resume(call, token, decision)).await;
        }
        let marker = self.context.meta.get(turns::TURN).and_then(turn_marker);
        let message = self.scope.begin_turn(marker.as_deref()).await?;
        let envelope = self.execute(call).await?;
        self.respond_or_confirm(envelope, message).await
    }

    /// Runs the call until it ends or the MCP host cancels it.
    async fn execute(&self, call: ToolCall) -> Result<Arc<Envelope>, ErrorData> {
        if let Some(token) = self.context.meta.get_progress_token() {
            return Box::pin(self.execute_with_progress(call, token)).await;
        }
        tokio::select! {
            envelope = self.scope.execute(call, None) => envelope,
            () = self.context.ct.cancelled() => Err(cancelled()),
        }
    }

    /// As [`execute`](Self::execute), and reports progress to the MCP host.
    async fn execute_with_progress(
        &self,
        call: ToolCall,
        token: ProgressToken,
    ) -> Result<Arc<Envelope>, ErrorData> {
        let (client, steps) = progress::channel();
        let (finish, finished) = oneshot::channel();
        let mut call = pin!(self.scope.execute(call, Some(client)));
        let mut reporting = pin!(progress::report(&self.context.peer, token, steps, finished));
        // Concurrently: an MCP host that does not read its progress does not delay its call.
        let envelope = tokio::select! {
            envelope = &mut call => envelope?,
            () = self.context.ct.cancelled() => return Err(cancelled()),
            () = &mut reporting => return Err(cancelled()), // It ends after the call.
        };
        // An MCP host that does read gets its progress before the result.
        let _ = finish.send(());
        let _ = timeout(progress::DRAIN_TIMEOUT, reporting).await;
        Ok(envelope)
    }

    /// Asks for confirmation if the call needs one and the MCP host can ask; otherwise replies.
    async fn respond_or_confirm(
        &self,
        envelope: Arc<Envelope>,
        message: Option<String>,
    ) -> Result<CallToolResponse, ErrorData> {
        match ConfirmationPrompt::from_envelope(&envelope) {
            Some(prompt) if elicitation::can_prompt(self.context) => {
                if elicitation::is_stateless(self.context) {
                    return Ok(prompt.input_required());
                }
                Box::pin(self.elicit(&prompt, envelope, message)).await
            }
            _ => self.respond(&envelope, message),
        }
    }

    /// Asks, and waits for the answer.
    async fn elicit(
        &self,
        prompt: &ConfirmationPrompt,
        envelope: Arc<Envelope>,
        message: Option<String>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(decision) = prompt.elicit(self.context).await else {
            return self.respond(&envelope, message);
        };
        let confirmation = self.confirmation(&prompt.token).await?;
        match self.decide(&confirmation, &prompt.token, decision).await? {
            // If the effect of the call has changed meanwhile, the MCP host is asked again.
            Some(decided) => self.respond_or_confirm(decided, message).await,
            None => self.respond(&envelope, message),
        }
    }

    /// The same request again, with the person's decision.
    async fn resume(
        &self,
        call: ToolCall,
        token: &str,
        decision: Option<ElicitationAction>,
    ) -> Result<CallToolResponse, ErrorData> {
        let confirmation = self.confirmation(token).await?;
        if !confirmation.is_about(&call.tool, &call.args) {
            return Err(invalid_state());
        }
        let Some(decision) = decision else {
            // The MCP host has not asked yet.
            let session = self.scope.orchestrator().session(&confirmation.session).await;
            let session = session.map_err(store_unavailable)?.ok_or_else(invalid_state)?;
            let same = ToolCall { id: Some(confirmation.execution.clone()), ..call };
            let request = CallRequest::new(session, same).principal(&self.scope.caller.principal);
            let envelope = self.scope.orchestrator().call(request).await;
            return self.respond_or_confirm(envelope, None).await;
        };
        let decided = self.decide(&confirmation, token, decision).await?;
        self.respond_or_confirm(decided.ok_or_else(invalid_state)?, None).await
    }

    /// The confirmation request of a token, if its session belongs to the caller.
    async fn confirmation(&self, token: &str) -> Result<Arc<ConfirmationRecord>, ErrorData> {
        let id = token.split('.').next().unwrap_or_default();
        let confirmation =
            self.scope.orchestrator().store().confirmation(id).await.map_err(store_unavailable)?;
        let confirmation = confirmation.ok_or_else(invalid_state)?;
        let session =
            self.scope.orchestrator().session(&confirmation.session).await.map_err(store_unavailable)?;
        match session {
            Some(session) if owns(&self.scope.caller.principal, &session) => Ok(confirmation),
            _ => Err(invalid_state()),
        }
    }

    /// The envelope of the confirmed or rejected call. If another approver was faster, or the same decision arrived
    /// before and the response was lost, it is the recorded one, once the call has ended.
    async fn decide(
        &self,
        confirmation: &ConfirmationRecord,
        token: &str,
        decision: ElicitationAction,
    ) -> Result<Option<Arc<Envelope>>, ErrorData> {
        let approver = Approver {
            token,
            proof: AnswerProof::Token,
            session: &confirmation.session,
            client_id: &confirmation.client_id,
            by: &self.scope.caller.principal.id,
            principal: Some(&self.scope.caller.principal),
        };
        let orchestrator = self.scope.orchestrator();
        let dismissed = || "the confirmation request was dismissed".to_owned();
        let decided = match decision {
            ElicitationAction::Accept => orchestrator.approve(&approver, None).await,
            ElicitationAction::Decline => orchestrator.reject(&approver, None).await,
            _ => orchestrator.reject(&approver, Some(dismissed())).await,
        };
        match decided {
            Ok(envelope) => Ok(Some(envelope)),
            Err(Error::Refused | Error::Answered | Error::Expired | Error::WrongToken) => {
                let store = orchestrator.store();
                let record = store.execution(&confirmation.session, &confirmation.execution).await;
                Ok(match record.map_err(store_unavailable)?.map(|record| record.status) {
                    Some(ExecutionStatus::Finished(envelope)) => Some(envelope),
                    _ => None,
                })
            }
            Err(Error::Forbidden(message)) => Err(ErrorData::invalid_request(message, None)),
            Err(error) => {
                tracing::error!("could not record the decision on a confirmation request: {error}");
                Err(ErrorData::internal_error("The decision could not be recorded. Try again.", None))
            }
        }
    }

    /// An unknown tool is an error of the protocol; any other failure is a result that the model reads.
    fn respond(&self, envelope: &Envelope, message: Option<String>) -> Result<CallToolResponse, ErrorData> {
        if self.scope.tool.is_none() && !envelope.is_ok() {
            let failure = self.scope.failure(envelope);
            // Hosts show the message of a protocol error, and often not its data.
            let texts = ["error", "suggestion"].into_iter().filter_map(|name| failure.get(name)?.as_str());
            let message = join_sentences(texts);
            return Err(ErrorData::invalid_params(message, Some(failure)));
        }
        self.scope.reply(envelope, message).into_result().map(Into::into)
    }

    /// The MCP host's name for the call, or in a session the id of the request. Ids of stateless requests are unique in
    /// their connection only, so they are not used. For a named call `scope.session` is cleared: the call may be
    /// repeated on another connection, so it gets a session of its own, derived from its name and its principal.
    fn execution_id(&mut self) -> Option<String> {
        if let Some(id) = self.context.meta.get(EXECUTION_ID).and_then(Value::as_str) {
            // A retrieval call leaves no record to be found again, and spends the budget of its session.
            if !self.scope.tool.is_some_and(|tool| tool.is_retrieval) {
                self.scope.session = None;
            }
            return Some(id.to_owned());
        }
        self.scope.session.as_ref()?;
        Some(execution_id(&self.context.id))
    }
}

/// An MCP host names its turn by a string or a number.
fn turn_marker(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

/// The execution id of a request in a session.
pub(super) fn execution_id(request: &RequestId) -> String {
    match request {
        NumberOrString::Number(number) => format!("mcp_{number}"),
        NumberOrString::String(text) if text.len() <= MAX_REQUEST_ID_BYTES => format!("mcp_s_{text}"),
        NumberOrString::String(text) => format!("mcp_d_{}", hex(&Sha256::digest(text.as_bytes()))),
    }
}

pub(super) fn cancelled() -> ErrorData {
    ErrorData::internal_error("The call was cancelled.", None)
}

fn invalid_state() -> ErrorData {
    let message =
        "`requestState` belongs to another call, was used already, or has expired: call without it.";
    ErrorData::invalid_params(message, None)
}
