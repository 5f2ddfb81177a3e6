//! How long operations took, by the way they were answered.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

/// A way in which an operation is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// An update: by the fast quorum.
    WriteByQuorum,
    /// An update: by the leader, which was asked at once.
    WriteByLeader,
    /// An update: by the leader, because the fast quorum was not to be had.
    WriteReferred,
    /// A read: by the leader, asked at once.
    ReadByLeader,
    /// A read: by a member with the leader's word.
    ReadByMeta,
    /// A read: by a majority.
    ReadByQuorum,
    /// A read: by a member that was asked a second time.
    ReadRinsed,
    /// A read: by the leader, after others had been asked.
    ReadReferred,
    /// A read: by the leader, because it was of several keys.
    ReadOfSeveralKeys,
    /// A read: by any replica, on whatever state.
    ReadStale,
}

impl Way {
    /// Each, in the order of its declaration.
    pub const ALL: [Self; 10] = [
        Self::WriteByQuorum,
        Self::WriteByLeader,
        Self::WriteReferred,
        Self::ReadByLeader,
        Self::ReadByMeta,
        Self::ReadByQuorum,
        Self::ReadRinsed,
        Self::ReadReferred,
        Self::ReadOfSeveralKeys,
        Self::ReadStale,
    ];

    /// The name of its counter, in INFO and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WriteByQuorum => "writes_by_quorum",
            Self::WriteByLeader => "writes_by_leader",
            Self::WriteReferred => "writes_referred",
            Self::ReadByLeader => "reads_by_leader",
            Self::ReadByMeta => "reads_by_meta",
            Self::ReadByQuorum => "reads_by_quorum",
            Self::ReadRinsed => "reads_rinsed",
            Self::ReadReferred => "reads_referred",
            Self::ReadOfSeveralKeys => "reads_of_several_keys",
            Self::ReadStale => "reads_stale",
        }
    }
}

/// Buckets of each way: times up to powers of two of microseconds, the last of which are 134 s.
const BUCKETS: usize = 28;

/// How long operations took that were answered in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimesOfWay {
    /// The way.
    pub way: Way,
    /// All times together, in microseconds.
    pub sum: u64,
    /// Bounds in microseconds, which rise, each with how many times were up to it and above the bound before.
    pub buckets: Vec<(u64, u64)>,
}

/// Histograms of times, which take 2 KiB when the first operation is answered. Decisions depend on none of them.
#[derive(Clone, Debug, Default)]
pub(super) struct WayTimes {
    buckets: Vec<u64>,
    /// Microseconds, together.
    sums: [u64; Way::ALL.len()],
}

impl WayTimes {
    pub(super) const fn new() -> Self {
        Self { buckets: Vec::new(), sums: [0; Way::ALL.len()] }
    }

    /// An operation was answered that way, so long after it was submitted.
    pub(super) fn record(&mut self, way: Way, took: Duration) {
        // A model has no times, and many clients.
        if cfg!(feature = "model") {
            return;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS * Way::ALL.len()];
        }
        let micros = took.as_micros() as u64;
        let bucket = (micros.max(1).next_power_of_two().trailing_zeros() as usize).min(BUCKETS - 1);
        self.buckets[way as usize * BUCKETS + bucket] += 1;
        self.sums[way as usize] += micros;
    }

    /// Of each way that there was.
    pub(super) fn told(&self) -> Vec<TimesOfWay> {
        let of = |(way, buckets): (Way, &[u64])| {
            let counts = buckets.iter().enumerate().map(|(place, count)| (1 << place, *count));
            TimesOfWay { way, sum: self.sums[way as usize], buckets: counts.collect() }
        };
        let all = Way::ALL.into_iter().zip(self.buckets.chunks(BUCKETS));
        all.filter(|(_, buckets)| buckets.iter().any(|count| *count > 0)).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_a_place_and_a_name_of_its_own() {
        for (place, way) in Way::ALL.into_iter().enumerate() {
            assert_eq!(way as usize, place);
            assert_eq!(Way::ALL.into_iter().filter(|other| other.name() == way.name()).count(), 1);
        }
    }

    #[test]
    #[cfg(not(feature = "model"))]
    fn times_are_told_of_ways_that_there_were() {
        let mut times = WayTimes::new();
        assert!(times.told().is_empty());
        for micros in [0, 1, 3, 4, 1 << 40] {
            times.record(Way::ReadStale, Duration::from_micros(micros));
        }
        let told = times.told();
        let [TimesOfWay { way: Way::ReadStale, sum, buckets }] = &told[..] else { panic!("{told:?}") };
        let filled: Vec<_> = buckets.iter().filter(|(_, count)| *count > 0).copied().collect();
        assert_eq!((*sum, filled), (8 + (1 << 40), vec![(1, 2), (4, 2), (1 << 27, 1)]));
    }
}
