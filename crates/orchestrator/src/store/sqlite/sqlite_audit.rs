//! Pages of the audit, found by its segments.

use rusqlite::Connection;

use super::{audit_compression, signed};
use crate::store::Result;
use crate::store::audit_query::{
    AuditFilter, AuditKeys, AuditPage, AuditQuery, AuditSource, NumberedEntry, read_page,
};
use crate::store::audit_segment::{Segment, SegmentBuilder, contains_all, is_in_time};

pub fn write_segment(connection: &Connection, segment: &Segment) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO audit_segments (last, first, earliest, latest, filter)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let Segment { first, last, from, until, filter } = segment;
    connection.prepare_cached(sql)?.execute((signed(*last), signed(*first), from, until, filter))?;
    Ok(())
}

/// Adds the segments that are missing: all, in a file of an earlier version. Returns the one that is not complete.
pub fn index_rest(connection: &Connection) -> Result<SegmentBuilder> {
    let mut builder = SegmentBuilder::default();
    let first = last_indexed(connection)? + 1;
    let transaction = connection.unchecked_transaction()?;
    for_each_entry(connection, first, u64::MAX, |number, text| {
        // An entry that was damaged is found by no filter; the chain shows the damage.
        let keys = NumberedEntry::parse(number, text).map(|found| AuditKeys::new(&found.entry));
        if let Some(segment) = builder.add(number, &keys.unwrap_or_default()) {
            write_segment(connection, &segment)?;
        }
        Ok(())
    })?;
    transaction.commit()?;
    Ok(builder)
}

pub fn read(connection: &Connection, query: &AuditQuery) -> Result<AuditPage> {
    // All parts of a page are of one moment.
    let transaction = connection.unchecked_transaction()?;
    let page = read_page(&Source(connection), query);
    transaction.finish()?;
    page
}

struct Source<'c>(&'c Connection);

impl AuditSource for Source<'_> {
    fn candidates(&self, before: u64, filter: &AuditFilter, limit: usize) -> Result<Vec<(u64, u64)>> {
        let indexed = last_indexed(self.0)?;
        let mut found = Vec::new();
        // The entries after the last segment.
        if indexed + 1 < before {
            found.push((indexed + 1, u64::MAX));
        }
        let terms = filter.terms();
        let sql = "SELECT last, first, earliest, latest, filter FROM audit_segments WHERE last < ?1
                   ORDER BY last DESC";
        let mut statement = self.0.prepare_cached(sql)?;
        // A page may begin within a segment.
        let end = before.saturating_add(crate::store::audit_segment::SEGMENT_ENTRIES);
        let mut rows = statement.query([signed(end)])?;
        while found.len() < limit
            && let Some(row) = rows.next()?
        {
            let number = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
            let (last, first) = (number(0)?, number(1)?);
            if first < before
                && is_in_time(filter, row.get(2)?, row.get(3)?)
                && contains_all(row.get_ref(4)?.as_blob().unwrap_or_default(), &terms)
            {
                found.push((first, last));
            }
        }
        Ok(found)
    }

    fn entries(&self, first: u64, last: u64) -> Result<Vec<NumberedEntry>> {
        let mut entries = Vec::new();
        for_each_entry(self.0, first, last, |number, text| {
            entries.push(NumberedEntry::parse(number, text)?);
            Ok(())
        })?;
        Ok(entries)
    }
}

/// The number of the last entry that has a segment.
fn last_indexed(connection: &Connection) -> Result<u64> {
    let sql = "SELECT coalesce(max(last), 0) FROM audit_segments";
    let last: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    Ok(last.unsigned_abs())
}

/// Passes the entries of a range to a function, in their order. The hashes are not checked.
fn for_each_entry(
    connection: &Connection,
    first: u64,
    last: u64,
    mut visit: impl FnMut(u64, &str) -> Result<()>,
) -> Result<()> {
    let sql = "SELECT number, entry FROM audit
               WHERE number >= coalesce((SELECT max(number) FROM audit WHERE number <= ?1), 0) AND number <= ?2
               ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query((signed(first), signed(last)))?;
    while let Some(row) = rows.next()? {
        let start = row.get::<_, i64>(0)?.unsigned_abs();
        // A row that was damaged counts as one entry without text, which is no valid entry.
        let text = audit_compression::decompress(row.get_ref(1)?).unwrap_or_default();
        for (number, text) in (start..).zip(text.split('\n')) {
            if (first..=last).contains(&number) {
                visit(number, text)?;
            }
        }
    }
    Ok(())
}
