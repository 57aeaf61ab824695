//! Vector search by cosine, exact under any filter. There is no index: a few vectors are all compared; of many, the
//! binary sketches are compared first and the nearest are rescored with their quantized vectors.

use std::sync::Arc;

use fixedbitset::FixedBitSet;
use rayon::prelude::*;
use tantivy::DocId;

use super::distance;
use super::passage_table::{PassageEntry, PassageTable};
use super::snapshot::Snapshot;
use super::vector_files::{quantize, sketch};
use crate::record::RecordKey;
use crate::store::Candidate;

/// The maximum number of vectors that are all compared.
const MAX_EXHAUSTIVE: usize = 20_000;
/// How many of the nearest sketches are rescored: at least, and per requested candidate.
const MIN_RESCORED: usize = 1_000;
const RESCORED_PER_CANDIDATE: usize = 20;
/// The number of sketches that a core compares as one task.
const BLOCK_SKETCHES: usize = 1 << 15;
/// The distance of documents that are not allowed.
const EXCLUDED: u16 = u16::MAX;

/// A document with its nearest passage.
#[derive(Debug, Clone, Copy, PartialEq)]
struct NearDoc {
    segment: u32,
    doc: DocId,
    passage: u32,
    /// The cosine.
    score: f32,
}

/// The nearest `limit` candidates among the allowed documents, best first.
pub fn search(
    snapshot: &Snapshot,
    query: &[f32],
    allowed: &[Arc<FixedBitSet>],
    limit: usize,
) -> tantivy::Result<Vec<Candidate>> {
    let mut keys = Vec::new();
    for (segment, _) in snapshot.segments() {
        keys.push(segment.fast_fields().u64("key")?);
    }
    let candidate = |near: NearDoc| Candidate {
        key: RecordKey(keys[near.segment as usize].first(near.doc).unwrap_or_default()),
        score: near.score,
        passage: near.passage,
    };
    let near = nearest_docs(snapshot, query, allowed, limit);
    let mut candidates: Vec<Candidate> = near.into_iter().map(candidate).collect();
    candidates.sort_by(Candidate::order);
    candidates.truncate(limit);
    Ok(candidates)
}

/// The nearest `limit` documents in any order, with all that tie with the last.
fn nearest_docs(
    snapshot: &Snapshot,
    query: &[f32],
    allowed: &[Arc<FixedBitSet>],
    limit: usize,
) -> Vec<NearDoc> {
    let tables: Vec<&PassageTable> = snapshot.segments().map(|(_, table)| table).collect();
    let entries = allowed_entries(&tables, allowed).unwrap_or_else(|| {
        let wanted = (limit * RESCORED_PER_CANDIDATE).max(MIN_RESCORED);
        nearest_sketches(&tables, query, allowed, wanted)
    });
    let (quantized, scale) = quantize(query);
    let mut near: Vec<NearDoc> = Vec::with_capacity(entries.len());
    for (segment, entry) in entries {
        let (row, row_scale) = snapshot.vectors.row(entry.row);
        let score = distance::dot_product(&quantized, row) as f32 * scale * row_scale;
        match near.last_mut() {
            // The passages of a document are adjacent.
            Some(last) if last.segment == segment && last.doc == entry.doc => {
                if score > last.score {
                    (last.score, last.passage) = (score, entry.passage);
                }
            }
            _ => near.push(NearDoc { segment, doc: entry.doc, passage: entry.passage, score }),
        }
    }
    if near.len() > limit && limit > 0 {
        near.select_nth_unstable_by(limit - 1, |left, right| right.score.total_cmp(&left.score));
        let last = near[limit - 1].score;
        near.retain(|hit| hit.score >= last);
    }
    near
}

/// All allowed entries, unless there are more than [`MAX_EXHAUSTIVE`].
fn allowed_entries(
    tables: &[&PassageTable],
    allowed: &[Arc<FixedBitSet>],
) -> Option<Vec<(u32, PassageEntry)>> {
    let mut entries = Vec::new();
    for (segment, (table, docs)) in tables.iter().zip(allowed).enumerate() {
        for doc in docs.ones() {
            entries.extend(table.of_doc(doc as DocId).iter().map(|entry| (segment as u32, *entry)));
            if entries.len() > MAX_EXHAUSTIVE {
                return None;
            }
        }
    }
    Some(entries)
}

/// The `wanted` allowed entries with the nearest sketches, and all that tie with the last.
fn nearest_sketches(
    tables: &[&PassageTable],
    query: &[f32],
    allowed: &[Arc<FixedBitSet>],
    wanted: usize,
) -> Vec<(u32, PassageEntry)> {
    let sketch = sketch(query);
    let blocks: Vec<SketchBlock<'_>> = (0..)
        .zip(tables.iter().zip(allowed))
        .flat_map(|(segment, (table, docs))| split_blocks(segment, table, docs))
        .collect();
    let compared: Vec<_> = blocks.par_iter().map(|block| block.compare(&sketch)).collect();
    let mut count = 0;
    let radius = (0..=sketch.len() * 64).find(|distance| {
        count += compared.iter().map(|(_, histogram)| histogram[*distance] as usize).sum::<usize>();
        count >= wanted
    });
    let radius = radius.unwrap_or(sketch.len() * 64) as u16;
    let mut entries = Vec::with_capacity(count);
    for (block, (distances, _)) in blocks.iter().zip(&compared) {
        let near = distances.iter().zip(block.entries).filter(|(distance, _)| **distance <= radius);
        entries.extend(near.map(|(_, entry)| (block.segment, *entry)));
    }
    entries
}

/// The part of a segment's table that one task compares.
struct SketchBlock<'a> {
    segment: u32,
    entries: &'a [PassageEntry],
    sketches: &'a [u64],
    allowed: &'a FixedBitSet,
}

fn split_blocks<'a>(segment: u32, table: &'a PassageTable, allowed: &'a FixedBitSet) -> Vec<SketchBlock<'a>> {
    let words = table.sketches.len() / table.entries.len().max(1);
    let entries = table.entries.chunks(BLOCK_SKETCHES);
    let sketches = table.sketches.chunks((BLOCK_SKETCHES * words).max(1));
    entries
        .zip(sketches)
        .map(|(entries, sketches)| SketchBlock { segment, entries, sketches, allowed })
        .collect()
}

impl SketchBlock<'_> {
    /// The Hamming distance of each entry, [`EXCLUDED`] for those not allowed, and a histogram of the distances.
    fn compare(&self, sketch: &[u64]) -> (Vec<u16>, Vec<u32>) {
        let mut distances = Vec::new();
        distance::hamming_distances(sketch, self.sketches, &mut distances);
        let mut histogram = vec![0; sketch.len() * 64 + 1];
        for (distance, entry) in distances.iter_mut().zip(self.entries) {
            if self.allowed.contains(entry.doc as usize) {
                histogram[usize::from(*distance)] += 1;
            } else {
                *distance = EXCLUDED;
            }
        }
        (distances, histogram)
    }
}
