//! Converts records to rows and back. Times are milliseconds since 1970, lists are JSON.

use chrono::{DateTime, Utc};
use rusqlite::types::Type;
use rusqlite::{Connection, Row, params};
use serde_json::{Value, json};

use super::{BlockingEvents, Error, Result, query_optional};
use crate::records::{Draft, Event, Owner, Reservation};
use crate::slots::Slot;
use crate::span::Span;

const EVENT_COLUMNS: &str =
    "id, title, attendees, start, end, timezone, organizer, note, conference, meeting, created";

pub fn insert_draft(connection: &Connection, draft: &Draft) -> Result<()> {
    let sql =
        "INSERT INTO drafts (id, org, user, title, attendees, minutes, timezone, slots, created, expires)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    let Draft { id, owner, title, minutes, timezone, created, expires, .. } = draft;
    let slot = |slot: &Slot| {
        json!([slot.span.start.timestamp_millis(), slot.span.end.timestamp_millis(), slot.preferred])
    };
    let slots = Value::Array(draft.slots.iter().map(slot).collect()).to_string();
    let (created, expires) = (created.timestamp_millis(), expires.timestamp_millis());
    let attendees = list(&draft.attendees);
    connection.prepare_cached(sql)?.execute(params![
        id, owner.org, owner.user, title, attendees, minutes, timezone, slots, created, expires
    ])?;
    Ok(())
}

pub fn draft(connection: &Connection, owner: &Owner, id: &str) -> Result<Draft> {
    let sql = "SELECT title, attendees, minutes, timezone, slots, created, expires FROM drafts
               WHERE id = ?1 AND org = ?2 AND user = ?3";
    let read = |row: &Row<'_>| {
        Ok(Draft {
            id: id.to_owned(),
            owner: owner.clone(),
            title: row.get(0)?,
            attendees: strings(row, 1)?,
            minutes: row.get(2)?,
            timezone: row.get(3)?,
            slots: slots(row, 4)?,
            created: time(row, 5)?,
            expires: time(row, 6)?,
        })
    };
    query_optional(connection, sql, (id, &owner.org, &owner.user), read)?.ok_or(Error::NotFound)
}

pub fn reservation(connection: &Connection, draft: &str) -> Result<Option<Reservation>> {
    let sql = format!("SELECT {EVENT_COLUMNS}, execution, held_until FROM events WHERE draft = ?1");
    query_optional(connection, &sql, [draft], |row| {
        let held_until: Option<i64> = row.get(12)?;
        let held_until = held_until.map(|_| time(row, 12)).transpose()?;
        Ok(Reservation { event: event(row)?, execution: row.get(11)?, held_until })
    })
}

pub fn insert_event(connection: &Connection, draft: &str, reservation: &Reservation) -> Result<()> {
    let Reservation { event, execution, held_until } = reservation;
    let sql = "INSERT INTO events (id, draft, execution, held_until, title, attendees, start, end, timezone,
               organizer, note, conference, meeting, created)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    let (start, end) = (event.span.start.timestamp_millis(), event.span.end.timestamp_millis());
    connection.prepare_cached(sql)?.execute(params![
        event.id,
        draft,
        execution,
        held_until.map(|until| until.timestamp_millis()),
        event.title,
        list(&event.attendees),
        start,
        end,
        event.timezone,
        event.organizer,
        event.note,
        event.conference,
        event.meeting,
        event.created.timestamp_millis(),
    ])?;
    let sql = "INSERT OR IGNORE INTO attending (address, start, end, event) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = connection.prepare_cached(sql)?;
    for attendee in &event.attendees {
        insert.execute((attendee.to_lowercase(), start, end, &event.id))?;
    }
    Ok(())
}

pub fn busy(
    connection: &Connection,
    address: &str,
    window: Span,
    events: BlockingEvents,
    now: DateTime<Utc>,
    except: &str,
) -> Result<Vec<Span>> {
    let sql =
        "SELECT attending.start, attending.end FROM attending JOIN events ON events.id = attending.event
               WHERE address = ?1 AND attending.start < ?3 AND attending.end > ?2
               AND (held_until > ?4 OR held_until IS NULL AND ?5) AND event <> ?6 ORDER BY attending.start";
    let (start, end) = (window.start.timestamp_millis(), window.end.timestamp_millis());
    let values =
        (address.to_lowercase(), start, end, now.timestamp_millis(), events == BlockingEvents::All, except);
    let mut query = connection.prepare_cached(sql)?;
    let rows = query.query_map(values, |row| Ok(Span { start: time(row, 0)?, end: time(row, 1)? }))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub fn events(connection: &Connection, window: Span) -> Result<Vec<Event>> {
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE held_until IS NULL AND start >= ?1 AND start < ?2 ORDER BY start, id"
    );
    let mut query = connection.prepare_cached(&sql)?;
    let rows = query.query_map((window.start.timestamp_millis(), window.end.timestamp_millis()), event)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        id: row.get(0)?,
        title: row.get(1)?,
        attendees: strings(row, 2)?,
        span: Span { start: time(row, 3)?, end: time(row, 4)? },
        timezone: row.get(5)?,
        organizer: row.get(6)?,
        note: row.get(7)?,
        conference: row.get(8)?,
        meeting: row.get(9)?,
        created: time(row, 10)?,
    })
}

fn list(strings: &[String]) -> String {
    Value::from(strings).to_string()
}

fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<DateTime<Utc>> {
    from_millis(column, row.get(column)?)
}

fn from_millis(column: usize, milliseconds: i64) -> rusqlite::Result<DateTime<Utc>> {
    DateTime::from_timestamp_millis(milliseconds)
        .ok_or(rusqlite::Error::IntegralValueOutOfRange(column, milliseconds))
}

fn strings(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<String>> {
    serde_json::from_str(&row.get::<_, String>(column)?).map_err(|error| invalid_json(column, error))
}

fn slots(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<Slot>> {
    let text: String = row.get(column)?;
    let slots: Vec<(i64, i64, bool)> =
        serde_json::from_str(&text).map_err(|error| invalid_json(column, error))?;
    let slot = |(start, end, preferred)| {
        let span = Span { start: from_millis(column, start)?, end: from_millis(column, end)? };
        Ok(Slot { span, preferred })
    };
    slots.into_iter().map(slot).collect()
}

fn invalid_json(column: usize, error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
