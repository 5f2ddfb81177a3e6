//! Versions of keys.

/// A number that is another one after each change of a key: twice the number of the log entry that has changed it last, and
/// one more if the key exists. A key that expires changes.
///
/// A command that leaves a key as it is may count as a change. Of a key that does not exist the entry may be one that has
/// removed another key, or has given it an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub u64);

impl Version {
    /// What no key has: nobody knows its version.
    pub const UNKNOWN: Self = Self(u64::MAX);

    /// That of a key that exists and was changed last by this entry.
    #[must_use]
    pub const fn of_present(entry: u64) -> Self {
        Self(entry << 1 | 1)
    }

    /// That of a key that does not exist, and did not after this entry.
    #[must_use]
    pub const fn of_absent(entry: u64) -> Self {
        Self(entry << 1)
    }

    /// Its bytes, as a condition has them.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }
}
