//! Pages of the audit and of the sessions. A page reads a limited number of rows by the index of its most selective
//! condition, and keeps those that match the others.

use serde_json::json;
use tokio_postgres::Row;
use toolwright_postgres::{Connection, Parameters, Pool};

use super::postgres_rows::{self as rows, get, key};
use super::{Postgres, statements};
use crate::store::Result;
use crate::store::audit_query::{ANY_ERROR, AuditFilter, AuditPage, AuditQuery, NumberedEntry};
use crate::store::records::{AuditEntry, AuditRow, SessionPage, SessionQuery};

/// The most rows that a page reads.
const SCANNED: i64 = 5_000;
/// Longer than a call takes from its beginning to its audit row, in milliseconds.
const SLACK: i64 = 10 * 60 * 1000;

/// A page: its rows are those of `scanned`, which has a condition on `$3`, that match the other conditions.
macro_rules! page {
    ($condition:literal) => {
        concat!(
            "WITH scanned AS MATERIALIZED (
                SELECT number, at, event, session, execution, tool, outcome, principal, org, client, approver, edited
                FROM audit
                WHERE number < $1 AND number >= $2 AND ",
            $condition,
            " ORDER BY number DESC LIMIT $4
            ), found AS (
                SELECT number FROM scanned
                WHERE ($5::text IS NULL OR event = $5) AND ($6::text IS NULL OR tool = $6)
                    AND ($7::text IS NULL OR outcome = $7
                        OR $7 = 'error' AND outcome <> 'ok' AND event = ANY ($8))
                    AND ($9::text IS NULL OR session = $9) AND ($10::text IS NULL OR principal = $10)
                    AND ($11::bigint IS NULL OR at >= $11) AND ($12::bigint IS NULL OR at < $12)
                    AND (NOT $13 OR event = ANY ($8))
                    AND ($15::text IS NULL OR org = $15) AND ($16::text IS NULL OR client = $16)
                    AND ($17::text IS NULL OR approver = $17) AND (NOT $18 OR edited)
                ORDER BY number DESC LIMIT $14
            ), bounds AS (SELECT min(number) AS first, count(*) AS scanned FROM scanned)
            SELECT bounds.first, bounds.scanned, page.number, page.entry FROM bounds LEFT JOIN (
                SELECT audit.number, audit.entry FROM found JOIN audit USING (number)
            ) AS page ON true ORDER BY page.number DESC"
        )
    };
}

const ALL: &str = page!("$3::text IS NULL");
const OF_SESSION: &str = page!("session = $3");
const OF_PRINCIPAL: &str = page!("principal = $3");
const OF_TOOL: &str = page!("tool = $3");
const OF_APPROVER: &str = page!("approver = $3");
const EDITED: &str = page!("edited AND $3::text IS NOT NULL");
const OF_CLIENT: &str = page!("client = $3");
const OF_ORG: &str = page!("org = $3");
const ERRORS: &str = page!(
    "outcome <> 'ok' AND event IN ('called', 'refused', 'replayed', 'described') AND $3::text IS NOT NULL"
);
/// An execution, and those whose id begins with its own and a dot, which are its nested calls.
const OF_EXECUTION: &str = "SELECT number, entry FROM audit WHERE session = $1
    AND (execution = $2 OR execution >= $2 || '.' AND execution < $2 || '/')
    AND number < $3 ORDER BY number DESC LIMIT $4";
const NUMBER_AT: &str = "SELECT audit_number_at($1, $2) AS number";

/// The fields of an entry by which its row is found, as JSON.
pub(super) fn fields(entry: &AuditEntry) -> String {
    json!({
        "at": entry.at,
        "event": key(&entry.event),
        "session": key(&entry.session),
        "execution": key(&entry.execution_id),
        "tool": key(&entry.tool),
        "outcome": key(&entry.outcome),
        "principal": entry.principal_key().map(|principal| key(&principal).into_owned()),
        "org": entry.org.as_deref().map(key),
        "client": key(&entry.client_id),
        "approver": entry.approver.as_ref().map(|approver| key(&approver.id)),
        "edited": entry.is_edited(),
    })
    .to_string()
}

pub(super) async fn read(connection: &mut Connection, query: &AuditQuery) -> Result<AuditPage> {
    let before = query.before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    if let (Some(session), Some(execution)) = (&query.filter.session, &query.filter.execution) {
        return read_execution(connection, query, session, execution, before).await;
    }
    let AuditFilter { calls_only, event, tool, outcome, session, principal, from, until, .. } = &query.filter;
    let AuditFilter { org, client, approver, edited, .. } = &query.filter;
    let text = |value: &Option<String>| value.as_ref().map(|value| key(value).into_owned());
    let [event, tool, outcome] = [event, tool, outcome].map(text);
    let [session, principal] = [session, principal].map(text);
    let [org, client, approver] = [org, client, approver].map(text);
    let is_error = outcome.as_ref().is_some_and(|outcome| outcome != "ok");
    // The most selective condition first.
    let is_given = |given: bool| given.then(|| ANY_ERROR.to_owned());
    let conditions = [
        (OF_SESSION, session.clone()),
        (OF_APPROVER, approver.clone()),
        (EDITED, is_given(*edited)),
        (OF_PRINCIPAL, principal.clone()),
        (OF_CLIENT, client.clone()),
        (ERRORS, is_given(is_error)),
        (OF_TOOL, tool.clone()),
        (OF_ORG, org.clone()),
    ];
    let given = conditions.into_iter().find(|(_, condition)| condition.is_some());
    let (statement, condition) = given.unwrap_or((ALL, None));
    let first = match from {
        // A row of an earlier number has begun earlier.
        Some(from) => number_at(connection, *from, -SLACK).await?,
        None => 0,
    };
    let before = match until {
        Some(until) => before.min(number_at(connection, *until, SLACK).await?),
        None => before,
    };
    // One more shows whether there is another page.
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
    // Rows of servers of the version before have no fields: without a filter they are listed too.
    let is_unfiltered = query.filter == AuditFilter::default();
    let scanned = if is_unfiltered { limit } else { SCANNED.max(limit) };
    let calls = crate::store::CALL_EVENTS.as_slice();
    let parameters: Parameters<'_> = &[
        &before, &first, &condition, &scanned, &event, &tool, &outcome, &calls, &session, &principal, from,
        until, calls_only, &limit, &org, &client, &approver, edited,
    ];
    let found = connection.query(statement, parameters).await?;
    to_page(&found, query.limit, scanned)
}

/// The page of these rows. If as many rows were scanned as may be, older ones may match too.
fn to_page(found: &[Row], limit: usize, may_scan: i64) -> Result<AuditPage> {
    let Some(bounds) = found.first() else { return Ok(AuditPage::default()) };
    let (lowest, scanned): (Option<i64>, i64) = (get(bounds, "first")?, get(bounds, "scanned")?);
    let mut page = AuditPage::default();
    for row in found {
        if let Some(number) = get::<Option<i64>>(row, "number")? {
            page.entries.push(NumberedEntry::parse(number.cast_unsigned(), &get::<String>(row, "entry")?)?);
        }
    }
    let is_followed = page.entries.len() > limit;
    page.entries.truncate(limit);
    page.next = if is_followed {
        page.entries.last().map(|last| last.number)
    } else {
        lowest.filter(|_| scanned >= may_scan).map(i64::cast_unsigned)
    };
    Ok(page)
}

async fn number_at(connection: &mut Connection, time: i64, slack: i64) -> Result<i64> {
    rows::get_only(&connection.query(NUMBER_AT, &[&time, &slack]).await?, "number")
}

async fn read_execution(
    connection: &mut Connection,
    query: &AuditQuery,
    session: &str,
    execution: &str,
    before: i64,
) -> Result<AuditPage> {
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
    let parameters: Parameters<'_> = &[&key(session), &key(execution), &before, &limit];
    let mut page = AuditPage::default();
    for row in &connection.query(OF_EXECUTION, parameters).await? {
        let number = get::<i64>(row, "number")?.cast_unsigned();
        if page.entries.len() == query.limit {
            page.next = page.entries.last().map(|last| last.number);
            break;
        }
        page.entries.push(NumberedEntry::parse(number, &get::<String>(row, "entry")?)?);
    }
    page.entries.retain(|found| query.filter.matches(&found.entry));
    Ok(page)
}

pub(super) async fn read_sessions(pool: &Pool, query: SessionQuery<'_>) -> Result<SessionPage> {
    let scanned =
        if query.principal.is_some() { SCANNED } else { i64::try_from(query.limit).unwrap_or(i64::MAX) };
    let (at, id) = query.before.map_or((i64::MAX, key("")), |(at, id)| (at, key(id)));
    let found = pool.query(statements::SESSIONS, &[&at, &id, &scanned.saturating_add(1)]).await?;
    let mut page = SessionPage::default();
    for row in &found {
        let session = rows::session(row)?;
        if query.principal.is_some_and(|principal| session.principal.key() != principal) {
            page.next = Some((session.created_at, session.id));
            continue;
        }
        if page.sessions.len() == query.limit {
            page.next = page.sessions.last().map(|last| (last.created_at, last.id.clone()));
            return Ok(page);
        }
        page.next = Some((session.created_at, session.id.clone()));
        page.sessions.push(session.into());
    }
    if i64::try_from(found.len()).unwrap_or(i64::MAX) <= scanned {
        page.next = None;
    }
    Ok(page)
}

impl Postgres {
    /// The rows of the register of chains.
    pub async fn audit_register(&self) -> Result<Vec<AuditRow>> {
        self.pool.query(statements::REGISTER, &[]).await?.iter().map(rows::registration).collect()
    }
}
