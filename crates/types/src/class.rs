//! What the protocol needs to know about an operation, and nothing more: its class and the keys it
//! touches. A state machine says both through pure functions of the operation's bytes.

use alloc::boxed::Box;
use alloc::vec::Vec;

/// Class of an operation: decides which path it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Changes nothing.
    Read,
    /// Nilext update of one key whose result does not depend on the old value: SET, blind DEL.
    Overwrite,
    /// Nilext update that reads the old value, or touches several keys: blind INCRBY, blind MSET.
    Merge,
    /// Update that returns state: INCR, GETSET, SET NX.
    Update,
}

impl Class {
    /// True if the operation only returns an acknowledgement (Skyros 3: nil-externality).
    #[must_use]
    pub const fn is_nilext(self) -> bool {
        matches!(self, Self::Overwrite | Self::Merge)
    }

    /// Class of two operations run as one, on the same key.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            // A read in the company of an update returns state.
            (Self::Read, _) | (_, Self::Read) | (Self::Update, _) | (_, Self::Update) => Self::Update,
            _ => Self::Merge,
        }
    }
}

/// The hashes of the keys an operation touches. Two different keys may share a hash: that costs a
/// false conflict, never correctness.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Footprint {
    /// One key.
    One(u64),
    /// Several keys: sorted, without duplicates.
    Many(Box<[u64]>),
    /// Every key there is or may be: FLUSHALL, SCAN, DBSIZE.
    All,
}

impl Footprint {
    /// The footprint of a set of key hashes; an empty set becomes an empty `Many`.
    #[must_use]
    pub fn of(mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        hashes.dedup();
        match hashes.as_slice() {
            [one] => Self::One(*one),
            _ => Self::Many(hashes.into_boxed_slice()),
        }
    }

    /// The key hashes; `None` for [`Footprint::All`].
    #[must_use]
    pub fn keys(&self) -> Option<&[u64]> {
        match self {
            Self::One(key) => Some(core::slice::from_ref(key)),
            Self::Many(keys) => Some(keys),
            Self::All => None,
        }
    }

    /// True if it is one key, and no more can be concerned.
    #[must_use]
    pub const fn is_one_key(&self) -> bool {
        matches!(self, Self::One(_))
    }

    /// True if some key may be in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (Some(mine), Some(theirs)) = (self.keys(), other.keys()) else { return true };
        let (short, long) = if mine.len() <= theirs.len() { (mine, theirs) } else { (theirs, mine) };
        short.iter().any(|key| long.binary_search(key).is_ok())
    }

    /// The footprint of two operations run as one.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        match (self.keys(), other.keys()) {
            (Some(a), Some(b)) if a == b => self.clone(),
            (Some(a), Some(b)) => Self::of([a, b].concat()),
            _ => Self::All,
        }
    }
}

/// What the protocol needs to know of an operation: pure functions of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its class.
    pub class: Class,
    /// The keys it touches.
    pub footprint: Footprint,
    /// Bytes by which it may make the state grow, at most; 0 if it does not, as a deletion. An operation that does is
    /// refused while there is no room.
    pub growth: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn overlap_is_symmetric_and_exact() {
        let a = Footprint::of(vec![3, 1, 3]);
        assert_eq!(a.keys(), Some(&[1, 3][..]));
        assert!(a.overlaps(&Footprint::One(3)) && Footprint::One(3).overlaps(&a));
        assert!(!a.overlaps(&Footprint::One(2)));
        assert!(Footprint::All.overlaps(&a) && a.overlaps(&Footprint::All));
        assert!(!Footprint::of(vec![]).overlaps(&a));
    }

    #[test]
    fn join_never_hides_state() {
        assert_eq!(Class::Read.join(Class::Overwrite), Class::Update);
        assert_eq!(Class::Overwrite.join(Class::Overwrite), Class::Overwrite);
        assert_eq!(Class::Overwrite.join(Class::Merge), Class::Merge);
        assert_eq!(Class::Merge.join(Class::Update), Class::Update);
        assert_eq!(Class::Read.join(Class::Read), Class::Read);
    }
}
