//! The clock of one virtual process: monotonic time that drifts, wall time that is off and jumps.

use syros_types::{Instant, Now, WallTime};

/// True time of the simulated world, in nanoseconds since it began. No process ever sees it.
pub type VirtualTime = u64;

/// Wall-clock time at which every world begins, in microseconds since the Unix epoch.
const WALL_ORIGIN_MICROS: u64 = 1_700_000_000_000_000;

/// Parts in a million.
const MILLION: i64 = 1_000_000;

/// `value * by / through`. Worlds last for minutes: hardly ever is a word too small, and two take ten times as long.
fn scale(value: u64, by: i64, through: i64) -> i128 {
    match i64::try_from(value).ok().and_then(|value| value.checked_mul(by)) {
        Some(product) => i128::from(product / through),
        None => i128::from(value) * i128::from(by) / i128::from(through),
    }
}

/// One process's view of time.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Virtual time at which the process started.
    started: VirtualTime,
    /// What its monotonic clock showed then; every process life has an origin of its own, so that a
    /// reading that outlives a restart means nothing.
    origin: u64,
    /// How much faster than true time it runs, in parts per million.
    drift_ppm: i32,
    /// How far its wall clock is ahead of true time.
    wall_offset_micros: i64,
}

impl Clock {
    /// A clock that shows `origin` at `started` and drifts from there.
    #[must_use]
    pub const fn new(started: VirtualTime, origin: u64, drift_ppm: i32, wall_offset_micros: i64) -> Self {
        Self { started, origin, drift_ppm, wall_offset_micros }
    }

    /// What the clock shows at `time`.
    #[must_use]
    pub fn now(&self, time: VirtualTime) -> Now {
        let elapsed = time.saturating_sub(self.started);
        let local = i128::from(elapsed) + scale(elapsed, i64::from(self.drift_ppm), MILLION);
        let true_micros = i128::from(WALL_ORIGIN_MICROS) + i128::from(time / 1000);
        let wall = (true_micros + i128::from(self.wall_offset_micros)).max(0);
        Now { instant: Instant(self.origin.saturating_add(local as u64)), wall: WallTime(wall as u64) }
    }

    /// The first moment at which the clock shows `instant` or later; `None` for a moment that never
    /// comes.
    #[must_use]
    pub fn when(&self, instant: Instant) -> Option<VirtualTime> {
        if instant == Instant::NEVER {
            return None;
        }
        let local = instant.0.saturating_sub(self.origin);
        let elapsed = scale(local, MILLION, MILLION + i64::from(self.drift_ppm));
        let mut time = self.started.saturating_add(u64::try_from(elapsed).unwrap_or(u64::MAX));
        while self.now(time).instant < instant {
            time = time.checked_add(1)?;
        }
        Some(time)
    }

    /// Moves the wall clock by `micros`.
    pub const fn jump(&mut self, micros: i64) {
        self.wall_offset_micros = self.wall_offset_micros.saturating_add(micros);
    }

    /// Sets how far the wall clock is ahead of true time.
    pub const fn set_wall_offset(&mut self, micros: i64) {
        self.wall_offset_micros = micros;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_is_the_inverse_of_now() {
        for drift in [-10_000, -3, 0, 7, 10_000] {
            let clock = Clock::new(1_000, 5_000_000, drift, -40);
            for local in [5_000_000_u64, 5_000_001, 5_012_345, 9_999_999_999] {
                let at = clock.when(Instant(local)).unwrap();
                assert!(clock.now(at).instant >= Instant(local));
                assert!(at == 1_000 || clock.now(at - 1).instant < Instant(local));
            }
        }
        assert_eq!(Clock::new(0, 0, 0, 0).when(Instant::NEVER), None);
    }

    #[test]
    fn drift_and_jumps_move_the_right_clock() {
        let mut clock = Clock::new(0, 0, 10_000, 0);
        let before = clock.now(1_000_000_000);
        assert_eq!(before.instant, Instant(1_010_000_000));
        clock.jump(-500);
        assert_eq!(clock.now(1_000_000_000).instant, before.instant);
        assert_eq!(clock.now(1_000_000_000).wall.0, before.wall.0 - 500);
    }
}
