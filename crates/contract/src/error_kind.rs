//! The kinds of failure in an envelope, of all layers.

use crate::word_enum::word_enum;

word_enum! {
    /// `error.type` of a failed envelope.
    ErrorKind {
        /// The arguments do not conform to the tool's schema.
        Validation = "VALIDATION",
        /// No such tool in the session's toolset.
        NotFound = "NOT_FOUND",
        /// An unexpected failure; the log has the cause.
        Internal = "INTERNAL",
        /// The tool may not be used in this session's mode.
        ModeRestricted = "MODE_RESTRICTED",
        /// The turn has used all its retrieval calls.
        BudgetExceeded = "BUDGET_EXCEEDED",
        /// A person has to approve this call first.
        ConfirmationRequired = "CONFIRMATION_REQUIRED",
        /// Too many calls in the window.
        RateLimit = "RATE_LIMIT",
        /// The tool is not available to this session now.
        Unavailable = "UNAVAILABLE",
        /// The session has ended.
        SessionInactive = "SESSION_INACTIVE",
        /// A temporary failure; the same call may succeed later.
        Transient = "TRANSIENT",
        /// A failure that a retry does not fix.
        Permanent = "PERMANENT",
        /// The call conflicts with the current state or with an earlier call.
        Conflict = "CONFLICT",
        /// The caller, or the tool's own credentials, lack permission.
        Auth = "AUTH",
    }
}
