//! A set of documents of one segment, as a bit set.

/// Documents by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocBitSet {
    words: Vec<u64>,
    count: u32,
}

impl DocBitSet {
    /// The set of these documents, all below `size`.
    pub fn new(size: u32, docs: impl Iterator<Item = u32>) -> Self {
        let mut words = vec![0; (size as usize).div_ceil(64)];
        for doc in docs {
            words[doc as usize / 64] |= 1 << (doc % 64);
        }
        Self::from_words(words)
    }

    fn from_words(words: Vec<u64>) -> Self {
        let count = words.iter().map(|word| word.count_ones()).sum();
        Self { words, count }
    }

    pub fn intersect(&self, other: &Self) -> Self {
        Self::from_words(self.words.iter().zip(&other.words).map(|(left, right)| left & right).collect())
    }

    /// The documents that pass a test.
    pub fn filter(&self, mut test: impl FnMut(u32) -> bool) -> Self {
        Self::new(self.words.len() as u32 * 64, self.iter().filter(|doc| test(*doc)))
    }

    pub fn len(&self) -> u32 {
        self.count
    }

    pub fn contains(&self, doc: u32) -> bool {
        self.words.get(doc as usize / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1)
    }

    /// The documents in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    index as u32 * 64 + bit
                })
            })
        })
    }
}
