//! Whether the operations of this process's clients can succeed at all: whether a majority of the replicas works.
//!
//! Nothing here opens a socket or reads a clock. What is known comes from three sides: from the replica of the process,
//! which hears its leader or its followers; from the connections; and from the answers that operations get, which are
//! proof, whatever the others say.

use std::time::Duration;

use syros_types::Instant;

/// How often a process looks. A fraction of any quorum timeout.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// What is known of a majority.
#[derive(Debug)]
pub(super) struct Availability {
    timeout: Duration,
    check_at: Instant,
    /// When an operation was answered last.
    alive: Instant,
    /// When there was a connection to another replica last, as far as somebody looked.
    connected: Instant,
    was_connected: bool,
    is_cut_off: bool,
}

impl Availability {
    /// Nothing speaks against a majority until `timeout` has passed without any, from `now` on.
    pub(super) const fn new(timeout: Duration, now: Instant) -> Self {
        Self { timeout, check_at: now, alive: now, connected: now, was_connected: false, is_cut_off: false }
    }

    /// When to look next.
    pub(super) const fn deadline(&self) -> Instant {
        // As long as all is well, replica or clients wake the process often enough.
        if self.is_cut_off { self.check_at } else { Instant::NEVER }
    }

    /// True if it is time to look.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now >= self.check_at
    }

    /// No majority can be reached.
    pub(super) const fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// An operation has been answered.
    pub(super) const fn on_answer(&mut self, now: Instant) {
        self.alive = now;
    }

    /// Looks. `silent`: for how long the replica has known of no majority, if it is one that would know;
    /// `is_connected`: there are other replicas that can be asked, or none are needed. Returns what has changed: whether
    /// a majority can be reached.
    pub(super) fn update(
        &mut self,
        now: Instant,
        silent: Option<Duration>,
        is_connected: bool,
    ) -> Option<bool> {
        self.check_at = now.after(CHECK_INTERVAL);
        if std::mem::replace(&mut self.was_connected, is_connected) || is_connected {
            // Between two looks of an idle process much time may pass.
            self.connected = now;
        }
        let answered = now.since(self.alive);
        let silent = match silent {
            // Operations that this process sent elsewhere may succeed though its replica is out of things.
            Some(silent) => silent.min(answered),
            None => answered.min(now.since(self.connected)),
        };
        let is_cut_off = silent >= self.timeout;
        (is_cut_off != std::mem::replace(&mut self.is_cut_off, is_cut_off)).then_some(!is_cut_off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_replica_that_hears_nobody_is_cut_off_until_it_does() {
        let mut known = Availability::new(seconds(2), Instant(0));
        assert_eq!(known.update(Instant(SECOND), Some(seconds(1)), true), None);
        assert!(!known.is_due(Instant(SECOND + 1)) && known.is_due(Instant(2 * SECOND)));
        assert_eq!(known.update(Instant(3 * SECOND), Some(seconds(2)), true), Some(false));
        assert!(known.is_cut_off() && known.deadline() < Instant::NEVER);
        assert_eq!(known.update(Instant(4 * SECOND), Some(seconds(3)), false), None);
        assert_eq!(known.update(Instant(5 * SECOND), Some(Duration::ZERO), false), Some(true));
        assert_eq!((known.is_cut_off(), known.deadline()), (false, Instant::NEVER));
    }

    #[test]
    fn the_first_moments_do_not_count_as_silence() {
        let mut known = Availability::new(seconds(2), Instant(100 * SECOND));
        assert_eq!(known.update(Instant(101 * SECOND), None, false), None);
        assert_eq!(known.update(Instant(102 * SECOND), None, false), Some(false));
    }

    #[test]
    fn an_answer_proves_that_a_majority_works() {
        let mut known = Availability::new(seconds(2), Instant(0));
        known.on_answer(Instant(9 * SECOND));
        assert_eq!(known.update(Instant(10 * SECOND), Some(seconds(8)), true), None);
        assert_eq!(known.update(Instant(11 * SECOND), Some(seconds(9)), true), Some(false));
    }

    #[test]
    fn without_a_replica_that_would_know_connections_tell() {
        let mut known = Availability::new(seconds(2), Instant(0));
        assert_eq!(known.update(Instant(SECOND), None, false), None);
        assert_eq!(known.update(Instant(5 * SECOND), None, false), Some(false));
        assert_eq!(known.update(Instant(6 * SECOND), None, true), Some(true));
        assert_eq!(known.update(Instant(7 * SECOND), None, false), None);
        assert_eq!(known.update(Instant(9 * SECOND), None, false), Some(false));
    }
}
