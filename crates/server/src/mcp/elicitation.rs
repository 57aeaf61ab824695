//! Confirmation through the MCP host: by elicitation in a session, by `input_required` in stateless revisions.
//!
//! `requestState` is the orchestrator's confirmation token: an id and a secret, of which the store has the hash. It is
//! single-use, expires, and the store has its session, client, tool, version and arguments. A caller that returns it
//! must also be the session's principal and repeat the same call.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequiredResult, InputResponses, ProtocolVersion,
};
use rmcp::service::{RequestContext, ServiceError};
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use toolwright_contract::{Envelope, ErrorKind};

/// The key of the prompt in `inputRequests`.
const INPUT_KEY: &str = "confirmation";
/// Timeout for an MCP host that does not answer. The confirmation request expires independently of it.
const ELICITATION_TIMEOUT: Duration = Duration::from_secs(600);

/// Whether the MCP host can show a form to a person.
pub(super) fn can_prompt(context: &RequestContext<RoleServer>) -> bool {
    let capability = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    // A capability that names neither form nor URL means forms.
    capability.is_some_and(|capability| capability.form.is_some() || capability.url.is_none())
}

/// Whether the request's revision has no sessions, so that an MCP host can only ask between two requests.
pub(super) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// The confirmation prompt that the MCP host shows to the person.
pub(super) struct ConfirmationPrompt {
    pub token: String,
    message: String,
}

impl ConfirmationPrompt {
    /// The prompt for a call that waits for confirmation; `None` for any other outcome.
    pub fn from_envelope(envelope: &Envelope) -> Option<Self> {
        let failure = envelope.outcome.as_ref().err()?;
        if failure.kind != ErrorKind::ConfirmationRequired {
            return None;
        }
        let request = failure.confirmation.as_deref()?;
        let (tool, preview, args) = (&request.tool, &request.preview, request.args.to_string());
        let mut message = format!("{preview}\n\nApprove this call of `{tool}`?");
        if !preview.contains(&args) {
            message.push_str("\nArguments: ");
            message.push_str(&args);
        }
        Some(Self { token: request.token.as_ref()?.reveal().to_owned(), message })
    }

    /// Asks the person and waits. `None` when the MCP host returns no answer.
    pub async fn elicit(&self, context: &RequestContext<RoleServer>) -> Option<ElicitationAction> {
        let elicitation =
            context.peer.create_elicitation_with_timeout(self.params(), Some(ELICITATION_TIMEOUT));
        let answer = tokio::select! {
            answer = elicitation => answer,
            () = context.ct.cancelled() => return None,
        };
        let log = |error: &ServiceError| tracing::info!("an MCP host did not answer an elicitation: {error}");
        answer.inspect_err(log).ok().map(|answer| answer.action)
    }

    /// The result that makes the MCP host ask, and call again with the answer.
    pub fn input_required(&self) -> CallToolResponse {
        let request = InputRequest::Elicitation(ElicitRequest::new(self.params()));
        let requests = BTreeMap::from([(INPUT_KEY.to_owned(), request)]);
        InputRequiredResult::new(Some(requests), Some(self.token.clone())).into()
    }

    fn params(&self) -> ElicitRequestParams {
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message.clone(),
            // A form without fields: accept or decline.
            requested_schema: ElicitationSchema::new(BTreeMap::new()),
        }
    }
}

/// The decision in a repeated request; `None` when it has none.
pub(super) fn decision(responses: Option<&InputResponses>) -> Result<Option<ElicitationAction>, ErrorData> {
    let Some(answer) = responses.and_then(|responses| responses.get(INPUT_KEY)) else { return Ok(None) };
    let action = answer.get("action").and_then(|action| ElicitationAction::deserialize(action).ok());
    action.map(Some).ok_or_else(|| {
        let message = format!("`inputResponses.{INPUT_KEY}.action` must be accept, decline or cancel.");
        ErrorData::invalid_params(message, None)
    })
}
