//! Generates ids: random ones, and deterministic ones for calls without a usable id.

use sha2::{Digest, Sha256};
use toolwright_registry::hex;

/// Maximum length of a call id that all providers accept.
const MAX_CALL_ID_BYTES: usize = 64;

/// 24 random hex digits.
pub(crate) fn random() -> String {
    let mut bytes = [0; 12];
    while getrandom::fill(&mut bytes).is_err() {
        std::thread::yield_now();
    }
    hex(&bytes)
}

/// Whether a provider's call id can be used: as an execution id, and in requests to any provider.
pub(crate) fn is_usable(id: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !id.is_empty() && id.len() <= MAX_CALL_ID_BYTES && id.bytes().all(is_allowed)
}

/// Deterministic replacement for an unusable call id.
pub(crate) fn call_id(turn: &str, step: u32, position: usize) -> String {
    let mut hasher = Sha256::new();
    hasher.update(turn);
    hasher.update(step.to_le_bytes());
    hasher.update((position as u64).to_le_bytes());
    let digest: [u8; 32] = hasher.finalize().into();
    format!("call_{}", hex(&digest[..12]))
}
