//! The vectors of one segment, in the order of its documents, so that a scan reads memory sequentially.

use tantivy::{DocId, SegmentReader};

use super::vector_files::Vectors;

/// The passages of a segment that have vectors.
#[derive(Debug, Default)]
pub struct PassageTable {
    /// The index of each document's first entry, with the total at the end.
    starts: Vec<u32>,
    pub entries: Vec<PassageEntry>,
    /// The sketches of the entries, one after the other.
    pub sketches: Vec<u64>,
}

/// A passage with a vector.
#[derive(Debug, Clone, Copy)]
pub struct PassageEntry {
    pub doc: DocId,
    /// The index among the document's passages.
    pub passage: u32,
    /// The row of its vector.
    pub row: u32,
}

impl PassageTable {
    pub fn new(segment: &SegmentReader, vectors: &Vectors) -> tantivy::Result<Self> {
        let mut table = Self::default();
        if vectors.len() == 0 {
            return Ok(table);
        }
        let passages = segment.fast_fields().u64("passages")?;
        for doc in 0..segment.max_doc() {
            table.starts.push(table.entries.len() as u32);
            for (passage, key) in passages.values_for_doc(doc).enumerate() {
                if let Some(row) = vectors.row_of(key) {
                    table.entries.push(PassageEntry { doc, passage: passage as u32, row });
                    table.sketches.extend_from_slice(vectors.sketch(row));
                }
            }
        }
        table.starts.push(table.entries.len() as u32);
        Ok(table)
    }

    /// The entries of one document.
    pub fn of_doc(&self, doc: DocId) -> &[PassageEntry] {
        match (self.starts.get(doc as usize), self.starts.get(doc as usize + 1)) {
            (Some(start), Some(end)) => &self.entries[*start as usize..*end as usize],
            _ => &[],
        }
    }
}
