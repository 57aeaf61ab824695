//! The journal of a store that is in memory only: it holds the audit, which is hashed when it is read.

use std::sync::Mutex;

use toolwright_contract::Envelope;

use super::lock;
use crate::store::Result;
use crate::store::chain::Chain;
use crate::store::journal::{Change, Journal, LostChanges, PendingWrite};
use crate::store::records::{AuditRow, Durability, ExecutionRecord};

#[derive(Debug, Default)]
pub struct VolatileJournal(Mutex<Audit>);

#[derive(Debug, Default)]
struct Audit {
    unhashed: Vec<String>,
    rows: Vec<AuditRow>,
    chain: Option<Chain>,
}

impl Journal for VolatileJournal {
    fn write(&self, change: Change, _durability: Durability) -> PendingWrite {
        if let Change::Audit(text) | Change::Settlement { audit: text, .. } = change {
            lock(&self.0).unhashed.push(text);
        }
        PendingWrite::READY
    }

    fn flush(&self, _lost: LostChanges) -> PendingWrite {
        PendingWrite::READY
    }

    fn serialize(&self, _envelope: &Envelope) -> Result<String> {
        Ok(String::new())
    }

    async fn execution(&self, _: u64, _: &str, _: &str) -> Result<Option<ExecutionRecord>> {
        Ok(None)
    }

    async fn audit_rows(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        let mut audit = lock(&self.0);
        let Audit { unhashed, rows, chain } = &mut *audit;
        let chain = chain.get_or_insert_with(|| Chain::new("memory"));
        for text in unhashed.drain(..) {
            rows.push(chain.append(rows.len() as u64 + 1, text));
        }
        let start = usize::try_from(after).unwrap_or(usize::MAX).min(rows.len());
        Ok(rows[start..].iter().take(limit).cloned().collect())
    }
}
