//! The lists of words: which records a word is in, how often, and how long the field is. PostgreSQL's own ranking knows
//! neither how rare a word is nor how long texts are on the average, so the lists are ours and the ranking is BM25.
//!
//! A list belongs to a word, a field and a block of [`BLOCK`] record numbers. It is four bytes an entry, in the order of
//! the numbers, so that new entries are appended without reading the list: the number within the block as u16, how
//! often, and the length of the field on the scale of the embedded index. What has been removed stays in the lists until
//! half of its block is gone; the block names it, and it is neither counted nor found.

use std::collections::{BTreeMap, HashMap, HashSet};

use tantivy::fieldnorm::FieldNormReader;
use tantivy::query::Bm25Weight;
use tantivy::tokenizer::{TextAnalyzer, TokenStream as _};

use crate::record::Record;
use crate::store::english;

/// How many record numbers a block has.
pub const BLOCK: u32 = 8192;
/// Text, title, tags.
pub const FIELDS: usize = 3;

const ENTRY: usize = 4;

/// How many words each field has.
pub type Lengths = [i64; FIELDS];

/// The lists of one word in one block, a field each.
pub type Lists = [Vec<u8>; FIELDS];

/// What is to be appended to the lists, by word and block.
pub struct Additions {
    analyzer: TextAnalyzer,
    pub lists: BTreeMap<(String, i32), Lists>,
}

impl Default for Additions {
    fn default() -> Self {
        Self { analyzer: english::analyzer(), lists: BTreeMap::new() }
    }
}

impl Additions {
    /// Adds a record. Numbers must come in ascending order.
    pub fn add(&mut self, doc: u32, record: &Record) -> Lengths {
        let tags = record.tags.iter().map(String::as_str).collect::<Vec<_>>();
        let fields = [&[record.text.as_str()][..], &[record.title.as_str()], &tags];
        let (block, slot) = place(doc);
        let mut lengths = Lengths::default();
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

/// The block of a record's number, and where in it.
pub fn place(doc: u32) -> (i32, u16) {
    // A number is an i32 in the database, so that both parts fit.
    ((doc / BLOCK) as i32, (doc % BLOCK) as u16)
}

/// The slots that a block names as gone.
pub fn gone(bytes: &[u8]) -> HashSet<u16> {
    bytes.as_chunks().0.iter().map(|slot| u16::from_le_bytes(*slot)).collect()
}

/// A list without what is gone.
pub fn swept(list: &[u8], gone: &HashSet<u16>) -> Vec<u8> {
    entries(list).filter(|entry| !gone.contains(&entry.slot)).flat_map(|entry| entry.bytes).collect()
}

/// What BM25 needs to know of all records.
#[derive(Debug, Default)]
pub struct Totals {
    pub records: u64,
    pub lengths: Lengths,
    /// What is gone, by block.
    pub gone: HashMap<i32, HashSet<u16>>,
}

/// The lists of one of the wanted words in one block.
pub struct Row<'a> {
    /// Which of the words.
    pub word: usize,
    pub block: i32,
    pub lists: [&'a [u8]; FIELDS],
}

/// The score of every record with one of the words, in no order. `words` are given with what each counts.
pub fn scores(words: &[(String, f32)], mut rows: Vec<Row<'_>>, totals: &Totals) -> Vec<(f32, u32)> {
    let nothing = HashSet::new();
    let gone = |block: i32| totals.gone.get(&block).unwrap_or(&nothing);
    let weights = weights(words, &rows, totals, &gone);
    rows.sort_unstable_by_key(|row| (row.block, row.word));
    let mut scores = Vec::new();
    let mut sums = vec![0.0_f32; BLOCK as usize];
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
        let gone = gone(block);
        let found = (0..).zip(&sums).filter(|(slot, sum)| **sum > 0.0 && !gone.contains(slot));
        scores.extend(found.map(|(slot, sum)| (*sum, block as u32 * BLOCK + u32::from(slot))));
    }
    scores
}

/// What each word counts in each field: the rarer the more.
fn weights<'a>(
    words: &[(String, f32)],
    rows: &[Row<'_>],
    totals: &Totals,
    gone: &impl Fn(i32) -> &'a HashSet<u16>,
) -> Vec<[Bm25Weight; FIELDS]> {
    let mut frequencies = vec![[0_u64; FIELDS]; words.len()];
    for row in rows {
        let gone = gone(row.block);
        for (list, frequency) in row.lists.iter().zip(&mut frequencies[row.word]) {
            let there = match gone.is_empty() {
                true => list.len() / ENTRY,
                false => entries(list).filter(|entry| !gone.contains(&entry.slot)).count(),
            };
            *frequency += there as u64;
        }
    }
    let records = totals.records.max(1);
    let weight = |field: usize, frequency: u64, times: f32| {
        let average = (totals.lengths[field] as f32 / records as f32).max(f32::MIN_POSITIVE);
        Bm25Weight::for_one_term_without_explain(frequency.min(records), records, average)
            .boost_by(english::WEIGHTS[field] * times)
    };
    let of = |(frequencies, (_, times)): (&[u64; FIELDS], &(String, f32))| {
        std::array::from_fn(|field| weight(field, frequencies[field], *times))
    };
    frequencies.iter().zip(words).map(of).collect()
}

struct Entry {
    slot: u16,
    times: u8,
    length: u8,
    bytes: [u8; ENTRY],
}

fn entries(list: &[u8]) -> impl Iterator<Item = Entry> {
    list.as_chunks().0.iter().map(|bytes: &[u8; ENTRY]| {
        let [low, high, times, length] = *bytes;
        Entry { slot: u16::from_le_bytes([low, high]), times, length, bytes: *bytes }
    })
}
