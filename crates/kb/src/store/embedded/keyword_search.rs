//! Keyword search: BM25 over title, text and tags, exact under any filter.

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, BoostQuery, EnableScoring, Occur, Query, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, Score, Searcher, SegmentReader, TERMINATED, Term};

use super::schema::Fields;
use crate::record::RecordKey;
use crate::store::Candidate;
use crate::tokenizer;

/// If fewer than one in this many documents of a segment are allowed, each of them is scored.
const SPARSE_FILTER_RATIO: usize = 16;

/// The BM25 statistics. Documents of sources do not count, because how records were ingested must not change their
/// scores.
#[derive(Debug, Clone, Copy)]
pub struct Statistics<'s> {
    pub searcher: &'s Searcher,
    /// The number of documents that hold records.
    pub record_docs: u64,
}

impl<'s> Statistics<'s> {
    fn scoring(&'s self) -> EnableScoring<'s> {
        EnableScoring::enabled_from_statistics_provider(self, self.searcher)
    }
}

impl Bm25StatisticsProvider for Statistics<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.searcher.total_num_tokens(field)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.record_docs)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.searcher.doc_freq(term)
    }
}

/// The best `limit` candidates among the allowed documents, best first.
pub fn search(
    statistics: Statistics<'_>,
    fields: &Fields,
    text: &str,
    allowed: &[Arc<FixedBitSet>],
    limit: usize,
) -> tantivy::Result<Vec<Candidate>> {
    let terms = weighted_terms(fields, text);
    if terms.is_empty() || limit == 0 {
        return Ok(Vec::new());
    }
    let mut top = TopCandidates { sorted: Vec::new(), limit };
    for (segment, allowed) in statistics.searcher.segment_readers().iter().zip(allowed) {
        if allowed.is_clear() {
            continue;
        }
        let keys = segment.fast_fields().u64("key")?;
        let threshold = top.threshold();
        let mut offer = |doc: DocId, score: Score| {
            if score > top.threshold() {
                let key = RecordKey(keys.first(doc).unwrap_or_default());
                top.insert(Candidate { key, score, passage: 0 });
            }
            top.threshold()
        };
        if allowed.count_ones(..) < segment.max_doc() as usize / SPARSE_FILTER_RATIO {
            score_each(statistics, segment, &terms, allowed, &mut offer)?;
        } else {
            score_pruned(statistics, segment, &terms, allowed, threshold, &mut offer)?;
        }
    }
    Ok(top.sorted)
}

/// [`CandidateLists::keyword_scale`](crate::store::CandidateLists).
pub fn scale(statistics: Statistics<'_>, fields: &Fields, text: &str) -> tantivy::Result<Score> {
    let mut terms = Vec::new();
    for (word, times) in tokenizer::query_terms(text) {
        terms.push((times, statistics.doc_freq(&Term::from_field_text(fields.text, &word))?));
    }
    Ok(tokenizer::keyword_scale(terms.into_iter(), statistics.record_docs))
}

/// Block-max WAND: skips blocks of documents that cannot exceed the threshold.
fn score_pruned(
    statistics: Statistics<'_>,
    segment: &SegmentReader,
    terms: &[(Term, Score)],
    allowed: &FixedBitSet,
    mut threshold: Score,
    offer: &mut dyn FnMut(DocId, Score) -> Score,
) -> tantivy::Result<()> {
    let any = terms.iter().map(|(term, boost)| (Occur::Should, term_query(term, *boost))).collect();
    let weight = BooleanQuery::new(any).weight(statistics.scoring())?;
    weight.for_each_pruning(threshold, segment, &mut |doc, score| {
        if allowed.contains(doc as usize) {
            threshold = offer(doc, score);
        }
        threshold
    })
}

/// Looks up each allowed document in the postings of each term.
fn score_each(
    statistics: Statistics<'_>,
    segment: &SegmentReader,
    terms: &[(Term, Score)],
    allowed: &FixedBitSet,
    offer: &mut dyn FnMut(DocId, Score) -> Score,
) -> tantivy::Result<()> {
    let mut scorers = Vec::with_capacity(terms.len());
    for (term, boost) in terms {
        let scorer = term_query(term, *boost).weight(statistics.scoring())?.scorer(segment, 1.0)?;
        if scorer.doc() != TERMINATED {
            scorers.push(scorer);
        }
    }
    for doc in allowed.ones().map(|doc| doc as DocId) {
        let mut total = None;
        for scorer in &mut scorers {
            if scorer.doc() < doc {
                scorer.seek(doc);
            }
            if scorer.doc() == doc {
                total = Some(total.unwrap_or(0.0) + scorer.score());
            }
        }
        if let Some(score) = total {
            offer(doc, score);
        }
    }
    Ok(())
}

fn term_query(term: &Term, boost: Score) -> Box<dyn Query> {
    let query = Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs));
    Box::new(BoostQuery::new(query, boost))
}

/// Each query term in each field, with its weight.
fn weighted_terms(fields: &Fields, text: &str) -> Vec<(Term, Score)> {
    let fields = [fields.text, fields.title, fields.tag_words];
    let in_each_field = |(word, frequency): (String, Score)| {
        fields
            .into_iter()
            .zip(tokenizer::FIELD_WEIGHTS)
            .map(move |(field, weight)| (Term::from_field_text(field, &word), weight * frequency))
    };
    tokenizer::query_terms(text).into_iter().flat_map(in_each_field).collect()
}

/// The best candidates so far.
struct TopCandidates {
    sorted: Vec<Candidate>,
    limit: usize,
}

impl TopCandidates {
    fn insert(&mut self, candidate: Candidate) {
        let at = self.sorted.partition_point(|other| Candidate::order(other, &candidate).is_lt());
        self.sorted.insert(at, candidate);
        self.sorted.truncate(self.limit);
    }

    /// The score that a candidate must exceed. A score equal to the last one may still win by its key.
    fn threshold(&self) -> Score {
        match self.sorted.last() {
            Some(last) if self.sorted.len() == self.limit => last.score.next_down(),
            _ => Score::MIN,
        }
    }
}
