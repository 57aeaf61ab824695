//! How a statement fails, and what that says about whether it was done.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use tokio_postgres::error::SqlState;

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The statement was not sent.
    Unsent(String),
    /// The server has refused it: nothing was done.
    Refused {
        /// Its code.
        state: SqlState,
        /// What it says.
        text: String,
    },
    /// It was sent, and the answer is lost: it may have been done, or may yet be.
    Lost(String),
}

impl Failure {
    pub(crate) fn late(limit: Duration) -> Self {
        Self::Lost(format!("no answer within {limit:?}"))
    }

    /// True when the same statement may succeed if it is sent again.
    pub(crate) fn is_passing(&self) -> bool {
        let states = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        matches!(self, Self::Refused { state, .. } if states.contains(state))
    }

    /// True when the connection is of no more use, although it is open: the server has become a replica, or a table
    /// has changed under a prepared statement.
    pub(crate) fn spoils_connection(&self) -> bool {
        let states = [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::FEATURE_NOT_SUPPORTED];
        match self {
            Self::Refused { state, .. } => states.contains(state),
            Self::Unsent(_) | Self::Lost(_) => true,
        }
    }

    /// True when a unique value is there already.
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Refused { state, .. } if *state == SqlState::UNIQUE_VIOLATION)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            // A server that shuts down says so in the middle of a statement.
            Some(refusal) if !is_shutdown(refusal.code()) => {
                Self::Refused { state: refusal.code().clone(), text: text(&error) }
            }
            _ => Self::Lost(text(&error)),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unsent(text) | Self::Refused { text, .. } | Self::Lost(text)) = self;
        formatter.write_str(text)
    }
}

impl std::error::Error for Failure {}

fn is_shutdown(state: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(state)
}

/// What the server says, without the details: they may quote what was to be stored.
fn text(error: &tokio_postgres::Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return format!("PostgreSQL: {} ({})", refusal.message(), refusal.code().code());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
