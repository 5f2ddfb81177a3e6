//! When keys and fields are gone, and the removal of what is due.

use super::{DUE_TOLD_MAX, Keyspace, REMOVAL_INTERVAL, moment};
use crate::entry::{Entry, earlier, is_due};
use core::num::NonZeroU64;
use std::collections::BTreeSet;
use syros_commands::access::{Expiry, KeyEvent, KeysMut as _};
use syros_types::WallTime;
use syros_values::Moments;

impl Keyspace {
    /// Number of keys that are due. Takes time proportional to those that have become due since it was asked last.
    pub(super) fn due_len(&self) -> usize {
        if !self.has_due {
            return 0;
        }
        let (bound, counted) = self.counted.get();
        let (from, to) = ((bound, Box::default()), self.first_not_due());
        let next_bound = to.0;
        // Log time does not go back, so the bound does not, either.
        let due = counted + self.expiries.range(from..to).count();
        self.counted.set((next_bound, due));
        due
    }

    /// An expiry has gone. It was counted if it is below the bound.
    fn uncount(&self, expiry: NonZeroU64) {
        let (bound, counted) = self.counted.get();
        self.counted.set((bound, counted - usize::from(expiry < bound)));
    }

    /// Where the keys that are not due begin among the expiries.
    pub(super) fn first_not_due(&self) -> (NonZeroU64, Box<[u8]>) {
        (NonZeroU64::MIN.saturating_add(self.time.as_millis()), Box::default())
    }

    pub(super) fn is_due(&self, entry: &Entry) -> bool {
        is_due(entry.gone(), self.time)
    }

    /// Notes when a key, or a field of it, is gone.
    #[inline]
    pub(super) fn index_moments(&mut self, key: &[u8], old: Moments, new: Moments) {
        self.index_expiry(key, old.gone, new.gone);
        if old.first != new.first {
            self.index_first_field(key, old.first, new.first);
        }
    }

    /// Notes when the first field of a key is gone.
    fn index_first_field(&mut self, key: &[u8], old: Expiry, new: Expiry) {
        if let Some(old) = old {
            self.field_expiries.remove(&(old, key.into()));
            self.content_bytes -= key.len();
        }
        if let Some(new) = new {
            self.field_expiries.insert((new, key.into()));
            self.content_bytes += key.len();
            self.has_due_fields |= is_due(Some(new), self.time);
        }
    }

    pub(super) fn index_expiry(&mut self, key: &[u8], old: Expiry, new: Expiry) {
        if old == new {
            return;
        }
        let mut owned: Option<Box<[u8]>> = None;
        if let Some(old) = old {
            let probe = (old, key.into());
            self.expiries.remove(&probe);
            self.uncount(old);
            self.content_bytes -= key.len();
            owned = Some(probe.1);
        }
        if let Some(new) = new {
            let (bound, counted) = self.counted.get();
            self.counted.set((bound, counted + usize::from(new < bound)));
            self.expiries.insert((new, owned.unwrap_or_else(|| key.into())));
            self.content_bytes += key.len();
        }
    }

    /// How many keys have an expiry that is not due.
    pub(crate) fn expiring_len(&self) -> usize {
        self.expiries.len() - self.due_len()
    }

    pub(crate) const fn expired(&self) -> u64 {
        self.expired
    }

    /// The first expiry that is not due.
    pub(crate) fn first_expiry(&self) -> Expiry {
        self.expiries.range(self.first_not_due()..).next().map(|(expiry, _)| *expiry)
    }

    /// When the first field of any key is gone; the next millisecond if some are due and in memory: which one is the first
    /// of the others nobody knows.
    pub(crate) fn first_field_expiry(&self) -> Expiry {
        let next = NonZeroU64::MIN.saturating_add(self.time.as_millis());
        self.field_expiries.first().map(|(expiry, _)| (*expiry).max(next))
    }

    /// When log time should move on next: when a key or a field becomes due, or soon if records of due keys, or due fields,
    /// are left.
    pub(crate) fn next_advance(&self) -> Option<WallTime> {
        if !self.has_due && !self.has_due_fields {
            // The usual case needs no key to compare with.
            let first = |of: &BTreeSet<(NonZeroU64, Box<[u8]>)>| of.first().map(|(expiry, _)| *expiry);
            return earlier(first(&self.expiries), first(&self.field_expiries)).map(moment);
        }
        let soon = WallTime((self.time.0 / REMOVAL_INTERVAL + 1).saturating_mul(REMOVAL_INTERVAL));
        let fields = self.field_expiries.range(self.first_not_due()..).next().map(|(expiry, _)| *expiry);
        Some(earlier(self.first_expiry(), fields).map_or(soon, |expiry| moment(expiry).min(soon)))
    }

    /// Moves log time on to `time`, and removes as many records of due keys as the pace allows. `updates` counts the
    /// operations that are executed at this time.
    pub(crate) fn advance(&mut self, time: WallTime, updates: impl FnOnce() -> usize) {
        let before = self.set_time(time);
        if !self.has_due && !self.has_due_fields {
            return;
        }
        let mut left = self.pace.records(before, self.time, updates());
        while left > 0 && self.has_due {
            let Some((expiry, key)) = self.expiries.pop_first() else { return };
            self.uncount(expiry);
            self.content_bytes -= key.len();
            self.expired += 1;
            self.notify(KeyEvent::Expired, &key);
            self.preserve_removed(&key);
            left -= 1;
            if let Some((position, _, entry)) = self.entries.swap_remove_full(&*key) {
                self.remove_clock(position);
                self.content_bytes -= key.len() + entry.value.memory_bytes();
                self.index_first_field(&key, entry.moments().first, None);
                // At the beginning of time no field has expired: all of them have to be given back.
                left = left.saturating_sub((entry.value.element_bytes(0) / self.pace.bytes_each) as u64);
                self.garbage.add(entry.value);
            }
            self.look_for_due();
        }
        // No key is due any more: a hash with a field that is due has others.
        while left > 0 && self.has_due_fields {
            left -= self.remove_due_fields(left).min(left);
            self.look_for_due();
        }
    }

    /// Removes fields that are due from the hash whose first field is due first, at most so many. How many, and one more.
    fn remove_due_fields(&mut self, most: u64) -> u64 {
        let Some((first, key)) = self.field_expiries.first().cloned() else { return 1 };
        let Some((position, _, entry)) = self.entries.get_full_mut(&*key) else {
            self.index_first_field(&key, Some(first), None);
            return 1;
        };
        if let Some(capture) = &mut self.capture {
            capture.preserve(position, &key, entry);
        }
        let (before, old) = (entry.value.memory_bytes(), entry.moments());
        let removed = entry.value.drop_due(self.time.as_millis(), most);
        self.content_bytes = self.content_bytes - before + entry.value.memory_bytes();
        let moments = entry.moments();
        self.index_moments(&key, old, moments);
        removed + 1
    }

    /// Moves log time on to `time` and removes nothing. Log time before.
    pub(crate) fn set_time(&mut self, time: WallTime) -> WallTime {
        let before = self.time;
        self.time = before.max(time);
        self.look_for_due();
        let is_due = self.has_due || self.has_due_fields;
        if is_due && before.as_millis() < self.time.as_millis() && self.events.is_on() {
            self.tell_due(before);
        }
        before
    }

    pub(super) fn look_for_due(&mut self) {
        let is_first_due = |of: &BTreeSet<(NonZeroU64, Box<[u8]>)>| {
            of.first().is_some_and(|(expiry, _)| is_due(Some(*expiry), self.time))
        };
        (self.has_due, self.has_due_fields) =
            (is_first_due(&self.expiries), is_first_due(&self.field_expiries));
    }

    /// Removes the record of this key if it is due: the key is about to be added anew.
    pub(super) fn remove_due(&mut self, key: &[u8]) {
        if self.is_due_record(key) {
            self.discard(key);
            self.expired += 1;
            self.notify(KeyEvent::Expired, key);
        }
    }

    /// Tells of keys that have become due since this log time, and of hashes with fields that are due and in memory, because
    /// further ones may have become so: that they have changed, long before their records go; or that any key may have, if
    /// they are many.
    fn tell_due(&mut self, before: WallTime) {
        let from = (NonZeroU64::MIN.saturating_add(before.as_millis()), Box::default());
        let due = self.expiries.range(from..self.first_not_due());
        let due = due.chain(self.field_expiries.range(..self.first_not_due()));
        let due: Vec<Box<[u8]>> = due.take(DUE_TOLD_MAX + 1).map(|(_, key)| key.clone()).collect();
        if due.len() > DUE_TOLD_MAX {
            self.notify(KeyEvent::Flushed, b"");
        } else {
            due.iter().for_each(|key| self.notify(KeyEvent::Changed, key));
        }
    }

    /// True if there is a record of this key, and it is due.
    fn is_due_record(&self, key: &[u8]) -> bool {
        self.has_due && self.entries.get(key).is_some_and(|entry| self.is_due(entry))
    }
}
