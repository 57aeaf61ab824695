//! The index of the audit: a Bloom filter of the keys of every 256 entries. It is small (about 5 bytes an entry), and
//! it is appended to, so that a call costs next to nothing; see `docs/decisions/0008-the-call-history.md`.

use super::audit_query::{AuditFilter, AuditKeys};

/// How many entries a segment has.
pub const SEGMENT_ENTRIES: u64 = 256;
/// A false positive for about one of 2,000 segments.
const BITS_PER_TERM: usize = 16;
const PROBES: u64 = 7;

/// Consecutive entries, and the keys that they have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The numbers of its entries.
    pub first: u64,
    pub last: u64,
    /// The earliest and the latest time of its entries.
    pub from: i64,
    pub until: i64,
    pub filter: Vec<u8>,
}

impl Segment {
    pub fn may_match(&self, filter: &AuditFilter, terms: &[u64]) -> bool {
        is_in_time(filter, self.from, self.until) && contains_all(&self.filter, terms)
    }
}

/// Whether entries between these times may match.
pub fn is_in_time(filter: &AuditFilter, earliest: i64, latest: i64) -> bool {
    filter.from.is_none_or(|from| latest >= from) && filter.until.is_none_or(|until| earliest < until)
}

/// Whether a segment may have all of these keys.
pub fn contains_all(filter: &[u8], terms: &[u64]) -> bool {
    let is_set = |bit: usize| filter.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0);
    terms.iter().all(|term| probes(*term, filter.len() * 8).all(is_set))
}

/// The bits of a key.
fn probes(term: u64, bits: usize) -> impl Iterator<Item = usize> {
    let (start, step) = (term & 0xffff_ffff, (term >> 32) | 1);
    (0..PROBES).map(move |at| (start.wrapping_add(at.wrapping_mul(step)) % bits.max(1) as u64) as usize)
}

/// Collects the keys of the next segment.
#[derive(Debug, Clone, Default)]
pub struct SegmentBuilder {
    first: u64,
    count: u64,
    from: i64,
    until: i64,
    terms: Vec<u64>,
}

impl SegmentBuilder {
    /// Adds the entry with this number. Returns the segment that it completes.
    pub fn add(&mut self, number: u64, keys: &AuditKeys) -> Option<Segment> {
        if self.count == 0 {
            (self.first, self.from, self.until) = (number, keys.at, keys.at);
        }
        self.count += 1;
        (self.from, self.until) = (self.from.min(keys.at), self.until.max(keys.at));
        self.terms.extend_from_slice(&keys.terms);
        (self.count == SEGMENT_ENTRIES).then(|| std::mem::take(self).build(number))
    }

    fn build(mut self, last: u64) -> Segment {
        self.terms.sort_unstable();
        self.terms.dedup();
        let mut filter = vec![0; (self.terms.len() * BITS_PER_TERM).div_ceil(8)];
        let bits = filter.len() * 8;
        for bit in self.terms.iter().flat_map(|term| probes(*term, bits)) {
            filter[bit / 8] |= 1 << (bit % 8);
        }
        Segment { first: self.first, last, from: self.from, until: self.until, filter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_has_its_keys_and_few_others() {
        let mut builder = SegmentBuilder::default();
        let keys = |number: u64| AuditKeys {
            at: 1000 + number as i64,
            terms: vec![number.wrapping_mul(0x9e37_79b9_7f4a_7c15), 7],
        };
        let complete: Vec<Segment> =
            (1..=600).filter_map(|number| builder.add(number, &keys(number))).collect();
        let ranges: Vec<(u64, u64)> = complete.iter().map(|segment| (segment.first, segment.last)).collect();
        assert_eq!(ranges, [(1, 256), (257, 512)]);
        assert_eq!((complete[1].from, complete[1].until), (1257, 1512));
        for number in 1..=600 {
            let is_here = (257..=512).contains(&number);
            assert!(!is_here || contains_all(&complete[1].filter, &keys(number).terms), "{number}");
        }
        let others =
            (10_000..20_000).filter(|number| contains_all(&complete[1].filter, &keys(*number).terms));
        assert!(others.count() < 30);
        let filter = AuditFilter { from: Some(1513), ..AuditFilter::default() };
        assert!(!complete[1].may_match(&filter, &[]));
        let filter = AuditFilter { until: Some(1258), ..AuditFilter::default() };
        assert!(complete[1].may_match(&filter, &[]));
    }
}
