//! Confirmation through the host: by elicitation in a session, by `input_required` in stateless revisions.
//!
//! `requestState` is the orchestrator's confirmation token: an id and a secret, of which the store has the hash. It is
//! single-use, expires, and the store has its session, client, tool, version and arguments. A caller that returns it must
//! also be the session's principal and repeat the same call.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequiredResult, InputResponses, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use toolwright_contract::{Envelope, ErrorKind};

/// The key of the prompt in `inputRequests`.
const INPUT_KEY: &str = "confirmation";
/// For a host that does not answer at all; the confirmation request itself expires as the orchestrator says.
const ELICITATION_TIMEOUT: Duration = Duration::from_secs(600);

/// How the host can ask a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptMethod {
    Elicitation,
    InputRequired,
    None,
}

impl PromptMethod {
    pub fn from_context(context: &RequestContext<RoleServer>) -> Self {
        let is_stateless =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let capability = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
        // A capability that names neither form nor URL means forms.
        match capability.is_some_and(|capability| capability.form.is_some() || capability.url.is_none()) {
            true if is_stateless => Self::InputRequired,
            true => Self::Elicitation,
            false => Self::None,
        }
    }
}

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    Approve,
    Reject,
    /// Closed without an answer.
    Dismiss,
}

/// What the host shows to the person.
pub(super) struct ConfirmationPrompt {
    pub token: String,
    message: String,
}

impl ConfirmationPrompt {
    /// For a call that waits for confirmation.
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

    /// Asks the person and waits. `None` when the host returns no answer.
    pub async fn elicit(&self, context: &RequestContext<RoleServer>) -> Option<Decision> {
        let elicitation =
            context.peer.create_elicitation_with_timeout(self.params(), Some(ELICITATION_TIMEOUT));
        let answer = tokio::select! {
            answer = elicitation => answer,
            () = context.ct.cancelled() => return None,
        };
        match answer {
            Ok(answer) => Some(match answer.action {
                ElicitationAction::Accept => Decision::Approve,
                ElicitationAction::Decline => Decision::Reject,
                _ => Decision::Dismiss,
            }),
            Err(error) => {
                tracing::info!("an MCP host did not answer an elicitation: {error}");
                None
            }
        }
    }

    /// The result that makes the host ask, and call again with the answer.
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
pub(super) fn decision(responses: Option<&InputResponses>) -> Result<Option<Decision>, ErrorData> {
    let Some(answer) = responses.and_then(|responses| responses.get(INPUT_KEY)) else { return Ok(None) };
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => Ok(Some(Decision::Approve)),
        Some("decline") => Ok(Some(Decision::Reject)),
        Some("cancel") => Ok(Some(Decision::Dismiss)),
        _ => Err(ErrorData::invalid_params(
            format!("`inputResponses.{INPUT_KEY}.action` must be accept, decline or cancel."),
            None,
        )),
    }
}
