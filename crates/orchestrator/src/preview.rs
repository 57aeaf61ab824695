//! The preview of a confirmation request: the text that says what the call would do. The approval covers it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use toolwright_contract::{Confirmation, ConfirmationRule, ErrorKind, Failure, ToolSpec};
use toolwright_engine::{Host, HostError};
use toolwright_registry::preview;

use crate::capability_calls::DEFAULT_RETRY_AFTER_MS;
use crate::execution::Execution;
use crate::host::CallHost;
use crate::invocation::Invocation;
use crate::orchestrator::Orchestrator;
use crate::prepared_tool::PreparedTool;
use crate::redaction;

/// How long reading for a preview may take.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

impl Orchestrator {
    /// The preview of a call, with freshly read values.
    pub(crate) async fn preview(
        &self,
        execution: &Execution,
        prepared: &Arc<PreparedTool>,
    ) -> Result<String, Failure> {
        let spec = &prepared.tool.spec;
        let redacted = redaction::redacted(&spec.json_schema, &execution.args);
        let Some((rule, template)) = template(spec) else { return Ok(without_template(spec, &redacted)) };
        let mut values = match &redacted {
            Value::Object(args) => args.clone(),
            _ => Map::new(),
        };
        if !rule.read.is_empty() {
            self.read(execution, prepared, rule, &mut values).await?;
        }
        let read: Vec<&str> = rule.read.keys().map(String::as_str).collect();
        match preview::render(template, &Value::Object(values), &read) {
            Ok(text) => Ok(text),
            Err(preview::Error::Missing(place)) => {
                let message = format!("What the call would do cannot be shown: there is no `{place}`.");
                Err(Failure::new(ErrorKind::Validation, message)
                    .suggest("Check the arguments; the user is asked once they fit."))
            }
            // The build has checked the template.
            Err(_) => Ok(without_template(spec, &redacted)),
        }
    }

    /// Whether the preview of an approved call is still the approved text.
    pub(crate) async fn is_as_previewed(
        &self,
        execution: &Execution,
        prepared: &Arc<PreparedTool>,
    ) -> Result<bool, Failure> {
        let Some(approval) = &execution.approval else { return Ok(true) };
        match template(&prepared.tool.spec) {
            Some((rule, _)) if !rule.read.is_empty() => {
                Ok(self.preview(execution, prepared).await? == approval.preview)
            }
            _ => Ok(true),
        }
    }

    /// Adds the values that the rule reads, under their names.
    async fn read(
        &self,
        execution: &Execution,
        prepared: &Arc<PreparedTool>,
        rule: &ConfirmationRule,
        values: &mut Map<String, Value>,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + READ_TIMEOUT;
        let invocation = Invocation::new(self, execution, prepared, deadline)?;
        let host = CallHost(Arc::new(invocation));
        for (name, read) in &rule.read {
            let args = preview::fill(&read.with, &execution.args).unwrap_or_default();
            let answer = host.call(&read.call, vec![Value::Object(args)]);
            let answer = tokio::time::timeout_at(deadline.into(), answer).await;
            let answer = answer.unwrap_or_else(|_| Err(HostError::new("TIMEOUT", "it took too long")));
            values.insert(name.clone(), answer.map_err(|error| unreadable(&read.call, &error))?);
        }
        Ok(())
    }
}

/// The rule and the template of a tool that has them.
fn template(spec: &ToolSpec) -> Option<(&ConfirmationRule, &str)> {
    match &spec.requires_confirmation {
        Confirmation::Rule(rule) => rule.preview.as_deref().map(|template| (rule, template)),
        Confirmation::Always(_) => None,
    }
}

fn without_template(spec: &ToolSpec, redacted_args: &Value) -> String {
    format!("{}: {redacted_args}", spec.description.trim_end_matches('.'))
}

/// The failure of a call whose preview cannot be read. The person is not asked.
fn unreadable(function: &str, error: &HostError) -> Failure {
    let (kind, retryable) = match error.code.as_str() {
        "NOT_FOUND" => (ErrorKind::NotFound, false),
        "RATE_LIMIT" => (ErrorKind::RateLimit, true),
        "UNREACHABLE" | "TIMEOUT" => (ErrorKind::Transient, true),
        "INVALID_ARGUMENT" => (ErrorKind::Validation, false),
        _ => (ErrorKind::Permanent, false),
    };
    let message = format!("What the call would do cannot be shown: `{function}` failed: {}", error.message);
    let failure = Failure::new(kind, message).suggest("Check the arguments; the user was not asked.");
    let failure = Failure { retryable, ..failure };
    match kind {
        ErrorKind::RateLimit => {
            failure.retry_after(error.retry_after_ms.unwrap_or(DEFAULT_RETRY_AFTER_MS).into())
        }
        _ => failure,
    }
}
