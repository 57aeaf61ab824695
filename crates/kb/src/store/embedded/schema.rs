//! The tantivy schema, and the conversion of records into documents. A document holds a record or an ingested source.

use serde::{Deserialize, Serialize};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, STORED, STRING, Schema, TextFieldIndexing,
    TextOptions, Value as _,
};
use tantivy::{Index, TantivyDocument, Term};

use crate::record::{Record, RecordKey};
use crate::store::{Error, Filter, Result, SourceDigest};
use crate::{passages, tokenizer};

/// The name of our tokenizer in the index settings.
const TOKENIZER: &str = "english";

/// The fields of the index. Their names in the files differ for some; files of earlier versions must stay readable.
#[derive(Debug, Clone, Copy)]
pub struct Fields {
    /// The record's key; absent in documents of sources.
    pub key: Field,
    pub title: Field,
    /// The whole record: title, text and tags.
    pub text: Field,
    /// Tags as searchable words.
    pub tag_words: Field,
    /// [`Namespace::scope`](crate::Namespace::scope).
    pub scope: Field,
    pub kind: Field,
    /// Tags for filters, unchanged.
    pub tags: Field,
    pub updated: Field,
    pub source: Field,
    pub digest: Field,
    /// The keys of the record's passages, in order.
    pub passages: Field,
    /// The name of an ingested source, in a document of its own.
    pub source_name: Field,
    /// A [`StoredRecord`] or [`StoredSource`] as JSON.
    pub stored: Field,
}

/// A record and its source, as they are stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredRecord<R> {
    pub source: String,
    pub record: R,
}

/// An ingested source, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredSource {
    pub source: String,
    pub digest: SourceDigest,
}

/// The schema, which is the same for every index of this format.
pub fn build_schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(TOKENIZER)
        .set_fieldnorms(true)
        .set_index_option(IndexRecordOption::WithFreqs);
    let words = TextOptions::default().set_indexing_options(words);
    let number = || NumericOptions::default() | FAST;
    let fields = Fields {
        key: schema.add_u64_field("key", FAST | INDEXED),
        title: schema.add_text_field("title", words.clone()),
        text: schema.add_text_field("text", words.clone()),
        tag_words: schema.add_text_field("labels", words),
        scope: schema.add_text_field("scope", STRING),
        kind: schema.add_text_field("kind", STRING),
        tags: schema.add_text_field("tags", STRING),
        updated: schema.add_i64_field("updated", number()),
        source: schema.add_text_field("source", STRING),
        digest: schema.add_u64_field("digest", number()),
        passages: schema.add_u64_field("passages", number()),
        source_name: schema.add_text_field("noted", STRING),
        stored: schema.add_bytes_field("stored", STORED),
    };
    (schema.build(), fields)
}

pub fn register_tokenizer(index: &Index) {
    index.tokenizers().register(TOKENIZER, tokenizer::english_analyzer());
}

impl Fields {
    pub fn record_document(&self, record: &Record, source: &str) -> Result<TantivyDocument> {
        let mut document = TantivyDocument::default();
        document.add_u64(self.key, record.key().0);
        let fields = [self.text, self.title, self.tag_words];
        for (field, texts) in fields.into_iter().zip(tokenizer::indexed_texts(record)) {
            texts.into_iter().for_each(|text| document.add_text(field, text));
        }
        record.tags.iter().for_each(|tag| document.add_text(self.tags, tag));
        document.add_text(self.scope, record.namespace.scope(record.owner.as_deref()));
        document.add_text(self.kind, &record.kind);
        if let Some(updated) = record.updated_ms() {
            document.add_i64(self.updated, updated);
        }
        document.add_text(self.source, source);
        document.add_u64(self.digest, record.digest());
        for passage in passages::split_record(record) {
            document.add_u64(self.passages, passage.key);
        }
        self.add_stored(&mut document, &StoredRecord { source: source.to_owned(), record })?;
        Ok(document)
    }

    pub fn source_document(&self, source: &str, digest: SourceDigest) -> Result<TantivyDocument> {
        let mut document = TantivyDocument::default();
        document.add_text(self.source_name, source);
        self.add_stored(&mut document, &StoredSource { source: source.to_owned(), digest })?;
        Ok(document)
    }

    fn add_stored(&self, document: &mut TantivyDocument, value: &impl Serialize) -> Result<()> {
        let json = serde_json::to_vec(value).map_err(|error| Error::Unusable(error.to_string()))?;
        document.add_bytes(self.stored, &json);
        Ok(())
    }

    /// Reads the stored JSON of a document.
    pub fn read_stored<'a, T: Deserialize<'a>>(&self, document: &'a TantivyDocument) -> Result<T> {
        let json = document.get_first(self.stored).and_then(|value| value.as_bytes()).unwrap_or_default();
        serde_json::from_slice(json).map_err(|error| Error::Corrupt(error.to_string()))
    }

    pub fn key_term(&self, key: RecordKey) -> Term {
        Term::from_field_u64(self.key, key.0)
    }

    /// The terms that a document must have to match the filter, without its date range.
    pub fn filter_terms(&self, filter: &Filter) -> Vec<Term> {
        let scope = filter.namespace.scope(filter.owner.as_deref());
        let mut terms = vec![Term::from_field_text(self.scope, &scope)];
        terms.extend(filter.kind.as_deref().map(|kind| Term::from_field_text(self.kind, kind)));
        terms.extend(filter.tags.iter().map(|tag| Term::from_field_text(self.tags, tag)));
        terms
    }
}
