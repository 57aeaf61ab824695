//! The tables, and the version of a file's schema.

use rusqlite::{Connection, TransactionBehavior};

use super::{Error, Result};

const VERSION: i64 = 1;

/// `attending` has one row for each attendee of an event; queries for busy times read it.
const TABLES: &str = "
CREATE TABLE drafts (
    id TEXT PRIMARY KEY, org TEXT NOT NULL, user TEXT NOT NULL, title TEXT NOT NULL, attendees TEXT NOT NULL,
    minutes INTEGER NOT NULL, timezone TEXT NOT NULL, slots TEXT NOT NULL, created INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;
CREATE INDEX drafts_by_expiry ON drafts (expires);
CREATE TABLE events (
    id TEXT PRIMARY KEY, draft TEXT NOT NULL UNIQUE, execution TEXT NOT NULL, held_until INTEGER, title TEXT NOT NULL,
    attendees TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, timezone TEXT NOT NULL,
    organizer TEXT NOT NULL, note TEXT, conference TEXT, meeting TEXT, created INTEGER NOT NULL
) STRICT;
CREATE INDEX events_by_start ON events (start);
CREATE TABLE attending (
    address TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    event TEXT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
    PRIMARY KEY (address, start, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX attending_by_event ON attending (event);
";

pub fn apply(connection: &mut Connection) -> Result<()> {
    let version = |connection: &Connection| -> rusqlite::Result<i64> {
        connection.pragma_query_value(None, "user_version", |row| row.get(0))
    };
    if version(connection)? == VERSION {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    match version(&transaction)? {
        0 => {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            Ok(transaction.commit()?)
        }
        VERSION => Ok(()),
        other => Err(Error::File(format!(
            "the calendar's file has version {other}, but this program supports {VERSION}: use a newer toolwright"
        ))),
    }
}
