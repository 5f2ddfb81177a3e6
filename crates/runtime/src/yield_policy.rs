//! When the event loop gives way to other threads of its machine before it does what can wait.
//!
//! A turn that has handed records to the log wakes that one's thread; and where several replicas share a machine, each of
//! them gets the same updates at the same time. On busy cores they would all wait until the turn has ended: what can wait
//! would come before what cannot. So the loop yields in between. That also lets more requests come before the next turn,
//! which handles them together.
//!
//! A yield lasts as long as those threads want to run, which is short, since all of them wait for something before long. A
//! thread that only computes, of some other program, takes its whole slice instead, some milliseconds. Where that happens
//! more than rarely, the loop stops to yield for a while.

use core::time::Duration;

use syros_types::Instant;

/// A yield that lasts as long has been taken by a thread that only computes. Slices are about 3 ms on Linux.
const LONG: Duration = Duration::from_millis(2);

/// Of any time, no more than one part in so many goes to long yields.
const SHARE: u32 = 20;

/// Long yields within this time are let pass, if there were none for long.
const CREDIT: Duration = Duration::from_millis(100);

/// What a turn has done before it comes to what can wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    /// It has handed records to the log's thread.
    pub(crate) has_logged: bool,
    /// It has sent clients something.
    pub(crate) has_answered: bool,
}

impl Turn {
    /// True if others should run first: the log's thread, and other replicas that clients have sent the same updates to.
    /// Not if clients run that have been answered: they would be back with less than they send when they are later.
    pub(crate) const fn should_yield(self) -> bool {
        self.has_logged && !self.has_answered
    }
}

/// Decides whether to yield.
#[derive(Debug, Default)]
pub(crate) struct YieldPolicy {
    /// When the long yields so far are no more than their share.
    paid_at: Instant,
}

impl YieldPolicy {
    /// True if it is time to yield.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.paid_at <= now.after(CREDIT)
    }

    /// Takes note of a yield that began at `now`.
    pub(crate) fn record(&mut self, now: Instant, lasted: Duration) {
        if lasted >= LONG {
            self.paid_at = self.paid_at.max(now).after(lasted * SHARE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of 200 us for 10 s, in which every `long_every`th yield is a long one: the time spent yielding.
    fn yielded(lasts: Duration, long_every: u32) -> Duration {
        let (mut yield_policy, mut now, mut total, mut yields) =
            (YieldPolicy::default(), Instant(0), Duration::ZERO, 0_u32);
        while now < Instant(0).after(Duration::from_secs(10)) {
            now = now.after(Duration::from_micros(200));
            if yield_policy.is_due(now) {
                yields += 1;
                let lasted = if yields % long_every == 0 { lasts } else { Duration::ZERO };
                yield_policy.record(now, lasted);
                now = now.after(lasted);
                total += lasted;
            }
        }
        total
    }

    #[test]
    fn those_that_compute_get_no_more_than_their_share() {
        for long_every in [1, 3] {
            let total = yielded(Duration::from_millis(3), long_every).as_millis();
            assert!((450..=550).contains(&total), "{total} ms of 10 s");
        }
    }

    #[test]
    fn few_long_yields_and_any_short_ones_change_nothing() {
        // In 10 s there is time for so many.
        assert_eq!(yielded(Duration::from_micros(1_900), 1).as_micros() / 1_900, 10_000_000 / 2_100 + 1);
        assert_eq!(yielded(Duration::from_millis(3), 400).as_millis() / 3, 10_000 / 83);
    }
}
