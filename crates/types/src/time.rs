//! Time as data. The core never asks for the time: whoever drives it says what time it is.

use core::time::Duration;

/// Monotonic time in nanoseconds since an origin that only one process knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// This moment plus `duration`, saturating.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Time since `earlier`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in microseconds, saturating.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Wall-clock time in microseconds since the Unix epoch. May jump; no safety property uses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

impl WallTime {
    /// This moment plus `duration`, saturating.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// Milliseconds since the Unix epoch, as Redis counts expiry.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }
}

/// What time it is, as told to a state machine with every event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Now {
    /// Monotonic time: timeouts and leases.
    pub instant: Instant,
    /// Wall-clock time: timestamps and expiry.
    pub wall: WallTime,
}

/// Timestamp of an update (DESIGN "timestamps"): unique, and increasing within a session. Orders
/// updates of one key when a view change recovers the durability log; correctness never needs the
/// clocks behind it to agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Hybrid logical clock, in microseconds since the Unix epoch.
    pub micros: u64,
    /// Breaks ties between sessions.
    pub session: u64,
}
