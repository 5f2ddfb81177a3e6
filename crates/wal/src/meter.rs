//! How long syncs took, and how much went to the disk with each. The log's thread counts, and anybody may look.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Buckets of a histogram: powers of two up to 2^35, which are 32 GiB, or nine hours in microseconds.
const BUCKETS: usize = 36;

/// How often there was which value: of each power of two, values up to it, and above the one before.
#[derive(Debug)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum: AtomicU64::new(0) }
    }
}

impl Histogram {
    fn add(&self, value: u64) {
        let bucket = value.max(1).next_power_of_two().trailing_zeros() as usize;
        self.buckets[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    fn distribution(&self) -> Distribution {
        let counts = self.buckets.iter().map(|count| count.load(Ordering::Relaxed));
        let buckets = counts.enumerate().map(|(place, count)| (1 << place, count)).collect();
        Distribution { sum: self.sum.load(Ordering::Relaxed), buckets }
    }
}

/// How often there was which value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// All values together.
    pub sum: u64,
    /// Bounds, which rise, each with how many values were up to it and above the bound before.
    pub buckets: Vec<(u64, u64)>,
}

/// What a log has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogActivity {
    /// Times of writing and syncing a batch of records, in microseconds.
    pub syncs: Distribution,
    /// Records of each batch.
    pub records: Distribution,
    /// Bytes of each batch.
    pub bytes: Distribution,
}

#[derive(Debug, Default)]
pub(crate) struct Meter {
    syncs: Histogram,
    records: Histogram,
    bytes: Histogram,
}

impl Meter {
    /// A batch of so many records and bytes took so long to be on disk.
    pub(crate) fn on_sync(&self, took: Duration, records: u64, bytes: usize) {
        self.syncs.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        self.records.add(records);
        self.bytes.add(bytes as u64);
    }

    pub(crate) fn activity(&self) -> LogActivity {
        LogActivity {
            syncs: self.syncs.distribution(),
            records: self.records.distribution(),
            bytes: self.bytes.distribution(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_bucket_of_the_next_power_of_two() {
        let histogram = Histogram::default();
        [0, 1, 2, 3, 4, 5, 1024, 1025, 1 << 50].into_iter().for_each(|value| histogram.add(value));
        let Distribution { sum, buckets } = histogram.distribution();
        let count = |bound: u64| buckets.iter().find(|(known, _)| *known == bound).map(|(_, count)| *count);
        assert_eq!([1, 2, 4, 8, 1024, 2048].map(count), [2, 1, 2, 1, 1, 1].map(Some));
        assert_eq!(buckets.last(), Some(&(1 << 35, 1)));
        assert_eq!(sum, 1 + 2 + 3 + 4 + 5 + 1024 + 1025 + (1 << 50));
    }
}
