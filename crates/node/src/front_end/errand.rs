//! What is submitted for commands that wait, and for no connection.

use syros_protocol::message::Body;
use syros_types::{Class, Footprint};

/// A key that is waited for, and whether as a list or as a sorted set.
pub(super) type WaitedKey = (u64, bool);

/// Something to be submitted for commands that wait.
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
}
