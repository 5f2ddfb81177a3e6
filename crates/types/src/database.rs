//! Databases of keys.

/// One of the databases of keys that a store has. A key is a name in a database: two keys of one name in two databases are
/// different keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Database(u8);

impl Database {
    /// How many there are.
    pub const COUNT: usize = 16;

    /// The one that a client uses which has not chosen another, and the only one that older builds know.
    pub const FIRST: Self = Self(0);

    /// The database of this number; `None` if there is none.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < Self::COUNT { Some(Self(number)) } else { None }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its number, as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// True for the one that older builds know.
    #[must_use]
    #[inline]
    pub const fn is_first(self) -> bool {
        self.0 == 0
    }

    /// All of them, in the order of their numbers.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator {
        (0..Self::COUNT as u8).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_below_the_count() {
        assert_eq!(Database::new(0), Some(Database::FIRST));
        assert_eq!(Database::new(15).map(Database::index), Some(15));
        assert_eq!(Database::new(16), None);
        assert_eq!(Database::all().count(), Database::COUNT);
        assert_eq!(Database::all().filter(|database| database.is_first()).count(), 1);
    }
}
