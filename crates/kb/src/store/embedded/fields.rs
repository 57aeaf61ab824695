//! The fields of the word index, how texts become words, and how a record becomes a document.

use serde::{Deserialize, Serialize};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, NumericOptions, STORED, STRING, Schema, TextFieldIndexing,
    TextOptions, Value as _,
};
use tantivy::{Index, TantivyDocument, Term};

use crate::record::{Key, Namespace, Record};
use crate::store::{Digest, Error, Filter, Result};
use crate::{passages, stems};

/// The name of our way from text to words in the index's own settings.
const ENGLISH: &str = "english";

/// What each field is for.
#[derive(Debug, Clone, Copy)]
pub struct Fields {
    /// The record's key. Documents that only note a source have none.
    pub key: Field,
    pub title: Field,
    pub text: Field,
    /// Tags as words, to be found by.
    pub labels: Field,
    /// Who may read it: the namespace, and in `personal` the owner with it.
    pub scope: Field,
    pub kind: Field,
    /// Tags as they are, to filter by.
    pub tags: Field,
    pub updated: Field,
    pub source: Field,
    pub digest: Field,
    /// The keys of its passages, in order.
    pub passages: Field,
    /// A source that was ingested, in a document of its own.
    pub noted: Field,
    /// The record, or what was noted, as JSON.
    pub stored: Field,
}

/// A record as it is kept.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept<R> {
    pub source: String,
    pub record: R,
}

/// What is noted of a source.
#[derive(Debug, Serialize, Deserialize)]
pub struct Noted {
    pub source: String,
    pub digest: Digest,
}

/// The schema; the same for every index of this format.
pub fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(ENGLISH)
        .set_fieldnorms(true)
        .set_index_option(IndexRecordOption::WithFreqs);
    let words = TextOptions::default().set_indexing_options(words);
    let number = || NumericOptions::default() | FAST;
    let fields = Fields {
        key: schema.add_u64_field("key", FAST | INDEXED),
        title: schema.add_text_field("title", words.clone()),
        text: schema.add_text_field("text", words.clone()),
        labels: schema.add_text_field("labels", words),
        scope: schema.add_text_field("scope", STRING),
        kind: schema.add_text_field("kind", STRING),
        tags: schema.add_text_field("tags", STRING),
        updated: schema.add_i64_field("updated", number()),
        source: schema.add_text_field("source", STRING),
        digest: schema.add_u64_field("digest", number()),
        passages: schema.add_u64_field("passages", number()),
        noted: schema.add_text_field("noted", STRING),
        stored: schema.add_bytes_field("stored", STORED),
    };
    (schema.build(), fields)
}

/// Teaches an index our way from text to words.
pub fn register(index: &Index) {
    index.tokenizers().register(ENGLISH, stems::english());
}

impl Fields {
    /// A record as a document.
    pub fn document(&self, record: &Record, source: &str) -> Result<TantivyDocument> {
        let mut document = TantivyDocument::default();
        document.add_u64(self.key, record.key().0);
        document.add_text(self.title, &record.title);
        document.add_text(self.text, &record.text);
        for tag in &record.tags {
            document.add_text(self.labels, tag);
            document.add_text(self.tags, tag);
        }
        document.add_text(self.scope, scope(record.namespace, record.owner.as_deref()));
        document.add_text(self.kind, &record.kind);
        if let Some(updated) = record.updated_ms() {
            document.add_i64(self.updated, updated);
        }
        document.add_text(self.source, source);
        let kept = Kept { source: source.to_owned(), record };
        let stored = serde_json::to_vec(&kept).map_err(|error| Error::Unusable(error.to_string()))?;
        document.add_u64(self.digest, record.digest());
        for passage in passages::of(record) {
            document.add_u64(self.passages, passage.key);
        }
        document.add_bytes(self.stored, &stored);
        Ok(document)
    }

    /// The document that notes what was read at a source.
    pub fn note(&self, source: &str, digest: Digest) -> Result<TantivyDocument> {
        let noted = Noted { source: source.to_owned(), digest };
        let stored = serde_json::to_vec(&noted).map_err(|error| Error::Unusable(error.to_string()))?;
        let mut document = TantivyDocument::default();
        document.add_text(self.noted, source);
        document.add_bytes(self.stored, &stored);
        Ok(document)
    }

    /// What a document keeps.
    pub fn stored<'a, T: Deserialize<'a>>(&self, document: &'a TantivyDocument) -> Result<T> {
        let bytes = document.get_first(self.stored).and_then(|value| value.as_bytes()).unwrap_or_default();
        serde_json::from_slice(bytes).map_err(|error| Error::Damaged(error.to_string()))
    }

    /// The term of a record's key.
    pub fn of_key(&self, key: Key) -> Term {
        Term::from_field_u64(self.key, key.0)
    }

    /// The terms that a document must have to pass, without the dates.
    pub fn terms(&self, filter: &Filter) -> Vec<Term> {
        let scope = scope(filter.namespace, filter.owner.as_deref());
        let mut terms = vec![Term::from_field_text(self.scope, &scope)];
        terms.extend(filter.kind.as_deref().map(|kind| Term::from_field_text(self.kind, kind)));
        terms.extend(filter.tags.iter().map(|tag| Term::from_field_text(self.tags, tag)));
        terms
    }
}

/// Who may read: an owner's records are apart from all others'.
fn scope(namespace: Namespace, owner: Option<&str>) -> String {
    match (namespace, owner) {
        // No record has this scope: a personal one always has an owner.
        (Namespace::Personal, None) => "personal".to_owned(),
        (Namespace::Personal, Some(owner)) => format!("personal:{owner}"),
        (namespace, _) => namespace.as_str().to_owned(),
    }
}
