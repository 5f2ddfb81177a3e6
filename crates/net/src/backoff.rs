//! How long to wait before the next attempt to connect.

use core::time::Duration;
use syros_types::Prng;

/// Exponential backoff with jitter: the bound doubles with every failure, and each delay is drawn
/// from its upper half, so that processes that lost one peer do not come back in step.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    bound: Duration,
    prng: Prng,
}

impl Backoff {
    /// Delays of at most `first` in the beginning and at most `max` in the end. `seed` should differ
    /// between processes and peers.
    #[must_use]
    pub fn new(first: Duration, max: Duration, seed: u64) -> Self {
        Self { first: first.min(max), max, bound: first.min(max), prng: Prng::new(seed) }
    }

    /// The delay after one more failure.
    pub fn after_failure(&mut self) -> Duration {
        let bound = u64::try_from(self.bound.as_nanos()).unwrap_or(u64::MAX);
        self.bound = self.bound.saturating_mul(2).min(self.max);
        Duration::from_nanos(bound / 2 + self.prng.below(bound - bound / 2 + 1))
    }

    /// Starts from the beginning: an attempt has succeeded.
    pub const fn reset(&mut self) {
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
}
