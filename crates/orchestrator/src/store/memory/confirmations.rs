//! Confirmation records in memory, with the indexes by which they are found.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use crate::store::RETENTION_MS;
use crate::store::records::{ConfirmationRecord, ConfirmationStatus, PendingQuery, PendingScope};

/// The most memory of closed confirmations, by the size of their texts. Beyond it the oldest are deleted.
const MAX_CLOSED_BYTES: usize = 16 << 20;
/// The approximate size of a confirmation without its arguments and its preview.
const RECORD_BYTES: usize = 1024;

#[derive(Default)]
pub struct Confirmations {
    by_id: HashMap<String, Arc<ConfirmationRecord>>,
    /// Each pending confirmation, once for each of its scopes, by time and id.
    pending: BTreeSet<(Scope, i64, String)>,
    /// The pending ones, by expiry and id.
    pending_by_expiry: BTreeSet<(i64, String)>,
    /// The approved ones whose execution is not claimed, by time and id.
    approved: BTreeSet<(i64, String)>,
    /// The closed ones, by expiry and id.
    closed_by_expiry: BTreeSet<(i64, String)>,
    /// The closed ones in the order in which they were closed, with their sizes. Some may be gone.
    closed: VecDeque<(String, usize)>,
    closed_bytes: usize,
    /// All, by session and id.
    by_session: BTreeSet<(String, String)>,
}

/// A [`PendingScope`] that is stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    All,
    Session(String),
    Principal(String),
}

impl From<PendingScope<'_>> for Scope {
    fn from(scope: PendingScope<'_>) -> Self {
        match scope {
            PendingScope::All => Self::All,
            PendingScope::Session(id) => Self::Session(id.to_owned()),
            PendingScope::Principal(key) => Self::Principal(key.to_owned()),
        }
    }
}

impl Confirmations {
    pub fn get(&self, id: &str) -> Option<&Arc<ConfirmationRecord>> {
        self.by_id.get(id)
    }

    /// The one that is pending for this execution at this time.
    pub fn pending_for(&self, session: &str, execution: &str, at: i64) -> Option<&Arc<ConfirmationRecord>> {
        let mut pending = self.pending(PendingQuery::all(PendingScope::Session(session)));
        pending.find(|pending| pending.execution == execution && pending.is_pending_at(at))
    }

    /// The pending ones of a scope after a place, oldest first. The limit is the caller's.
    pub fn pending(&self, query: PendingQuery<'_>) -> impl Iterator<Item = &Arc<ConfirmationRecord>> {
        let scope = Scope::from(query.scope);
        let first = match query.after {
            Some((at, id)) => Bound::Excluded((scope.clone(), at, id.to_owned())),
            None => Bound::Included((scope.clone(), i64::MIN, String::new())),
        };
        let places = self.pending.range((first, Bound::Unbounded));
        let places = places.take_while(move |(of, _, _)| *of == scope);
        places.filter_map(|(_, _, id)| self.by_id.get(id))
    }

    pub fn insert(&mut self, confirmation: Arc<ConfirmationRecord>) {
        self.remove(&confirmation.id.clone());
        let ConfirmationRecord { id, session, .. } = &*confirmation;
        self.by_session.insert((session.clone(), id.clone()));
        self.pending.extend(places(&confirmation));
        if !confirmation.is_open() {
            let bytes = size(&confirmation);
            self.closed.push_back((id.clone(), bytes));
            self.closed_bytes += bytes;
        }
        let (index, at) = self.index_of(&confirmation);
        index.insert((at, id.clone()));
        self.by_id.insert(id.clone(), confirmation);
    }

    fn remove(&mut self, id: &str) {
        let Some(confirmation) = self.by_id.remove(id) else { return };
        let (index, at) = self.index_of(&confirmation);
        index.remove(&(at, id.to_owned()));
        self.by_session.remove(&(confirmation.session.clone(), id.to_owned()));
        for place in places(&confirmation) {
            self.pending.remove(&place);
        }
    }

    /// The index of a confirmation's status, and its time there.
    fn index_of(&mut self, confirmation: &ConfirmationRecord) -> (&mut BTreeSet<(i64, String)>, i64) {
        match confirmation.status {
            ConfirmationStatus::Pending => (&mut self.pending_by_expiry, confirmation.expires_at),
            ConfirmationStatus::Approved => (&mut self.approved, confirmation.created_at),
            ConfirmationStatus::Rejected | ConfirmationStatus::Expired | ConfirmationStatus::Used => {
                (&mut self.closed_by_expiry, confirmation.expires_at)
            }
        }
    }

    /// Restores `before`, unless `current` has been replaced in the meantime.
    pub fn restore(&mut self, current: &Arc<ConfirmationRecord>, before: Option<Arc<ConfirmationRecord>>) {
        if self.get(&current.id).is_some_and(|stored| Arc::ptr_eq(stored, current)) {
            self.remove(&current.id);
            before.into_iter().for_each(|before| self.insert(before));
        }
    }

    /// The approved ones, oldest first.
    pub fn approved(&self) -> Vec<Arc<ConfirmationRecord>> {
        self.approved.iter().filter_map(|(_, id)| self.by_id.get(id)).cloned().collect()
    }

    /// The pending ones that have expired, oldest first.
    pub fn expired(&self, now: i64) -> Vec<Arc<ConfirmationRecord>> {
        let due = self.pending_by_expiry.range(..(now.saturating_add(1), String::new()));
        let mut expired: Vec<_> = due.filter_map(|(_, id)| self.by_id.get(id)).cloned().collect();
        expired.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        expired
    }

    /// Removes the confirmations of these sessions, those that were closed a day ago or longer, and the oldest closed
    /// ones that take too much memory; returns their ids.
    pub fn remove_old(&mut self, sessions: &HashSet<String>, now: i64) -> Vec<String> {
        let before = now.saturating_sub(RETENTION_MS);
        let old = self.closed_by_expiry.range(..(before.saturating_add(1), String::new()));
        let mut removed: Vec<String> = old.map(|(_, id)| id.clone()).collect();
        for session in sessions {
            let of_session = self.by_session.range((session.clone(), String::new())..);
            let of_session = of_session.take_while(|(of, _)| of == session);
            removed.extend(of_session.map(|(_, id)| id.clone()));
        }
        removed.sort();
        removed.dedup();
        removed.iter().for_each(|id| self.remove(id));
        removed.extend(self.remove_surplus());
        removed
    }

    /// Removes the oldest closed ones beyond [`MAX_CLOSED_BYTES`]. Returns their ids.
    fn remove_surplus(&mut self) -> Vec<String> {
        let mut removed = Vec::new();
        while let Some((id, bytes)) = self.closed.front() {
            let is_closed = self.by_id.get(id).is_some_and(|known| !known.is_open());
            if is_closed && self.closed_bytes <= MAX_CLOSED_BYTES {
                break;
            }
            self.closed_bytes -= bytes;
            if let Some((id, _)) = self.closed.pop_front()
                && is_closed
            {
                self.remove(&id);
                removed.push(id);
            }
        }
        removed
    }
}

/// The approximate size of a confirmation in memory.
fn size(confirmation: &ConfirmationRecord) -> usize {
    RECORD_BYTES + confirmation.preview.len() + text_bytes(&confirmation.args)
}

fn text_bytes(value: &Value) -> usize {
    let value_bytes = std::mem::size_of::<Value>();
    value_bytes
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(text_bytes).sum(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| name.len() + text_bytes(value)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

/// The places of a confirmation in the index of pending ones.
fn places(confirmation: &ConfirmationRecord) -> Vec<(Scope, i64, String)> {
    if confirmation.status != ConfirmationStatus::Pending {
        return Vec::new();
    }
    let ConfirmationRecord { id, session, principal, created_at, .. } = confirmation;
    let scopes = [Scope::All, Scope::Session(session.clone()), Scope::Principal(principal.clone())];
    scopes.map(|scope| (scope, *created_at, id.clone())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, status: ConfirmationStatus) -> Arc<ConfirmationRecord> {
        let json = serde_json::json!({
            "id": id, "session": "s", "client_id": "c", "execution": id, "tool": "t", "tool_version": "1.0.0",
            "args": { "text": "x".repeat(1 << 20) }, "digest": vec![0; 32], "preview": "", "token_hash": vec![0; 32],
            "created_at": 0, "expires_at": 10, "answer": status, "decided_by": null, "reason": null
        });
        Arc::new(serde_json::from_value(json).unwrap())
    }

    #[test]
    fn closed_ones_take_a_bounded_amount_of_memory() {
        let mut confirmations = Confirmations::default();
        let none = HashSet::new();
        for number in 0..40 {
            let id = format!("c{number:02}");
            confirmations.insert(record(&id, ConfirmationStatus::Pending));
            confirmations.insert(record(&id, ConfirmationStatus::Rejected));
        }
        confirmations.insert(record("open", ConfirmationStatus::Pending));
        let removed = confirmations.remove_old(&none, 0);
        assert_eq!((removed.len(), removed[0].as_str(), removed[24].as_str()), (25, "c00", "c24"));
        assert!(confirmations.get("c24").is_none() && confirmations.get("c25").is_some());
        assert!(confirmations.get("open").is_some());
        assert_eq!(confirmations.remove_old(&none, 0), Vec::<String>::new());
        assert!(confirmations.closed_bytes <= MAX_CLOSED_BYTES);
        // Those that retention has deleted count no more.
        assert_eq!(confirmations.remove_old(&none, RETENTION_MS + 10).len(), 15);
        assert_eq!((confirmations.closed_bytes, confirmations.closed.len()), (0, 0));
    }

    #[test]
    fn a_confirmation_is_in_the_index_of_its_status_only() {
        let mut confirmations = Confirmations::default();
        let ids =
            |found: Vec<Arc<ConfirmationRecord>>| found.iter().map(|it| it.id.clone()).collect::<Vec<_>>();
        confirmations.insert(record("a", ConfirmationStatus::Pending));
        assert_eq!(
            (ids(confirmations.expired(9)), ids(confirmations.expired(10))),
            (vec![], vec!["a".into()])
        );
        confirmations.insert(record("a", ConfirmationStatus::Approved));
        assert_eq!(
            (ids(confirmations.approved()), ids(confirmations.expired(10))),
            (vec!["a".into()], vec![])
        );
        confirmations.insert(record("a", ConfirmationStatus::Used));
        assert_eq!((ids(confirmations.approved()), ids(confirmations.expired(10))), (vec![], vec![]));
    }
}
