//! The failures that the orchestrator itself reports. They are in one place because models read them.

use toolwright_contract::{ErrorKind, Failure};

pub(crate) fn session_inactive(message: &str) -> Failure {
    Failure::new(ErrorKind::SessionInactive, message).suggest("Start a new session.")
}

pub(crate) fn unknown_session() -> Failure {
    session_inactive("The session does not exist.")
}

pub(crate) fn execution_id_conflict() -> Failure {
    Failure::new(ErrorKind::Conflict, "This execution id belongs to a different call.")
        .suggest("Use a unique id for each call.")
}

/// The process that ran the call has stopped.
pub(crate) fn unknown_outcome() -> Failure {
    Failure::unforeseen("This call was interrupted while it ran; its outcome is unknown.")
        .suggest(CHECK_BEFORE_REPEATING)
}

/// The call panicked.
pub(crate) fn interrupted(writes: bool) -> Failure {
    let failure = Failure::new(ErrorKind::Internal, "The call was interrupted; its outcome is unknown.");
    Failure { partial_side_effects: writes, ..failure }
}

/// The call ran, but the store has no record of it.
pub(crate) fn unrecorded_outcome(writes: bool) -> Failure {
    let failure = Failure::new(ErrorKind::Internal, "The call ran, but its result could not be recorded.");
    Failure { partial_side_effects: writes, ..failure }.suggest(CHECK_BEFORE_REPEATING)
}

/// The task of a background tool may be stored or not.
pub(crate) fn unstored_task(writes: bool) -> Failure {
    let failure =
        Failure::new(ErrorKind::Internal, "The task could not be stored; whether it runs is unknown.");
    Failure { partial_side_effects: writes, ..failure }.suggest(CHECK_BEFORE_REPEATING)
}

pub(crate) fn still_running() -> Failure {
    Failure::new(ErrorKind::Transient, "This call is still running.")
        .suggest("Send the same call again later.")
}

pub(crate) fn approval_already_used() -> Failure {
    Failure::new(ErrorKind::Conflict, "This approval has already been used.")
        .suggest("Ask the user again if the call is needed once more.")
}

/// The next of the waiting calls expires after `wait` milliseconds.
pub(crate) fn too_many_pending(of: &str, limit: usize, wait: u64) -> Failure {
    let message = format!("{limit} calls of {of} wait for approval, and no more may wait at a time.");
    Failure::new(ErrorKind::RateLimit, message)
        .retry_after(wait)
        .suggest("Ask the user to approve or reject those first.")
}

/// The call was cancelled before its handler started.
pub(crate) fn cancelled() -> Failure {
    Failure::new(ErrorKind::Transient, "The call was cancelled.")
}

/// The process was paused for longer than its lease, after the call was claimed and before its handler started.
pub(crate) fn not_started() -> Failure {
    let message = "The server was paused before the call started; nothing was done.";
    Failure::new(ErrorKind::Transient, message)
        .suggest("Send the same call with the same id again: it will not run twice.")
}

/// The store decides whether a call may run: without it, none may.
pub(crate) fn store_unavailable(error: crate::store::Error) -> Failure {
    tracing::error!("{error}");
    Failure::new(ErrorKind::Transient, "The store is unavailable, so the call was not started.")
        .suggest("Send the same call with the same id again in a moment: it will not run twice.")
}

pub(crate) fn toolset_missing() -> Failure {
    let message = "The toolset that this session started with is not available any more.";
    Failure::new(ErrorKind::Unavailable, message).suggest("Start a new session.")
}

const CHECK_BEFORE_REPEATING: &str =
    "Check whether it took effect, or ask the user, before anything is repeated.";
