//! A histogram of durations, from which quantiles are read.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Upper bounds in microseconds and counts, in the order of the bounds, without empty buckets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Durations(Vec<(u64, u64)>);

impl Durations {
    pub fn add(&mut self, duration: Duration) {
        self.add_to_bucket(bucket_bound(duration), 1);
    }

    /// Adds those of another histogram.
    pub fn merge(&mut self, other: &Self) {
        other.iter().for_each(|(bound, count)| self.add_to_bucket(*bound, *count));
    }

    pub fn iter(&self) -> std::slice::Iter<'_, (u64, u64)> {
        self.0.iter()
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }

    /// The duration, in milliseconds, that this share of them has at most.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reached = self.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        reached.map_or(0.0, |(bound, _)| *bound as f64 / 1000.0)
    }

    fn add_to_bucket(&mut self, bound: u64, count: u64) {
        match self.0.binary_search_by_key(&bound, |(bound, _)| *bound) {
            Ok(at) => self.0[at].1 += count,
            Err(at) => self.0.insert(at, (bound, count)),
        }
    }
}

/// The upper bound of a duration's bucket, in microseconds. There are eight buckets per power of two, so a quantile is
/// off by an eighth at most.
fn bucket_bound(duration: Duration) -> u64 {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    // The highest bit and the three below it select the bucket.
    let lower_bits = micros.max(8).ilog2() - 3;
    micros | ((1 << lower_bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_within_an_eighth_of_the_bound_of_its_bucket() {
        let mut last = 0;
        for micros in (0..5000).chain([1 << 20, (1 << 20) + 1, 123_456_789, u64::MAX / 1000]) {
            let bound = bucket_bound(Duration::from_micros(micros));
            assert!(bound >= last && (micros..=micros + micros / 8).contains(&bound), "{micros} in {bound}");
            assert_eq!(bucket_bound(Duration::from_micros(bound)), bound, "{micros}");
            last = bound;
        }
    }
}
