//! Search: both candidate lists, in one transaction that reads one snapshot.
//!
//! Filters are exact: if few records match, all of them are compared; if many match, candidates are taken in the
//! order of their score, or along the HNSW index, until enough of them match.

use std::collections::HashMap;

use tokio_postgres::Row;
use toolwright_postgres::{Connection, Parameters};

use super::postgres_writer::StoredTotals;
use super::postings::{PostingRow, Scores, Totals, deleted_slots, scores};
use super::{get, stored_embedder};
use crate::record::RecordKey;
use crate::store::{Candidate, CandidateLists, CandidateQuery, Filter, Result};
use crate::tokenizer;

/// Up to this many matching records are all compared.
const MAX_EXACT: usize = 10_000;
/// Up to this many records in all, the matching ones are not counted first.
const SMALL_KNOWLEDGE_BASE: u64 = 2000;
/// Candidates with equal scores are taken together, up to this many.
const MAX_TIES: usize = 20_000;

const DELETED_SLOTS: &str = "SELECT block, gone FROM block WHERE gone <> ''";
const POSTINGS: &str = "SELECT word, block, text, title, labels FROM posting WHERE word = ANY($1)";

/// The filter, with parameters 1 to 5.
macro_rules! matches_filter {
    () => {
        "scope = $1 AND ($2::text IS NULL OR kind = $2) AND (cardinality($3::text[]) = 0 OR tags @> $3)
         AND ($4::bigint IS NULL OR updated >= $4) AND ($5::bigint IS NULL OR updated <= $5)"
    };
}

const MATCHING_DOCS: &str =
    concat!("SELECT key, doc FROM record WHERE doc = ANY($6) AND ", matches_filter!());
const FIRST_MATCHING: &str = concat!("SELECT key, doc FROM record WHERE ", matches_filter!(), " LIMIT $6");
const COUNT_MATCHING: &str = concat!(
    "SELECT count(*) AS count FROM (SELECT FROM record WHERE ",
    matches_filter!(),
    " LIMIT $6) AS matching"
);

/// Along the index, nearest first.
const NEAREST_BY_INDEX: &str = concat!(
    "SELECT p.record, p.ordinal, v.embedding <#> $6::real[]::halfvec AS distance
     FROM vector v JOIN passage p ON p.vector = v.key JOIN record r ON r.key = p.record WHERE ",
    matches_filter!(),
    " ORDER BY v.embedding <#> $6::real[]::halfvec LIMIT $7"
);
/// All matching records. The sum prevents the use of the index.
const NEAREST_EXACT: &str = concat!(
    "SELECT p.record, p.ordinal, v.embedding <#> $6::real[]::halfvec AS distance
     FROM record r JOIN passage p ON p.record = r.key JOIN vector v ON v.key = p.vector WHERE ",
    matches_filter!(),
    " ORDER BY (v.embedding <#> $6::real[]::halfvec) + 0, p.record LIMIT $7"
);

/// How many records match the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MatchCount {
    Few,
    Many,
    Unknown,
}

/// A filter as parameters of statements.
struct FilterParameters<'a> {
    scope: String,
    filter: &'a Filter,
}

impl FilterParameters<'_> {
    async fn query(
        &self,
        connection: &mut Connection,
        sql: &'static str,
        more: Parameters<'_>,
    ) -> Result<Vec<Row>> {
        let Filter { kind, tags, updated_from, updated_until, .. } = self.filter;
        let mut parameters: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            vec![&self.scope, kind, tags, updated_from, updated_until];
        parameters.extend(more);
        Ok(connection.query(sql, &parameters).await?)
    }
}

/// Searches by words and by vector. The transaction must have begun.
pub async fn find_candidates(
    connection: &mut Connection,
    query: &CandidateQuery<'_>,
) -> Result<CandidateLists> {
    let filter = query.filter;
    let filter_parameters =
        FilterParameters { scope: filter.namespace.scope(filter.owner.as_deref()), filter };
    let totals = totals(connection).await?;
    let KeywordCandidates { keyword, keyword_scale, mut matching } =
        keyword_candidates(connection, query, &filter_parameters, &totals).await?;
    if totals.records <= SMALL_KNOWLEDGE_BASE {
        matching = MatchCount::Few;
    }
    let vector = match query.vector {
        Some(vector) => {
            vector_candidates(connection, vector, query.limit, &filter_parameters, matching).await?
        }
        None => Vec::new(),
    };
    Ok(CandidateLists { keyword, keyword_scale, vector })
}

/// The keyword list with its scale, and what is then known about the number of matching records.
struct KeywordCandidates {
    keyword: Vec<Candidate>,
    keyword_scale: f32,
    matching: MatchCount,
}

async fn keyword_candidates(
    connection: &mut Connection,
    query: &CandidateQuery<'_>,
    filter_parameters: &FilterParameters<'_>,
    totals: &Totals,
) -> Result<KeywordCandidates> {
    let words = tokenizer::query_terms(query.text);
    if words.is_empty() || query.limit == 0 {
        let matching = MatchCount::Unknown;
        return Ok(KeywordCandidates { keyword: Vec::new(), keyword_scale: 0.0, matching });
    }
    let Scores { by_record, scale } = all_scores(connection, &words, totals).await?;
    let mut unexamined = CandidateQueue(by_record);
    let mut found = Vec::new();
    let mut matching = MatchCount::Unknown;
    let (mut examined, mut step) = (0, query.limit * 2);
    while !unexamined.0.is_empty() && found.len() < query.limit && matching != MatchCount::Few {
        let best = unexamined.take_best(step);
        examined += best.len();
        step = examined * 4;
        let docs: Vec<i32> = best.iter().map(|(_, doc)| *doc as i32).collect();
        let rows = filter_parameters.query(connection, MATCHING_DOCS, &[&docs]).await?;
        found.extend(candidates(best, &keys_of(&rows)?));
        if found.len() * 5 >= examined {
            matching = MatchCount::Many;
        } else if matching == MatchCount::Unknown && found.len() < query.limit {
            let rows =
                filter_parameters.query(connection, FIRST_MATCHING, &[&((MAX_EXACT + 1) as i64)]).await?;
            matching = if rows.len() <= MAX_EXACT { MatchCount::Few } else { MatchCount::Many };
            if matching == MatchCount::Few {
                let rest = std::mem::take(&mut unexamined.0);
                found.extend(candidates(rest, &keys_of(&rows)?));
            }
        }
    }
    found.sort_unstable_by(Candidate::order);
    found.truncate(query.limit);
    Ok(KeywordCandidates { keyword: found, keyword_scale: scale, matching })
}

async fn totals(connection: &mut Connection) -> Result<Totals> {
    let StoredTotals { records, lengths, .. } = StoredTotals::read(connection).await?;
    let mut totals = Totals { records: records.max(0) as u64, lengths, ..Totals::default() };
    for row in connection.query(DELETED_SLOTS, &[]).await? {
        totals.deleted.insert(get(&row, "block")?, deleted_slots(get(&row, "gone")?));
    }
    Ok(totals)
}

/// The score of every record that has one of the words.
async fn all_scores(connection: &mut Connection, words: &[(String, f32)], totals: &Totals) -> Result<Scores> {
    let texts: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
    let rows = connection.query(POSTINGS, &[&texts]).await?;
    let mut postings = Vec::with_capacity(rows.len());
    for row in &rows {
        let word: &str = get(row, "word")?;
        let lists = [get(row, "text")?, get(row, "title")?, get(row, "labels")?];
        if let Some(word) = texts.iter().position(|text| *text == word) {
            postings.push(PostingRow { word, block: get(row, "block")?, lists });
        }
    }
    Ok(scores(words, postings, totals))
}

/// Scored documents that were not examined yet.
struct CandidateQueue(Vec<(f32, u32)>);

impl CandidateQueue {
    /// The best `count`, and those with the same score as the last of them.
    fn take_best(&mut self, count: usize) -> Vec<(f32, u32)> {
        if count >= self.0.len() {
            return std::mem::take(&mut self.0);
        }
        let (_, (edge, _), _) =
            self.0.select_nth_unstable_by(count, |left, right| right.0.total_cmp(&left.0));
        let edge = *edge;
        let mut best: Vec<_> = self.0.drain(..count).collect();
        let mut ties_left = MAX_TIES;
        let equal = self.0.extract_if(.., |(score, _)| {
            let is_equal = *score == edge && ties_left > 0;
            ties_left -= usize::from(is_equal);
            is_equal
        });
        best.extend(equal);
        best
    }
}

fn keys_of(rows: &[Row]) -> Result<HashMap<u32, RecordKey>> {
    rows.iter()
        .map(|row| Ok((get::<i32>(row, "doc")? as u32, RecordKey(get::<i64>(row, "key")? as u64))))
        .collect()
}

fn candidates(scored: Vec<(f32, u32)>, keys: &HashMap<u32, RecordKey>) -> Vec<Candidate> {
    let known = |(score, doc)| keys.get(&doc).map(|key| Candidate { key: *key, score, passage: 0 });
    scored.into_iter().filter_map(known).collect()
}

async fn vector_candidates(
    connection: &mut Connection,
    vector: &[f32],
    limit: usize,
    filter_parameters: &FilterParameters<'_>,
    mut matching: MatchCount,
) -> Result<Vec<Candidate>> {
    let Some(stored) = stored_embedder(connection).await? else { return Ok(Vec::new()) };
    stored.check_query(vector)?;
    if matching == MatchCount::Unknown {
        let rows = filter_parameters.query(connection, COUNT_MATCHING, &[&((MAX_EXACT + 1) as i64)]).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| get(row, "count"))?;
        matching = if count <= MAX_EXACT as i64 { MatchCount::Few } else { MatchCount::Many };
    }
    let sql = if matching == MatchCount::Few { NEAREST_EXACT } else { NEAREST_BY_INDEX };
    let mut row_limit = limit * 2;
    loop {
        let rows = filter_parameters.query(connection, sql, &[&vector, &(row_limit as i64)]).await?;
        let mut best: HashMap<RecordKey, Candidate> = HashMap::new();
        for row in &rows {
            let key = RecordKey(get::<i64>(row, "record")? as u64);
            let candidate = Candidate {
                key,
                score: -(get::<f64>(row, "distance")? as f32),
                passage: get::<i32>(row, "ordinal")? as u32,
            };
            let known = best.entry(key).or_insert(candidate);
            if (candidate.score, known.passage) > (known.score, candidate.passage) {
                *known = candidate;
            }
        }
        if best.len() >= limit || rows.len() < row_limit {
            let mut best: Vec<_> = best.into_values().collect();
            best.sort_unstable_by(Candidate::order);
            best.truncate(limit);
            return Ok(best);
        }
        // Some records have many of these passages.
        row_limit *= 4;
    }
}
