//! The durability log (Skyros 4.1): updates that are accepted and not yet finalized, in order of
//! arrival, with an index by key.

#[cfg(feature = "model")]
mod fingerprint;

use crate::hash::{HashMap, shrink_table};
use crate::message::{BodyHash, Update};
use syros_types::{Footprint, Instant, OperationId, ReplicaSet, Timestamp, Window};

/// How many pending updates touch each key, and the newest of their timestamps.
#[derive(Clone, Debug, Default)]
pub struct KeyIndex {
    keys: HashMap<u64, Pending>,
    /// Pending updates whose footprint is everything.
    all: Pending,
    /// Every pending update.
    total: Pending,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    count: u32,
    /// Those among them that touch other keys too.
    shared: u32,
    /// At least the newest timestamp among the counted; may be that of one already removed, which
    /// can only cause a needless conflict.
    newest: Timestamp,
}

impl Pending {
    fn add(&mut self, timestamp: Timestamp, shared: bool) {
        self.count += 1;
        self.shared += u32::from(shared);
        self.newest = self.newest.max(timestamp);
    }

    /// Returns true when nothing is left.
    fn remove(&mut self, shared: bool) -> bool {
        assert!(self.count > 0, "removed what was never added");
        self.count -= 1;
        self.shared -= u32::from(shared);
        if self.count == 0 {
            *self = Self::default();
        }
        self.count == 0
    }
}

impl KeyIndex {
    /// Counts an update.
    pub fn add(&mut self, footprint: &Footprint, timestamp: Timestamp) {
        let shared = !footprint.is_one_key();
        self.total.add(timestamp, shared);
        match footprint.keys() {
            None => self.all.add(timestamp, shared),
            Some(keys) => {
                for key in keys {
                    self.keys.entry(*key).or_default().add(timestamp, shared);
                }
            }
        }
    }

    /// Forgets an update that was counted.
    pub fn remove(&mut self, footprint: &Footprint) {
        let shared = !footprint.is_one_key();
        self.total.remove(shared);
        match footprint.keys() {
            None => {
                self.all.remove(shared);
            }
            Some(keys) => {
                for key in keys {
                    if self.keys.get_mut(key).is_some_and(|pending| pending.remove(shared)) {
                        self.keys.remove(key);
                    }
                }
                shrink_table(&mut self.keys);
            }
        }
    }

    /// The newest timestamp of the pending updates that overlap `footprint` (or a newer one).
    #[must_use]
    pub fn newest(&self, footprint: &Footprint) -> Option<Timestamp> {
        let Some(keys) = footprint.keys() else {
            return (self.total.count > 0).then_some(self.total.newest);
        };
        if self.total.count == 0 {
            return None;
        }
        let all = (self.all.count > 0).then_some(self.all.newest);
        keys.iter().filter_map(|key| self.keys.get(key).map(|p| p.newest)).chain(all).max()
    }

    /// True if something pending overlaps `footprint`.
    #[must_use]
    pub fn overlaps(&self, footprint: &Footprint) -> bool {
        self.newest(footprint).is_some()
    }

    /// True if something pending touches both a key in `footprint` and another key.
    #[must_use]
    pub fn overlaps_shared(&self, footprint: &Footprint) -> bool {
        if self.total.shared == 0 {
            return false;
        }
        let shared = |key: &u64| self.keys.get(key).is_some_and(|pending| pending.shared > 0);
        self.all.count > 0 || footprint.keys().is_none_or(|keys| keys.iter().any(shared))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.all = Pending::default();
        self.total = Pending::default();
    }
}

#[derive(Clone, Debug)]
struct Slot {
    update: Update,
    arrived: Instant,
    ordered: bool,
    /// To whom its client has sent it, as far as is known.
    recipients: ReplicaSet,
}

/// The durability log of one replica.
///
/// Invariants: an id appears at most once; `unordered` counts the slots not yet ordered; every slot
/// before `next_unordered` is empty or ordered.
#[derive(Clone, Debug)]
pub struct DurabilityLog {
    /// Updates by arrival number.
    slots: Window<Slot>,
    length_max: usize,
    next_unordered: u64,
    unordered: usize,
    bytes: usize,
    /// Bytes by which its updates may make the state grow.
    growth: usize,
    ids: HashMap<OperationId, u64>,
    keys: KeyIndex,
}

impl DurabilityLog {
    /// An empty durability log that takes up to `length_max` updates.
    #[must_use]
    pub fn new(length_max: usize) -> Self {
        Self {
            // An update that stays long keeps the slots of those that came after it: as many again as there may be updates.
            slots: Window::new(0, length_max.saturating_mul(2)),
            length_max,
            next_unordered: 0,
            unordered: 0,
            bytes: 0,
            growth: 0,
            ids: HashMap::default(),
            keys: KeyIndex::default(),
        }
    }

    /// True if it takes no further update.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len() >= self.length_max || self.slots.is_full()
    }

    /// Number of updates.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Number of updates not yet ordered.
    #[must_use]
    pub const fn unordered(&self) -> usize {
        self.unordered
    }

    /// Bytes of the bodies.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes by which its updates may make the state grow.
    #[must_use]
    pub const fn growth(&self) -> usize {
        self.growth
    }

    /// True if an update with this id is in it.
    #[must_use]
    pub fn contains(&self, id: OperationId) -> bool {
        self.ids.contains_key(&id)
    }

    /// True if it holds the update with this id and a body of this hash.
    #[must_use]
    pub fn holds(&self, id: OperationId, body_hash: BodyHash) -> bool {
        self.get(id).is_some_and(|update| update.body_hash == body_hash)
    }

    /// The newest timestamp of the updates that overlap `footprint`.
    #[must_use]
    pub fn newest(&self, footprint: &Footprint) -> Option<Timestamp> {
        self.keys.newest(footprint)
    }

    /// True if some update overlaps `footprint`.
    #[must_use]
    pub fn overlaps(&self, footprint: &Footprint) -> bool {
        self.keys.overlaps(footprint)
    }

    /// True if some update touches both a key in `footprint` and another key.
    #[must_use]
    pub fn overlaps_shared(&self, footprint: &Footprint) -> bool {
        self.keys.overlaps_shared(footprint)
    }

    /// Appends an update that this replica has accepted before it restarted, even if the log is full: a log that was
    /// within its limit then may be above a limit that has been lowered since. All replicas count as having been sent it.
    ///
    /// # Panics
    /// If the update is in the log.
    pub fn restore(&mut self, update: Update, now: Instant) {
        self.index(&update);
        let slot = Slot { update, arrived: now, ordered: false, recipients: ReplicaSet::ALL };
        self.slots.push_granted(slot);
    }

    /// Appends an update that its client has sent to `recipients`.
    ///
    /// # Panics
    /// If the update is in the log, or if the log is full.
    pub fn insert(&mut self, recipients: ReplicaSet, update: Update, now: Instant) {
        self.index(&update);
        self.slots.push(Slot { update, arrived: now, ordered: false, recipients });
    }

    /// Enters the next update into everything but the slots.
    fn index(&mut self, update: &Update) {
        let number = self.slots.end();
        let before = self.ids.insert(update.request.id, number);
        assert!(before.is_none(), "an update enters the durability log once");
        self.keys.add(&update.footprint, update.request.timestamp());
        self.bytes += update.request.body.len();
        self.growth += update.growth;
        self.unordered += 1;
    }

    fn slot_mut(&mut self, id: OperationId) -> Option<&mut Slot> {
        self.slots.get_mut(*self.ids.get(&id)?)
    }

    /// Marks an update as ordered and returns a copy of it; `None` if it is not here.
    pub fn order(&mut self, id: OperationId) -> Option<Update> {
        self.order_if(id, |_| true)
    }

    /// Marks the update with this id and a body of this hash as ordered and returns a copy of it; `None` if it is not here.
    pub fn order_body(&mut self, id: OperationId, body_hash: BodyHash) -> Option<Update> {
        self.order_if(id, |update| update.body_hash == body_hash)
    }

    fn order_if(&mut self, id: OperationId, is_meant: impl FnOnce(&Update) -> bool) -> Option<Update> {
        let slot = self.slot_mut(id).filter(|slot| is_meant(&slot.update))?;
        let newly_ordered = !core::mem::replace(&mut slot.ordered, true);
        let update = slot.update.clone();
        self.unordered -= usize::from(newly_ordered);
        Some(update)
    }

    /// The update with this id.
    #[must_use]
    pub fn get(&self, id: OperationId) -> Option<&Update> {
        self.slots.get(*self.ids.get(&id)?).map(|slot| &slot.update)
    }

    /// The first update, in order of arrival, that is not ordered: marked as ordered and copied, with those who have been
    /// sent it.
    pub fn order_next(&mut self) -> Option<(Update, ReplicaSet)> {
        if self.unordered == 0 {
            return None;
        }
        while let Some(number) = self.slots.next_live(self.next_unordered) {
            self.next_unordered = number + 1;
            let slot = self.slots.get_mut(number)?;
            if !core::mem::replace(&mut slot.ordered, true) {
                self.unordered -= 1;
                return Some((slot.update.clone(), slot.recipients));
            }
        }
        None
    }

    /// Removes an update.
    pub fn remove(&mut self, id: OperationId) -> Option<Update> {
        let number = self.ids.remove(&id)?;
        let slot = self.slots.remove(number)?;
        self.keys.remove(&slot.update.footprint);
        self.bytes -= slot.update.request.body.len();
        self.growth -= slot.update.growth;
        self.unordered -= usize::from(!slot.ordered);
        shrink_table(&mut self.ids);
        Some(slot.update)
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.next_unordered = self.slots.first();
        self.ids.clear();
        self.keys.clear();
        self.unordered = 0;
        self.bytes = 0;
        self.growth = 0;
    }

    /// Every update in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &Update> {
        self.slots.iter_slots().flatten().map(|slot| &slot.update)
    }

    /// Updates that arrived at or before `moment` and are not ordered, in order of arrival.
    pub fn unordered_since(&self, moment: Instant) -> impl Iterator<Item = &Update> {
        let old = self.slots.iter_slots().take_while(move |s| s.is_none_or(|s| s.arrived <= moment));
        old.flatten().filter(|slot| !slot.ordered).map(|slot| &slot.update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Body, Request};
    use alloc::vec::Vec;
    use syros_types::{Class, Description, Footprint, SessionId};

    fn update(sequence: u64, key: u64, micros: u64) -> Update {
        let id = OperationId { session: SessionId(1), sequence };
        let request = Request { id, micros, acked_below: 1, body: Body::from([7; 3]) };
        Update::new(
            request,
            Description { class: Class::Overwrite, footprint: Footprint::One(key), growth: 5 },
        )
    }

    fn id(sequence: u64) -> OperationId {
        OperationId { session: SessionId(1), sequence }
    }

    #[test]
    fn orders_in_arrival_order_once() {
        let mut dlog = DurabilityLog::new(8);
        for n in 1..=4 {
            dlog.insert(ReplicaSet::ALL, update(n, n, n), Instant(n));
        }
        dlog.remove(id(1));
        assert!(dlog.order(id(3)).is_some());
        assert_eq!(dlog.unordered(), 2);
        let mut ordered = Vec::new();
        while let Some((update, _)) = dlog.order_next() {
            ordered.push(update.request.id.sequence);
        }
        assert_eq!(ordered, [2, 4]);
        dlog.insert(ReplicaSet::ALL, update(5, 5, 5), Instant(5));
        assert_eq!(dlog.order_next().map(|(u, _)| u.request.id), Some(id(5)));
        assert_eq!((dlog.len(), dlog.unordered(), dlog.bytes()), (4, 0, 12));
        dlog.clear();
        assert!(dlog.is_empty() && dlog.order_next().is_none() && !dlog.overlaps(&Footprint::All));
    }

    #[test]
    fn an_update_that_stays_keeps_the_slots_behind_it() {
        let mut dlog = DurabilityLog::new(2);
        dlog.insert(ReplicaSet::ALL, update(1, 1, 1), Instant(1));
        for n in 2..=4 {
            assert!(!dlog.is_full());
            dlog.insert(ReplicaSet::ALL, update(n, n, n), Instant(n));
            assert!(dlog.is_full(), "two updates are the most");
            dlog.remove(id(n));
        }
        assert!(dlog.is_full(), "four slots are the most");
        dlog.restore(update(5, 5, 5), Instant(5));
        assert_eq!((dlog.len(), dlog.is_full()), (2, true));
        dlog.remove(id(1));
        assert!(!dlog.is_full());
    }

    #[test]
    fn newest_timestamp_by_key() {
        let mut dlog = DurabilityLog::new(8);
        dlog.insert(ReplicaSet::ALL, update(1, 10, 100), Instant(0));
        dlog.insert(ReplicaSet::ALL, update(2, 10, 50), Instant(0));
        dlog.insert(ReplicaSet::ALL, update(3, 11, 70), Instant(0));
        assert_eq!(dlog.newest(&Footprint::One(10)).map(|t| t.micros), Some(100));
        assert_eq!(dlog.newest(&Footprint::One(12)), None);
        assert_eq!(dlog.newest(&Footprint::All).map(|t| t.micros), Some(100));
        dlog.remove(id(1));
        dlog.remove(id(2));
        assert!(!dlog.overlaps(&Footprint::One(10)));
        assert!(dlog.overlaps(&Footprint::of(Vec::from([10, 11]))));
    }

    #[test]
    fn old_unordered_updates_are_found() {
        let mut dlog = DurabilityLog::new(8);
        for n in 1..=3 {
            dlog.insert(ReplicaSet::ALL, update(n, n, n), Instant(n * 10));
        }
        dlog.order(id(1));
        let old: Vec<u64> = dlog.unordered_since(Instant(20)).map(|u| u.request.id.sequence).collect();
        assert_eq!(old, [2]);
    }
}
