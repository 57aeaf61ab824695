//! One committed state of the index as readers see it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet as _, Searcher, SegmentReader, TERMINATED, TantivyDocument, Term};

use super::bits::Bits;
use super::fields::{Fields, Kept, Noted};
use super::table::Table;
use super::vectors::Vectors;
use super::{damaged, scan, words};
use crate::record::{Key, Record};
use crate::store::{Candidate, Error, Filter, Found, Result, Search};

/// Conditions whose documents are remembered.
const MOST_CONDITIONS: usize = 64;
/// With so many records both parts run at the same time.
const MANY: u64 = 20_000;

/// Words and vectors of one moment.
#[derive(Debug)]
pub struct View {
    pub searcher: Searcher,
    pub fields: Fields,
    pub vectors: Arc<Vectors>,
    /// Documents that are records, also deleted ones, which the words' statistics have as well.
    records: u64,
    /// One a segment.
    pub tables: Vec<Arc<Table>>,
    /// The living documents that meet a condition, a set a segment.
    conditions: Mutex<HashMap<Term, Vec<Arc<Bits>>>>,
}

impl View {
    /// Reads what is there now, and takes over from the view before what has not changed.
    pub fn of(searcher: Searcher, fields: Fields, vectors: &Path, before: Option<&Self>) -> Result<Self> {
        let none = Vectors::default();
        let opened = Vectors::open(vectors, before.map_or(&none, |before| &before.vectors))?;
        let vectors = match before {
            Some(before) if before.vectors.is_same(&opened) => Arc::clone(&before.vectors),
            _ => Arc::new(opened),
        };
        let same = before.filter(|before| Arc::ptr_eq(&before.vectors, &vectors));
        let (mut tables, mut records) = (Vec::new(), 0);
        for segment in searcher.segment_readers() {
            let keys = segment.fast_fields().u64("key").map_err(damaged)?;
            records += u64::from(keys.values.num_vals());
            let kept = same.and_then(|before| before.table_of(segment));
            tables.push(match kept {
                Some(table) => table,
                None => Arc::new(Table::of(segment, &vectors).map_err(damaged)?),
            });
        }
        Ok(Self { searcher, fields, vectors, records, tables, conditions: Mutex::default() })
    }

    /// Segments never change but for their deletions, and those are in the sets of documents.
    fn table_of(&self, wanted: &SegmentReader) -> Option<Arc<Table>> {
        let same = |segment: &SegmentReader| segment.segment_id() == wanted.segment_id();
        self.searcher.segment_readers().iter().position(same).map(|at| Arc::clone(&self.tables[at]))
    }

    /// Both lists.
    pub fn search(&self, search: &Search<'_>) -> Result<Found> {
        let allowed = self.allowed(search.filter)?;
        in_time(search)?;
        let by_words = || {
            let weighed = words::Weighed { searcher: &self.searcher, records: self.records };
            words::search(weighed, &self.fields, search.words, &allowed, search.limit).map_err(damaged)
        };
        let by_vector = || match search.vector {
            Some(vector) if self.vectors.len() > 0 => {
                let near = scan::nearest(&self.vectors, &self.tables, vector, &allowed, search.limit);
                self.ordered(&near, search.limit)
            }
            _ => Ok(Vec::new()),
        };
        let (words, vectors) = if self.searcher.num_docs() < MANY {
            (by_words(), by_vector())
        } else {
            rayon::join(by_words, by_vector)
        };
        in_time(search)?;
        let candidate = |hit: words::Hit| Candidate { key: Key(hit.key), score: hit.score, passage: 0 };
        Ok(Found { words: words?.into_iter().map(candidate).collect(), vectors: vectors? })
    }

    /// With their keys, best first.
    fn ordered(&self, near: &[scan::Near], limit: usize) -> Result<Vec<Candidate>> {
        let mut keys = Vec::new();
        for segment in self.searcher.segment_readers() {
            keys.push(segment.fast_fields().u64("key").map_err(damaged)?);
        }
        let candidate = |hit: &scan::Near| {
            let key = keys[hit.segment as usize].first(hit.doc).unwrap_or_default();
            Candidate { key: Key(key), score: hit.score, passage: hit.passage }
        };
        let mut candidates: Vec<Candidate> = near.iter().map(candidate).collect();
        candidates.sort_by(|left, right| right.score.total_cmp(&left.score).then(left.key.cmp(&right.key)));
        candidates.truncate(limit);
        Ok(candidates)
    }

    /// The documents that pass, a set a segment.
    fn allowed(&self, filter: &Filter) -> Result<Vec<Arc<Bits>>> {
        let mut allowed: Option<Vec<Arc<Bits>>> = None;
        for term in self.fields.terms(filter) {
            let more = self.meeting(&term)?;
            allowed = Some(match allowed {
                None => more,
                Some(sets) => sets.iter().zip(&more).map(|(left, right)| Arc::new(left.and(right))).collect(),
            });
        }
        let allowed = allowed.unwrap_or_default();
        let (from, until) = (filter.from.unwrap_or(i64::MIN), filter.until.unwrap_or(i64::MAX));
        if filter.from.is_none() && filter.until.is_none() {
            return Ok(allowed);
        }
        let dated = |(segment, set): (&SegmentReader, &Arc<Bits>)| {
            let updated = segment.fast_fields().i64("updated")?;
            Ok(Arc::new(set.only(|doc| updated.first(doc).is_some_and(|at| from <= at && at <= until))))
        };
        let sets: tantivy::Result<_> =
            self.searcher.segment_readers().iter().zip(&allowed).map(dated).collect();
        sets.map_err(damaged)
    }

    fn meeting(&self, term: &Term) -> Result<Vec<Arc<Bits>>> {
        if let Some(known) = self.conditions.lock().unwrap_or_else(PoisonError::into_inner).get(term) {
            return Ok(known.clone());
        }
        let mut sets = Vec::new();
        for segment in self.searcher.segment_readers() {
            sets.push(Arc::new(Bits::of(segment.max_doc(), self.documents(segment, term)?.into_iter())));
        }
        let mut conditions = self.conditions.lock().unwrap_or_else(PoisonError::into_inner);
        if conditions.len() >= MOST_CONDITIONS {
            conditions.clear();
        }
        conditions.insert(term.clone(), sets.clone());
        Ok(sets)
    }

    /// The living documents of a segment that have a term.
    pub fn documents(&self, segment: &SegmentReader, term: &Term) -> Result<Vec<u32>> {
        let read = || -> tantivy::Result<Vec<u32>> {
            let mut documents = Vec::new();
            let index = segment.inverted_index(term.field())?;
            if let Some(mut postings) = index.read_postings(term, IndexRecordOption::Basic)? {
                let mut doc = postings.doc();
                while doc != TERMINATED {
                    if !segment.is_deleted(doc) {
                        documents.push(doc);
                    }
                    doc = postings.advance();
                }
            }
            Ok(documents)
        };
        read().map_err(damaged)
    }

    /// The record with this key.
    pub fn record(&self, key: Key) -> Result<Option<Record>> {
        let term = self.fields.of_key(key);
        for (ordinal, segment) in self.searcher.segment_readers().iter().enumerate() {
            if let Some(doc) = self.documents(segment, &term)?.first() {
                let kept: Kept<Record> = self.stored(DocAddress::new(ordinal as u32, *doc))?;
                return Ok(Some(kept.record));
            }
        }
        Ok(None)
    }

    /// Whether there is a record with this key.
    pub fn holds(&self, key: Key) -> Result<bool> {
        let term = self.fields.of_key(key);
        for segment in self.searcher.segment_readers() {
            if !self.documents(segment, &term)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What a document keeps.
    pub fn stored<T: serde::de::DeserializeOwned>(&self, address: DocAddress) -> Result<T> {
        let document: TantivyDocument = self.searcher.doc(address).map_err(damaged)?;
        self.fields.stored(&document)
    }
}

/// What goes through everything.
impl View {
    /// Where each record is.
    pub fn each_record(&self, visit: &mut dyn FnMut(DocAddress) -> Result<()>) -> Result<()> {
        for (ordinal, segment) in self.searcher.segment_readers().iter().enumerate() {
            let keys = segment.fast_fields().u64("key").map_err(damaged)?;
            for doc in segment.doc_ids_alive().filter(|doc| keys.first(*doc).is_some()) {
                visit(DocAddress::new(ordinal as u32, doc))?;
            }
        }
        Ok(())
    }

    /// What was noted of each source.
    pub fn each_note(&self, visit: &mut dyn FnMut(Noted) -> Result<()>) -> Result<()> {
        for (ordinal, segment) in self.searcher.segment_readers().iter().enumerate() {
            let keys = segment.fast_fields().u64("key").map_err(damaged)?;
            for doc in segment.doc_ids_alive().filter(|doc| keys.first(*doc).is_none()) {
                visit(self.stored(DocAddress::new(ordinal as u32, doc))?)?;
            }
        }
        Ok(())
    }

    /// The terms of a field with the number of their documents; a term may come once a segment.
    pub fn each_term(&self, field: Field, visit: &mut dyn FnMut(&str, u64)) -> Result<()> {
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(field).map_err(damaged)?;
            let mut terms = index.terms().stream().map_err(|error| Error::Damaged(error.to_string()))?;
            while terms.advance() {
                let text = String::from_utf8_lossy(terms.key()).into_owned();
                let count = self.documents(segment, &Term::from_field_text(field, &text))?.len();
                if count > 0 {
                    visit(&text, count as u64);
                }
            }
        }
        Ok(())
    }

    /// How many passages there are, and how many of them have vectors.
    pub fn passages(&self) -> Result<(u64, u64)> {
        let (mut all, mut with_vector) = (0, 0);
        for (segment, table) in self.searcher.segment_readers().iter().zip(&self.tables) {
            let passages = segment.fast_fields().u64("passages").map_err(damaged)?;
            for doc in segment.doc_ids_alive() {
                all += passages.values_for_doc(doc).count() as u64;
                with_vector += table.of_doc(doc).len() as u64;
            }
        }
        Ok((all, with_vector))
    }

    /// The keys of all passages.
    pub fn passage_keys(&self) -> Result<Vec<u64>> {
        let mut keys = Vec::new();
        for segment in self.searcher.segment_readers() {
            let passages = segment.fast_fields().u64("passages").map_err(damaged)?;
            for doc in segment.doc_ids_alive() {
                keys.extend(passages.values_for_doc(doc));
            }
        }
        Ok(keys)
    }

    /// The records with a passage that has no vector.
    pub fn without_vector(&self) -> Result<Vec<Key>> {
        let mut lacking = Vec::new();
        for (segment, table) in self.searcher.segment_readers().iter().zip(&self.tables) {
            let column = |name| segment.fast_fields().u64(name).map_err(damaged);
            let (keys, passages) = (column("key")?, column("passages")?);
            for doc in segment.doc_ids_alive() {
                let Some(key) = keys.first(doc) else { continue };
                if passages.values_for_doc(doc).count() > table.of_doc(doc).len() {
                    lacking.push(Key(key));
                }
            }
        }
        Ok(lacking)
    }
}

fn in_time(search: &Search<'_>) -> Result<()> {
    match search.deadline {
        Some(deadline) if std::time::Instant::now() >= deadline => Err(Error::Timeout),
        _ => Ok(()),
    }
}
