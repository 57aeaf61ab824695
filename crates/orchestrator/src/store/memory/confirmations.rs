//! Confirmation records in memory, with indexes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::store::RETENTION_MS;
use crate::store::records::{ConfirmationRecord, ConfirmationStatus};

#[derive(Default)]
pub struct Confirmations {
    by_id: HashMap<String, Arc<ConfirmationRecord>>,
    /// Creation time and id of the pending and the approved ones.
    open: BTreeSet<(i64, String)>,
    /// The id of the newest one of each execution.
    by_execution: HashMap<(String, String), String>,
}

impl Confirmations {
    pub fn get(&self, id: &str) -> Option<&Arc<ConfirmationRecord>> {
        self.by_id.get(id)
    }

    /// The newest confirmation of this execution.
    pub fn of_execution(&self, session: &str, execution: &str) -> Option<&Arc<ConfirmationRecord>> {
        let key = (session.to_owned(), execution.to_owned());
        self.by_execution.get(&key).and_then(|id| self.by_id.get(id))
    }

    pub fn insert(&mut self, confirmation: Arc<ConfirmationRecord>) {
        let key = (confirmation.created_at, confirmation.id.clone());
        if confirmation.is_open() {
            self.open.insert(key);
            let execution = (confirmation.session.clone(), confirmation.execution.clone());
            self.by_execution.insert(execution, confirmation.id.clone());
        } else {
            self.open.remove(&key);
        }
        self.by_id.insert(confirmation.id.clone(), confirmation);
    }

    /// Restores `before`, unless `current` has been replaced in the meantime.
    pub fn restore(&mut self, current: &Arc<ConfirmationRecord>, before: Option<Arc<ConfirmationRecord>>) {
        if !self.by_id.get(&current.id).is_some_and(|stored| Arc::ptr_eq(stored, current)) {
            return;
        }
        match before {
            Some(before) => self.insert(before),
            None => self.remove(&current.id),
        }
    }

    /// The pending or the approved ones, oldest first.
    pub fn open(&self, status: ConfirmationStatus) -> impl Iterator<Item = &Arc<ConfirmationRecord>> {
        let open = self.open.iter().filter_map(|(_, id)| self.by_id.get(id));
        open.filter(move |confirmation| confirmation.status == status)
    }

    /// Removes the confirmations of these sessions and those that were closed a day ago or longer; returns their ids.
    pub fn remove_old(&mut self, sessions: &HashSet<String>, now: i64) -> Vec<String> {
        let is_old = |confirmation: &&Arc<ConfirmationRecord>| {
            sessions.contains(&confirmation.session)
                || (!confirmation.is_open() && now.saturating_sub(confirmation.expires_at) >= RETENTION_MS)
        };
        let ids: Vec<_> = self.by_id.values().filter(is_old).map(|old| old.id.clone()).collect();
        for id in &ids {
            self.remove(id);
        }
        ids
    }

    fn remove(&mut self, id: &str) {
        let Some(confirmation) = self.by_id.remove(id) else { return };
        self.open.remove(&(confirmation.created_at, confirmation.id.clone()));
        let execution = (confirmation.session.clone(), confirmation.execution.clone());
        if self.by_execution.get(&execution).is_some_and(|newest| newest == id) {
            self.by_execution.remove(&execution);
        }
    }
}
