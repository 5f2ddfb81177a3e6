//! When, and how often, keys are used: known as long as a policy of eviction asks for it.
//!
//! Each key has a clock of 32 bits: the second of its last use in 24 of them, and in the others the logarithm of how often it is
//! used, as Redis has it. Clocks lie beside the table of keys, at the positions of the keys, so that an engine whose policy
//! does not ask for them neither pays nor moves anything.
//!
//! Clocks are this engine's own: no answer to an update, no digest and no snapshot depends on them.

use core::cell::Cell;
use syros_types::{EvictionSettings, mix};

/// Bits of a clock that count uses.
const COUNT_BITS: u32 = 8;

/// Seconds are known up to a multiple of this.
const SECONDS: u64 = 1 << (u32::BITS - COUNT_BITS);

/// What a new key counts for, so that it has time to be used before it goes.
const COUNT_FIRST: u8 = 5;

const MINUTE: u64 = 60;

/// The clock of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UseClock(u32);

impl UseClock {
    const fn new(now_ms: u64, count: u8) -> Self {
        Self(((now_ms / 1000 % SECONDS) as u32) << COUNT_BITS | count as u32)
    }

    /// The key has not been used for so many seconds.
    const fn idle_seconds(self, now_ms: u64) -> u64 {
        let last = (self.0 >> COUNT_BITS) as u64;
        (now_ms / 1000 % SECONDS + SECONDS - last) % SECONDS
    }

    /// The logarithm of how often the key is used, less what it has lost since.
    fn count(self, now_ms: u64, settings: &EvictionSettings) -> u8 {
        let minutes = self.idle_seconds(now_ms) / MINUTE;
        let lost = minutes.checked_div(u64::from(settings.lfu_decay_minutes)).unwrap_or(0);
        (self.0 as u8).saturating_sub(u8::try_from(lost).unwrap_or(u8::MAX))
    }
}

/// The clocks of a table of keys.
#[derive(Clone, Debug)]
pub(crate) struct UseClocks {
    settings: EvictionSettings,
    clocks: Vec<Cell<UseClock>>,
    /// How often chance has been asked.
    draws: Cell<u64>,
}

impl UseClocks {
    /// The clocks of so many keys that are used now.
    pub(crate) fn new(settings: EvictionSettings, keys: usize, now_ms: u64) -> Self {
        Self {
            settings,
            clocks: vec![Cell::new(UseClock::new(now_ms, COUNT_FIRST)); keys],
            draws: Cell::new(0),
        }
    }

    /// From now on these settings count.
    pub(crate) const fn set(&mut self, settings: EvictionSettings) {
        self.settings = settings;
    }

    /// A key is added at the end.
    pub(crate) fn push(&mut self, now_ms: u64) {
        self.clocks.push(Cell::new(UseClock::new(now_ms, COUNT_FIRST)));
    }

    /// A key is removed, whose position the last one takes.
    pub(crate) fn swap_remove(&mut self, position: usize) {
        self.clocks.swap_remove(position);
    }

    /// Two keys change their positions.
    pub(crate) fn swap(&mut self, first: usize, second: usize) {
        self.clocks.swap(first, second);
    }

    /// All keys are removed.
    pub(crate) fn clear(&mut self) {
        self.clocks = Vec::new();
    }

    /// How many keys there are.
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.clocks.len()
    }

    /// The key at a position is used.
    pub(crate) fn touch(&self, position: usize, now_ms: u64) {
        let Some(clock) = self.clocks.get(position) else { return };
        let count = clock.get().count(now_ms, &self.settings);
        clock.set(UseClock::new(now_ms, count + u8::from(self.counts_one_more(count))));
    }

    /// Whether one more use of a key with this count makes it count more: the less likely, the more it counts already.
    fn counts_one_more(&self, count: u8) -> bool {
        let beyond = u64::from(count.saturating_sub(COUNT_FIRST));
        let one_in = beyond * u64::from(self.settings.lfu_log_factor) + 1;
        self.draws.set(self.draws.get().wrapping_add(1));
        count < u8::MAX && mix(self.draws.get()).is_multiple_of(one_in)
    }

    /// Seconds since the key at a position was used.
    pub(crate) fn idle_seconds(&self, position: usize, now_ms: u64) -> u64 {
        self.clocks.get(position).map_or(0, |clock| clock.get().idle_seconds(now_ms))
    }

    /// How often the key at a position is used.
    pub(crate) fn count(&self, position: usize, now_ms: u64) -> u8 {
        self.clocks.get(position).map_or(0, |clock| clock.get().count(now_ms, &self.settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_idle_since_it_was_used_last() {
        let clocks = UseClocks::new(EvictionSettings::DEFAULT, 2, 5_000);
        clocks.touch(1, 65_999);
        assert_eq!([0, 1].map(|position| clocks.idle_seconds(position, 70_000)), [65, 5]);
        // Seconds begin again after half a year.
        let late = 1000 * (SECONDS - 1);
        clocks.touch(0, late);
        assert_eq!(clocks.idle_seconds(0, late + 3_000), 3);
    }

    #[test]
    fn a_key_counts_more_the_more_it_is_used_and_less_with_time() {
        let mut clocks = UseClocks::new(EvictionSettings::DEFAULT, 3, 0);
        (0..100).for_each(|_| clocks.touch(1, 0));
        (0..100_000).for_each(|_| clocks.touch(2, 0));
        let [none, some, many] = [0, 1, 2].map(|position| clocks.count(position, 0));
        // Redis's documentation gives 10 and 142 for the second and the third with this factor.
        assert!(
            none == COUNT_FIRST && (7..20).contains(&some) && (110..170).contains(&many),
            "{some} {many}"
        );
        assert_eq!(clocks.count(2, 10 * 60_000), many - 10);
        assert_eq!(clocks.count(1, 1_000 * 60_000), 0);
        clocks.set(EvictionSettings { lfu_decay_minutes: 0, ..EvictionSettings::DEFAULT });
        assert_eq!(clocks.count(2, 10 * 60_000), many);
    }

    #[test]
    fn clocks_go_with_their_keys() {
        let mut clocks = UseClocks::new(EvictionSettings::DEFAULT, 3, 0);
        clocks.touch(2, 9_000);
        clocks.swap_remove(0);
        clocks.push(20_000);
        clocks.swap(1, 2);
        assert_eq!([0, 1, 2].map(|position| clocks.idle_seconds(position, 20_000)), [11, 0, 20]);
    }
}
