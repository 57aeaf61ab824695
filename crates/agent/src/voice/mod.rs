//! Voice: bridges a client's audio to a voice model, and the model's calls to the orchestrator.
//!
//! [`VoiceAgent`] opens sessions. `bridge` runs one session without knowing the provider; `transport` has one file
//! per provider.

mod bridge;
mod client;
mod lexicon;
mod pcm;
mod resampler;
mod transport;
mod turn_log;
mod voice_agent;
mod voice_metrics;
mod voice_settings;

pub use bridge::VoiceClient;
pub use client::{
    ClientInput, ClientOutput, ClientQueue, CloseReason, ConfirmationPrompt, DecidedBy, EndReason, Outcome,
    SessionReady, Speaker,
};
pub use lexicon::YesNoWords;
pub use voice_agent::{StartError, StartRequest, VoiceAgent};
pub use voice_metrics::{DURATION_BOUNDS_US, Histogram, LEVEL_BOUNDS_DB, VoiceMetrics};
pub use voice_settings::{VoiceOptions, VoiceSection};

/// The sample rates that clients may use.
pub const SAMPLE_RATES: [u32; 4] = [8000, 16_000, 24_000, 48_000];
