//! What a replica does at a certain moment, and when.

use syros_types::Instant;

/// What is done when a moment has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Leader: sends a sign of life.
    Heartbeat,
    /// Leader: asks whether it should lead on, and which members should be active.
    Review,
    /// Leader: orders what is in the durability log.
    Order,
    /// Leader: looks for idle sessions.
    Sessions,
    /// Follower: suspects its leader.
    Suspect,
    /// Follower: asks for bodies that parked Prepares wait for.
    FetchBodies,
    /// Follower: hands old updates to the leader.
    Forward,
    /// Between views: sends again what the view change waits for.
    ResendViewChange,
    /// Between views: the view has not begun in time.
    ViewChangeTimeout,
    /// New leader: does not wait any longer for more members to tell their clocks.
    AwaitClocks,
    /// Without memory: asks again to be let into a view.
    Rejoin,
    /// Asks (again) for a part of the snapshot that is being received.
    FetchSnapshot,
}

impl Timer {
    const COUNT: usize = Self::ALL.len();

    const ALL: [Self; 12] = [
        Self::Heartbeat,
        Self::Review,
        Self::Order,
        Self::Sessions,
        Self::Suspect,
        Self::FetchBodies,
        Self::Forward,
        Self::ResendViewChange,
        Self::ViewChangeTimeout,
        Self::AwaitClocks,
        Self::Rejoin,
        Self::FetchSnapshot,
    ];
}

/// When each timer runs out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// By timer; one that is stopped never runs out.
    deadlines: [Instant; Timer::COUNT],
}

impl Timers {
    /// All are stopped.
    pub(super) const fn stopped() -> Self {
        Self { deadlines: [Instant::NEVER; Timer::COUNT] }
    }

    /// These, with one more.
    pub(super) const fn with(mut self, timer: Timer, at: Instant) -> Self {
        self.set(timer, at);
        self
    }

    pub(super) const fn set(&mut self, timer: Timer, at: Instant) {
        self.deadlines[timer as usize] = at;
    }

    /// Sets it unless it runs out before that.
    pub(super) fn set_earlier(&mut self, timer: Timer, at: Instant) {
        self.set(timer, self.get(timer).min(at));
    }

    pub(super) const fn stop(&mut self, timer: Timer) {
        self.set(timer, Instant::NEVER);
    }

    /// When it runs out; never if it is stopped.
    pub(super) const fn get(&self, timer: Timer) -> Instant {
        self.deadlines[timer as usize]
    }

    /// True if it has run out.
    pub(super) fn is_due(&self, timer: Timer, now: Instant) -> bool {
        now >= self.get(timer)
    }

    /// True if it runs, and has not run out.
    pub(super) fn is_running(&self, timer: Timer, now: Instant) -> bool {
        now < self.get(timer) && self.get(timer) != Instant::NEVER
    }

    /// When the next one runs out.
    pub(super) fn next(&self) -> Instant {
        self.deadlines.iter().copied().fold(Instant::NEVER, Instant::min)
    }

    /// What a model checker sees.
    #[cfg(feature = "model")]
    pub(super) fn fingerprint(&self, clock: crate::fingerprint::Clock, hasher: &mut impl core::hash::Hasher) {
        for timer in Timer::ALL {
            match timer {
                // No session is idle for so long in a model.
                Timer::Sessions => {}
                Timer::Heartbeat
                | Timer::Review
                | Timer::Order
                | Timer::Suspect
                | Timer::FetchBodies
                | Timer::Forward
                | Timer::ResendViewChange
                | Timer::ViewChangeTimeout
                | Timer::AwaitClocks
                | Timer::Rejoin
                | Timer::FetchSnapshot => clock.deadline(self.get(timer), hasher),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_timer_has_its_place() {
        let mut timers = Timers::stopped();
        assert_eq!(timers.next(), Instant::NEVER);
        for (place, timer) in Timer::ALL.into_iter().enumerate() {
            assert_eq!(timer as usize, place);
            let at = Instant(1_000 - place as u64);
            timers.set(timer, at);
            assert_eq!((timers.next(), timers.get(timer)), (at, at));
            assert!(timers.is_running(timer, Instant(at.0 - 1)) && !timers.is_running(timer, at));
            assert!(timers.is_due(timer, at) && !timers.is_due(timer, Instant(at.0 - 1)));
        }
        for timer in Timer::ALL {
            timers.stop(timer);
            assert!(!timers.is_running(timer, Instant(0)) && !timers.is_due(timer, Instant(5_000)));
        }
        assert_eq!(timers.next(), Instant::NEVER);
    }
}
