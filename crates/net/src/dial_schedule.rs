//! When to connect to a peer.

use core::time::Duration;
use syros_types::{Instant, Prng};

/// When to connect to a peer: at once in the beginning, not while an attempt is under way or the connection lasts, and after
/// each failure later than after the one before. A lost connection counts as a failure.
#[derive(Clone, Debug)]
pub struct DialSchedule {
    due: Instant,
    backoff: Backoff,
}

impl DialSchedule {
    /// The first attempt is due at once. After failures, attempts are at most `first` apart in the beginning, and at most
    /// `max` in the end. `seed` should differ between processes and peers.
    #[must_use]
    pub fn new(first: Duration, max: Duration, seed: u64) -> Self {
        Self { due: Instant(0), backoff: Backoff::new(first, max, seed) }
    }

    /// When the next attempt is due; [`Instant::NEVER`] while one is under way or has succeeded.
    #[must_use]
    pub const fn due(&self) -> Instant {
        self.due
    }

    /// An attempt begins, if one is due. True if so.
    pub fn begin(&mut self, now: Instant) -> bool {
        let is_due = self.due <= now;
        if is_due {
            self.due = Instant::NEVER;
        }
        is_due
    }

    /// The attempt has succeeded: both sides have said who they are.
    pub const fn on_success(&mut self) {
        self.backoff.reset();
    }

    /// The attempt has failed, or the connection is lost.
    pub fn on_failure(&mut self, now: Instant) {
        self.due = now.after(self.backoff.after_failure());
    }
}

/// Exponential backoff with jitter: the bound doubles with every failure, and each delay is drawn
/// from its upper half, so that processes that lost one peer do not come back in step.
#[derive(Clone, Debug)]
struct Backoff {
    first: Duration,
    max: Duration,
    bound: Duration,
    prng: Prng,
}

impl Backoff {
    fn new(first: Duration, max: Duration, seed: u64) -> Self {
        Self { first: first.min(max), max, bound: first.min(max), prng: Prng::new(seed) }
    }

    /// The delay after one more failure.
    fn after_failure(&mut self) -> Duration {
        let bound = u64::try_from(self.bound.as_nanos()).unwrap_or(u64::MAX);
        self.bound = self.bound.saturating_mul(2).min(self.max);
        Duration::from_nanos(bound / 2 + self.prng.below(bound - bound / 2 + 1))
    }

    /// Starts from the beginning: an attempt has succeeded.
    const fn reset(&mut self) {
        self.bound = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_and_start_again() {
        let (first, max) = (Duration::from_millis(50), Duration::from_secs(1));
        for seed in 0..100 {
            let mut backoff = Backoff::new(first, max, seed);
            for _ in 0..2 {
                for bound_ms in [50, 100, 200, 400, 800, 1000, 1000] {
                    let delay = backoff.after_failure();
                    let bound = Duration::from_millis(bound_ms);
                    assert!(delay >= bound / 2 && delay <= bound, "{delay:?} for a bound of {bound:?}");
                }
                backoff.reset();
            }
        }
    }

    #[test]
    fn extreme_settings_are_kept() {
        assert_eq!(Backoff::new(Duration::ZERO, Duration::ZERO, 1).after_failure(), Duration::ZERO);
        let max = Duration::from_nanos(u64::MAX);
        let mut backoff = Backoff::new(max, max, 1);
        assert!(backoff.after_failure() <= max && backoff.after_failure() <= max);
    }

    #[test]
    fn one_attempt_at_a_time_and_the_next_one_when_it_is_due() {
        let (first, max) = (Duration::from_millis(50), Duration::from_secs(1));
        let mut schedule = DialSchedule::new(first, max, 7);
        let mut now = Instant(5);
        assert!(schedule.begin(now));
        assert!(!schedule.begin(Instant(u64::MAX - 1)), "one is under way");
        for bound_ms in [50, 100, 200] {
            schedule.on_failure(now);
            let (due, bound) = (schedule.due(), Duration::from_millis(bound_ms));
            assert!(due >= now.after(bound / 2) && due <= now.after(bound));
            assert!(!schedule.begin(Instant(due.0 - 1)));
            assert!(schedule.begin(due));
            now = due;
        }
        schedule.on_success();
        assert_eq!(schedule.due(), Instant::NEVER);
        schedule.on_failure(now);
        assert!(schedule.due() <= now.after(first), "a connection that was lost is soon made again");
    }
}
