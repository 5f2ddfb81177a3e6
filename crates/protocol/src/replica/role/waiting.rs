//! Who waits for an answer of a leader or a follower.

use crate::message::{Asked, Body, Peer};
use syros_types::{Footprint, Instant, OperationId, WallTime};

/// Someone to answer when an entry has been executed.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(in crate::replica) struct Waiter {
    pub(in crate::replica) to: Peer,
    pub(in crate::replica) what: Awaited,
}

#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(in crate::replica) enum Awaited {
    Update(OperationId),
    Registration { nonce: u64 },
}

/// A read that cannot be answered yet.
#[derive(Clone, Debug)]
pub(in crate::replica) struct WaitingRead {
    pub(in crate::replica) to: Peer,
    pub(in crate::replica) number: u64,
    pub(in crate::replica) asked: Asked,
    pub(in crate::replica) body: Body,
    pub(in crate::replica) footprint: Footprint,
    /// Leadership must be confirmed as of this moment, unless there is a lease.
    pub(in crate::replica) invoked: Instant,
    /// Log time of what the leader would have ordered when the read came: what has expired by then is not shown.
    pub(in crate::replica) time: Option<WallTime>,
}
