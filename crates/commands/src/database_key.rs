//! Keys of any database.

use syros_types::{Database, key_hash_in};

/// A key: a name in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseKey<'a> {
    /// Where it is.
    pub database: Database,
    /// What it is called there.
    pub name: &'a [u8],
}

impl DatabaseKey<'_> {
    /// Its hash, by which footprints name it.
    #[must_use]
    #[inline]
    pub fn hash(self) -> u64 {
        key_hash_in(self.database, self.name)
    }
}
