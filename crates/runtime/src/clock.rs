//! The two clocks of a process.

use std::time::{Duration, Instant as SystemInstant, SystemTime, UNIX_EPOCH};

use syros_types::{Instant, Now, WallTime};

/// Tells the time in the core's units. Monotonic time counts from the creation of the clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: SystemInstant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: SystemInstant::now() }
    }

    /// The time. Two reads of the system's clocks, no system call where the vDSO serves them.
    pub(crate) fn now(&self) -> Now {
        // Saturates after 584 years.
        let nanos = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let micros = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
        Now { instant: Instant(nanos), wall: WallTime(micros) }
    }
}
