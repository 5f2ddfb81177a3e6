//! Identifiers of the protocol. All are plain numbers with a type of their own.

use core::fmt;

/// A position in a configuration of a group, `0..n`: what quorums, leaders and addresses are counted by. Which node has
/// the position, the [`Configuration`](crate::Configuration) says; who a node is for ever is its [`NodeId`](crate::NodeId).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaId(pub u8);

impl ReplicaId {
    /// The position as an index into per-replica arrays.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replica {}", self.0)
    }
}

/// The number of a configuration of one group: 0 is the first one, and each later configuration has a higher number.
/// Answers and acknowledgements of different epochs never make one quorum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigurationEpoch(pub u64);

impl ConfigurationEpoch {
    /// The epoch that a group is created with.
    pub const FIRST: Self = Self(0);

    /// No epoch is above this: a view has no room for it.
    pub const MAX: Self = Self((1 << 22) - 1);

    /// The epoch after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A view (VR 4): every view has exactly one leader, and is of exactly one configuration of its group.
///
/// The epoch of the configuration comes before the number of the view, so that all views of a later configuration are
/// later: a change of members is a change of views. The number goes on from one configuration to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View(pub u64);

impl View {
    /// Bits of the number; the epoch is above them. A group that changes its view ten times a second does so for 3,000 years.
    const NUMBER_BITS: u32 = 40;

    /// The view with this number, of the configuration of this epoch.
    #[must_use]
    pub const fn of_epoch(epoch: ConfigurationEpoch, number: u64) -> Self {
        Self(epoch.0 << Self::NUMBER_BITS | number)
    }

    /// The view after this one, of the same configuration.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The epoch of the configuration that it is of.
    #[must_use]
    pub const fn epoch(self) -> ConfigurationEpoch {
        ConfigurationEpoch(self.0 >> Self::NUMBER_BITS)
    }

    /// Its number: view `v` is led by position `v mod n`.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0 & ((1 << Self::NUMBER_BITS) - 1)
    }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epoch() {
            ConfigurationEpoch::FIRST => write!(f, "{}", self.number()),
            epoch => write!(f, "{} of epoch {}", self.number(), epoch.0),
        }
    }
}

/// Position in the consensus log. The first entry is number 1; 0 means "nothing".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpNumber(pub u64);

impl OpNumber {
    /// The position after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A client session: the op number of the log entry that registered it, hence unique.
/// 0 is the id of "no session yet", used only to register one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Identifies one operation of one session for ever (RIFL's completion record key).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId {
    /// The session that issued the operation.
    pub session: SessionId,
    /// Sequence number inside the session; the first is 1.
    pub sequence: u64,
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.session.0, self.sequence)
    }
}
