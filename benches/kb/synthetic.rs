//! Synthetic records, queries and vectors, the same in every run.

use toolwright_kb::{Namespace, Record};

pub const DIMENSIONS: usize = 384;
const VOCABULARY_SIZE: usize = 40_000;
const STOP_WORD_COUNT: usize = 76;
const CLUSTER_COUNT: u64 = 2_000;
/// One record in so many has the rare tag.
pub const RARE_TAG_INTERVAL: u64 = 100;
pub const RARE_TAG: &str = "rare";

/// A SplitMix64 random number generator.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn fraction(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u64 << 24) as f32
    }

    /// Approximately normally distributed: the sum of four.
    fn normal(&mut self) -> f32 {
        (0..4).map(|_| self.fraction()).sum::<f32>() - 2.0
    }

    /// The rank of a random word, by Zipf's law.
    fn rank(&mut self) -> usize {
        ((VOCABULARY_SIZE as f32).powf(self.fraction()) as usize).min(VOCABULARY_SIZE)
    }

    fn word(&mut self) -> String {
        word_of_rank(self.rank())
    }
}

/// A word for each rank, unlike English words, so that stemming does not merge them.
fn word_of_rank(rank: usize) -> String {
    let mut word = String::new();
    let mut left = rank;
    for _ in 0..4 {
        word.push(char::from(b"bdfgklmnprtvz"[left % 13]));
        word.push(char::from(b"aiou"[left / 13 % 4]));
        left /= 52;
        if left == 0 {
            break;
        }
    }
    word
}

pub fn record(number: u64) -> Record {
    let mut random = Random::new(number);
    let mut words = |count: usize| (0..count).map(|_| random.word()).collect::<Vec<_>>().join(" ");
    Record {
        id: format!("doc:{number}"),
        kind: "doc".to_owned(),
        title: words(6),
        text: words(90),
        namespace: Namespace::Studio,
        owner: None,
        tags: if number % RARE_TAG_INTERVAL == 7 {
            vec![RARE_TAG.to_owned()]
        } else {
            vec!["common".to_owned()]
        },
        source_type: None,
        last_updated: None,
        url: None,
        metadata: serde_json::Map::new(),
        sources: Vec::new(),
    }
}

/// Four words. The most frequent ones are left out, because search ignores stop words.
pub fn query(number: u64) -> String {
    let mut random = Random::new(number ^ 0xffff_0000);
    let words = std::iter::repeat_with(|| random.rank()).filter(|rank| *rank > STOP_WORD_COUNT);
    words.take(4).map(word_of_rank).collect::<Vec<_>>().join(" ")
}

/// A normalized vector around one of many cluster centres.
pub fn vector(number: u64) -> Vec<f32> {
    let mut centre = Random::new(number % CLUSTER_COUNT + (1 << 50));
    let mut noise = Random::new(number + (1 << 51));
    let mut values: Vec<f32> = (0..DIMENSIONS).map(|_| centre.normal() + noise.normal()).collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.iter_mut().for_each(|value| *value /= length);
    values
}
