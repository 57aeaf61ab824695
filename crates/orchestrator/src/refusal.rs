//! The refusals that the corridor itself gives: in one place, since a model reads them.

use toolwright_contract::{ErrorKind, Failure};

pub(crate) fn inactive(message: &str) -> Failure {
    Failure::new(ErrorKind::SessionInactive, message).suggest("Begin a new session.")
}

pub(crate) fn no_session() -> Failure {
    inactive("There is no such session.")
}

pub(crate) fn conflict() -> Failure {
    Failure::new(ErrorKind::Conflict, "This id was used for another call.")
        .suggest("Give every call an id of its own.")
}

pub(crate) fn in_doubt() -> Failure {
    Failure::unforeseen("This call was begun and interrupted: whether it was done is not known.")
        .suggest("Check what was done, or ask the user, before anything is repeated.")
}

pub(crate) fn still_running() -> Failure {
    Failure::new(ErrorKind::Transient, "This call is still running.")
        .suggest("Send the same call again later.")
}

pub(crate) fn unapproved() -> Failure {
    Failure::new(ErrorKind::Conflict, "This approval was used already.")
        .suggest("Ask the user again if it is needed once more.")
}

/// The store decides whether a call may run: without it, none may.
pub(crate) fn out_of_reach(error: &crate::store::Error) -> Failure {
    tracing::error!("{error}");
    Failure::new(
        ErrorKind::Transient,
        "The call could not be looked up or recorded, so it was not begun now.",
    )
    .suggest("Send the same call with the same id again in a moment: it will not run twice.")
}

/// A call without a tool that is ready: it cannot come so far.
pub(crate) fn out_of_order() -> Failure {
    Failure::new(ErrorKind::Internal, "The tool cannot be used.")
}

pub(crate) fn without_toolset() -> Failure {
    let message = "The toolset that this session was begun with is not loaded any more.";
    Failure::new(ErrorKind::Unavailable, message).suggest("Begin a new session.")
}
