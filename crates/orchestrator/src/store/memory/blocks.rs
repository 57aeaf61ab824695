//! Block records in memory.

use std::collections::HashMap;
use std::sync::Arc;

use toolwright_contract::Principal;

use crate::store::records::BlockRecord;

/// By org, principal and client.
#[derive(Default)]
pub struct Blocks(HashMap<(String, String, String), Arc<BlockRecord>>);

impl Blocks {
    pub fn get(&self, principal: &Principal, client_id: &str) -> Option<&Arc<BlockRecord>> {
        // Every call checks this, and most stores have no block: build no key then.
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&key(&BlockRecord::new(principal, client_id, 0)))
    }

    /// Returns the block that was replaced.
    pub fn insert(&mut self, block: Arc<BlockRecord>) -> Option<Arc<BlockRecord>> {
        self.0.insert(key(&block), block)
    }

    /// Restores `before`, unless `current` has been replaced in the meantime.
    pub fn restore(&mut self, current: &Arc<BlockRecord>, before: Option<Arc<BlockRecord>>) {
        let key = key(current);
        if self.0.get(&key).is_some_and(|stored| Arc::ptr_eq(stored, current)) {
            match before {
                Some(before) => self.0.insert(key, before),
                None => self.0.remove(&key),
            };
        }
    }

    pub fn remove(&mut self, block: &BlockRecord) {
        self.0.remove(&key(block));
    }

    /// Removes the blocks that are over.
    pub fn remove_old(&mut self, now: i64) -> Vec<BlockRecord> {
        let old = self.0.extract_if(|_, block| block.until <= now);
        old.map(|(_, block)| (*block).clone()).collect()
    }
}

fn key(block: &BlockRecord) -> (String, String, String) {
    (block.org.clone(), block.principal.clone(), block.client_id.clone())
}
