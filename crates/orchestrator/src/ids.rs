//! Random and derived ids, and digests of calls.

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolwright_registry::hex;
use toolwright_registry::json::write_canonical;

/// A random id: `prefix_` and 24 hex digits.
pub(crate) fn random_id(prefix: &str) -> String {
    format!("{prefix}_{}", hex(&random::<12>()))
}

/// Random bytes. Tokens depend on them, so this waits until the system provides them.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    while getrandom::fill(&mut bytes).is_err() {
        std::thread::yield_now();
    }
    bytes
}

/// SHA-256 of a tool and its arguments, as the caller sent them.
pub(crate) fn digest(tool: &str, args: &Value) -> [u8; 32] {
    let mut text = Vec::with_capacity(256);
    text.extend_from_slice(tool.as_bytes());
    text.push(b'\n');
    write_canonical(args, &mut text);
    Sha256::digest(&text).into()
}

/// SHA-256 of texts and their lengths.
pub(crate) fn hash_of_parts(parts: [&str; 4]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// The id of a call that has none: a resend has the same turn, position, tool and arguments.
pub(crate) fn derived_execution_id(turn: u64, position: usize, digest: &[u8; 32]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(turn.to_le_bytes());
    hasher.update((position as u64).to_le_bytes());
    hasher.update(digest);
    let id: [u8; 32] = hasher.finalize().into();
    format!("auto_{}", hex(&id[..12]))
}
