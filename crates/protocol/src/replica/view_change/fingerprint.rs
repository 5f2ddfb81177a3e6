//! What a model checker sees of a view change.

use super::{ViewChange, Want};
use crate::fingerprint::Clock;
use core::hash::{Hash, Hasher};
use core::time::Duration;

impl ViewChange {
    pub(in crate::replica) fn fingerprint(&self, clock: Clock, hasher: &mut impl Hasher) {
        let Self { resend_change_at, carrying, timeout, changes, chosen, source, transfer } = self;
        clock.deadline(*resend_change_at, hasher);
        (carrying, timeout, changes, chosen, source, transfer).hash(hasher);
    }
}

impl Want {
    pub(in crate::replica) fn fingerprint(&self, clock: Clock, kept: Duration, hasher: &mut impl Hasher) {
        let Self { view, moved, at } = self;
        (view, moved).hash(hasher);
        // It counts up to and including the last moment.
        clock.past(*at, kept + Duration::from_nanos(1), hasher);
    }
}
