//! Wires of the agent: each encodes the conversation log in the form of its clients. A further wire is a file with an
//! [`encode::Encoder`], its requests, and its rows in the table of routes.

mod agui;
mod agui_routes;
mod completions;
mod completions_routes;
mod confirmation_answers;
mod encode;
mod log_lines;
mod models;
mod openai_request;
mod response_id;
mod response_object;
mod responses;
mod responses_request;
mod responses_routes;
mod session;
mod task_results;
mod transcript;
mod ui;
mod ui_history;
mod ui_request;
mod ui_routes;

use chrono::{DateTime, SecondsFormat};
use toolwright_agent::{ConfirmationPart, Error};
use toolwright_orchestrator::confirmation_token;

pub(crate) use agui_routes::run as run_agui;
pub(crate) use completions_routes::create as create_completion;
pub(crate) use models::{get as get_model, list as list_models};
pub(crate) use responses_routes::{create as create_response, get as get_response};
pub(crate) use ui_routes::{messages, post, resume, stop};

use crate::problem::{Kind, Problem};

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Store(error) => return error.clone().into(),
            Error::Approval(confirmation_token::Error::Store(error)) => return error.clone().into(),
            Error::UnknownSession(_) => Kind::NOT_FOUND,
            Error::SessionEnded(_) | Error::Busy { .. } | Error::ToolsetUnloaded(_) => Kind::CONFLICT,
            Error::MessageTooLarge { .. } => Kind::TOO_LARGE,
            Error::Approval(confirmation_token::Error::Refused) => Kind::CONFLICT,
            Error::Approval(confirmation_token::Error::Forbidden(_)) => Kind::FORBIDDEN,
            _ => Kind::BAD_REQUEST,
        };
        Self::new(kind, sentence(&error.to_string())).with_code(code(&error))
    }
}

const fn code(error: &Error) -> &'static str {
    match error {
        Error::UnknownSession(_) => "session_not_found",
        Error::SessionEnded(_) | Error::ToolsetUnloaded(_) => "session_ended",
        Error::Busy { .. } => "session_busy",
        Error::MessageTooLarge { .. } => "message_too_large",
        Error::ClientToolName(_) => "tool_name_taken",
        Error::UnknownClientCall(_) => "call_not_found",
        Error::Approval(_) => "approval_refused",
        _ => "invalid_message",
    }
}

/// Adds a capital letter and a full stop to a text.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str().trim_end_matches('.'))
}

/// A time as ISO 8601.
pub(crate) fn timestamp(ms: i64) -> String {
    let time = DateTime::from_timestamp_millis(ms).unwrap_or(DateTime::UNIX_EPOCH);
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The calls that wait for approval, for clients that show text only.
fn pending_text(approval: &ConfirmationPart) -> String {
    let ConfirmationPart { tool, preview, expires_at, .. } = approval;
    let id = approval.confirmation_id();
    format!(
        "**This needs approval:** {preview}\n\n`{tool}` has not run. An operator approves it with \
         `toolwright approve {id}`, or rejects it with `toolwright reject {id}`. It expires at {}.",
        timestamp(*expires_at)
    )
}

/// A random id.
fn random_id(prefix: &str) -> Result<String, Problem> {
    let mut bytes = [0; 12];
    getrandom::fill(&mut bytes)
        .map_err(|_| Problem::new(Kind::UNAVAILABLE, "The system has no random numbers now. Try again."))?;
    Ok(format!("{prefix}_{}", toolwright_registry::hex(&bytes)))
}
