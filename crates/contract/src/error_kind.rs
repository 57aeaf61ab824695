//! The kinds of failure that an envelope may carry, whichever layer raised them.

use crate::words::words;

words! {
    /// `error.type` of a failed envelope.
    ErrorKind {
        /// The arguments do not fit the tool's schema.
        Validation = "VALIDATION",
        /// No such tool in the session's toolset.
        NotFound = "NOT_FOUND",
        /// Something failed that nobody foresaw; the cause is in the log.
        Internal = "INTERNAL",
        /// The tool may not be used in this session's mode.
        ModeRestricted = "MODE_RESTRICTED",
        /// The turn has used up its retrieval calls.
        BudgetExceeded = "BUDGET_EXCEEDED",
        /// A person has to approve this call first.
        ConfirmationRequired = "CONFIRMATION_REQUIRED",
        /// Too many calls in the window.
        RateLimit = "RATE_LIMIT",
        /// The tool is not available to this session now.
        Unavailable = "UNAVAILABLE",
        /// The session has ended.
        SessionInactive = "SESSION_INACTIVE",
        /// A passing failure; the same call may succeed later.
        Transient = "TRANSIENT",
        /// A failure that a retry will not mend.
        Permanent = "PERMANENT",
        /// The call contradicts the state of things, or an earlier call.
        Conflict = "CONFLICT",
        /// The caller, or the tool's own credentials, may not do this.
        Auth = "AUTH",
    }
}
