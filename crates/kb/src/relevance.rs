//! How relevant a record is to a query, from 0 to 1. Unlike the order of the results, it does not depend on the other
//! results: a query that no record answers has low scores, and the threshold cuts them off.
//!
//! The keyword part is BM25 in relation to the score of a text with the words of the query; it saturates. The vector
//! part is the cosine above the one of unrelated texts. The constants and the threshold were chosen on public test
//! sets: the queries of one set have no answer in another (docs/reference/knowledge-base.md has the figures).

use crate::store::{Candidate, CandidateLists};

/// Results with a lower score are left out, unless the settings say otherwise.
pub const DEFAULT_MIN_SCORE: f32 = 0.35;
/// The power of the keyword score beside a cosine: common words are in many texts, so only a strong match adds to a
/// cosine.
const KEYWORD_POWER: i32 = 4;

/// Texts without a common word or topic, to measure an embedder.
const UNRELATED_TEXTS: [&str; 8] = [
    "Boil pasta until tender",
    "Quarterly revenue rose sharply",
    "Volcanoes erupt molten rock",
    "She tuned her violin",
    "Install updated printer drivers",
    "Goalkeepers save penalty kicks",
    "Photosynthesis feeds green leaves",
    "Medieval knights wore armour",
];

/// The mean cosine of unrelated texts by an embedder that returns these vectors. Some models put all texts near each
/// other.
pub fn measure_unrelated_cosine<E>(
    embed: impl FnOnce(&[&str]) -> Result<Vec<Vec<f32>>, E>,
) -> Result<f32, E> {
    let vectors = embed(&UNRELATED_TEXTS)?;
    let mut cosines = Vec::new();
    for (at, left) in vectors.iter().enumerate() {
        let others = vectors.iter().skip(at + 1);
        cosines.extend(others.map(|right| left.iter().zip(right).map(|(l, r)| l * r).sum::<f32>()));
    }
    Ok((cosines.iter().sum::<f32>() / cosines.len().max(1) as f32).clamp(0.0, 0.95))
}

/// The relevance of the records in both lists.
#[derive(Debug, Clone, Copy)]
pub struct Relevance<'a> {
    lists: &'a CandidateLists,
    /// The mean cosine of unrelated texts; `None` for a search by keyword only.
    unrelated_cosine: Option<f32>,
    /// The cosine of records that are not in the vector list; `None` if they have no vector.
    cosine_of_others: Option<f32>,
}

impl<'a> Relevance<'a> {
    pub fn new(lists: &'a CandidateLists, unrelated_cosine: Option<f32>, limit: usize) -> Self {
        // If the list is full, records outside it are at least as far as its last entry; otherwise they have no
        // vector.
        let is_full = lists.vector.len() >= limit;
        let cosine_of_others = lists.vector.last().filter(|_| is_full).map(|last| last.score);
        let unrelated_cosine = unrelated_cosine.filter(|_| !lists.vector.is_empty());
        Self { lists, unrelated_cosine, cosine_of_others }
    }

    /// From 0 to 1, by the scores that a record has in the lists.
    pub fn score(&self, keyword: Option<f32>, cosine: Option<f32>) -> f32 {
        let keyword = self.keyword_score(keyword.unwrap_or(0.0));
        match (self.unrelated_cosine, cosine.or(self.cosine_of_others)) {
            (Some(unrelated), Some(cosine)) => {
                let cosine = ((cosine - unrelated) / (1.0 - unrelated)).clamp(0.0, 1.0);
                // Either is sufficient: a text may answer a query in other words.
                1.0 - (1.0 - cosine) * (1.0 - keyword.powi(KEYWORD_POWER))
            }
            _ => keyword,
        }
    }

    /// A half for a text of average length that has each of about five words of the query once.
    fn keyword_score(&self, score: f32) -> f32 {
        let scale = self.lists.keyword_scale;
        if scale > 0.0 { score / (score + scale) } else { 0.0 }
    }
}

/// Lets no score exceed the one before it: results are ordered by the fused lists, and their scores never increase.
pub fn make_descending(candidates: &mut [Candidate]) {
    let mut last = 1.0_f32;
    for candidate in candidates {
        candidate.score = candidate.score.min(last);
        last = candidate.score;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordKey;

    fn candidate(key: u64, score: f32) -> Candidate {
        Candidate { key: RecordKey(key), score, passage: 0 }
    }

    fn lists() -> CandidateLists {
        CandidateLists {
            keyword: vec![candidate(1, 6.0)],
            keyword_scale: 6.0,
            vector: vec![candidate(2, 0.4)],
        }
    }

    #[test]
    fn both_parts_are_absolute_and_either_is_sufficient() {
        let lists = lists();
        let hybrid = Relevance::new(&lists, Some(0.0), 10);
        assert_eq!(hybrid.score(None, Some(0.75)), 0.75);
        assert_eq!(hybrid.score(Some(6.0), Some(0.5)), 1.0 - 0.5 * 0.9375);
        assert_eq!(hybrid.score(Some(6.0), None), 0.5, "a record without a vector counts by its words");
        let keyword = Relevance::new(&lists, None, 10);
        assert_eq!((keyword.score(Some(6.0), None), keyword.score(Some(18.0), None)), (0.5, 0.75));
        assert_eq!(keyword.score(None, None), 0.0);
    }

    #[test]
    fn a_record_beyond_a_full_vector_list_is_as_far_as_its_last() {
        let lists = lists();
        assert_eq!(Relevance::new(&lists, Some(0.0), 1).score(Some(6.0), None), 1.0 - 0.6 * 0.9375);
    }

    #[test]
    fn the_cosine_of_unrelated_texts_counts_as_nothing() {
        let lists = lists();
        let narrow = Relevance::new(&lists, Some(0.8), 10);
        assert_eq!(narrow.score(None, Some(0.8)), 0.0);
        assert!((narrow.score(None, Some(0.9)) - 0.5).abs() < 1e-6);
        let measured = measure_unrelated_cosine(|texts| {
            Ok::<_, ()>(
                (0..texts.len())
                    .map(|at| {
                        vec![0.8_f32.sqrt(), if at % 2 == 0 { 0.2_f32.sqrt() } else { -(0.2_f32.sqrt()) }]
                    })
                    .collect(),
            )
        });
        assert!((measured.unwrap() - (0.8 + 0.2 * (12.0 - 16.0) / 28.0)).abs() < 1e-6);
    }

    #[test]
    fn scores_never_increase() {
        let mut candidates = [0.6, 0.7, 0.4].map(|score| candidate(1, score));
        make_descending(&mut candidates);
        assert_eq!(candidates.map(|candidate| candidate.score), [0.6, 0.6, 0.4]);
    }
}
