//! Confirmation records in memory. They are few, since a person answers them, and have no index but their id.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::store::RETENTION_MS;
use crate::store::records::{ConfirmationRecord, ConfirmationStatus};

/// By id.
#[derive(Default)]
pub struct Confirmations(HashMap<String, Arc<ConfirmationRecord>>);

impl Confirmations {
    pub fn get(&self, id: &str) -> Option<&Arc<ConfirmationRecord>> {
        self.0.get(id)
    }

    /// The one that is pending for this execution at this time.
    pub fn pending_for(&self, session: &str, execution: &str, at: i64) -> Option<&Arc<ConfirmationRecord>> {
        self.0.values().find(|confirmation| {
            confirmation.execution == execution
                && confirmation.session == session
                && confirmation.is_pending_at(at)
        })
    }

    pub fn insert(&mut self, confirmation: Arc<ConfirmationRecord>) {
        self.0.insert(confirmation.id.clone(), confirmation);
    }

    /// Restores `before`, unless `current` has been replaced in the meantime.
    pub fn restore(&mut self, current: &Arc<ConfirmationRecord>, before: Option<Arc<ConfirmationRecord>>) {
        if self.get(&current.id).is_some_and(|stored| Arc::ptr_eq(stored, current)) {
            self.0.remove(&current.id);
            before.into_iter().for_each(|before| self.insert(before));
        }
    }

    /// Those with this status, oldest first.
    pub fn with_status(&self, status: ConfirmationStatus) -> Vec<Arc<ConfirmationRecord>> {
        let mut found: Vec<_> = self.0.values().filter(|known| known.status == status).cloned().collect();
        found.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        found
    }

    /// Removes the confirmations of these sessions and those that were closed a day ago or longer; returns their ids.
    pub fn remove_old(&mut self, sessions: &HashSet<String>, now: i64) -> Vec<String> {
        let old = self.0.extract_if(|_, confirmation| {
            sessions.contains(&confirmation.session)
                || (!confirmation.is_open() && now.saturating_sub(confirmation.expires_at) >= RETENTION_MS)
        });
        old.map(|(id, _)| id).collect()
    }
}
