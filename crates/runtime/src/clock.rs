//! The two clocks of a process.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use syros_types::{Instant, Now, WallTime};

/// Tells the time in the core's units. Monotonic time counts from the creation of the clock, and goes on
/// while the machine is suspended: a leader that wakes must know that its lease has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Duration,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self { origin: since_boot() }
    }

    /// The time. Two reads of the system's clocks, no system call where the vDSO serves them.
    pub(crate) fn now(&self) -> Now {
        // Saturates after 584 years.
        let nanos = u64::try_from(since_boot().saturating_sub(self.origin).as_nanos()).unwrap_or(u64::MAX);
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let micros = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
        Now { instant: Instant(nanos), wall: WallTime(micros) }
    }
}

/// Time since the machine was started, suspensions included. (`std::time::Instant` leaves them out on
/// Linux.)
#[cfg(target_os = "linux")]
fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// Time since this was called first. Whether suspensions count is up to the system.
#[cfg(not(target_os = "linux"))]
fn since_boot() -> Duration {
    static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    ORIGIN.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_and_counts_from_the_start() {
        let clock = Clock::start();
        let first = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        let second = clock.now();
        let passed = second.instant.since(first.instant);
        assert!(first.instant.0 < 1_000_000_000 && passed >= Duration::from_millis(2), "{passed:?}");
        assert!(first.wall.0 > 1_700_000_000_000_000, "microseconds since 1970");
    }
}
