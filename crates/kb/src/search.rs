//! Hybrid search: fuses the keyword and the vector candidates of a back end, cuts off those that are not relevant, and
//! builds the results.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use serde_json::{Map, Value};

use crate::record::{Record, RecordKey};
use crate::relevance::{Relevance, make_descending};
use crate::store::{Backend, Candidate, CandidateLists, CandidateQuery, Filter, Result};
use crate::{passages, snippet};

/// The length of each candidate list, unless more results are requested.
const CANDIDATE_LIMIT: usize = 200;
/// The weight of each list if both have candidates.
const HYBRID_WEIGHT: f32 = 0.5;

/// The optional fields of a result, besides id, type, title, source and date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    Snippet,
    FullText,
    Metadata,
    Sources,
    Url,
}

impl Field {
    /// All fields with their names in `returnFields`.
    pub const ALL: [(&str, Self); 5] = [
        ("snippet", Self::Snippet),
        ("full_text", Self::FullText),
        ("metadata", Self::Metadata),
        ("sources", Self::Sources),
        ("url", Self::Url),
    ];
}

/// A search as a user makes it.
#[derive(Debug, Clone)]
pub struct Query {
    pub text: String,
    pub filter: Filter,
    pub top_k: usize,
    /// Results with a lower score are left out.
    pub min_score: f32,
    pub deadline: Option<Instant>,
}

/// The vector of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryVector {
    pub values: Vec<f32>,
    /// The mean cosine of unrelated texts by the same embedder.
    pub unrelated_cosine: f32,
}

/// A record that matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub record: Record,
    /// How relevant the record is, from 0 to 1.
    pub score: f32,
    /// The text around the match.
    pub snippet: String,
}

/// The relevant records, best first; equally good ones are ordered by id.
pub fn search(store: &dyn Backend, query: &Query, vector: Option<&QueryVector>) -> Result<Vec<Hit>> {
    let limit = CANDIDATE_LIMIT.max(query.top_k);
    let lists = store.find_candidates(&CandidateQuery {
        text: &query.text,
        vector: vector.map(|vector| vector.values.as_slice()),
        filter: &query.filter,
        limit,
        deadline: query.deadline,
    })?;
    let relevance = Relevance::new(&lists, vector.map(|vector| vector.unrelated_cosine), limit);
    let scores_in = |list: &[Candidate]| -> HashMap<RecordKey, f32> {
        list.iter().map(|candidate| (candidate.key, candidate.score)).collect()
    };
    let (keyword, cosines) = (scores_in(&lists.keyword), scores_in(&lists.vector));
    let score = |key: &RecordKey| relevance.score(keyword.get(key).copied(), cosines.get(key).copied());
    let mut candidates = fuse(&lists, limit);
    candidates.retain(|candidate| score(&candidate.key) >= query.min_score);
    // Keep all candidates that tie with the last result, because the ids decide between them.
    if let Some(last) = candidates.get(query.top_k.saturating_sub(1)).map(|hit| hit.score) {
        candidates.retain(|hit| hit.score >= last);
    }
    let keys: Vec<RecordKey> = candidates.iter().map(|hit| hit.key).collect();
    let mut records: HashMap<RecordKey, Record> =
        store.fetch(&keys)?.into_iter().map(|record| (record.key(), record)).collect();
    let mut hits: Vec<(Record, Candidate)> =
        candidates.into_iter().filter_map(|hit| Some((records.remove(&hit.key)?, hit))).collect();
    hits.sort_by(|(left, l), (right, r)| r.score.total_cmp(&l.score).then_with(|| left.id.cmp(&right.id)));
    hits.truncate(query.top_k);
    let (records, mut candidates): (Vec<Record>, Vec<Candidate>) = hits.into_iter().unzip();
    candidates.iter_mut().for_each(|candidate| candidate.score = score(&candidate.key));
    make_descending(&mut candidates);
    let hits = records.into_iter().zip(candidates);
    Ok(hits.map(|(record, candidate)| build_hit(record, candidate, &query.text)).collect())
}

fn build_hit(record: Record, candidate: Candidate, query: &str) -> Hit {
    let start = match candidate.passage {
        0 => 0,
        passage => passages::split_record(&record).get(passage as usize).map_or(0, |passage| passage.start),
    };
    let snippet = snippet::extract_snippet(&record.text, query, start);
    Hit { record, score: candidate.score, snippet }
}

/// Scales each list to 0–1 and adds the scores with equal weights; a list without a counterpart counts fully.
fn fuse(lists: &CandidateLists, limit: usize) -> Vec<Candidate> {
    let weight_beside = |other: &[Candidate]| if other.is_empty() { 1.0 } else { HYBRID_WEIGHT };
    let (keyword_weight, vector_weight) = (weight_beside(&lists.vector), weight_beside(&lists.keyword));
    let mut fused: HashMap<RecordKey, Candidate> = HashMap::new();
    // A keyword list below the limit holds every match: all other records score 0, so the scale begins there.
    let floor = (lists.keyword.len() < limit).then_some(0.0);
    for (candidate, score) in scaled(&lists.keyword, floor) {
        fused.insert(candidate.key, Candidate { score: score * keyword_weight, ..*candidate });
    }
    for (candidate, score) in scaled(&lists.vector, None) {
        let entry = fused.entry(candidate.key).or_insert(Candidate { score: 0.0, ..*candidate });
        entry.score += score * vector_weight;
        entry.passage = candidate.passage;
    }
    let mut fused: Vec<Candidate> = fused.into_values().collect();
    fused.sort_by(Candidate::order);
    fused
}

/// Min-max normalization: the scores on a scale from the lowest, or `floor`, to the highest.
fn scaled(list: &[Candidate], floor: Option<f32>) -> impl Iterator<Item = (&Candidate, f32)> {
    let highest = list.first().map_or(0.0, |hit| hit.score);
    let lowest = floor.unwrap_or_else(|| list.last().map_or(0.0, |hit| hit.score));
    let width = highest - lowest;
    list.iter()
        .map(move |hit| (hit, if width > 0.0 { ((hit.score - lowest) / width).clamp(0.0, 1.0) } else { 1.0 }))
}

/// Rounds a score to four digits; the others are noise.
pub fn round_score(score: f32) -> f64 {
    (f64::from(score) * 1e4).round() / 1e4
}

/// A record as `kb.search` and `kb.get` return it.
pub fn result_json(
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
        result.insert("score".to_owned(), round_score(score).into());
    }
    result.insert("sourceType".to_owned(), text(record.source_type));
    result.insert("lastUpdated".to_owned(), text(record.last_updated));
    for (_, field) in Field::ALL.into_iter().filter(|(_, field)| fields.contains(field)) {
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
