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

/// View number (VR 4): every view has exactly one leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View(pub u64);

impl View {
    /// The view after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
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
