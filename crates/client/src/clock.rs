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
        // Saturates after 584 years.
        let nanos = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let micros = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
        Now { instant: Instant(nanos), wall: WallTime(micros) }
    }
}
