//! What a model checker sees of a view change.

use super::ViewChange;
use crate::fingerprint::Clock;
use core::hash::{Hash, Hasher};

impl ViewChange {
    pub(in crate::replica) fn fingerprint(&self, clock: Clock, hasher: &mut impl Hasher) {
        let Self { resend_change_at, carrying, timeout, changes, chosen, source, transfer } = self;
        clock.deadline(*resend_change_at, hasher);
        (carrying, timeout, changes, chosen, source, transfer).hash(hasher);
    }
}
