//! The part by words: BM25 over title, text and tags, exact under any filter.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, BoostQuery, EnableScoring, Occur, Query, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Score, Searcher, SegmentReader, TERMINATED, Term};

use super::bits::Bits;
use super::fields::Fields;
use crate::stems;

/// Below one document in so many, the filtered ones are looked at one by one.
const SPARSE: u32 = 16;

/// A document of a segment with its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub segment: u32,
    pub doc: DocId,
    pub score: Score,
    /// The record's key, which orders equal scores.
    pub key: u64,
}

/// What words are weighed by. The documents that note sources have none, and do not count: how records came here does not
/// change their order.
#[derive(Debug, Clone, Copy)]
pub struct Weighed<'s> {
    pub searcher: &'s Searcher,
    /// Documents that are records.
    pub records: u64,
}

impl<'s> Weighed<'s> {
    fn scoring(&'s self) -> EnableScoring<'s> {
        EnableScoring::enabled_from_statistics_provider(self, self.searcher)
    }
}

impl Bm25StatisticsProvider for Weighed<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.searcher.total_num_tokens(field)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.records)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.searcher.doc_freq(term)
    }
}

/// The best `limit` documents among the allowed ones, best first.
pub fn search(
    weighed: Weighed<'_>,
    fields: &Fields,
    text: &str,
    allowed: &[Arc<Bits>],
    limit: usize,
) -> tantivy::Result<Vec<Hit>> {
    let queries = queries(fields, text);
    let mut best = Best { heap: BinaryHeap::new(), limit };
    if queries.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    for (ordinal, (segment, allowed)) in weighed.searcher.segment_readers().iter().zip(allowed).enumerate() {
        if allowed.len() == 0 {
            continue;
        }
        let keys = segment.fast_fields().u64("key")?;
        let bar = best.threshold();
        let mut offer = |doc: DocId, score: Score| {
            if best.may_enter(score) {
                let key = keys.first(doc).unwrap_or_default();
                best.offer(Hit { segment: ordinal as u32, doc, score, key });
            }
            best.threshold()
        };
        if allowed.len() < segment.max_doc() / SPARSE {
            one_by_one(weighed, segment, &queries, allowed, &mut offer)?;
        } else {
            pruned(weighed, segment, &queries, allowed, bar, &mut offer)?;
        }
    }
    Ok(best.into_sorted())
}

/// Block-max WAND: whole blocks that cannot reach the list are skipped. A document that is not allowed leaves the bar
/// where it is.
fn pruned(
    weighed: Weighed<'_>,
    segment: &SegmentReader,
    queries: &[(Term, Score)],
    allowed: &Bits,
    mut bar: Score,
    offer: &mut dyn FnMut(DocId, Score) -> Score,
) -> tantivy::Result<()> {
    let any = queries.iter().map(|(term, boost)| (Occur::Should, query(term, *boost))).collect();
    let weight = BooleanQuery::new(any).weight(weighed.scoring())?;
    weight.for_each_pruning(bar, segment, &mut |doc, score| {
        if allowed.contains(doc) {
            bar = offer(doc, score);
        }
        bar
    })
}

/// Each allowed document looked up in each word's list.
fn one_by_one(
    weighed: Weighed<'_>,
    segment: &SegmentReader,
    queries: &[(Term, Score)],
    allowed: &Bits,
    offer: &mut dyn FnMut(DocId, Score) -> Score,
) -> tantivy::Result<()> {
    let mut lists = Vec::with_capacity(queries.len());
    for (term, boost) in queries {
        let weight = query(term, *boost).weight(weighed.scoring())?;
        let list = weight.scorer(segment, 1.0)?;
        if list.doc() != TERMINATED {
            lists.push(list);
        }
    }
    for doc in allowed.iter() {
        let mut total = None;
        for list in &mut lists {
            if list.doc() < doc {
                list.seek(doc);
            }
            if list.doc() == doc {
                total = Some(total.unwrap_or(0.0) + list.score());
            }
        }
        if let Some(score) = total {
            offer(doc, score);
        }
    }
    Ok(())
}

fn query(term: &Term, boost: Score) -> Box<dyn Query> {
    let query = Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs));
    Box::new(BoostQuery::new(query, boost))
}

/// Each word in each field.
fn queries(fields: &Fields, text: &str) -> Vec<(Term, Score)> {
    let fields = [fields.text, fields.title, fields.labels];
    let of = |(word, times): (String, Score)| {
        fields
            .into_iter()
            .zip(stems::WEIGHTS)
            .map(move |(field, weight)| (Term::from_field_text(field, &word), weight * times))
    };
    stems::wanted(text).into_iter().flat_map(of).collect()
}

/// The best so far. The worst of them is on top of the heap.
struct Best {
    heap: BinaryHeap<Worst>,
    limit: usize,
}

impl Best {
    fn may_enter(&self, score: Score) -> bool {
        self.heap.len() < self.limit || self.heap.peek().is_none_or(|worst| score >= worst.0.score)
    }

    fn offer(&mut self, hit: Hit) {
        self.heap.push(Worst(hit));
        if self.heap.len() > self.limit {
            self.heap.pop();
        }
    }

    /// What a score must exceed; one as good as the worst may still win by its key.
    fn threshold(&self) -> Score {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.limit => worst.0.score.next_down(),
            _ => Score::MIN,
        }
    }

    fn into_sorted(self) -> Vec<Hit> {
        self.heap.into_sorted_vec().into_iter().map(|worst| worst.0).collect()
    }
}

/// A hit in the order in which it is given up: the lowest score first, of equal ones the highest key.
#[derive(Debug, PartialEq)]
struct Worst(Hit);

impl Eq for Worst {}

impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.score.total_cmp(&self.0.score).then(self.0.key.cmp(&other.0.key))
    }
}

impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
