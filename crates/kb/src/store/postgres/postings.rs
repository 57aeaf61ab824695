//! Postings: which records a word is in, how often, and how long the field is. PostgreSQL's own ranking knows neither
//! how rare a word is nor the average length of texts, so we store postings and rank by BM25.
//!
//! A list belongs to a word, a field and a block of [`BLOCK_SIZE`] record numbers. An entry has four bytes: the number
//! within the block as u16, the count, and the length of the field on the scale of the embedded index. Entries are in
//! the order of the numbers, so that new ones are appended without reading the list. Deleted records stay in the
//! lists until half of their block is deleted; the block lists them, and they are neither counted nor found.

use std::collections::{BTreeMap, HashMap, HashSet};

use tantivy::fieldnorm::FieldNormReader;
use tantivy::query::Bm25Weight;
use tantivy::tokenizer::{TextAnalyzer, TokenStream as _};

use crate::record::Record;
use crate::tokenizer;

/// How many record numbers a block has.
pub const BLOCK_SIZE: u32 = 8192;
/// Text, title, tags.
pub const FIELD_COUNT: usize = 3;

const ENTRY_BYTES: usize = 4;

/// How many words each field has.
pub type FieldLengths = [i64; FIELD_COUNT];

/// The lists of one word in one block, one for each field.
pub type FieldLists = [Vec<u8>; FIELD_COUNT];

/// Entries to append to the lists, by word and block.
pub struct NewPostings {
    analyzer: TextAnalyzer,
    pub lists: BTreeMap<(String, i32), FieldLists>,
}

impl Default for NewPostings {
    fn default() -> Self {
        Self { analyzer: tokenizer::english_analyzer(), lists: BTreeMap::new() }
    }
}

impl NewPostings {
    /// Adds a record. Numbers must come in ascending order.
    pub fn add(&mut self, doc: u32, record: &Record) -> FieldLengths {
        let fields = tokenizer::indexed_texts(record);
        let (block, slot) = block_and_slot(doc);
        let mut lengths = FieldLengths::default();
        for (field, texts) in fields.into_iter().enumerate() {
            let mut counts: HashMap<String, u32> = HashMap::new();
            for text in texts {
                let mut tokens = self.analyzer.token_stream(text);
                while let Some(token) = tokens.next() {
                    lengths[field] += 1;
                    match counts.get_mut(&token.text) {
                        Some(count) => *count += 1,
                        None => _ = counts.insert(token.text.clone(), 1),
                    }
                }
            }
            let length = FieldNormReader::fieldnorm_to_id(u32::try_from(lengths[field]).unwrap_or(u32::MAX));
            let [low, high] = slot.to_le_bytes();
            for (word, count) in counts {
                let times = u8::try_from(count).unwrap_or(u8::MAX);
                let lists = self.lists.entry((word, block)).or_default();
                lists[field].extend([low, high, times, length]);
            }
        }
        lengths
    }
}

/// The block of a record's number, and its slot in the block.
pub fn block_and_slot(doc: u32) -> (i32, u16) {
    // Both parts fit: a number is an i32 in the database.
    ((doc / BLOCK_SIZE) as i32, (doc % BLOCK_SIZE) as u16)
}

/// The deleted slots of a block.
pub fn deleted_slots(bytes: &[u8]) -> HashSet<u16> {
    bytes.as_chunks().0.iter().map(|slot| u16::from_le_bytes(*slot)).collect()
}

/// A list without the deleted slots.
pub fn without_deleted(list: &[u8], deleted: &HashSet<u16>) -> Vec<u8> {
    entries(list).filter(|entry| !deleted.contains(&entry.slot)).flat_map(|entry| entry.bytes).collect()
}

/// The totals that BM25 needs.
#[derive(Debug, Default)]
pub struct Totals {
    pub records: u64,
    pub lengths: FieldLengths,
    /// Deleted slots, by block.
    pub deleted: HashMap<i32, HashSet<u16>>,
}

/// The lists of one word in one block.
pub struct PostingRow<'a> {
    /// The index of the word.
    pub word: usize,
    pub block: i32,
    pub lists: [&'a [u8]; FIELD_COUNT],
}

/// The BM25 scores of a query.
pub struct Scores {
    /// The score and the number of each record with one of the words, unordered.
    pub by_record: Vec<(f32, u32)>,
    /// [`CandidateLists::keyword_scale`](crate::store::CandidateLists).
    pub scale: f32,
}

/// The scores of all records with one of the words. Each word has a weight.
pub fn scores(words: &[(String, f32)], mut rows: Vec<PostingRow<'_>>, totals: &Totals) -> Scores {
    let none = HashSet::new();
    let deleted = |block: i32| totals.deleted.get(&block).unwrap_or(&none);
    let frequencies = frequencies(words.len(), &rows, &deleted);
    let terms = frequencies.iter().zip(words).map(|([in_text, ..], (_, times))| (*times, *in_text));
    let scale = tokenizer::keyword_scale(terms, totals.records);
    let weights = weights(words, &frequencies, totals);
    rows.sort_unstable_by_key(|row| (row.block, row.word));
    let mut scores = Vec::new();
    let mut sums = vec![0.0_f32; BLOCK_SIZE as usize];
    for rows in rows.chunk_by(|left, right| left.block == right.block) {
        sums.fill(0.0);
        for row in rows {
            for (list, weight) in row.lists.iter().zip(&weights[row.word]) {
                for entry in entries(list) {
                    if let Some(sum) = sums.get_mut(usize::from(entry.slot)) {
                        *sum += weight.score(entry.length, u32::from(entry.times));
                    }
                }
            }
        }
        let block = rows[0].block;
        let deleted = deleted(block);
        let found = (0..).zip(&sums).filter(|(slot, sum)| **sum > 0.0 && !deleted.contains(slot));
        scores.extend(found.map(|(slot, sum)| (*sum, block as u32 * BLOCK_SIZE + u32::from(slot))));
    }
    Scores { by_record: scores, scale }
}

/// How many records have each word in each field.
fn frequencies<'a>(
    words: usize,
    rows: &[PostingRow<'_>],
    deleted: &impl Fn(i32) -> &'a HashSet<u16>,
) -> Vec<[u64; FIELD_COUNT]> {
    let mut frequencies = vec![[0_u64; FIELD_COUNT]; words];
    for row in rows {
        let deleted = deleted(row.block);
        for (list, frequency) in row.lists.iter().zip(&mut frequencies[row.word]) {
            let count = match deleted.is_empty() {
                true => list.len() / ENTRY_BYTES,
                false => entries(list).filter(|entry| !deleted.contains(&entry.slot)).count(),
            };
            *frequency += count as u64;
        }
    }
    frequencies
}

/// The BM25 weight of each word in each field.
fn weights(
    words: &[(String, f32)],
    frequencies: &[[u64; FIELD_COUNT]],
    totals: &Totals,
) -> Vec<[Bm25Weight; FIELD_COUNT]> {
    let records = totals.records.max(1);
    let weight = |field: usize, frequency: u64, times: f32| {
        let average = (totals.lengths[field] as f32 / records as f32).max(f32::MIN_POSITIVE);
        Bm25Weight::for_one_term_without_explain(frequency.min(records), records, average)
            .boost_by(tokenizer::FIELD_WEIGHTS[field] * times)
    };
    let field_weights = |(frequencies, (_, times)): (&[u64; FIELD_COUNT], &(String, f32))| {
        std::array::from_fn(|field| weight(field, frequencies[field], *times))
    };
    frequencies.iter().zip(words).map(field_weights).collect()
}

struct Entry {
    slot: u16,
    times: u8,
    length: u8,
    bytes: [u8; ENTRY_BYTES],
}

fn entries(list: &[u8]) -> impl Iterator<Item = Entry> {
    list.as_chunks().0.iter().map(|bytes: &[u8; ENTRY_BYTES]| {
        let [low, high, times, length] = *bytes;
        Entry { slot: u16::from_le_bytes([low, high]), times, length, bytes: *bytes }
    })
}
