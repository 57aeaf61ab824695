//! The state changes that a handler may request. Only the orchestrator applies them.

use crate::word_enum::word_enum;

word_enum! {
    /// `type` of an intent in a successful envelope.
    IntentKind {
        /// End the voice session, after the turn or after the farewell is spoken.
        EndVoiceSession = "END_VOICE_SESSION",
        /// Generate no audio for the answer.
        SuppressAudio = "SUPPRESS_AUDIO",
        /// Show no transcript of the answer.
        SuppressTranscript = "SUPPRESS_TRANSCRIPT",
        /// Deliver a message at the start of the next turn.
        SetPendingMessage = "SET_PENDING_MESSAGE",
    }
}
