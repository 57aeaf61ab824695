//! When a turn begins. MCP has no turns, so that a budget per turn needs another mark: the MCP host's own
//! (`_meta["toolwright/turn"]`), or a pause between two calls.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use toolwright_registry::hex;

/// The member of `_meta` by which an MCP host names its turn: another value begins another turn.
pub(super) const TURN: &str = "toolwright/turn";
/// Beyond this number, entries that no longer matter are removed.
const MAX_ENTRIES: usize = 10_000;

pub(super) struct TurnTracker {
    /// A call after so long a pause begins a turn. With 0, every call does, so that no budget of a turn applies.
    idle: Duration,
    by_caller: Mutex<HashMap<String, LastCall>>,
}

struct LastCall {
    at: Instant,
    turn: Turn,
}

/// The turn of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    /// The MCP host's name for the turn.
    marker: Option<String>,
    /// The id of the turn, unique in the store.
    pub id: String,
}

/// A call, placed in its turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TurnPlacement {
    pub turn: Turn,
    pub is_first: bool,
    /// The turn that ended with this call.
    pub before: Option<Turn>,
}

impl TurnTracker {
    pub fn new(idle: Duration) -> Self {
        Self { idle, by_caller: Mutex::default() }
    }

    /// Places a call in the caller's current turn, or begins one.
    pub fn place(&self, caller: &str, marker: Option<&str>, now: Instant) -> TurnPlacement {
        let mut by_caller = self.by_caller.lock().unwrap_or_else(PoisonError::into_inner);
        if by_caller.len() >= MAX_ENTRIES {
            by_caller.retain(|_, last| now.duration_since(last.at) < self.idle);
        }
        let last = by_caller.get_mut(caller);
        if let Some(last) = last
            && self.continues(last, marker, now)
        {
            last.at = now;
            return TurnPlacement { turn: last.turn.clone(), is_first: false, before: None };
        }
        let turn = Turn { marker: marker.map(str::to_owned), id: random_id() };
        let before = by_caller.insert(caller.to_owned(), LastCall { at: now, turn: turn.clone() });
        TurnPlacement { turn, is_first: true, before: before.map(|last| last.turn) }
    }

    fn continues(&self, last: &LastCall, marker: Option<&str>, now: Instant) -> bool {
        match marker {
            _ if self.idle.is_zero() => false,
            Some(marker) => last.turn.marker.as_deref() == Some(marker),
            None => now.duration_since(last.at) < self.idle,
        }
    }
}

/// An id that no other call has.
pub(super) fn random_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness no session could have been opened.
    let _ = getrandom::fill(&mut bytes);
    hex(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(15);

    fn begins(turns: &TurnTracker, marker: Option<&str>, now: Instant) -> bool {
        turns.place("caller", marker, now).is_first
    }

    #[test]
    fn a_pause_begins_a_turn() {
        let (turns, start) = (TurnTracker::new(IDLE), Instant::now());
        assert!(begins(&turns, None, start));
        assert!(!begins(&turns, None, start + IDLE / 2));
        assert!(!begins(&turns, None, start + IDLE), "the pause is counted from the last call");
        assert!(begins(&turns, None, start + IDLE * 2));
        assert!(turns.place("another", None, start + IDLE * 2).is_first);
    }

    #[test]
    fn another_marker_of_the_host_begins_a_turn() {
        let (turns, now) = (TurnTracker::new(IDLE), Instant::now());
        let first = turns.place("caller", Some("1"), now);
        assert!(first.is_first && !begins(&turns, Some("1"), now + IDLE * 9));
        let second = turns.place("caller", Some("2"), now);
        assert_eq!((second.is_first, second.before), (true, Some(first.turn.clone())));
        let again = turns.place("caller", Some("1"), now);
        assert!(again.is_first && again.turn.id != first.turn.id, "hosts number their turns from 1 again");
    }

    #[test]
    fn without_a_pause_every_call_begins_a_turn() {
        let (turns, now) = (TurnTracker::new(Duration::ZERO), Instant::now());
        for marker in [None, None, Some("1"), Some("1")] {
            assert!(begins(&turns, marker, now));
        }
    }
}
