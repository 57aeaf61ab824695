//! Loads a file into memory: sessions, confirmations, blocks and the ids of executions. Envelopes stay on disk.

use std::sync::Arc;

use rusqlite::{Connection, Row};
use serde::de::DeserializeOwned;

use super::Sqlite;
use crate::store::records::{BlockRecord, Claim, Durability};
use crate::store::{Error, Result};

pub fn load(connection: &Connection, store: &Sqlite) -> Result<()> {
    for_each_record(connection, "sessions", |record| store.load_session(record))?;
    for_each_record(connection, "confirmations", |record| store.load_confirmation(record))?;
    load_blocks(connection, store)?;
    load_calls(connection, store)
}

pub fn for_each_record<T: DeserializeOwned>(
    connection: &Connection,
    table: &str,
    mut visit: impl FnMut(T),
) -> Result<()> {
    let mut statement = connection.prepare(&format!("SELECT id, record FROM {table}"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, record): (String, String) = (row.get(0)?, row.get(1)?);
        let record = serde_json::from_str(&record)
            .map_err(|cause| Error::Corrupt(format!("{id} in table {table}: {cause}")))?;
        visit(record);
    }
    Ok(())
}

fn load_blocks(connection: &Connection, store: &Sqlite) -> Result<()> {
    let mut statement = connection.prepare("SELECT org, principal, client_id, until FROM blocks")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (org, principal, client_id, until) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        store.load_block(BlockRecord { org, principal, client_id, until });
    }
    Ok(())
}

fn load_calls(connection: &Connection, store: &Sqlite) -> Result<()> {
    let sql = "SELECT number, session, execution, digest, idempotent, at, envelope IS NOT NULL
               FROM calls ORDER BY number";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let number = row.get::<_, i64>(0)?.unsigned_abs();
        store.load_execution(number, &claim(row)?, row.get(6)?);
    }
    Ok(())
}

fn claim(row: &Row<'_>) -> Result<Claim> {
    Ok(Claim {
        session: row.get(1)?,
        execution: row.get::<_, String>(2)?.into(),
        digest: row.get(3)?,
        idempotent: row.get(4)?,
        now: row.get(5)?,
        // The rest is needed only to decide a claim.
        tool: Arc::default(),
        tool_version: Arc::default(),
        charges: Vec::new(),
        confirmation: None,
        durability: Durability::Committed,
    })
}
