//! A record as a file describes it: most fields are optional.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::Defaults;
use crate::record::{Namespace, Record, Source};

/// The fields of a JSONL line and of front matter.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordInput {
    pub id: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub title: Option<String>,
    pub text: Option<String>,
    pub namespace: Option<String>,
    pub owner: Option<String>,
    pub tags: Option<Vec<String>>,
    pub source_type: Option<String>,
    pub last_updated: Option<String>,
    pub url: Option<String>,
    pub metadata: Option<Map<String, Value>>,
    pub sources: Option<Vec<Source>>,
}

/// The names of the fields.
pub const FIELD_NAMES: &str =
    "id type title text namespace owner tags source_type last_updated url metadata sources";

impl RecordInput {
    /// Fills in defaults and validates the record.
    pub fn into_record(self, source: &str, source_type: &str, defaults: &Defaults) -> Result<Record, String> {
        let kind = self.kind.or_else(|| Some(self.id.as_deref()?.split_once(':')?.0.to_owned()));
        let kind = kind.unwrap_or_else(|| "doc".to_owned());
        let title = self.title.unwrap_or_default();
        let id = self.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("{kind}:{}", slug(&title)));
        let namespace = match self.namespace.as_deref() {
            None => defaults.namespace,
            Some(name) => name.parse::<Namespace>().map_err(|()| {
                format!("`namespace` must be \"studio\", \"personal\" or \"public\", not {name:?}")
            })?,
        };
        let default_owner = (namespace == Namespace::Personal).then(|| defaults.owner.clone()).flatten();
        let file = || vec![Source { kind: "file".to_owned(), name: Some(source.to_owned()), url: None }];
        Record {
            id,
            kind,
            title,
            text: self.text.unwrap_or_default(),
            namespace,
            owner: self.owner.or(default_owner),
            tags: self.tags.unwrap_or_default(),
            source_type: Some(self.source_type.unwrap_or_else(|| source_type.to_owned())),
            last_updated: self.last_updated,
            url: self.url,
            metadata: self.metadata.unwrap_or_default(),
            sources: self.sources.unwrap_or_else(file),
        }
        .validate()
    }
}

/// Letters and digits in lower case, with `_` between words: "Mira Okafor" becomes `mira_okafor`.
pub fn slug(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("_");
    slug.truncate(slug.floor_char_boundary(120));
    slug
}
