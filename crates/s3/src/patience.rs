//! How long a store may take, and how often it is asked again.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// How long a store may take, and how often it is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// A request is sent at most so often.
    pub attempts: u32,
    /// The pause before the second attempt is up to this; before each further one up to twice as long.
    pub first_pause: Duration,
    /// No pause is longer.
    pub longest_pause: Duration,
    /// A connection is there after this long, or fails.
    pub connect: Duration,
    /// A request without a body has its answer after this long.
    pub answer: Duration,
    /// For a body there is so much more time as it takes at this rate.
    pub bytes_per_second: u64,
}

impl Default for Patience {
    /// Eight attempts: about 20 s of pauses, which outlasts a store that restarts or slows its clients down. A body may take as
    /// long as on a line of half a megabit a second: whatever is slower stands still or drips.
    fn default() -> Self {
        Self {
            attempts: 8,
            first_pause: Duration::from_millis(200),
            longest_pause: Duration::from_secs(8),
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            bytes_per_second: 64 << 10,
        }
    }
}

impl Patience {
    /// The pause after so many attempts: anything between half of the bound and the bound, so that clients that were
    /// refused together do not come back together.
    pub(crate) fn pause(&self, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(16);
        let bound = self.first_pause.saturating_mul(1 << doublings).min(self.longest_pause);
        let chance = RandomState::new().hash_one(attempts) % 1024;
        bound.mul_f64(0.5 + chance as f64 / 2048.0)
    }

    /// How long a request may take that has so many bytes, or asks for so many.
    pub(crate) fn for_bytes(&self, bytes: u64) -> Duration {
        self.answer + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let patience = Patience::default();
        for (attempts, bound) in [(1, 200), (2, 400), (5, 3_200), (8, 8_000), (60, 8_000)] {
            for _ in 0..100 {
                let pause = patience.pause(attempts).as_millis();
                assert!((bound / 2..=bound).contains(&pause), "{pause} ms after {attempts}");
            }
        }
        assert_eq!(patience.for_bytes(64 << 10), Duration::from_secs(31));
    }
}
