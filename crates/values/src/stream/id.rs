//! The ids of a stream's entries.

use core::fmt;

/// The id of an entry: a time in milliseconds and a number that tells entries of one millisecond apart. Ids are in the order
/// of the time, and of the number where that is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u128);

impl StreamId {
    /// The least id, which no entry has.
    pub const MIN: Self = Self(0);

    /// The greatest id.
    pub const MAX: Self = Self(u128::MAX);

    /// The id of a time in milliseconds and a number.
    #[must_use]
    pub const fn new(ms: u64, sequence: u64) -> Self {
        Self((ms as u128) << 64 | sequence as u128)
    }

    /// The time in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The number among the entries of its millisecond.
    #[must_use]
    pub const fn sequence(self) -> u64 {
        self.0 as u64
    }

    /// The id behind it; none behind the greatest.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }

    /// The id before it; none before the least.
    #[must_use]
    pub fn previous(self) -> Option<Self> {
        self.0.checked_sub(1).map(Self)
    }

    /// Its bytes, which are in the order of ids.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The id of these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// What it is in a tree.
    pub(super) const fn number(self) -> u128 {
        self.0
    }

    /// The id that is this number in a tree.
    pub(super) const fn of_number(number: u128) -> Self {
        Self(number)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms(), self.sequence())
    }
}
