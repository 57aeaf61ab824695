//! The writer: collects changes, sends them in batches in one transaction, and commits.

use std::collections::BTreeMap;

use tokio_postgres::types::ToSql;
use toolwright_postgres::Connection;

use super::postings::{
    BLOCK_SIZE, FIELD_COUNT, FieldLengths, FieldLists, NewPostings, block_and_slot, deleted_slots,
    without_deleted,
};
use super::{Postgres, get, postgres_vectors};
use crate::passages;
use crate::record::{Record, RecordKey};
use crate::store::{EmbedderId, Error, Result, SourceDigest, StoreWriter};

/// How many records are collected before they are sent.
const BATCH_SIZE: usize = 2000;
/// How many bytes of records are collected before they are sent.
const BATCH_BYTES: usize = 16 << 20;

const LOCK: &str =
    "SELECT pg_try_advisory_lock(hashtextextended('toolwright writer ' || current_schema(), 0)) AS taken";
const UNLOCK: &str =
    "SELECT pg_advisory_unlock(hashtextextended('toolwright writer ' || current_schema(), 0))";
const TOTAL: &str = "SELECT records, lengths, next_doc FROM total";
const SET_TOTAL: &str = "UPDATE total SET records = $1, lengths = $2, next_doc = $3";
const DELETE_RECORDS: &str = "DELETE FROM record WHERE key = ANY($1) RETURNING doc, lengths";
const DELETE_PASSAGES: &str = "DELETE FROM passage WHERE record = ANY($1)";
const INSERT_RECORDS: &str = "INSERT INTO record
        (key, id, doc, scope, kind, tags, updated, digest, source, lengths, body)
    SELECT key, id, doc, scope, kind, ARRAY(SELECT jsonb_array_elements_text(tags::jsonb)), updated, digest, source,
        ARRAY[text, title, labels], body
    FROM unnest($1::bigint[], $2::text[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::bigint[],
        $8::bigint[], $9::text[], $10::integer[], $11::integer[], $12::integer[], $13::text[])
        AS new(key, id, doc, scope, kind, tags, updated, digest, source, text, title, labels, body)";
const INSERT_PASSAGES: &str = "INSERT INTO passage (record, ordinal, vector)
    SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[])";
const APPEND_POSTINGS: &str = "INSERT INTO posting AS old (word, block, text, title, labels)
    SELECT * FROM unnest($1::text[], $2::integer[], $3::bytea[], $4::bytea[], $5::bytea[])
    ON CONFLICT (word, block) DO UPDATE
    SET text = old.text || excluded.text, title = old.title || excluded.title, labels = old.labels || excluded.labels";
const MARK_DELETED: &str =
    "INSERT INTO block AS old (block, gone) SELECT * FROM unnest($1::integer[], $2::bytea[])
    ON CONFLICT (block) DO UPDATE SET gone = old.gone || excluded.gone RETURNING block, gone";
const DELETE_MARKS: &str = "DELETE FROM block WHERE block = $1";
const POSTINGS_OF_BLOCK: &str = "SELECT word, text, title, labels FROM posting WHERE block = $1";
const DELETE_POSTINGS: &str = "DELETE FROM posting WHERE block = $1";
const SET_SOURCE: &str = "INSERT INTO source (name, digest) VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET digest = excluded.digest";
const DELETE_SOURCE: &str = "DELETE FROM source WHERE name = $1";
const RECORDS_AFTER: &str = "SELECT key, source, body FROM record WHERE key > $1 ORDER BY key LIMIT $2";

/// Deletes the marks of blocks without postings, and vectors without passages.
const DELETE_ORPHANS: &str =
    "DELETE FROM block b WHERE NOT EXISTS (SELECT FROM posting p WHERE p.block = b.block);
    DELETE FROM vector v WHERE NOT EXISTS (SELECT FROM passage p WHERE p.vector = v.key)";
const DROP_VECTORS: &str = "BEGIN; DELETE FROM vector; DELETE FROM maker; COMMIT";

/// Holds the writer's lock until it is dropped.
pub(super) struct PostgresWriter<'a> {
    store: &'a Postgres,
    connection: Connection,
    /// Records with their sources by key; `None` is deleted.
    pending: BTreeMap<i64, Option<(Record, String)>>,
    pending_bytes: usize,
    transaction: Option<StoredTotals>,
    written: usize,
    /// A step has failed: the transaction is never committed.
    has_failed: bool,
}

/// The totals, which an open transaction writes at its end.
pub(super) struct StoredTotals {
    pub records: i64,
    pub lengths: FieldLengths,
    next_doc: u32,
}

impl<'a> PostgresWriter<'a> {
    pub(super) fn begin(store: &'a Postgres) -> Result<Self> {
        let connection = store.run_until(None, async {
            store.prepare_schema().await?;
            let mut connection = store.writers.get().await?;
            let rows = connection.query(LOCK, &[]).await?;
            match rows.first().map_or(Ok(false), |row| get(row, "taken"))? {
                true => Ok(connection),
                false => Err(Error::Locked),
            }
        })?;
        Ok(Self {
            store,
            connection,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            transaction: None,
            written: 0,
            has_failed: false,
        })
    }

    /// Rebuilds the postings, in one transaction.
    pub(super) fn rebuild(mut self) -> Result<()> {
        self.step(async |connection, transaction| {
            transaction.next_doc = transaction.next_doc.next_multiple_of(BLOCK_SIZE);
            Ok(connection.run("DELETE FROM posting; DELETE FROM block").await?)
        })?;
        let mut last = i64::MIN;
        loop {
            let rows = self.step(async |connection, _| {
                Ok(connection.query(RECORDS_AFTER, &[&last, &(BATCH_SIZE as i64)]).await?)
            })?;
            let Some(row) = rows.last() else { break };
            last = get(row, "key")?;
            for row in &rows {
                let source: &str = get(row, "source")?;
                self.put(&super::record(row)?, source)?;
            }
            self.flush()?;
        }
        self.step(async |connection, _| Ok(connection.run(DELETE_ORPHANS).await?))?;
        self.commit()
    }

    /// Runs one step of the transaction; the first step begins it.
    fn step<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Connection, &mut StoredTotals) -> Result<T>,
    ) -> Result<T> {
        if self.has_failed {
            return Err(Error::Unusable(
                "an earlier step of this write failed: nothing was changed".to_owned(),
            ));
        }
        let open = &mut self.transaction;
        let done = self.store.block_on(self.connection.unit_of_work(async |connection| {
            let transaction = match open {
                Some(transaction) => transaction,
                None => open.insert(StoredTotals::begin(connection).await?),
            };
            work(connection, transaction).await
        }));
        self.has_failed = done.is_err();
        done
    }

    fn collect(&mut self, key: RecordKey, new: Option<(Record, String)>) -> Result<()> {
        self.pending_bytes += new.as_ref().map_or(0, |(record, _)| record.text.len());
        self.pending.insert(key.0 as i64, new);
        match self.pending.len() >= BATCH_SIZE || self.pending_bytes >= BATCH_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Sends the collected changes.
    fn flush(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        self.written += pending.len();
        self.step(async |connection, transaction| transaction.apply(connection, pending).await)
    }
}

impl StoreWriter for PostgresWriter<'_> {
    fn put(&mut self, record: &Record, source: &str) -> Result<()> {
        self.collect(record.key(), Some((record.clone(), source.to_owned())))
    }

    fn remove(&mut self, key: RecordKey) -> Result<()> {
        self.collect(key, None)
    }

    fn set_source_digest(&mut self, source: &str, digest: Option<SourceDigest>) -> Result<()> {
        self.step(async |connection, _| {
            match digest {
                Some(digest) => connection.query(SET_SOURCE, &[&source, &digest.as_slice()]).await?,
                None => connection.query(DELETE_SOURCE, &[&source]).await?,
            };
            Ok(())
        })
    }

    fn commit(&mut self) -> Result<()> {
        if self.pending.is_empty() && self.transaction.is_none() {
            return Ok(());
        }
        self.flush()?;
        self.step(async |connection, transaction| transaction.end(connection).await)?;
        self.transaction = None;
        if std::mem::take(&mut self.written) >= BATCH_SIZE {
            // The planner needs new statistics after many inserts.
            let analyse = async |connection: &mut Connection| {
                Ok(connection.run("ANALYZE record, passage, posting").await?)
            };
            self.store.block_on(self.connection.unit_of_work(analyse))?;
        }
        Ok(())
    }

    fn put_vectors(&mut self, embedder: &EmbedderId, vectors: &[(u64, Vec<f32>)]) -> Result<()> {
        let store = self.store;
        store.block_on(async {
            let mut connection = store.writers.get().await?;
            connection
                .unit_of_work(async |connection| {
                    postgres_vectors::put_vectors(connection, embedder, vectors).await
                })
                .await
        })
    }

    fn drop_vectors(&mut self) -> Result<()> {
        let store = self.store;
        store.block_on(async {
            let mut connection = store.writers.get().await?;
            connection.unit_of_work(async |connection| Ok(connection.run(DROP_VECTORS).await?)).await
        })
    }
}

impl Drop for PostgresWriter<'_> {
    fn drop(&mut self) {
        // Releases the lock for the next writer. If this fails, the connection is closed, and the lock with it.
        let is_open = self.transaction.is_some();
        _ = self.store.block_on(self.connection.unit_of_work(async |connection| {
            if is_open {
                connection.run("ROLLBACK").await?;
            }
            connection.query(UNLOCK, &[]).await?;
            Ok::<_, Error>(())
        }));
    }
}

impl StoredTotals {
    async fn begin(connection: &mut Connection) -> Result<Self> {
        connection.run("BEGIN").await?;
        Self::read(connection).await
    }

    pub(super) async fn read(connection: &mut Connection) -> Result<Self> {
        let rows = connection.query(TOTAL, &[]).await?;
        let Some(row) = rows.first() else {
            return Err(Error::Corrupt("the table of totals is empty".to_owned()));
        };
        let stored: Vec<i64> = get(row, "lengths")?;
        let mut lengths = [0; FIELD_COUNT];
        lengths.iter_mut().zip(stored).for_each(|(length, stored)| *length = stored);
        let next_doc = get::<i32>(row, "next_doc")? as u32;
        Ok(Self { records: get(row, "records")?, lengths, next_doc })
    }

    async fn apply(
        &mut self,
        connection: &mut Connection,
        pending: BTreeMap<i64, Option<(Record, String)>>,
    ) -> Result<()> {
        let keys: Vec<i64> = pending.keys().copied().collect();
        connection.query(DELETE_PASSAGES, &[&keys]).await?;
        let mut marks: BTreeMap<i32, Vec<u8>> = BTreeMap::new();
        for row in connection.query(DELETE_RECORDS, &[&keys]).await? {
            let (block, slot) = block_and_slot(get::<i32>(&row, "doc")? as u32);
            marks.entry(block).or_default().extend(slot.to_le_bytes());
            self.records -= 1;
            let lengths: Vec<i32> = get(&row, "lengths")?;
            self.lengths.iter_mut().zip(lengths).for_each(|(sum, length)| *sum -= i64::from(length));
        }
        self.insert(connection, pending.into_values().flatten().collect()).await?;
        let (blocks, slots): (Vec<i32>, Vec<Vec<u8>>) = marks.into_iter().unzip();
        for row in connection.query(MARK_DELETED, &[&blocks, &slots]).await? {
            let marked: &[u8] = get(&row, "gone")?;
            if marked.len() / 2 >= BLOCK_SIZE as usize / 2 {
                compact_block(connection, get(&row, "block")?, marked).await?;
            }
        }
        Ok(())
    }

    async fn insert(&mut self, connection: &mut Connection, records: Vec<(Record, String)>) -> Result<()> {
        let mut columns = Columns::default();
        let mut postings = NewPostings::default();
        for (record, source) in &records {
            let lengths = postings.add(self.next_doc, record);
            columns.add(record, source, self.next_doc, lengths)?;
            self.next_doc += 1;
            self.records += 1;
            self.lengths.iter_mut().zip(lengths).for_each(|(sum, length)| *sum += length);
        }
        connection.query(INSERT_RECORDS, &columns.of_records()).await?;
        connection.query(INSERT_PASSAGES, &[&columns.records, &columns.ordinals, &columns.vectors]).await?;
        append_postings(connection, postings.lists).await
    }

    async fn end(&mut self, connection: &mut Connection) -> Result<()> {
        let (lengths, next_doc) = (self.lengths.as_slice(), self.next_doc as i32);
        connection.query(SET_TOTAL, &[&self.records, &lengths, &next_doc]).await?;
        Ok(connection.run("COMMIT").await?)
    }
}

/// Rewrites the postings of a block without the deleted slots.
async fn compact_block(connection: &mut Connection, block: i32, marked: &[u8]) -> Result<()> {
    let deleted = deleted_slots(marked);
    let mut remaining = BTreeMap::new();
    for row in &connection.query(POSTINGS_OF_BLOCK, &[&block]).await? {
        let lists = [get(row, "text")?, get(row, "title")?, get(row, "labels")?]
            .map(|list| without_deleted(list, &deleted));
        if lists.iter().any(|list| !list.is_empty()) {
            remaining.insert((get(row, "word")?, block), lists);
        }
    }
    connection.query(DELETE_POSTINGS, &[&block]).await?;
    append_postings(connection, remaining).await?;
    connection.query(DELETE_MARKS, &[&block]).await?;
    Ok(())
}

async fn append_postings(
    connection: &mut Connection,
    postings: BTreeMap<(String, i32), FieldLists>,
) -> Result<()> {
    let (mut words, mut blocks, mut lists) = (Vec::new(), Vec::new(), [const { Vec::new() }; FIELD_COUNT]);
    for ((word, block), fields) in postings {
        words.push(word);
        blocks.push(block);
        lists.iter_mut().zip(fields).for_each(|(all, list): (&mut Vec<Vec<u8>>, _)| all.push(list));
    }
    connection.query(APPEND_POSTINGS, &[&words, &blocks, &lists[0], &lists[1], &lists[2]]).await?;
    Ok(())
}

/// The columns of new rows.
#[derive(Default)]
struct Columns {
    keys: Vec<i64>,
    ids: Vec<String>,
    docs: Vec<i32>,
    scopes: Vec<String>,
    kinds: Vec<String>,
    /// As JSON: PostgreSQL has no arrays of arrays of different lengths.
    tags: Vec<String>,
    updated: Vec<Option<i64>>,
    digests: Vec<i64>,
    sources: Vec<String>,
    lengths: [Vec<i32>; FIELD_COUNT],
    bodies: Vec<String>,
    /// Of passages: the record, the position in it, and the key of the vector.
    records: Vec<i64>,
    ordinals: Vec<i32>,
    vectors: Vec<i64>,
}

impl Columns {
    fn add(&mut self, record: &Record, source: &str, doc: u32, lengths: FieldLengths) -> Result<()> {
        let json = |error: serde_json::Error| Error::Unusable(error.to_string());
        let key = record.key().0 as i64;
        self.keys.push(key);
        self.ids.push(record.id.clone());
        self.docs.push(doc as i32);
        self.scopes.push(record.namespace.scope(record.owner.as_deref()));
        self.kinds.push(record.kind.clone());
        self.tags.push(serde_json::to_string(&record.tags).map_err(json)?);
        self.updated.push(record.updated_ms());
        self.digests.push(record.digest() as i64);
        self.sources.push(source.to_owned());
        let fits = |length| i32::try_from(length).unwrap_or(i32::MAX);
        self.lengths.iter_mut().zip(lengths).for_each(|(all, length)| all.push(fits(length)));
        self.bodies.push(serde_json::to_string(record).map_err(json)?);
        for (ordinal, passage) in (0..).zip(passages::split_record(record)) {
            self.records.push(key);
            self.ordinals.push(ordinal);
            self.vectors.push(passage.key as i64);
        }
        Ok(())
    }

    fn of_records(&self) -> [&(dyn ToSql + Sync); 13] {
        let [text, title, labels] = &self.lengths;
        let (keys, ids, docs, scopes, kinds) = (&self.keys, &self.ids, &self.docs, &self.scopes, &self.kinds);
        let (tags, updated, digests, sources) = (&self.tags, &self.updated, &self.digests, &self.sources);
        [keys, ids, docs, scopes, kinds, tags, updated, digests, sources, text, title, labels, &self.bodies]
    }
}
