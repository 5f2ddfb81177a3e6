//! What is submitted beside what connections submit: for commands that wait, among others.

use syros_protocol::message::Body;
use syros_types::{Class, Footprint};

/// A key that is waited for, and what it is waited for as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WaitedKey {
    /// The key's hash.
    pub(super) hash: u64,
    pub(super) kind: WaitedKind,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitedKind {
    /// Elements of a list.
    List,
    /// Members of a sorted set.
    SortedSet,
    /// Entries of a stream.
    Stream,
    /// Entries of a stream that a group has not got; the hash of its name.
    Group(u64),
}

impl WaitedKey {
    /// All that can be waited for of the key with this hash.
    pub(super) const fn all_of(hash: u64) -> std::ops::RangeInclusive<Self> {
        Self { hash, kind: WaitedKind::List }..=Self { hash, kind: WaitedKind::Group(u64::MAX) }
    }
}

/// Something to be submitted, and by no connection.
#[derive(Debug)]
pub(super) struct Errand {
    pub(super) kind: ErrandKind,
    pub(super) body: Body,
    pub(super) class: Class,
    pub(super) footprint: Footprint,
}

/// What it is submitted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrandKind {
    /// The command with this number.
    Ask(u64),
    /// Taking the command with this number out of the queues.
    Leave(u64),
    /// Whose turn it is.
    Look(WaitedKey),
    /// The update with this number may change nothing, and waits until what is pending on its keys has been executed.
    Settle(u64),
    /// Removing keys for which there is no memory. No command waits for it.
    Evict,
    /// Reading the users.
    Users,
    /// Reading something that every build knows: whether the leader still leads that does not know what users are.
    OldLeader,
    /// Changing the users of a new cluster.
    FirstUser,
}
