//! The two clocks of a process.

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};
use syros_types::{Instant, Now, WallTime};

/// Tells the time in the protocol's units. Monotonic time counts from the creation of the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    pub(crate) fn now(&self) -> Now {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let micros = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
        Now { instant: self.instant(), wall: WallTime(micros) }
    }

    /// The time, from one clock and what both said a short while ago: asking takes as long as much else that is done for
    /// an operation.
    pub(crate) fn now_since(&self, then: Now) -> Now {
        let instant = self.instant();
        let wall = WallTime(then.wall.0.saturating_add(instant.since(then.instant).as_micros() as u64));
        Now { instant, wall }
    }

    fn instant(&self) -> Instant {
        // Saturates after 584 years.
        Instant(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
