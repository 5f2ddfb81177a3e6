//! Fingerprints of states, for a model checker: two states with the same fingerprint behave alike.

use core::hash::{Hash, Hasher};
use syros_types::Instant;

/// How moments enter a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moments {
    /// As the time still to pass, nothing if it has passed: for states whose messages carry no clock
    /// that comes back.
    Remaining,
    /// As they are, and the present moment too.
    Absolute,
}

/// Takes moments in as [`Moments`] says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) now: Instant,
    pub(crate) moments: Moments,
}

impl Clock {
    /// Something that will happen, or stop, at this moment.
    pub(crate) fn deadline(self, moment: Instant, hasher: &mut impl Hasher) {
        match self.moments {
            Moments::Remaining if moment == Instant::NEVER => u64::MAX.hash(hasher),
            Moments::Remaining => moment.0.saturating_sub(self.now.0).hash(hasher),
            Moments::Absolute => moment.hash(hasher),
        }
    }

    /// Something that happened and matters for as long as `lasting`.
    pub(crate) fn past(self, moment: Instant, lasting: core::time::Duration, hasher: &mut impl Hasher) {
        self.deadline(moment.after(lasting), hasher);
    }

    /// Something that happened and is compared with clocks in messages.
    pub(crate) fn exact(self, moment: Instant, hasher: &mut impl Hasher) {
        match self.moments {
            Moments::Remaining => self.now.0.wrapping_sub(moment.0).hash(hasher),
            Moments::Absolute => moment.hash(hasher),
        }
    }
}
