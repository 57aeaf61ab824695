//! The sweep in memory: records that expire or are deleted.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Memory, lock};
use crate::store::journal::{Change, Deletion, Journal};
use crate::store::records::{BlockRecord, ConfirmationRecord, ConfirmationStatus};

impl<J: Journal> Memory<J> {
    /// Returns how many sessions have expired, and the ids of those that were deleted.
    pub(super) fn sweep_sessions(&self, now: i64) -> (usize, HashSet<String>) {
        let mut expired = 0;
        let mut deleted = HashSet::new();
        for shard in &self.shards {
            lock(shard).retain(|id, entry| {
                let status = entry.record.status_at(now);
                if entry.record.status != status {
                    let record = Arc::make_mut(&mut entry.record);
                    record.status = status;
                    record.revision += 1;
                    self.write_unawaited(Change::Session(Arc::clone(&entry.record)));
                    expired += 1;
                }
                let is_old = entry.is_old(now);
                let executions = match is_old {
                    true => entry.numbers().collect(),
                    false => entry.remove_old(now),
                };
                let session = is_old.then(|| id.clone());
                if is_old {
                    lock(&self.sessions_by_age).remove(&(entry.record.created_at, id.clone()));
                }
                deleted.extend(session.clone());
                self.delete(Deletion { session, executions, ..Deletion::default() });
                !is_old
            });
        }
        (expired, deleted)
    }

    pub(super) fn sweep_confirmations(
        &self,
        now: i64,
        deleted_sessions: &HashSet<String>,
    ) -> Vec<Arc<ConfirmationRecord>> {
        let mut confirmations = self.confirmations();
        let mut expired = confirmations.expired(now);
        for confirmation in &mut expired {
            *confirmation = Arc::new(confirmation.without_secrets(ConfirmationStatus::Expired));
            confirmations.insert(Arc::clone(confirmation));
            self.write_unawaited(Change::Confirmation(Arc::clone(confirmation)));
        }
        let confirmations = confirmations.remove_old(deleted_sessions, now);
        self.delete(Deletion { confirmations, ..Deletion::default() });
        expired
    }

    pub(super) fn sweep_blocks(&self, now: i64) {
        let mut blocks = self.blocks();
        let old = blocks.extract_if(|_, until| *until <= now);
        let old =
            old.map(|((org, principal, client_id), until)| BlockRecord { org, principal, client_id, until });
        let deletion = Deletion { blocks: old.collect(), ..Deletion::default() };
        self.delete(deletion);
    }

    pub(super) fn delete(&self, deletion: Deletion) {
        if !deletion.is_empty() {
            // If it is lost, a later sweep deletes the same.
            self.write_unawaited(Change::Deletion(deletion));
        }
    }
}
