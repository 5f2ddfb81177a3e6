//! Which log entry a key that does not exist may have been removed by.
//!
//! An engine keeps nothing of a key that does not exist. So it keeps a number for each of 4,096 parts of all hashes: the last
//! entry that has removed a key whose hash is in that part, or has given it an expiry. Each database has its own numbers.
//! They do not move when two databases are swapped: then each notes the entry that has swapped it, unless both have no keys. Of a key that has expired there is
//! nothing to record when that happens, which is not at the same entry everywhere.
//!
//! The keys of one part belong to one lane of an engine on disk, so that a lane which is ahead of the others shows nothing of
//! that in what these find.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;
use syros_types::{Database, key_hash_in};

/// Bits of a hash that name its part.
pub(crate) const PART_BITS: u32 = 12;

/// Where the last entry stands that has removed all keys.
pub(crate) const ALL: usize = 1 << PART_BITS;

/// The part that a hash is in.
pub(crate) const fn part_of_hash(hash: u64) -> usize {
    (hash >> (u64::BITS - PART_BITS)) as usize
}

/// Where the last entry stands that has swapped the database with another.
pub(crate) const SWAPPED: usize = ALL + 1;

/// How many numbers a database has.
pub(crate) const PLACES: usize = SWAPPED + 1;

/// The part that the key of this name in a database is in.
pub(crate) fn part_of(database: Database, key: &[u8]) -> usize {
    part_of_hash(key_hash_in(database, key))
}

/// What an engine keeps of versions beside the keys of a database.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// The entry that they are recorded from, the same in all databases.
    pub(crate) from: u64,
    pub(crate) removals: Removals,
}

/// The numbers of one database, of one thread. They take no memory before the first one.
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
            self.0.resize(PLACES, 0);
        }
        if let Some(number) = self.0.get_mut(part) {
            *number = (*number).max(entry);
        }
    }

    /// True if there is a number for this part.
    pub(crate) fn has(&self, part: usize) -> bool {
        self.0.get(part).is_some_and(|entry| *entry > 0)
    }

    /// The last entry that may have removed a key of this part.
    pub(crate) fn of(&self, part: usize) -> u64 {
        self.at(part).max(self.at(ALL)).max(self.swapped())
    }

    /// The last entry that has swapped the database with another.
    pub(crate) fn swapped(&self) -> u64 {
        self.at(SWAPPED)
    }

    fn at(&self, place: usize) -> u64 {
        self.0.get(place).copied().unwrap_or(0)
    }

    /// True if there are none.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers that are not 0, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().copied().enumerate().filter(|(_, entry)| *entry > 0)
    }
}

/// The numbers of all databases, which several threads share.
#[derive(Debug, Default)]
pub(crate) struct SharedRemovals([OnceLock<Box<[AtomicU64]>>; Database::COUNT]);

impl SharedRemovals {
    /// This entry has removed a key of this part, or all keys, or has swapped the database.
    pub(crate) fn record(&self, database: Database, place: usize, entry: u64) {
        let numbers =
            self.0[database.index()].get_or_init(|| (0..PLACES).map(|_| AtomicU64::new(0)).collect());
        if let Some(number) = numbers.get(place) {
            number.fetch_max(entry, Ordering::AcqRel);
        }
    }

    /// The last entry that may have removed a key of this part.
    pub(crate) fn of(&self, database: Database, part: usize) -> u64 {
        self.at(database, part).max(self.at(database, ALL)).max(self.swapped(database))
    }

    /// The last entry that has swapped the database with another.
    pub(crate) fn swapped(&self, database: Database) -> u64 {
        self.at(database, SWAPPED)
    }

    fn at(&self, database: Database, place: usize) -> u64 {
        let number = self.0[database.index()].get().and_then(|numbers| numbers.get(place));
        number.map_or(0, |number| number.load(Ordering::Acquire))
    }

    /// The numbers of a database that are not 0, with their places.
    pub(crate) fn iter(&self, database: Database) -> impl Iterator<Item = (usize, u64)> {
        let places = if self.0[database.index()].get().is_some() { PLACES } else { 0 };
        (0..places).map(move |place| (place, self.at(database, place))).filter(|(_, entry)| *entry > 0)
    }
}
