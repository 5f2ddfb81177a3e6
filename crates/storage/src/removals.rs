//! Which log entry a key that does not exist may have been removed by.
//!
//! An engine keeps nothing of a key that does not exist. So it keeps a number for each of 4,096 parts of all hashes: the last
//! entry that has removed a key whose hash is in that part, or has given it an expiry. Of a key that has expired there is
//! nothing to record when that happens, which is not at the same entry everywhere.
//!
//! The keys of one part belong to one lane of an engine on disk, so that a lane which is ahead of the others shows nothing of
//! that in what these find.

use core::sync::atomic::{AtomicU64, Ordering};
use syros_types::key_hash;

/// Bits of a hash that name its part.
pub(crate) const PART_BITS: u32 = 12;

/// Where the last entry stands that has removed all keys.
pub(crate) const ALL: usize = 1 << PART_BITS;

/// The part that a hash is in.
pub(crate) const fn part_of_hash(hash: u64) -> usize {
    (hash >> (u64::BITS - PART_BITS)) as usize
}

/// The part that a key is in.
pub(crate) fn part_of(key: &[u8]) -> usize {
    part_of_hash(key_hash(key))
}

/// What an engine keeps of versions beside the keys.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// The entry that they are recorded from.
    pub(crate) from: u64,
    pub(crate) removals: Removals,
}

/// The numbers of one thread. They take no memory before the first one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Removals(Vec<u64>);

impl Removals {
    /// Of an engine that has removed nothing.
    pub(crate) const EMPTY: Self = Self(Vec::new());

    /// This entry, none before the last, has removed a key of this part.
    pub(crate) fn record(&mut self, part: usize, entry: u64) {
        if entry == 0 {
            return;
        }
        if self.0.is_empty() {
            self.0.resize(ALL + 1, 0);
        }
        if let Some(number) = self.0.get_mut(part) {
            *number = (*number).max(entry);
        }
    }

    /// True if there is a number for this part.
    pub(crate) fn has(&self, part: usize) -> bool {
        self.0.get(part).is_some_and(|entry| *entry > 0)
    }

    /// The last entry that may have removed this key.
    pub(crate) fn of(&self, key: &[u8]) -> u64 {
        match self.0.get(ALL) {
            Some(all) => self.0[part_of(key)].max(*all),
            None => 0,
        }
    }

    /// The numbers that are not 0, with their parts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().copied().enumerate().filter(|(_, entry)| *entry > 0)
    }
}

/// The numbers that several threads share.
#[derive(Debug)]
pub(crate) struct SharedRemovals(Box<[AtomicU64]>);

impl Default for SharedRemovals {
    fn default() -> Self {
        Self((0..=ALL).map(|_| AtomicU64::new(0)).collect())
    }
}

impl SharedRemovals {
    /// This entry has removed a key of this part.
    pub(crate) fn record(&self, part: usize, entry: u64) {
        if let Some(number) = self.0.get(part) {
            number.fetch_max(entry, Ordering::AcqRel);
        }
    }

    /// The last entry that may have removed this key.
    pub(crate) fn of(&self, key: &[u8]) -> u64 {
        self.at(part_of(key)).max(self.at(ALL))
    }

    fn at(&self, part: usize) -> u64 {
        self.0.get(part).map_or(0, |number| number.load(Ordering::Acquire))
    }

    /// The numbers that are not 0, with their parts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        (0..=ALL).map(|part| (part, self.at(part))).filter(|(_, entry)| *entry > 0)
    }
}
