//! A record of the knowledge base: its fields, their validation, its key and digest.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The same limit as in the schemas of the tools.
const MAX_ID_BYTES: usize = 200;
/// Longer texts must be split into several records.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// The readers of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Namespace {
    /// The team.
    #[default]
    Studio,
    /// The record's owner alone.
    Personal,
    /// Everyone.
    Public,
}

impl Namespace {
    pub const ALL: [Self; 3] = [Self::Studio, Self::Personal, Self::Public];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Studio => "studio",
            Self::Personal => "personal",
            Self::Public => "public",
        }
    }

    /// The scope that filters compare: the namespace, with the owner in `personal`. `personal` alone matches no record.
    pub(crate) fn scope(self, owner: Option<&str>) -> String {
        match (self, owner) {
            (Self::Personal, Some(owner)) => format!("personal:{owner}"),
            _ => self.as_str().to_owned(),
        }
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Namespace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|namespace| namespace.as_str() == text).ok_or(())
    }
}

/// Identifies a record in a back end: the first 8 bytes of the SHA-256 of its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordKey(pub u64);

impl RecordKey {
    pub fn from_id(id: &str) -> Self {
        Self(digest64([id.as_bytes()]))
    }
}

/// A record. [`Record::validate`] enforces the rules of its fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// `type:slug`, unique over all namespaces.
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub text: String,
    pub namespace: Namespace,
    /// The user who may read it: required in `personal`, not allowed elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_type: Option<String>,
    /// RFC 3339, unchanged from the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

/// The origin of a record's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl Record {
    pub fn key(&self) -> RecordKey {
        RecordKey::from_id(&self.id)
    }

    /// Changes whenever anything in the record does.
    pub fn digest(&self) -> u64 {
        // JSON maps keep their order, so equal records have equal serializations.
        digest64([serde_json::to_vec(self).unwrap_or_default().as_slice()])
    }

    /// When it was last updated, in milliseconds since 1970.
    pub fn updated_ms(&self) -> Option<i64> {
        self.last_updated.as_deref().and_then(|text| parse_timestamp(text, DayBoundary::Start))
    }

    /// Whether this user may read it.
    pub fn is_readable_by(&self, user: &str) -> bool {
        self.namespace != Namespace::Personal || self.owner.as_deref() == Some(user)
    }

    /// Normalizes the record (trims the title, completes the id and the date, removes repeated tags), or returns what
    /// is wrong with it.
    pub fn validate(mut self) -> Result<Self, String> {
        self.title = self.title.trim().to_owned();
        if !is_valid_type(&self.kind) {
            return Err(format!(
                "`type` must be a lower-case word such as \"doc\" or \"person\", not {:?}",
                self.kind
            ));
        }
        match self.id.split_once(':') {
            None => self.id = format!("{}:{}", self.kind, self.id),
            Some((kind, _)) if kind == self.kind => {}
            Some((kind, _)) => {
                return Err(format!(
                    "`id` begins with `{kind}:`, but `type` is {:?}: they must be the same",
                    self.kind
                ));
            }
        }
        let slug = &self.id[self.kind.len() + 1..];
        if slug.is_empty()
            || self.id.len() > MAX_ID_BYTES
            || self.id.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return Err(format!(
                "`id` must be `type:slug` without spaces and at most {MAX_ID_BYTES} bytes, such as \"{}:opening_hours\", not {:?}",
                self.kind, self.id
            ));
        }
        if self.title.is_empty() {
            return Err("`title` must not be empty".to_owned());
        }
        if self.text.len() > MAX_TEXT_BYTES {
            return Err(format!(
                "`text` has {} bytes; the maximum is {MAX_TEXT_BYTES}: split it into several records",
                self.text.len()
            ));
        }
        match (self.namespace, &self.owner) {
            (Namespace::Personal, None) => {
                Err("`owner` is required in namespace `personal`: the id of the user who may read the record"
                    .to_owned())
            }
            (Namespace::Studio | Namespace::Public, Some(_)) => {
                Err(format!("`owner` is only allowed in namespace `personal`, not in `{}`", self.namespace))
            }
            _ => self.validate_tags()?.validate_date(),
        }
    }

    fn validate_tags(mut self) -> Result<Self, String> {
        let mut tags: Vec<String> = Vec::with_capacity(self.tags.len());
        for tag in self.tags {
            let tag = tag.trim().to_owned();
            if tag.is_empty() || tag.len() > 100 {
                return Err(format!("a tag must have 1 to 100 bytes, not {}", tag.len()));
            }
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        self.tags = tags;
        Ok(self)
    }

    fn validate_date(mut self) -> Result<Self, String> {
        if let Some(text) = &self.last_updated {
            let Some(at) = parse_timestamp(text, DayBoundary::Start) else {
                return Err(format!(
                    "`last_updated` must be a date such as \"2026-01-31\" or \"2026-01-31T09:00:00Z\", not {text:?}"
                ));
            };
            if DateTime::parse_from_rfc3339(text).is_err() {
                let at = DateTime::<Utc>::from_timestamp_millis(at).unwrap_or_default();
                self.last_updated = Some(at.to_rfc3339_opts(SecondsFormat::Secs, true));
            }
        }
        Ok(self)
    }
}

/// Which moment of the day a date without a time means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayBoundary {
    Start,
    End,
}

/// Milliseconds since 1970 of an RFC 3339 time, or of a date in UTC.
pub fn parse_timestamp(text: &str, end: DayBoundary) -> Option<i64> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.timestamp_millis());
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    let start = day.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis();
    Some(match end {
        DayBoundary::Start => start,
        DayBoundary::End => start + 24 * 60 * 60 * 1000 - 1,
    })
}

/// Whether this may be a record's type.
fn is_valid_type(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// The first 8 bytes of the SHA-256 of the parts, each followed by a zero byte.
pub(crate) fn digest64<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    let hash = hash.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(first)
}
