//! Quorum arithmetic of a group of `n = 2f + 1` replicas.

use crate::{Class, Footprint, ReplicaId, View};
use core::fmt;

/// Which updates complete in one round trip, and by which acknowledgements. A view has one: the modes recover the
/// durability log differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FastQuorum {
    /// `f + 1` acknowledgements including the leader's; only overwrites of one key qualify.
    Majority,
    /// `f + ceil(f/2) + 1` including the leader's (Skyros 4.2); every nilext update qualifies.
    Supermajority,
    /// As many; updates that return state qualify too, as long as nothing pending overlaps them (Skyros-Comm,
    /// Skyros 5.7).
    NilextOrCommutative,
    /// As many; every update qualifies as long as nothing pending overlaps it, and none otherwise (CURP, as the
    /// Skyros paper compares itself with: Curp-c).
    Commutative,
    /// `f + 1` acknowledgements including the leader's for overwrites of one key, and those of all active members for every
    /// other update: one that returns state qualifies as long as nothing pending overlaps it.
    #[default]
    Mixed,
}

/// What a fast quorum and recovery go by in an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strength {
    /// It replaces the value of one key and returns nothing.
    Overwrite,
    /// Any other update.
    Strong,
}

impl Strength {
    /// That of an update of this class and footprint.
    #[must_use]
    pub const fn of(class: Class, footprint: &Footprint) -> Self {
        match class {
            Class::Overwrite if footprint.is_one_key() => Self::Overwrite,
            _ => Self::Strong,
        }
    }
}

/// On what terms an update may enter a durability log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Nothing that overlaps it there has a later timestamp: whoever recovers them orders them by it.
    InTimestampOrder,
    /// Nothing that overlaps it is pending, there or in the log: it then makes no difference in which order they run.
    IfNothingOverlaps,
}

impl FastQuorum {
    /// Every one that there is.
    pub const ALL: [Self; 5] =
        [Self::Majority, Self::Supermajority, Self::NilextOrCommutative, Self::Commutative, Self::Mixed];

    /// Its name in configurations and data directories.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Majority => "majority",
            Self::Supermajority => "supermajority",
            Self::NilextOrCommutative => "supermajority-comm",
            Self::Commutative => "curp",
            Self::Mixed => "mixed",
        }
    }

    /// On what terms an update may enter the durability log; `None` if on none: the leader orders it.
    #[must_use]
    pub const fn admission(self, class: Class, footprint: &Footprint) -> Option<Admission> {
        let (orderly, commutative) = (Some(Admission::InTimestampOrder), Some(Admission::IfNothingOverlaps));
        match (self, class) {
            (Self::Majority, Class::Overwrite) if footprint.is_one_key() => orderly,
            (_, Class::Read) | (Self::Majority, _) | (Self::Supermajority, Class::Update) => None,
            // It could overlap anything, so it may as well wait for everything.
            (Self::NilextOrCommutative | Self::Commutative | Self::Mixed, Class::Update)
            | (Self::Commutative | Self::Mixed, _)
                if matches!(footprint, Footprint::All) =>
            {
                None
            }
            (Self::Commutative, _) | (_, Class::Update) => commutative,
            (_, Class::Overwrite | Class::Merge) => orderly,
        }
    }

    /// True if the fast quorum of every update is a supermajority.
    #[must_use]
    pub const fn is_supermajority(self) -> bool {
        matches!(self, Self::Supermajority | Self::NilextOrCommutative | Self::Commutative)
    }

    /// True if updates that return nothing may be fast whether they overwrite a key or not.
    #[must_use]
    pub const fn takes_merges(self) -> bool {
        !matches!(self, Self::Majority)
    }

    /// True if recovery drops an overwrite of a key of which it has a newer one: a single durability log is enough for it.
    #[must_use]
    pub const fn drops_overwritten(self) -> bool {
        !self.is_supermajority()
    }

    /// True if a running group may go from one of these modes to the other, which is always the mode itself and otherwise one
    /// of the two that take a majority for overwrites. A client that does not know of the change still counts right then: it
    /// waits for no less than what recovery needs.
    #[must_use]
    pub const fn may_become(self, other: Self) -> bool {
        self as u8 == other as u8 || (self.is_changeable() && other.is_changeable())
    }

    /// True if the mode of a running group with this one can be changed.
    #[must_use]
    pub const fn is_changeable(self) -> bool {
        matches!(self, Self::Majority | Self::Mixed)
    }

    /// True if not all members need to keep a durability log: see [`FastRule::active`](crate::FastRule::active).
    #[must_use]
    pub const fn has_active_members(self) -> bool {
        matches!(self, Self::Mixed)
    }
}

impl fmt::Display for FastQuorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The size of a replica group and every threshold derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    size: u8,
}

/// A group must have an odd number of members, from 1 to 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidGroupSize(pub usize);

impl fmt::Display for InvalidGroupSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a group has 1, 3, 5, 7 or 9 replicas, not {}", self.0)
    }
}

impl core::error::Error for InvalidGroupSize {}

impl Group {
    /// Most members a group may have.
    pub const SIZE_MAX: usize = 9;

    /// A group of `size` members.
    ///
    /// # Errors
    /// [`InvalidGroupSize`] unless `size` is 1, 3, 5, 7 or 9.
    pub const fn new(size: usize) -> Result<Self, InvalidGroupSize> {
        match size {
            1 | 3 | 5 | 7 | 9 => Ok(Self { size: size as u8 }),
            _ => Err(InvalidGroupSize(size)),
        }
    }

    /// Number of members, `n`.
    #[must_use]
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// Failures the group survives, `f`.
    #[must_use]
    pub const fn faults(self) -> usize {
        (self.size as usize - 1) / 2
    }

    /// Members in a majority, `f + 1`.
    #[must_use]
    pub const fn majority(self) -> usize {
        self.faults() + 1
    }

    /// Members in a supermajority, `f + ceil(f/2) + 1` (Skyros 4.2).
    #[must_use]
    pub const fn supermajority(self) -> usize {
        self.faults() + self.recovery_threshold()
    }

    /// In supermajority mode an update is recovered if at least this many of the `f + 1` surviving
    /// durability logs hold it: `ceil(f/2) + 1` (Skyros 4.6).
    #[must_use]
    pub const fn recovery_threshold(self) -> usize {
        self.faults().div_ceil(2) + 1
    }

    /// True if it has a member in this position.
    #[must_use]
    pub const fn has(self, member: ReplicaId) -> bool {
        member.0 < self.size
    }

    /// The group with two members more; `None` if it has as many as there can be.
    #[must_use]
    pub const fn larger(self) -> Option<Self> {
        if self.size as usize + 2 > Self::SIZE_MAX { None } else { Some(Self { size: self.size + 2 }) }
    }

    /// True if this is a place that the group has when it has grown, and not before.
    #[must_use]
    pub fn grows_by(self, member: ReplicaId) -> bool {
        !self.has(member) && self.larger().is_some_and(|larger| larger.has(member))
    }

    /// The group with two members less; `None` if it has one.
    #[must_use]
    pub const fn smaller(self) -> Option<Self> {
        if self.size == 1 { None } else { Some(Self { size: self.size - 2 }) }
    }

    /// The leader of `view` in a group of this size: the member in position `v mod n` (VR 4).
    #[must_use]
    pub const fn leader(self, view: View) -> ReplicaId {
        ReplicaId((view.number() % self.size as u64) as u8)
    }

    /// Every member, in order.
    pub fn members(self) -> impl Iterator<Item = ReplicaId> + Clone + use<> {
        (0..self.size).map(ReplicaId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_follow_the_papers() {
        // n, f, majority, supermajority, recovery threshold
        for (n, f, majority, supermajority, threshold) in
            [(1, 0, 1, 1, 1), (3, 1, 2, 3, 2), (5, 2, 3, 4, 2), (7, 3, 4, 6, 3), (9, 4, 5, 7, 3)]
        {
            let group = Group::new(n).unwrap();
            assert_eq!(group.faults(), f);
            assert_eq!(group.majority(), majority);
            assert_eq!(group.supermajority(), supermajority);
            assert_eq!(group.recovery_threshold(), threshold);
            // What recovery rests on: a supermajority and a view change's majority share enough logs.
            assert!(group.supermajority() + group.majority() - n >= threshold);
            // Two updates recovered this way share a log among any f + 1.
            assert!(2 * threshold > group.majority());
        }
    }

    #[test]
    fn even_and_large_groups_are_refused() {
        for size in [0, 2, 4, 6, 8, 10, 11, 255] {
            assert_eq!(Group::new(size), Err(InvalidGroupSize(size)));
        }
    }

    #[test]
    fn who_may_enter_the_durability_log() {
        use Admission::{IfNothingOverlaps as Alone, InTimestampOrder as Ordered};
        let (one, two) = (Footprint::One(1), Footprint::of(alloc::vec![1, 2]));
        // Overwrites of one key and of two, merges, updates that return state.
        for (mode, expected) in [
            (FastQuorum::Majority, [Some(Ordered), None, None, None]),
            (FastQuorum::Supermajority, [Some(Ordered), Some(Ordered), Some(Ordered), None]),
            (FastQuorum::NilextOrCommutative, [Some(Ordered), Some(Ordered), Some(Ordered), Some(Alone)]),
            (FastQuorum::Commutative, [Some(Alone); 4]),
            (FastQuorum::Mixed, [Some(Ordered), Some(Ordered), Some(Ordered), Some(Alone)]),
        ] {
            let all = [
                (Class::Overwrite, &one),
                (Class::Overwrite, &two),
                (Class::Merge, &one),
                (Class::Update, &one),
            ];
            assert_eq!(all.map(|(class, footprint)| mode.admission(class, footprint)), expected, "{mode}");
            assert_eq!(mode.admission(Class::Read, &one), None);
            assert_eq!(mode.admission(Class::Update, &Footprint::All), None);
        }
    }
}
