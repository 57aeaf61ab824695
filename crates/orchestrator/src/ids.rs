//! Names for things that have none yet, and digests of what was asked.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use sha2::{Digest, Sha256};
use toolwright_registry::json::write_canonical;
use toolwright_registry::{hex, push_hex_number};

/// A name that nobody else has: `prefix_` and 24 random hex digits.
pub(crate) fn fresh(prefix: &str) -> String {
    format!("{prefix}_{}", hex(&random::<12>()))
}

/// The name of a session that is over with its one call. Nobody is told it, so it need not be hard to guess: it costs no
/// randomness of its own.
pub(crate) fn passing() -> String {
    static PROCESS: OnceLock<String> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let process = PROCESS.get_or_init(|| hex(&random::<8>()));
    let mut name = String::with_capacity(36);
    name.push_str("own_");
    name.push_str(process);
    push_hex_number(&mut name, NEXT.fetch_add(1, Ordering::Relaxed));
    name
}

/// Random bytes. Without randomness from the system nothing can be promised, so the process does not go on with less.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    while getrandom::fill(&mut bytes).is_err() {
        std::thread::yield_now();
    }
    bytes
}

/// What a call asks for: the tool and its arguments, as they came.
pub(crate) fn digest(tool: &str, args: &Value) -> [u8; 32] {
    let mut text = Vec::with_capacity(256);
    text.extend_from_slice(tool.as_bytes());
    text.push(b'\n');
    write_canonical(args, &mut text);
    Sha256::digest(&text).into()
}

/// The id of a call that came without one: a resend has the same turn, position, tool and arguments.
pub(crate) fn derived(turn: u64, position: usize, digest: &[u8; 32]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(turn.to_le_bytes());
    hasher.update((position as u64).to_le_bytes());
    hasher.update(digest);
    let id: [u8; 32] = hasher.finalize().into();
    format!("auto_{}", hex(&id[..12]))
}
