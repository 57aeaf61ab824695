//! Records, queries and vectors that are made up, the same every time.

use toolwright_kb::{Namespace, Record};

pub const DIMENSIONS: usize = 384;
const WORDS: usize = 40_000;
const ASIDE: usize = 76;
const CLUSTERS: u64 = 2_000;
/// One record in so many has the tag.
pub const RARE: u64 = 100;
pub const TAG: &str = "rare";

/// Numbers that look random.
pub struct Dice(u64);

impl Dice {
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

    /// Near a bell curve: the sum of four.
    fn bell(&mut self) -> f32 {
        (0..4).map(|_| self.fraction()).sum::<f32>() - 2.0
    }

    /// A word by its rank: common ones are common.
    fn rank(&mut self) -> usize {
        ((WORDS as f32).powf(self.fraction()) as usize).min(WORDS)
    }

    fn word(&mut self) -> String {
        spelled(self.rank())
    }
}

/// A word for each rank, unlike English ones, so that stems do not fall together.
fn spelled(rank: usize) -> String {
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
    let mut dice = Dice::new(number);
    let mut words = |count: usize| (0..count).map(|_| dice.word()).collect::<Vec<_>>().join(" ");
    Record {
        id: format!("doc:{number}"),
        kind: "doc".to_owned(),
        title: words(6),
        text: words(90),
        namespace: Namespace::Studio,
        owner: None,
        tags: if number % RARE == 7 { vec![TAG.to_owned()] } else { vec!["common".to_owned()] },
        source_type: None,
        last_updated: None,
        url: None,
        metadata: serde_json::Map::new(),
        sources: Vec::new(),
    }
}

/// Four words, as people ask. The commonest ones of a language ("the", "who") are put aside by the search, so they are not
/// among them: about as many as there are in English.
pub fn query(number: u64) -> String {
    let mut dice = Dice::new(number ^ 0xffff_0000);
    let telling = std::iter::repeat_with(|| dice.rank()).filter(|rank| *rank > ASIDE);
    telling.take(4).map(spelled).collect::<Vec<_>>().join(" ")
}

/// Around one of many centres, of length 1.
pub fn vector(number: u64) -> Vec<f32> {
    let mut centre = Dice::new(number % CLUSTERS + (1 << 50));
    let mut noise = Dice::new(number + (1 << 51));
    let mut values: Vec<f32> = (0..DIMENSIONS).map(|_| centre.bell() + noise.bell()).collect();
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    values.iter_mut().for_each(|value| *value /= length);
    values
}
