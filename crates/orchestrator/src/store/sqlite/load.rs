//! What a file holds, taken up into memory: sessions, questions, and which calls there were. Envelopes stay where they
//! are.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, Row};
use serde::de::DeserializeOwned;

use super::Sqlite;
use crate::store::records::{Claim, Durability};
use crate::store::{Error, Result};

pub fn all(connection: &Connection, store: &Sqlite) -> Result<()> {
    records(connection, "sessions", |record| store.load_session(record))?;
    records(connection, "confirmations", |record| store.load_confirmation(record))?;
    calls(connection, store)
}

pub fn records<T: DeserializeOwned>(
    connection: &Connection,
    table: &str,
    mut take: impl FnMut(T),
) -> Result<()> {
    let mut statement = connection.prepare(&format!("SELECT id, record FROM {table}"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, record): (String, String) = (row.get(0)?, row.get(1)?);
        let record = serde_json::from_str(&record)
            .map_err(|cause| Error::Corrupt(format!("{id} in table {table}: {cause}")))?;
        take(record);
    }
    Ok(())
}

fn calls(connection: &Connection, store: &Sqlite) -> Result<()> {
    let sql = "SELECT number, session, execution, digest, idempotent, turn, at, envelope IS NOT NULL
               FROM calls ORDER BY number";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    // Of each session: its last turn, and what that has cost.
    let mut spent = HashMap::<String, (u64, u32)>::new();
    while let Some(row) = rows.next()? {
        let number = row.get::<_, i64>(0)?.unsigned_abs();
        let (claim, is_settled) = read(row)?;
        store.load_execution(number, &claim, is_settled);
        if let Some((turn, _)) = claim.budget {
            let last = spent.entry(claim.session).or_insert((turn, 0));
            if turn > last.0 {
                *last = (turn, 0);
            }
            last.1 += u32::from(turn == last.0);
        }
    }
    for (session, (turn, spent)) in &spent {
        store.load_spent(session, *turn, *spent);
    }
    Ok(())
}

fn read(row: &Row<'_>) -> Result<(Claim, bool)> {
    let turn: Option<i64> = row.get(5)?;
    let claim = Claim {
        session: row.get(1)?,
        execution: row.get::<_, String>(2)?.into(),
        digest: row.get(3)?,
        idempotent: row.get(4)?,
        budget: turn.map(|turn| (turn.unsigned_abs(), 0)),
        now: row.get(6)?,
        // What a claim says beyond this matters only while it is decided.
        tool: Arc::default(),
        tool_version: Arc::default(),
        confirmation: None,
        durability: Durability::Committed,
    };
    Ok((claim, row.get(7)?))
}
