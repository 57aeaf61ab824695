//! A snapshot: one committed state of the index and the vectors.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fixedbitset::FixedBitSet;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, DocSet as _, Searcher, SegmentReader, TERMINATED, TantivyDocument, Term};

use super::passage_table::PassageTable;
use super::schema::{Fields, StoredRecord, StoredSource};
use super::vector_files::Vectors;
use super::{corrupt, keyword_search, vector_search};
use crate::record::{Record, RecordKey};
use crate::store::{CandidateLists, CandidateQuery, Error, Filter, Result};

/// The maximum number of filter terms whose documents are cached.
const MAX_CACHED_TERMS: usize = 64;

/// The index and the vectors of one moment.
#[derive(Debug)]
pub struct Snapshot {
    pub searcher: Searcher,
    pub fields: Fields,
    pub vectors: Arc<Vectors>,
    /// The number of documents that hold records, with the deleted ones, which BM25 statistics include.
    record_docs: u64,
    /// One per segment.
    tables: Vec<Arc<PassageTable>>,
    /// The live documents that have a filter term, one set per segment.
    filter_cache: Mutex<HashMap<Term, Vec<Arc<FixedBitSet>>>>,
}

impl Snapshot {
    /// Loads the current state, and reuses the parts of the previous snapshot that have not changed.
    pub fn load(
        searcher: Searcher,
        fields: Fields,
        vectors_dir: &Path,
        previous: Option<&Self>,
    ) -> Result<Self> {
        let vectors = Vectors::open(vectors_dir, previous.map(|previous| &previous.vectors))?;
        let same_vectors = previous.filter(|previous| Arc::ptr_eq(&previous.vectors, &vectors));
        let (mut tables, mut record_docs) = (Vec::new(), 0);
        for segment in searcher.segment_readers() {
            let keys = segment.fast_fields().u64("key").map_err(corrupt)?;
            record_docs += u64::from(keys.values.num_vals());
            tables.push(match same_vectors.and_then(|previous| previous.table_of(segment)) {
                Some(table) => table,
                None => Arc::new(PassageTable::new(segment, &vectors).map_err(corrupt)?),
            });
        }
        Ok(Self { searcher, fields, vectors, record_docs, tables, filter_cache: Mutex::default() })
    }

    /// The table of a segment. Only the deletions of a segment change, and tables do not depend on them.
    fn table_of(&self, segment: &SegmentReader) -> Option<Arc<PassageTable>> {
        let is_same = |other: &SegmentReader| other.segment_id() == segment.segment_id();
        self.searcher.segment_readers().iter().position(is_same).map(|at| Arc::clone(&self.tables[at]))
    }

    pub fn find_candidates(&self, query: &CandidateQuery<'_>) -> Result<CandidateLists> {
        let allowed = self.allowed_docs(query.filter)?;
        check_deadline(query)?;
        let statistics =
            keyword_search::Statistics { searcher: &self.searcher, record_docs: self.record_docs };
        let (keyword, vector) = rayon::join(
            || keyword_search::search(statistics, &self.fields, query.text, &allowed, query.limit),
            || match query.vector {
                Some(vector) if self.vectors.len() > 0 => {
                    vector_search::search(self, vector, &allowed, query.limit)
                }
                _ => Ok(Vec::new()),
            },
        );
        check_deadline(query)?;
        let keyword_scale = keyword_search::scale(statistics, &self.fields, query.text).map_err(corrupt)?;
        Ok(CandidateLists {
            keyword: keyword.map_err(corrupt)?,
            keyword_scale,
            vector: vector.map_err(corrupt)?,
        })
    }

    /// The documents that match the filter, one set per segment.
    fn allowed_docs(&self, filter: &Filter) -> Result<Vec<Arc<FixedBitSet>>> {
        let mut allowed: Option<Vec<Arc<FixedBitSet>>> = None;
        for term in self.fields.filter_terms(filter) {
            let sets = self.cached_docs_with(&term)?;
            allowed = Some(match allowed {
                None => sets,
                Some(old) => old
                    .iter()
                    .zip(&sets)
                    .map(|(left, right)| Arc::new(left.as_ref() & right.as_ref()))
                    .collect(),
            });
        }
        let allowed = allowed.unwrap_or_default();
        if filter.updated_from.is_none() && filter.updated_until.is_none() {
            return Ok(allowed);
        }
        let range = filter.updated_from.unwrap_or(i64::MIN)..=filter.updated_until.unwrap_or(i64::MAX);
        let in_range = |(segment, set): (&SegmentReader, &Arc<FixedBitSet>)| {
            let updated = segment.fast_fields().i64("updated")?;
            let is_in_range = |doc: &usize| updated.first(*doc as u32).is_some_and(|at| range.contains(&at));
            Ok(Arc::new(set.ones().filter(is_in_range).collect()))
        };
        let sets: tantivy::Result<_> =
            self.searcher.segment_readers().iter().zip(&allowed).map(in_range).collect();
        sets.map_err(corrupt)
    }

    fn cached_docs_with(&self, term: &Term) -> Result<Vec<Arc<FixedBitSet>>> {
        if let Some(sets) = self.filter_cache().get(term) {
            return Ok(sets.clone());
        }
        let mut sets = Vec::new();
        for segment in self.searcher.segment_readers() {
            let docs = documents_with(segment, term)?.into_iter();
            sets.push(Arc::new(docs.map(|doc| doc as usize).collect()));
        }
        let mut cache = self.filter_cache();
        if cache.len() >= MAX_CACHED_TERMS {
            cache.clear();
        }
        cache.insert(term.clone(), sets.clone());
        Ok(sets)
    }

    fn filter_cache(&self) -> MutexGuard<'_, HashMap<Term, Vec<Arc<FixedBitSet>>>> {
        self.filter_cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segments with their passage tables.
    pub fn segments(&self) -> impl Iterator<Item = (&SegmentReader, &PassageTable)> {
        self.searcher.segment_readers().iter().zip(self.tables.iter().map(AsRef::as_ref))
    }

    /// The document of the record with this key.
    pub fn find(&self, key: RecordKey) -> Result<Option<DocAddress>> {
        let term = self.fields.key_term(key);
        for (ordinal, segment) in self.searcher.segment_readers().iter().enumerate() {
            if let Some(doc) = documents_with(segment, &term)?.first() {
                return Ok(Some(DocAddress::new(ordinal as u32, *doc)));
            }
        }
        Ok(None)
    }

    pub fn record(&self, address: DocAddress) -> Result<StoredRecord<Record>> {
        self.read_stored(address)
    }

    fn read_stored<T: serde::de::DeserializeOwned>(&self, address: DocAddress) -> Result<T> {
        let document: TantivyDocument = self.searcher.doc(address).map_err(corrupt)?;
        self.fields.read_stored(&document)
    }

    /// The documents of all records.
    pub fn record_addresses(&self) -> Result<Vec<DocAddress>> {
        self.live_documents(true)
    }

    /// All ingested sources.
    pub fn sources(&self) -> Result<Vec<StoredSource>> {
        self.live_documents(false)?.into_iter().map(|address| self.read_stored(address)).collect()
    }

    /// The documents with a key are records, the others are sources.
    fn live_documents(&self, with_key: bool) -> Result<Vec<DocAddress>> {
        let mut addresses = Vec::new();
        for (ordinal, segment) in self.searcher.segment_readers().iter().enumerate() {
            let keys = segment.fast_fields().u64("key").map_err(corrupt)?;
            let docs = segment.doc_ids_alive().filter(|doc| keys.first(*doc).is_some() == with_key);
            addresses.extend(docs.map(|doc| DocAddress::new(ordinal as u32, doc)));
        }
        Ok(addresses)
    }

    /// Visits the terms of a field with the number of their documents, once per segment.
    pub fn for_each_term(&self, field: Field, visit: &mut dyn FnMut(&str, u64)) -> Result<()> {
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(field).map_err(corrupt)?;
            let mut terms = index.terms().stream().map_err(|error| Error::Corrupt(error.to_string()))?;
            while terms.advance() {
                let text = String::from_utf8_lossy(terms.key()).into_owned();
                let count = documents_with(segment, &Term::from_field_text(field, &text))?.len();
                if count > 0 {
                    visit(&text, count as u64);
                }
            }
        }
        Ok(())
    }

    /// Visits each record's key, the keys of its passages, and how many of those have a vector.
    pub fn for_each_passage_list(&self, visit: &mut dyn FnMut(RecordKey, Vec<u64>, usize)) -> Result<()> {
        for (segment, table) in self.segments() {
            let column = |name| segment.fast_fields().u64(name).map_err(corrupt);
            let (keys, passages) = (column("key")?, column("passages")?);
            for doc in segment.doc_ids_alive() {
                if let Some(key) = keys.first(doc) {
                    visit(RecordKey(key), passages.values_for_doc(doc).collect(), table.of_doc(doc).len());
                }
            }
        }
        Ok(())
    }
}

/// The live documents of a segment that have a term.
pub fn documents_with(segment: &SegmentReader, term: &Term) -> Result<Vec<u32>> {
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
    read().map_err(corrupt)
}

fn check_deadline(query: &CandidateQuery<'_>) -> Result<()> {
    match query.deadline {
        Some(deadline) if Instant::now() >= deadline => Err(Error::Timeout),
        _ => Ok(()),
    }
}
