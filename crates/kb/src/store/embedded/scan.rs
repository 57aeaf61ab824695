//! The part by vector. There is no index to build: few vectors are compared one by one; of many, the sketches are, and
//! the nearest of those as vectors. Filters are exact either way.

use std::sync::Arc;

use rayon::prelude::*;
use tantivy::DocId;

use super::bits::Bits;
use super::kernel;
use super::table::{Place, Table};
use super::vectors::{self, Vectors};

/// Up to so many vectors are compared one by one.
const FEW: usize = 20_000;
/// Of more, so many of the nearest sketches are compared as vectors: at least, and for each wanted hit.
const LEAST_RESCORED: usize = 1_000;
const RESCORED_FOR_EACH: usize = 20;
/// So many sketches are compared by one core before it looks for more work.
const BLOCK: usize = 1 << 15;
/// What is not allowed is further away than anything.
const NEVER: u16 = u16::MAX;

/// A document with its nearest passage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Near {
    pub segment: u32,
    pub doc: DocId,
    pub passage: u32,
    /// The cosine.
    pub score: f32,
}

/// The nearest `limit` documents among the allowed ones, in any order; more where the last ones are equally near.
pub fn nearest(
    vectors: &Vectors,
    tables: &[Arc<Table>],
    query: &[f32],
    allowed: &[Arc<Bits>],
    limit: usize,
) -> Vec<Near> {
    let places = candidates(tables, query, allowed, limit);
    let (int8, scale) = vectors::quantised(query);
    let mut near: Vec<Near> = Vec::with_capacity(places.len());
    for (segment, place) in places {
        let (row, step) = vectors.row(place.row);
        let score = kernel::dot(&int8, row) as f32 * scale * step;
        match near.last_mut() {
            // A document's passages follow each other.
            Some(last) if last.segment == segment && last.doc == place.doc => {
                if score > last.score {
                    (last.score, last.passage) = (score, place.passage);
                }
            }
            _ => near.push(Near { segment, doc: place.doc, passage: place.passage, score }),
        }
    }
    if near.len() > limit && limit > 0 {
        near.select_nth_unstable_by(limit - 1, |left, right| right.score.total_cmp(&left.score));
        let last = near[limit - 1].score;
        near.retain(|hit| hit.score >= last);
    }
    near
}

/// The passages to compare, in the order of segments and documents.
fn candidates(
    tables: &[Arc<Table>],
    query: &[f32],
    allowed: &[Arc<Bits>],
    limit: usize,
) -> Vec<(u32, Place)> {
    let docs: usize = allowed.iter().map(|bits| bits.len() as usize).sum();
    let all: usize = tables.iter().map(|table| table.places().len()).sum();
    if docs.min(all) <= FEW {
        let few = every_allowed(tables, allowed, FEW);
        if let Some(few) = few {
            return few;
        }
    }
    let wanted = (limit * RESCORED_FOR_EACH).max(LEAST_RESCORED);
    nearest_sketches(tables, query, allowed, wanted)
}

/// All allowed passages, unless they are more than `most`.
fn every_allowed(tables: &[Arc<Table>], allowed: &[Arc<Bits>], most: usize) -> Option<Vec<(u32, Place)>> {
    let mut places = Vec::new();
    for (segment, (table, bits)) in tables.iter().zip(allowed).enumerate() {
        for doc in bits.iter() {
            places.extend(table.of_doc(doc).iter().map(|place| (segment as u32, *place)));
            if places.len() > most {
                return None;
            }
        }
    }
    Some(places)
}

/// The allowed passages with the nearest sketches: `wanted` of them, and all that are as near as the last.
fn nearest_sketches(
    tables: &[Arc<Table>],
    query: &[f32],
    allowed: &[Arc<Bits>],
    wanted: usize,
) -> Vec<(u32, Place)> {
    let sketch = vectors::sketch(query);
    let blocks: Vec<Block<'_>> = tables.iter().zip(allowed).enumerate().flat_map(blocks).collect();
    let compared: Vec<_> = blocks.par_iter().map(|block| block.compared(&sketch)).collect();
    let mut below = 0;
    let furthest = (0..=sketch.len() * 64).find(|distance| {
        below += compared.iter().map(|(_, counts)| counts[*distance] as usize).sum::<usize>();
        below >= wanted
    });
    let furthest = furthest.unwrap_or(sketch.len() * 64) as u16;
    let mut places = Vec::with_capacity(below);
    for (block, (distances, _)) in blocks.iter().zip(&compared) {
        let near = distances.iter().zip(block.places).filter(|(distance, _)| **distance <= furthest);
        places.extend(near.map(|(_, place)| (block.segment, *place)));
    }
    places
}

/// A part of a segment's table that one core looks through.
struct Block<'a> {
    segment: u32,
    places: &'a [Place],
    sketches: &'a [u64],
    allowed: &'a Bits,
}

fn blocks<'a>((segment, (table, allowed)): (usize, (&'a Arc<Table>, &'a Arc<Bits>))) -> Vec<Block<'a>> {
    let words = table.sketches().len() / table.places().len().max(1);
    let places = table.places().chunks(BLOCK);
    let sketches = table.sketches().chunks((BLOCK * words).max(1));
    let block = |(places, sketches)| Block { segment: segment as u32, places, sketches, allowed };
    places.zip(sketches).map(block).collect()
}

impl Block<'_> {
    /// How many bits differ, [`NEVER`] where the document is not allowed; and how often each number comes.
    fn compared(&self, sketch: &[u64]) -> (Vec<u16>, Vec<u32>) {
        let mut distances = Vec::new();
        kernel::differing_bits(sketch, self.sketches, &mut distances);
        let mut counts = vec![0; sketch.len() * 64 + 1];
        for (distance, place) in distances.iter_mut().zip(self.places) {
            if self.allowed.contains(place.doc) {
                counts[usize::from(*distance)] += 1;
            } else {
                *distance = NEVER;
            }
        }
        (distances, counts)
    }
}
