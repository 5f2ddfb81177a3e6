//! The time that a client stamps its updates with.
//!
//! Replicas refuse timestamps too far ahead of their clocks, and a later update with an earlier timestamp than one that is
//! pending on its key takes the longer way. So a client follows the replicas' clocks: their median, because one of them
//! may be wrong.

use syros_types::{Group, Instant, Now, ReplicaId, WallTime};

/// A client's own clock counts as long as it is no further than this, in microseconds, ahead of the replicas'. Below what
/// replicas accept by default (500 ms).
const OWN_AHEAD_MAX: u64 = 250_000;

/// What an answer is taken to have been on its way for at most, in microseconds: longer than on any link on Earth. A client that
/// has heard one answer only, which was held up, takes the replica to be that far away. With what the own clock may be ahead
/// it stays below what replicas accept.
pub(super) const WAY_MAX: u64 = 200_000;

/// Timestamps of a session may be so far ahead of what they would be, in microseconds, before another session begins.
const SESSION_AHEAD_MAX: u64 = 100_000;

/// What a client knows of the replicas' wall clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clocks {
    /// What each said last, microseconds, and when it was heard.
    heard: [Option<(u64, Instant)>; Group::SIZE_MAX],
    /// How far the own clock may be ahead of the replicas', microseconds.
    own_ahead_max: u64,
}

impl Clocks {
    pub(super) const fn new() -> Self {
        Self { heard: [None; Group::SIZE_MAX], own_ahead_max: OWN_AHEAD_MAX }
    }

    /// What a model checker sees of them: in models, time passes in steps far below the microsecond that clocks count.
    #[cfg(feature = "model")]
    pub(super) fn fingerprint(&self, hasher: &mut impl core::hash::Hasher) {
        use core::hash::Hash;
        let Self { heard, own_ahead_max } = self;
        (heard.map(|heard| heard.map(|(micros, _)| micros)), own_ahead_max).hash(hasher);
    }

    /// A replica that takes at least `distance` nanoseconds to answer has told its clock.
    pub(super) fn on_clock(&mut self, from: ReplicaId, clock: WallTime, distance: u64, now: Instant) {
        // It was half of the way ago.
        let micros = clock.0.saturating_add((distance / 2000).min(WAY_MAX));
        self.heard[from.index()] = Some((micros, now));
    }

    /// A replica found a timestamp too far ahead.
    pub(super) const fn on_refused(&mut self) {
        self.own_ahead_max = 0;
    }

    /// What the replicas' clocks say now, of those that have been heard, in ascending order at the beginning; and how many
    /// they are.
    fn known(&self, now: Instant) -> ([u64; Group::SIZE_MAX], usize) {
        let mut known = [u64::MAX; Group::SIZE_MAX];
        let mut count = 0;
        for (micros, heard) in self.heard.iter().flatten() {
            known[count] = WallTime(*micros).after(now.since(*heard)).0;
            count += 1;
        }
        known.sort_unstable();
        (known, count)
    }

    /// The time, in microseconds since the Unix epoch.
    pub(super) fn time(&self, now: Now) -> u64 {
        let own = now.wall.0;
        let (known, count) = self.known(now.instant);
        let Some(median) = count.checked_sub(1).map(|last| known[last / 2]) else { return own };
        let own_counts = (median..=median.saturating_add(self.own_ahead_max)).contains(&own);
        if own_counts { own } else { median }
    }

    /// The time of the clock that is furthest ahead.
    pub(super) fn latest(&self, now: Now) -> u64 {
        let (known, count) = self.known(now.instant);
        known[..count].iter().fold(now.wall.0, |latest, clock| latest.max(*clock))
    }

    /// True if a timestamp is too far ahead.
    pub(super) fn is_ahead(&self, micros: u64, now: Now) -> bool {
        micros > self.time(now).saturating_add(self.own_ahead_max + SESSION_AHEAD_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Now {
        Now { instant: Instant(millis * 1_000_000), wall: WallTime(5_000_000 + millis * 1000) }
    }

    #[test]
    fn one_wrong_clock_does_not_count_whichever_way_it_is_wrong() {
        for wrong in [0, 3_600_000_000_000] {
            let mut clocks = Clocks::new();
            assert_eq!(clocks.time(at(0)), 5_000_000, "its own, as long as nobody is heard");
            for (replica, clock) in [(0, wrong), (1, 5_000_000), (2, 5_000_000)] {
                clocks.on_clock(ReplicaId(replica), WallTime(clock), 0, Instant(0));
            }
            assert_eq!(clocks.time(at(7)), 5_007_000);
        }
    }

    #[test]
    fn the_own_clock_does_not_count_if_it_is_far_from_the_replicas() {
        for own in [0, 9_000_000_000] {
            let mut clocks = Clocks::new();
            clocks.on_clock(ReplicaId(1), WallTime(5_000_000), 2_000_000, Instant(0));
            let now = Now { instant: Instant(3_000_000), wall: WallTime(own) };
            assert_eq!(clocks.time(now), 5_004_000, "half of the way, and the time since");
        }
    }

    #[test]
    fn one_answer_that_was_held_up_makes_no_timestamps_that_are_refused() {
        let mut clocks = Clocks::new();
        clocks.on_clock(ReplicaId(0), WallTime(5_000_000), 3_000_000_000, Instant(0));
        let own = Now { instant: Instant(0), wall: WallTime(5_000_000 + WAY_MAX + OWN_AHEAD_MAX) };
        assert!(clocks.time(own) < 5_500_000 && clocks.time(at(0)) < 5_500_000);
    }

    #[test]
    fn a_session_is_ahead_when_its_timestamps_would_be_refused() {
        let mut clocks = Clocks::new();
        clocks.on_clock(ReplicaId(0), WallTime(5_000_000), 0, Instant(0));
        assert!(!clocks.is_ahead(5_200_000, at(0)));
        assert!(clocks.is_ahead(5_400_000, at(0)) && !clocks.is_ahead(5_400_000, at(200)));
        clocks.on_refused();
        assert!(clocks.is_ahead(5_200_000, at(0)));
    }
}
