//! Asking a person through the host: by elicitation in a session, by `input_required` where requests stand alone.
//!
//! `requestState` is the orchestrator's confirmation token: a name and a secret, of which the store has the hash. It is
//! single-use, expires, and what it is about (session, client, tool, version, arguments) is in the store. Whoever brings
//! it back must also be the session's principal and repeat the same call.

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

/// The name of the question among a result's `inputRequests`.
const QUESTION: &str = "confirmation";
/// A host that does not answer at all: the question itself lives as long as the orchestrator says.
const PATIENCE: Duration = Duration::from_secs(600);

/// How the host asks people, if it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Elicitation,
    InputRequired,
    None,
}

impl Way {
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let stands_alone =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let capability = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
        // One that names neither form nor URL means forms.
        match capability.is_some_and(|can| can.form.is_some() || can.url.is_none()) {
            true if stands_alone => Self::InputRequired,
            true => Self::Elicitation,
            false => Self::None,
        }
    }
}

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Yes,
    No,
    /// The question was put aside.
    Dismissed,
}

/// A call that waits for a person.
pub(super) struct Question {
    pub token: String,
    message: String,
}

impl Question {
    /// The question that an envelope carries.
    pub fn of(envelope: &Envelope) -> Option<Self> {
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

    /// Puts the question to the person and waits. Nothing, when the host does not bring an answer.
    pub async fn elicit(&self, context: &RequestContext<RoleServer>) -> Option<Said> {
        let asked = context.peer.create_elicitation_with_timeout(self.params(), Some(PATIENCE));
        let answer = tokio::select! {
            answer = asked => answer,
            () = context.ct.cancelled() => return None,
        };
        match answer {
            Ok(answer) => Some(match answer.action {
                ElicitationAction::Accept => Said::Yes,
                ElicitationAction::Decline => Said::No,
                _ => Said::Dismissed,
            }),
            Err(error) => {
                tracing::info!("a host did not bring an answer: {error}");
                None
            }
        }
    }

    /// The result that makes the host ask, and call again with the answer.
    pub fn required(&self) -> CallToolResponse {
        let asked = InputRequest::Elicitation(ElicitRequest::new(self.params()));
        let asked = BTreeMap::from([(QUESTION.to_owned(), asked)]);
        InputRequiredResult::new(Some(asked), Some(self.token.clone())).into()
    }

    fn params(&self) -> ElicitRequestParams {
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message.clone(),
            // Nothing to fill in: yes or no.
            requested_schema: ElicitationSchema::new(BTreeMap::new()),
        }
    }
}

/// What the person said, as a repeated request tells it; nothing when it does not.
pub(super) fn said(responses: Option<&InputResponses>) -> Result<Option<Said>, ErrorData> {
    let Some(answer) = responses.and_then(|responses| responses.get(QUESTION)) else { return Ok(None) };
    match answer.get("action").and_then(Value::as_str) {
        Some("accept") => Ok(Some(Said::Yes)),
        Some("decline") => Ok(Some(Said::No)),
        Some("cancel") => Ok(Some(Said::Dismissed)),
        _ => Err(ErrorData::invalid_params(
            format!("`inputResponses.{QUESTION}.action` must be accept, decline or cancel."),
            None,
        )),
    }
}
