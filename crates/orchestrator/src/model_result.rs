//! An envelope as a model reads it: a result that it can act on, by error type and mode.

use serde_json::{Value, json};
use toolwright_contract::{Envelope, ErrorKind, Failure, Mode, Success};

use crate::orchestrator::Orchestrator;
use crate::redaction;
use crate::runtime::Runtime;
use crate::store::{self, Backend, ConfirmationRecord, SessionRecord};

impl Orchestrator {
    /// The result of a call in this session, as the model reads it.
    pub fn for_model(&self, session: &SessionRecord, envelope: &Envelope) -> Value {
        let (tool, runtime) = (&envelope.meta.tool, self.runtime(&session.toolset));
        self.model_value(session.mode, runtime, tool, envelope.outcome.as_ref())
    }

    /// The failure of a call of this tool that has no envelope, as the model reads it.
    pub fn failure_for_model(&self, session: &SessionRecord, tool: &str, failure: &Failure) -> Value {
        self.model_value(session.mode, self.runtime(&session.toolset), tool, Err(failure))
    }

    /// The result of a call in an ephemeral session, as the model reads it.
    pub fn for_model_ephemeral(&self, mode: Mode, envelope: &Envelope) -> Value {
        self.model_value(mode, Some(self.current()), &envelope.meta.tool, envelope.outcome.as_ref())
    }

    /// The arguments of a call without those that its tool marks as `writeOnly`. `None` when there are none of these.
    /// If the schema is not known, all arguments are removed.
    pub async fn without_secrets(&self, session: &SessionRecord, tool: &str, args: &Value) -> Option<Value> {
        let Ok(Some(runtime)) = self.load_runtime(&session.toolset).await else {
            return Some(Value::from("[redacted]"));
        };
        let schema = &runtime.toolset().metadata(tool)?.json_schema;
        redaction::has_write_only(schema).then(|| redaction::redacted(schema, args))
    }

    fn model_value(
        &self,
        mode: Mode,
        runtime: Option<Runtime>,
        tool: &str,
        outcome: Result<&Success, &Failure>,
    ) -> Value {
        let is_documented = self.0.policy.documentation_on_validation && outcome.is_err();
        let runtime = runtime.filter(|_| is_documented);
        let documentation = runtime.and_then(|runtime| runtime.toolset().documentation(tool));
        to_model_value(outcome, mode, documentation.as_deref())
    }

    /// The arguments of a confirmation request, redacted for people. Null when the schema that marks secrets is
    /// unknown.
    pub async fn redacted_args(&self, request: &ConfirmationRecord) -> store::Result<Value> {
        let Some(session) = self.0.store.session(&request.session).await? else { return Ok(Value::Null) };
        let runtime = self.load_runtime(&session.toolset).await?;
        let spec = runtime.as_ref().and_then(|runtime| runtime.toolset().metadata(&request.tool));
        Ok(spec.map_or(Value::Null, |spec| redaction::redacted(&spec.json_schema, &request.args)))
    }
}

/// `documentation` is the tool's, for a call with invalid arguments.
fn to_model_value(outcome: Result<&Success, &Failure>, mode: Mode, documentation: Option<&str>) -> Value {
    let failure = match outcome {
        Ok(success) => return json!({ "ok": true, "data": &*success.data }),
        Err(failure) => failure,
    };
    // In voice there is no time for a retry.
    let retryable = failure.retryable && mode == Mode::Text;
    let message = match failure.kind {
        ErrorKind::Transient if failure.retryable => "Temporary failure, please try again later.",
        _ => &failure.message,
    };
    let mut result =
        json!({ "ok": false, "error": message, "type": failure.kind.as_str(), "retryable": retryable });
    if failure.partial_side_effects {
        result["partialSideEffects"] = true.into();
    }
    let suggestion = failure
        .suggestion
        .as_deref()
        .or_else(|| default_suggestion(failure.kind, failure.partial_side_effects, mode));
    if let Some(suggestion) = suggestion {
        result["suggestion"] = suggestion.into();
    }
    if let Some(details) = failure.details() {
        result["details"] = details;
    }
    if failure.kind == ErrorKind::Validation
        && let Some(documentation) = documentation
    {
        result["documentation"] = documentation.into();
    }
    result
}

/// The suggestion for a failure that has none.
fn default_suggestion(kind: ErrorKind, partial_side_effects: bool, mode: Mode) -> Option<&'static str> {
    Some(match (kind, mode) {
        _ if partial_side_effects => {
            "It may have taken effect in part: check, or ask the user, before anything is repeated."
        }
        (ErrorKind::Validation, _) => "Check the parameters and call the tool again.",
        (ErrorKind::Transient, Mode::Voice) => "Say briefly that it did not work, and continue.",
        (ErrorKind::Transient, Mode::Text) => "Try again once, or tell the user that it does not work now.",
        (ErrorKind::RateLimit, _) => "Wait before calling it again.",
        (ErrorKind::SessionInactive, _) => "The session has ended: do not call any more tools.",
        (ErrorKind::NotFound, _) => "Check the name or id.",
        (ErrorKind::Conflict, _) => "Check the current state before trying anything else.",
        (ErrorKind::Auth, _) => "Tell the user that the permission is missing.",
        (ErrorKind::Permanent | ErrorKind::Internal, _) => {
            "Do not call it again with the same arguments; tell the user."
        }
        _ => return None,
    })
}
