//! The list of sessions, newest first.

use std::sync::Arc;

use super::{Memory, lock};
use crate::store::audit_query::MAX_SCANNED;
use crate::store::journal::Journal;
use crate::store::records::{SessionPage, SessionQuery, SessionRecord};

/// How many sessions are read at a time. The list is not locked while their records are read.
const BATCH: usize = 256;

impl<J: Journal> Memory<J> {
    pub(super) fn list_sessions(&self, query: SessionQuery<'_>) -> SessionPage {
        let mut page = SessionPage::default();
        let mut before = query.before.map(|(at, id)| (at, id.to_owned()));
        for _ in 0..MAX_SCANNED / BATCH {
            let batch = self.sessions_before(before.as_ref());
            for (at, id) in &batch {
                let record = self.shard(id).get(id).map(|entry| Arc::clone(&entry.record));
                let is_wanted = |record: &Arc<SessionRecord>| {
                    query.principal.is_none_or(|principal| record.principal.key() == principal)
                };
                let Some(record) = record.filter(is_wanted) else { continue };
                if page.sessions.len() == query.limit {
                    page.next = page.sessions.last().map(|last| (last.created_at, last.id.clone()));
                    return page;
                }
                debug_assert_eq!(record.created_at, *at);
                page.sessions.push(record);
            }
            if batch.len() < BATCH {
                return page;
            }
            before = batch.into_iter().last();
        }
        page.next = before;
        page
    }

    fn sessions_before(&self, before: Option<&(i64, String)>) -> Vec<(i64, String)> {
        let sessions = lock(&self.sessions_by_age);
        match before {
            Some(before) => sessions.range(..before).rev().take(BATCH).cloned().collect(),
            None => sessions.iter().rev().take(BATCH).cloned().collect(),
        }
    }
}
