//! Sets of replicas.

use crate::ids::ReplicaId;
use crate::quorum::Group;

/// A set of replicas, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ReplicaSet(pub u16);

// Every replica of the largest group has a bit.
const _: () = assert!(Group::SIZE_MAX <= u16::BITS as usize);

impl ReplicaSet {
    /// All that there could be.
    pub const ALL: Self = Self(u16::MAX);

    /// Every member of a group.
    #[must_use]
    pub const fn of(group: Group) -> Self {
        Self((1 << group.size()) - 1)
    }

    /// This and one more.
    #[must_use]
    pub const fn with(self, replica: ReplicaId) -> Self {
        Self(self.0 | 1 << replica.0)
    }

    /// This but for one.
    #[must_use]
    pub const fn without(self, replica: ReplicaId) -> Self {
        Self(self.0 & !(1 << replica.0))
    }

    /// Those of this that are not in `others`.
    #[must_use]
    pub const fn except(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Those in either.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Those of this that are in `others`, too.
    #[must_use]
    pub const fn within(self, others: Self) -> Self {
        Self(self.0 & others.0)
    }

    /// True if the replica is in it.
    #[must_use]
    pub const fn contains(self, replica: ReplicaId) -> bool {
        self.0 & 1 << replica.0 != 0
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// True if there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them, in order.
    pub fn iter(self) -> impl Iterator<Item = ReplicaId> + Clone {
        let mut rest = self;
        core::iter::from_fn(move || {
            let first = rest.first()?;
            rest = rest.without(first);
            Some(first)
        })
    }

    /// The one with the lowest id.
    #[must_use]
    pub const fn first(self) -> Option<ReplicaId> {
        if self.0 == 0 { None } else { Some(ReplicaId(self.0.trailing_zeros() as u8)) }
    }
}

impl FromIterator<ReplicaId> for ReplicaSet {
    fn from_iter<I: IntoIterator<Item = ReplicaId>>(replicas: I) -> Self {
        replicas.into_iter().fold(Self::default(), Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_all_sizes() {
        let set: ReplicaSet = [0, 8, 3].into_iter().map(ReplicaId).collect();
        assert_eq!((set.len(), set.first()), (3, Some(ReplicaId(0))));
        assert!(set.contains(ReplicaId(8)) && !set.contains(ReplicaId(7)));
        let rest = set.without(ReplicaId(0)).except(ReplicaSet::default().with(ReplicaId(3)));
        assert!(rest.iter().eq([ReplicaId(8)]));
        assert_eq!(rest.and(set), set);
        assert!(rest.without(ReplicaId(8)).is_empty() && ReplicaSet::default().first().is_none());
    }
}
