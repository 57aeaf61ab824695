//! One search, in one transaction that reads one committed state.
//!
//! Filters are exact either way: where few records pass, they are looked at one by one; where many do, the best are
//! taken in turn, by score or along the HNSW index, until enough of them have passed.

use std::collections::HashMap;

use tokio_postgres::Row as Line;
use toolwright_postgres::{Connection, Failure, Parameters};

use super::postings::{Row, Totals, gone, scores};
use super::{Trouble, get, maker, scope};
use crate::record::Key;
use crate::store::{Candidate, Error, Filter, Found, Search, english};

/// Up to so many records are looked at one by one.
const FEW: usize = 10_000;
/// Equal scores are never parted by the edge of a list, unless there are more of them.
const MOST_EQUAL: usize = 20_000;

const TOTAL: &str = "SELECT records, lengths FROM total";
const GONE: &str = "SELECT block, gone FROM block WHERE gone <> ''";
const LISTS: &str = "SELECT word, block, text, title, labels FROM posting WHERE word = ANY($1)";

/// What the filter's parameters 1 to 5 mean.
macro_rules! passes {
    () => {
        "scope = $1 AND ($2::text IS NULL OR kind = $2) AND (cardinality($3::text[]) = 0 OR tags @> $3)
         AND ($4::bigint IS NULL OR updated >= $4) AND ($5::bigint IS NULL OR updated <= $5)"
    };
}

const PASSING: &str = concat!("SELECT key, doc FROM record WHERE doc = ANY($6) AND ", passes!());
const FIRST: &str = concat!("SELECT key, doc FROM record WHERE ", passes!(), " LIMIT $6");
const COUNT: &str =
    concat!("SELECT count(*) AS count FROM (SELECT FROM record WHERE ", passes!(), " LIMIT $6) AS passing");

/// Along the index, nearest first.
const NEAREST: &str = concat!(
    "SELECT p.record, p.ordinal, v.embedding <#> $6::real[]::halfvec AS distance
     FROM vector v JOIN passage p ON p.vector = v.key JOIN record r ON r.key = p.record WHERE ",
    passes!(),
    " ORDER BY v.embedding <#> $6::real[]::halfvec LIMIT $7"
);
/// One by one. The sum keeps the index out of it.
const EACH: &str = concat!(
    "SELECT p.record, p.ordinal, v.embedding <#> $6::real[]::halfvec AS distance
     FROM record r JOIN passage p ON p.record = r.key JOIN vector v ON v.key = p.vector WHERE ",
    passes!(),
    " ORDER BY (v.embedding <#> $6::real[]::halfvec) + 0, p.record LIMIT $7"
);

/// How many records pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passing {
    Few,
    Many,
    Unknown,
}

/// A filter as its parameters.
struct Filtered<'a> {
    scope: String,
    filter: &'a Filter,
}

impl Filtered<'_> {
    async fn query(
        &self,
        connection: &mut Connection,
        sql: &'static str,
        more: Parameters<'_>,
    ) -> Result<Vec<Line>, Failure> {
        let Filter { kind, tags, from, until, .. } = self.filter;
        let mut parameters: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            vec![&self.scope, kind, tags, from, until];
        parameters.extend(more);
        connection.query(sql, &parameters).await
    }
}

/// Both lists. The transaction must have begun.
pub async fn search(connection: &mut Connection, search: &Search<'_>) -> Result<Found, Trouble> {
    let filter = search.filter;
    let filtered = Filtered { scope: scope(filter.namespace, filter.owner.as_deref()), filter };
    let (words, passing) = by_words(connection, search, &filtered).await?;
    let vectors = match search.vector {
        Some(vector) => by_vector(connection, vector, search.limit, &filtered, passing).await?,
        None => Vec::new(),
    };
    Ok(Found { words, vectors })
}

async fn by_words(
    connection: &mut Connection,
    search: &Search<'_>,
    filtered: &Filtered<'_>,
) -> Result<(Vec<Candidate>, Passing), Trouble> {
    let words = english::query(search.words);
    if words.is_empty() || search.limit == 0 {
        return Ok((Vec::new(), Passing::Unknown));
    }
    let mut ranked = Ranked(all_scores(connection, &words).await?);
    let mut found = Vec::new();
    let mut passing = Passing::Unknown;
    let (mut looked_at, mut step) = (0, search.limit * 2);
    while !ranked.0.is_empty() && found.len() < search.limit && passing != Passing::Few {
        let best = ranked.take_best(step);
        looked_at += best.len();
        step = looked_at * 4;
        let docs: Vec<i32> = best.iter().map(|(_, doc)| *doc as i32).collect();
        let lines = filtered.query(connection, PASSING, &[&docs]).await?;
        found.extend(candidates(best, &keys_of(&lines)?));
        if found.len() * 5 >= looked_at {
            passing = Passing::Many;
        } else if passing == Passing::Unknown && found.len() < search.limit {
            let lines = filtered.query(connection, FIRST, &[&((FEW + 1) as i64)]).await?;
            passing = if lines.len() <= FEW { Passing::Few } else { Passing::Many };
            if passing == Passing::Few {
                let rest = std::mem::take(&mut ranked.0);
                found.extend(candidates(rest, &keys_of(&lines)?));
            }
        }
    }
    found.sort_unstable_by(in_order);
    found.truncate(search.limit);
    Ok((found, passing))
}

/// The score of every record that has one of the words.
async fn all_scores(
    connection: &mut Connection,
    words: &[(String, f32)],
) -> Result<Vec<(f32, u32)>, Trouble> {
    let total = connection.query(TOTAL, &[]).await?;
    let Some(total) = total.first() else {
        return Err(Error::Damaged("it has no totals".to_owned()).into());
    };
    let lengths: Vec<i64> = get(total, "lengths")?;
    let mut totals = Totals { records: get::<i64>(total, "records")?.max(0) as u64, ..Totals::default() };
    totals.lengths.iter_mut().zip(lengths).for_each(|(field, length)| *field = length);
    for line in connection.query(GONE, &[]).await? {
        totals.gone.insert(get(&line, "block")?, gone(get(&line, "gone")?));
    }
    let texts: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
    let lines = connection.query(LISTS, &[&texts]).await?;
    let mut rows = Vec::with_capacity(lines.len());
    for line in &lines {
        let word: &str = get(line, "word")?;
        let lists = [get(line, "text")?, get(line, "title")?, get(line, "labels")?];
        if let Some(word) = texts.iter().position(|text| *text == word) {
            rows.push(Row { word, block: get(line, "block")?, lists });
        }
    }
    Ok(scores(words, rows, &totals))
}

/// What has a score, and has not been looked at.
struct Ranked(Vec<(f32, u32)>);

impl Ranked {
    /// The best `count`, and those that are as good as the last of them.
    fn take_best(&mut self, count: usize) -> Vec<(f32, u32)> {
        if count >= self.0.len() {
            return std::mem::take(&mut self.0);
        }
        let (_, (edge, _), _) =
            self.0.select_nth_unstable_by(count, |left, right| right.0.total_cmp(&left.0));
        let edge = *edge;
        let mut best: Vec<_> = self.0.drain(..count).collect();
        let mut room = MOST_EQUAL;
        let equal = self.0.extract_if(.., |(score, _)| {
            let is_equal = *score == edge && room > 0;
            room -= usize::from(is_equal);
            is_equal
        });
        best.extend(equal);
        best
    }
}

fn keys_of(lines: &[Line]) -> Result<HashMap<u32, Key>, Trouble> {
    lines
        .iter()
        .map(|line| Ok((get::<i32>(line, "doc")? as u32, Key(get::<i64>(line, "key")? as u64))))
        .collect()
}

fn candidates(scored: Vec<(f32, u32)>, keys: &HashMap<u32, Key>) -> Vec<Candidate> {
    let known = |(score, doc)| keys.get(&doc).map(|key| Candidate { key: *key, score, passage: 0 });
    scored.into_iter().filter_map(known).collect()
}

async fn by_vector(
    connection: &mut Connection,
    vector: &[f32],
    limit: usize,
    filtered: &Filtered<'_>,
    mut passing: Passing,
) -> Result<Vec<Candidate>, Trouble> {
    let Some(kept) = maker(connection).await? else { return Ok(Vec::new()) };
    if kept.dimensions != vector.len() {
        let asked = format!("an embedder with {} dimensions", vector.len());
        return Err(Error::OtherEmbedder { kept: kept.name, asked }.into());
    }
    if passing == Passing::Unknown {
        let lines = filtered.query(connection, COUNT, &[&((FEW + 1) as i64)]).await?;
        let count: i64 = lines.first().map_or(Ok(0), |line| get(line, "count"))?;
        passing = if count <= FEW as i64 { Passing::Few } else { Passing::Many };
    }
    let sql = if passing == Passing::Few { EACH } else { NEAREST };
    let mut asked = limit * 2;
    loop {
        let lines = filtered.query(connection, sql, &[&vector, &(asked as i64)]).await?;
        let mut best: HashMap<Key, Candidate> = HashMap::new();
        for line in &lines {
            let key = Key(get::<i64>(line, "record")? as u64);
            let candidate = Candidate {
                key,
                score: -(get::<f64>(line, "distance")? as f32),
                passage: get::<i32>(line, "ordinal")? as u32,
            };
            let known = best.entry(key).or_insert(candidate);
            if (candidate.score, known.passage) > (known.score, candidate.passage) {
                *known = candidate;
            }
        }
        if best.len() >= limit || lines.len() < asked {
            let mut best: Vec<_> = best.into_values().collect();
            best.sort_unstable_by(in_order);
            best.truncate(limit);
            return Ok(best);
        }
        // Some records have many passages in the list.
        asked *= 4;
    }
}

fn in_order(left: &Candidate, right: &Candidate) -> std::cmp::Ordering {
    right.score.total_cmp(&left.score).then(left.key.cmp(&right.key))
}
