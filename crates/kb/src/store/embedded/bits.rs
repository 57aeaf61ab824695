//! A set of documents of one segment.

/// Documents by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    count: u32,
}

impl Bits {
    /// The set of these documents, all below `size`.
    pub fn of(size: u32, docs: impl Iterator<Item = u32>) -> Self {
        let mut words = vec![0; (size as usize).div_ceil(64)];
        for doc in docs {
            words[doc as usize / 64] |= 1 << (doc % 64);
        }
        Self::counted(words)
    }

    /// What is in both.
    pub fn and(&self, other: &Self) -> Self {
        Self::counted(self.words.iter().zip(&other.words).map(|(left, right)| left & right).collect())
    }

    /// What passes the test as well.
    pub fn only(&self, mut test: impl FnMut(u32) -> bool) -> Self {
        Self::of(self.words.len() as u32 * 64, self.iter().filter(|doc| test(*doc)))
    }

    pub fn len(&self) -> u32 {
        self.count
    }

    pub fn contains(&self, doc: u32) -> bool {
        self.words.get(doc as usize / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1)
    }

    /// The documents in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                (left != 0).then(|| {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    at as u32 * 64 + bit
                })
            })
        })
    }

    fn counted(words: Vec<u64>) -> Self {
        let count = words.iter().map(|word| word.count_ones()).sum();
        Self { words, count }
    }
}
