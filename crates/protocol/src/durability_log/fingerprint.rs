//! What a model checker sees of a durability log.

use super::{DurabilityLog, KeyIndex, Pending, Slot};
use crate::fingerprint::Clock;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::time::Duration;

impl KeyIndex {
    pub(crate) fn fingerprint(&self, hasher: &mut impl Hasher) {
        let Self { keys, all, total } = self;
        let pending = |Pending { count, shared, newest }: &Pending| (*count, *shared, *newest);
        let mut sorted: Vec<_> = keys.iter().map(|(key, counted)| (*key, pending(counted))).collect();
        sorted.sort_unstable();
        (sorted, pending(all), pending(total)).hash(hasher);
    }
}

impl DurabilityLog {
    /// `kept`: how long it matters when an update arrived.
    pub(crate) fn fingerprint(&self, clock: Clock, kept: Duration, hasher: &mut impl Hasher) {
        // Derived from the slots: `ids`, `bytes`, `growth`, `unordered`. Numbers are counted from the first slot.
        let Self { slots, length_max: _, next_unordered, unordered: _, bytes: _, growth: _, ids: _, keys } =
            self;
        next_unordered.saturating_sub(slots.first()).hash(hasher);
        slots.slots().hash(hasher);
        for slot in slots.iter_slots() {
            if let Some(Slot { update, arrived, ordered, recipients }) = slot {
                (update, ordered, recipients).hash(hasher);
                clock.past(*arrived, kept, hasher);
            } else {
                u64::MAX.hash(hasher);
            }
        }
        keys.fingerprint(hasher);
    }
}
