//! One search: the two lists of a back end made into one, with the fields that were asked for.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use serde_json::{Map, Value};

use crate::record::{Key, Record};
use crate::store::{Backend, Candidate, Filter, Found, Result, Search};
use crate::{passages, snippet};

/// How long each of the two lists is.
pub const CANDIDATES: usize = 200;
/// What each list counts.
const HALF: f32 = 0.5;

/// What a result may carry beside id, type, title, source and date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    Snippet,
    FullText,
    Metadata,
    Sources,
    Url,
}

impl Field {
    pub const ALL: [Self; 5] = [Self::Snippet, Self::FullText, Self::Metadata, Self::Sources, Self::Url];

    /// As it is asked for.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Snippet => "snippet",
            Self::FullText => "full_text",
            Self::Metadata => "metadata",
            Self::Sources => "sources",
            Self::Url => "url",
        }
    }
}

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Query {
    pub text: String,
    pub filter: Filter,
    pub top_k: usize,
    pub deadline: Option<Instant>,
}

/// A record that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub record: Record,
    /// From 0 to 1.
    pub score: f32,
    /// The passage around the match.
    pub snippet: String,
}

/// The best records, best first, equal ones in the order of their ids.
pub fn search(store: &dyn Backend, query: &Query, vector: Option<&[f32]>) -> Result<Vec<Hit>> {
    let limit = CANDIDATES.max(query.top_k);
    let asked = Search { words: &query.text, vector, filter: &query.filter, limit, deadline: query.deadline };
    let mut fused = fused(&store.search(&asked)?, limit);
    // Equally good ones at the end are all read, for their ids decide.
    if let Some(last) = fused.get(query.top_k.saturating_sub(1)).map(|hit| hit.score) {
        fused.retain(|hit| hit.score >= last);
    }
    let keys: Vec<Key> = fused.iter().map(|hit| hit.key).collect();
    let mut records: HashMap<Key, Record> =
        store.fetch(&keys)?.into_iter().map(|record| (record.key(), record)).collect();
    let mut hits: Vec<(Record, Fused)> =
        fused.into_iter().filter_map(|hit| Some((records.remove(&hit.key)?, hit))).collect();
    hits.sort_by(|(left, l), (right, r)| r.score.total_cmp(&l.score).then_with(|| left.id.cmp(&right.id)));
    hits.truncate(query.top_k);
    Ok(hits.into_iter().map(|(record, hit)| shown(record, hit, &query.text)).collect())
}

fn shown(record: Record, hit: Fused, query: &str) -> Hit {
    let start = match hit.passage {
        0 => 0,
        passage => passages::of(&record).get(passage as usize).map_or(0, |passage| passage.start),
    };
    let snippet = snippet::around(&record.text, query, start);
    Hit { record, score: hit.score, snippet }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Fused {
    key: Key,
    score: f32,
    passage: u32,
}

/// Each list from 0 to 1, added half and half; one list alone counts whole. Best first.
fn fused(found: &Found, limit: usize) -> Vec<Fused> {
    let share_beside = |other: &[Candidate]| if other.is_empty() { 1.0 } else { HALF };
    let (words_share, vectors_share) = (share_beside(&found.vectors), share_beside(&found.words));
    let mut by_key: HashMap<Key, Fused> = HashMap::new();
    // What is not in a list by words that has room has none of them: the scale begins at zero.
    let floor = if found.words.len() < limit { Some(0.0) } else { None };
    for (hit, part) in normalised(&found.words, floor) {
        by_key.insert(hit.key, Fused { key: hit.key, score: part * words_share, passage: 0 });
    }
    for (hit, part) in normalised(&found.vectors, None) {
        let fused = by_key.entry(hit.key).or_insert(Fused { key: hit.key, score: 0.0, passage: 0 });
        fused.score += part * vectors_share;
        fused.passage = hit.passage;
    }
    let mut all: Vec<Fused> = by_key.into_values().collect();
    all.sort_by(|left, right| right.score.total_cmp(&left.score).then(left.key.cmp(&right.key)));
    all
}

/// The scores of a list on a scale from its last to its first.
fn normalised(list: &[Candidate], floor: Option<f32>) -> impl Iterator<Item = (&Candidate, f32)> {
    let first = list.first().map_or(0.0, |hit| hit.score);
    let last = floor.unwrap_or_else(|| list.last().map_or(0.0, |hit| hit.score));
    let width = first - last;
    list.iter()
        .map(move |hit| (hit, if width > 0.0 { ((hit.score - last) / width).clamp(0.0, 1.0) } else { 1.0 }))
}

/// A score with four digits: what is behind them is noise.
pub fn shown_score(score: f32) -> f64 {
    (f64::from(score) * 1e4).round() / 1e4
}

/// A record as docs/reference/capabilities.md has it; the score and the snippet are given where there are some.
pub fn evidence(
    record: Record,
    score: Option<f32>,
    snippet: Option<String>,
    fields: &HashSet<Field>,
) -> Value {
    let mut result = Map::new();
    let text = |text: Option<String>| text.map_or(Value::Null, Value::String);
    result.insert("id".to_owned(), record.id.into());
    result.insert("type".to_owned(), record.kind.into());
    result.insert("title".to_owned(), record.title.into());
    if let Some(score) = score {
        result.insert("score".to_owned(), shown_score(score).into());
    }
    result.insert("sourceType".to_owned(), text(record.source_type));
    result.insert("lastUpdated".to_owned(), text(record.last_updated));
    for field in Field::ALL.into_iter().filter(|field| fields.contains(field)) {
        let (name, value) = match field {
            Field::Snippet => ("snippet", text(snippet.clone().filter(|snippet| !snippet.is_empty()))),
            Field::FullText => ("fullText", Value::String(record.text.clone())),
            Field::Metadata => ("metadata", Value::Object(record.metadata.clone())),
            Field::Sources => ("sources", serde_json::to_value(&record.sources).unwrap_or_default()),
            Field::Url => ("url", text(record.url.clone())),
        };
        result.insert(name.to_owned(), value);
    }
    Value::Object(result)
}
