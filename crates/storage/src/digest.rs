//! A hash of a whole state, to compare replicas.

use crate::removals::PLACES;
use crate::stamp::Stamp;
use syros_types::{Database, WallTime, key_hash, key_hash_in, mix};

/// Computes [`Engine::digest`](crate::Engine::digest): start with the log time, add every key in any
/// order, finish.
#[derive(Clone, Debug)]
pub struct Digest {
    time: WallTime,
    /// Where what is added belongs.
    database: Database,
    sum: u64,
    count: u64,
}

impl Digest {
    /// The digest of a state at this log time with no keys yet.
    #[must_use]
    pub const fn new(time: WallTime) -> Self {
        Self { time, database: Database::FIRST, sum: 0, count: 0 }
    }

    /// What is added from now on belongs to this database; before, to the first.
    pub const fn enter(&mut self, database: Database) {
        self.database = database;
    }

    /// The digest of the same keys at this log time instead.
    #[must_use]
    pub(crate) const fn at(mut self, time: WallTime) -> Self {
        self.time = time;
        self
    }

    /// Adds a key, its string, and its expiry in milliseconds since the Unix epoch.
    pub fn add(&mut self, key: &[u8], string: &[u8], expiry: Option<u64>) {
        // The length of the string, its end, is part of its hash.
        self.add_value(key, key_hash(string), expiry);
    }

    /// Adds a key, the fingerprint of its value ([`Value::fingerprint`](syros_values::Value::fingerprint); of a string it
    /// is its hash), and its expiry in milliseconds since the Unix epoch.
    pub fn add_value(&mut self, key: &[u8], fingerprint: u64, expiry: Option<u64>) {
        // Expiry 0 is in the past.
        let entry = mix(key_hash_in(self.database, key)) ^ fingerprint;
        self.sum = self.sum.wrapping_add(mix(mix(entry) ^ expiry.unwrap_or(0)));
        self.count += 1;
    }

    /// As [`add_value`](Self::add_value), with the version of the key.
    pub(crate) fn add_stamped(&mut self, key: &[u8], fingerprint: u64, stamp: Stamp) {
        let before = self.sum;
        self.add_value(key, fingerprint, stamp.expiry_ms());
        if stamp.entry > 0 {
            let added = self.sum.wrapping_sub(before);
            self.sum = before.wrapping_add(mix(added ^ mix(stamp.entry)));
        }
    }

    /// Adds the entry that versions are recorded from, which is 0 if they are not.
    pub(crate) const fn add_recorded(&mut self, from: u64) {
        if from > 0 {
            self.sum = self.sum.wrapping_add(mix(!from));
        }
    }

    /// Adds the last entry, which is not 0, that has removed a key of a part, or what else has a place among those.
    pub(crate) const fn add_removal(&mut self, place: usize, entry: u64) {
        let place = self.database.index() * PLACES + place;
        self.sum = self.sum.wrapping_add(mix(mix(entry) ^ (place as u64 + 1)));
    }

    /// Adds a record of what is loaded ([`Programs::records`](syros_commands::Programs::records)).
    pub(crate) fn add_program(&mut self, record: &[u8]) {
        self.sum = self.sum.wrapping_add(mix(!mix(key_hash(record))));
    }

    /// The digest of all that was added.
    #[must_use]
    pub const fn finish(&self) -> u64 {
        mix(self.sum.wrapping_add(mix(self.time.0)) ^ self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(time: u64, entries: &[(&str, &str, Option<u64>)]) -> u64 {
        let mut digest = Digest::new(WallTime(time));
        for (key, value, expiry) in entries {
            digest.add(key.as_bytes(), value.as_bytes(), *expiry);
        }
        digest.finish()
    }

    #[test]
    fn order_does_not_matter_and_everything_else_does() {
        let (a, b) = (("a", "x", None), ("b", "y", Some(7)));
        let base = digest(1, &[a, b]);
        assert_eq!(base, digest(1, &[b, a]));
        for other in [
            digest(2, &[a, b]),
            digest(1, &[a]),
            digest(1, &[]),
            digest(1, &[a, b, b]),
            digest(1, &[a, ("b", "y", Some(8))]),
            digest(1, &[a, ("b", "y", None)]),
            digest(1, &[("a", "y", None), ("b", "x", Some(7))]),
            digest(1, &[("x", "a", None), b]),
            digest(1, &[("ax", "", None), b]),
        ] {
            assert_ne!(base, other);
        }
        let mut elsewhere = Digest::new(WallTime(1));
        elsewhere.add(b"a", b"x", None);
        elsewhere.enter(Database::all().nth(3).expect("there are 16"));
        elsewhere.add(b"b", b"y", Some(7));
        assert_ne!(base, elsewhere.finish());
    }
}
