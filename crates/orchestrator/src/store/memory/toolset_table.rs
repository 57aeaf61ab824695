//! The toolsets of a store in memory: which there are, when they were used, and by how many sessions.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Memory, lock};
use crate::store::Result;
use crate::store::journal::{Change, Deletion, Journal};
use crate::store::records::{Durability, SessionStatus, ToolsetInfo, ToolsetRecord};

impl<J: Journal> Memory<J> {
    pub(super) async fn write_toolset(&self, toolset: ToolsetRecord) -> Result<()> {
        let info = toolset.info.clone();
        let written = {
            let mut toolsets = lock(&self.toolsets);
            let change = match toolsets.get_mut(&info.id) {
                Some(stored) => {
                    stored.used_at = stored.used_at.max(info.used_at);
                    Change::ToolsetUsed { id: info.id.clone(), at: stored.used_at }
                }
                None => {
                    toolsets.insert(info.id.clone(), info.clone());
                    Change::Toolset(toolset)
                }
            };
            self.journal.write(change, Durability::Committed)
        };
        let written = written.wait().await;
        if written.is_err() {
            // A concurrent caller that found the entry fails as well, or stores it again.
            lock(&self.toolsets).remove(&info.id);
        }
        written
    }

    pub(super) async fn use_toolset(&self, id: &str, now: i64) -> Result<bool> {
        let written = {
            let mut toolsets = lock(&self.toolsets);
            let Some(stored) = toolsets.get_mut(id) else { return Ok(false) };
            stored.used_at = stored.used_at.max(now);
            let change = Change::ToolsetUsed { id: id.to_owned(), at: stored.used_at };
            self.journal.write(change, Durability::Relaxed)
        };
        written.wait().await.map(|()| true)
    }

    pub(super) async fn read_toolset(&self, id: &str) -> Result<Option<ToolsetRecord>> {
        let Some(info) = lock(&self.toolsets).get(id).cloned() else { return Ok(None) };
        let content: Option<Arc<[u8]>> = self.journal.toolset(id).await?;
        Ok(content.map(|content| ToolsetRecord { info, content }))
    }

    pub(super) fn list_toolsets(&self) -> Vec<(ToolsetInfo, u64)> {
        let sessions = self.active_sessions_by_toolset();
        let toolsets = lock(&self.toolsets);
        let count = |info: &ToolsetInfo| sessions.get(&info.id).copied().unwrap_or_default();
        let mut all: Vec<_> = toolsets.values().map(|info| (info.clone(), count(info))).collect();
        all.sort_by_key(|(info, _)| std::cmp::Reverse(info.used_at));
        all
    }

    /// Removes the unused toolsets, and returns the deletion to be journaled.
    pub(super) fn remove_unused_toolsets(&self, used_before: i64) -> Deletion {
        let is_old = |info: &ToolsetInfo| info.used_at <= used_before;
        if !lock(&self.toolsets).values().any(is_old) {
            return Deletion::default();
        }
        let sessions = self.active_sessions_by_toolset();
        let mut toolsets = lock(&self.toolsets);
        let is_unused = |id: &String, info: &mut ToolsetInfo| is_old(info) && !sessions.contains_key(id);
        let removed = toolsets.extract_if(.., is_unused).map(|(id, _)| id).collect();
        Deletion { toolsets: removed, ..Deletion::default() }
    }

    fn active_sessions_by_toolset(&self) -> HashMap<String, u64> {
        let mut sessions = HashMap::new();
        for shard in &self.shards {
            for entry in lock(shard).values().filter(|entry| entry.record.status == SessionStatus::Active) {
                match sessions.get_mut(&entry.record.toolset) {
                    Some(count) => *count += 1,
                    None => _ = sessions.insert(entry.record.toolset.clone(), 1),
                }
            }
        }
        sessions
    }
}
