//! How a statement fails, and what that says about whether it ran.

use std::error::Error as _;
use std::fmt;

use tokio_postgres::error::SqlState;

#[derive(Debug)]
pub enum Error {
    /// The statement was not sent.
    NotSent(String),
    /// The server has rejected the statement: nothing was changed.
    Rejected { state: SqlState, text: String },
    /// The statement was sent, and the reply is lost: it may have run, or may still run.
    NoReply(String),
}

impl Error {
    /// Whether the same statement may succeed if it is sent again.
    pub(crate) fn is_transient(&self) -> bool {
        let states = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        matches!(self, Self::Rejected { state, .. } if states.contains(state))
    }

    /// Whether the connection cannot be used any more, although it is open: the server has become a replica, or a
    /// table has changed under a prepared statement.
    pub(crate) fn breaks_connection(&self) -> bool {
        let states = [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::FEATURE_NOT_SUPPORTED];
        match self {
            Self::Rejected { state, .. } => states.contains(state),
            Self::NotSent(_) | Self::NoReply(_) => true,
        }
    }

    /// Whether a unique value exists already.
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Rejected { state, .. } if *state == SqlState::UNIQUE_VIOLATION)
    }
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            // A server that shuts down reports it in the middle of a statement.
            Some(rejection) if !is_shutdown(rejection.code()) => {
                Self::Rejected { state: rejection.code().clone(), text: text(&error) }
            }
            _ => Self::NoReply(text(&error)),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NotSent(text) | Self::Rejected { text, .. } | Self::NoReply(text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for Error {}

fn is_shutdown(state: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(state)
}

/// The server's message without its details, which may quote values.
fn text(error: &tokio_postgres::Error) -> String {
    if let Some(rejection) = error.as_db_error() {
        return format!("PostgreSQL: {} ({})", rejection.message(), rejection.code().code());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
