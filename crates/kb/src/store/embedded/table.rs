//! Which vectors belong to the documents of one segment, laid out in the order of the documents, so that a scan reads
//! memory from one end to the other.

use tantivy::{DocId, SegmentReader};

use super::vectors::{Vectors, sketch_words};

/// The passages of a segment that have vectors.
#[derive(Debug, Default)]
pub struct Table {
    /// For each document, where its passages begin; one more at the end.
    starts: Vec<u32>,
    places: Vec<Place>,
    sketches: Vec<u64>,
}

/// One passage.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub doc: DocId,
    /// Which of the document's passages it is.
    pub passage: u32,
    pub row: u32,
}

impl Table {
    /// Looks the passages up.
    pub fn of(segment: &SegmentReader, vectors: &Vectors) -> tantivy::Result<Self> {
        if vectors.len() == 0 {
            return Ok(Self::default());
        }
        let words = vectors.maker().map_or(0, |maker| sketch_words(maker.dimensions));
        let passages = segment.fast_fields().u64("passages")?;
        let mut table = Self::default();
        for doc in 0..segment.max_doc() {
            table.starts.push(table.places.len() as u32);
            for (passage, key) in passages.values_for_doc(doc).enumerate() {
                if let Some(row) = vectors.row_of(key) {
                    table.places.push(Place { doc, passage: passage as u32, row });
                    table.sketches.extend_from_slice(vectors.sketch(row));
                }
            }
        }
        table.starts.push(table.places.len() as u32);
        debug_assert_eq!(table.sketches.len(), table.places.len() * words);
        Ok(table)
    }

    /// The passages of one document that have vectors.
    pub fn of_doc(&self, doc: DocId) -> &[Place] {
        match (self.starts.get(doc as usize), self.starts.get(doc as usize + 1)) {
            (Some(start), Some(end)) => &self.places[*start as usize..*end as usize],
            _ => &[],
        }
    }

    pub fn places(&self) -> &[Place] {
        &self.places
    }

    pub fn sketches(&self) -> &[u64] {
        &self.sketches
    }
}
