//! The journal of a store that is in memory alone: it keeps the audit, and hashes it when somebody looks.

use std::sync::Mutex;

use toolwright_contract::Envelope;

use super::locked;
use crate::store::Result;
use crate::store::chain::Chain;
use crate::store::journal::{Change, Journal, Line, Written};
use crate::store::records::{AuditRow, Durability, Standing};

/// No disk.
#[derive(Debug, Default)]
pub struct Nothing(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    waiting: Vec<Line>,
    rows: Vec<AuditRow>,
    chain: Option<Chain>,
}

impl Journal for Nothing {
    fn write(&self, change: Change, _durability: Durability) -> Written {
        if let Change::Audit(line) | Change::Settled { audit: line, .. } = change {
            locked(&self.0).waiting.push(line);
        }
        Written::NOW
    }

    fn flush(&self) -> Written {
        Written::NOW
    }

    fn caught_up(&self) -> Written {
        Written::NOW
    }

    fn text(&self, _envelope: &Envelope) -> Result<String> {
        Ok(String::new())
    }

    async fn call(&self, _: u64, _: &str, _: &str) -> Result<Option<Standing>> {
        Ok(None)
    }

    async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditRow>> {
        let mut kept = locked(&self.0);
        let Kept { waiting, rows, chain } = &mut *kept;
        let chain = chain.get_or_insert_with(|| Chain::new("memory"));
        for Line(text) in waiting.drain(..) {
            rows.push(chain.link(rows.len() as u64 + 1, text));
        }
        let start = usize::try_from(after).unwrap_or(usize::MAX).min(rows.len());
        Ok(rows[start..].iter().take(limit).cloned().collect())
    }
}
