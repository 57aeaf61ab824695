//! One record of the knowledge base: its fields, what they may hold, and what it is known by.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// The longest id, as the tools' schemas have it.
const MOST_ID: usize = 200;
/// More text than this belongs into several records.
pub const MOST_TEXT: usize = 4 << 20;

/// Who may read a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Namespace {
    /// The team.
    #[default]
    Studio,
    /// The record's owner alone.
    Personal,
    /// Everybody.
    Public,
}

impl Namespace {
    pub const ALL: [Self; 3] = [Self::Studio, Self::Personal, Self::Public];

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Studio => "studio",
            Self::Personal => "personal",
            Self::Public => "public",
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

/// What a record is known by in a back end and in candidate lists: the first 8 bytes of SHA-256 over its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

impl Key {
    /// The key of the record with this id.
    pub fn of(id: &str) -> Self {
        Self(digest64([id.as_bytes()]))
    }
}

/// One record. [`Record::checked`] gives only sound ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// `type:slug`, unique over all namespaces.
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub text: String,
    pub namespace: Namespace,
    /// The user whose record it is; there in `personal`, and only there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_type: Option<String>,
    /// RFC 3339, as it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<Source>,
}

/// Where a record's content comes from.
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
    /// What it is known by.
    pub fn key(&self) -> Key {
        Key::of(&self.id)
    }

    /// Changes whenever anything in the record does.
    pub fn digest(&self) -> u64 {
        // Maps keep their order and strings their bytes: the same record has the same form.
        digest64([serde_json::to_vec(self).unwrap_or_default().as_slice()])
    }

    /// When it was last updated, in milliseconds since 1970.
    pub fn updated_ms(&self) -> Option<i64> {
        self.last_updated.as_deref().and_then(|text| instant(text, DayEnd::First))
    }

    /// Whether this user may read it.
    pub fn is_readable_by(&self, user: &str) -> bool {
        self.namespace != Namespace::Personal || self.owner.as_deref() == Some(user)
    }

    /// The record with its small liberties taken out (spaces around, a date without a time, repeated tags), or what is
    /// wrong with it.
    pub fn checked(mut self) -> Result<Self, String> {
        self.title = self.title.trim().to_owned();
        if !is_kind(&self.kind) {
            return Err(format!(
                "`type` must be a word in lower case such as \"doc\" or \"person\", not {:?}",
                self.kind
            ));
        }
        match self.id.split_once(':') {
            None => self.id = format!("{}:{}", self.kind, self.id),
            Some((kind, _)) if kind == self.kind => {}
            Some((kind, _)) => {
                return Err(format!(
                    "`id` begins with `{kind}:`, but `type` is {:?}: make them agree",
                    self.kind
                ));
            }
        }
        let slug = &self.id[self.kind.len() + 1..];
        if slug.is_empty()
            || self.id.len() > MOST_ID
            || self.id.chars().any(|c| c.is_whitespace() || c.is_control())
        {
            return Err(format!(
                "`id` must be `type:slug` without spaces, at most {MOST_ID} bytes, such as \"{}:opening_hours\"",
                self.kind
            ));
        }
        if self.title.is_empty() {
            return Err("`title` must not be empty: it is what a result is called".to_owned());
        }
        if self.text.len() > MOST_TEXT {
            return Err(format!(
                "`text` is longer than {} MiB: split it into several records",
                MOST_TEXT >> 20
            ));
        }
        match (self.namespace, &self.owner) {
            (Namespace::Personal, None) => {
                Err("a record in `personal` needs an `owner`, the id of the user who may read it".to_owned())
            }
            (Namespace::Studio | Namespace::Public, Some(_)) => {
                Err(format!("`owner` is for records in `personal`; this one is in `{}`", self.namespace))
            }
            _ => self.with_sound_tags()?.with_sound_date(),
        }
    }

    fn with_sound_tags(mut self) -> Result<Self, String> {
        let mut tags: Vec<String> = Vec::with_capacity(self.tags.len());
        for tag in self.tags {
            let tag = tag.trim().to_owned();
            if tag.is_empty() || tag.len() > 100 {
                return Err("a tag has 1 to 100 bytes".to_owned());
            }
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        self.tags = tags;
        Ok(self)
    }

    fn with_sound_date(mut self) -> Result<Self, String> {
        if let Some(text) = &self.last_updated {
            let Some(at) = instant(text, DayEnd::First) else {
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

/// Which moment a date without a time stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayEnd {
    First,
    Last,
}

/// Milliseconds since 1970 of an RFC 3339 time, or of a date in UTC.
pub fn instant(text: &str, end: DayEnd) -> Option<i64> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.timestamp_millis());
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    let first = day.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis();
    Some(match end {
        DayEnd::First => first,
        DayEnd::Last => first + 24 * 60 * 60 * 1000 - 1,
    })
}

/// A type: what stands before the colon of an id.
pub fn is_kind(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

/// The first 8 bytes of SHA-256 over the parts, each followed by a zero byte.
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
