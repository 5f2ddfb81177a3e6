//! Which keys may go when memory is short, and how keys are used.

use super::{EXPIRY_BYTES, Keyspace};
use crate::entry::ENTRY_BYTES;
use crate::uses::UseClocks;
use core::num::NonZeroU64;
use syros_commands::access::is_hidden;
use syros_types::{EvictionOrder, EvictionSettings, Prng};

impl Keyspace {
    /// From now on this policy counts. Uses are known from the moment on from which it asks for them.
    pub(crate) fn set_eviction(&mut self, settings: EvictionSettings) {
        self.eviction = settings;
        match &mut self.clocks {
            clocks if !settings.policy.needs_uses() => *clocks = None,
            Some(clocks) => clocks.set(settings),
            clocks => {
                *clocks = Some(Box::new(UseClocks::new(settings, self.entries.len(), self.time.as_millis())));
            }
        }
    }

    /// A key has been added at the end.
    #[inline]
    pub(super) fn add_clock(&mut self) {
        if let Some(clocks) = &mut self.clocks {
            clocks.push(self.time.as_millis());
        }
    }

    /// The key at this position has been removed, and the last one has moved there.
    #[inline]
    pub(super) fn remove_clock(&mut self, position: usize) {
        if let Some(clocks) = &mut self.clocks {
            clocks.swap_remove(position);
        }
    }

    /// A key is used, if that is asked for.
    pub(crate) fn touch(&self, key: &[u8], now_ms: u64) {
        if let Some(clocks) = &self.clocks
            && let Some(position) = self.entries.get_index_of(key)
        {
            clocks.touch(position, now_ms);
        }
    }

    /// Keys that have gone because memory was short.
    pub(crate) const fn evicted(&self) -> u64 {
        self.evicted
    }

    /// True if the key at a position may go when memory is short: it exists, and clients know it.
    pub(crate) fn may_go(&self, position: usize, must_expire: bool) -> bool {
        let found = self.at(position).filter(|(_, entry)| !must_expire || entry.expiry.is_some());
        found.is_some_and(|(key, entry)| !self.is_due(entry) && !is_hidden(key))
    }

    /// The name of the key at a position, and how many bytes are given back with it, about.
    pub(crate) fn removal_of(&self, position: usize) -> Option<(&[u8], usize)> {
        let (key, entry) = self.at(position)?;
        let expiry = if entry.gone().is_some() { EXPIRY_BYTES + key.len() } else { 0 };
        Some((key, ENTRY_BYTES + key.len() + entry.value.memory_bytes() + expiry))
    }

    /// The higher, the sooner the key at a position goes.
    pub(crate) fn eviction_score(&self, position: usize, order: EvictionOrder) -> u64 {
        let now_ms = self.time.as_millis();
        match (&self.clocks, order) {
            (Some(clocks), EvictionOrder::LastUse) => clocks.idle_seconds(position, now_ms),
            (Some(clocks), EvictionOrder::Frequency) => u64::from(u8::MAX - clocks.count(position, now_ms)),
            _ => 0,
        }
    }

    /// The keys with an expiry that is not due, the earliest first, with their positions.
    pub(crate) fn next_to_expire(&self) -> impl Iterator<Item = (NonZeroU64, usize)> {
        self.lasting_from(self.first_not_due())
    }

    /// Those of them that expire at this moment or later.
    fn lasting_from(&self, from: (NonZeroU64, Box<[u8]>)) -> impl Iterator<Item = (NonZeroU64, usize)> {
        let found = self.expiries.range(from..).filter_map(|(expiry, key)| {
            let position = self.entries.get_index_of(&**key)?;
            Some((*expiry, position))
        });
        found.filter(|(_, position)| self.may_go(*position, true))
    }

    /// The position of a key with an expiry that is not due, drawn by a moment between the first and the last expiry.
    pub(crate) fn draw_expiring(&self, prng: &mut Prng) -> Option<usize> {
        let first = self.first_not_due();
        let (last, _) = self.expiries.last()?;
        let span = last.get().checked_sub(first.0.get())? + 1;
        let moment = (first.0.saturating_add(prng.below(span)), Box::default());
        self.lasting_from(moment)
            .next()
            .or_else(|| self.next_to_expire().next())
            .map(|(_, position)| position)
    }
}
