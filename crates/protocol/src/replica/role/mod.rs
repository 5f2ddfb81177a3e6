//! What a replica does at present: it leads its view, follows, changes views, or waits without its memory. Each role owns
//! what belongs to it. Entering a role makes a new value, and drops with the old one all that the replica knew in it.

mod advisor;
mod comparison;
mod follower;
mod leader;
mod log_durability;
mod view_change;
mod waiting;

pub(in crate::replica) use advisor::Done;
pub(in crate::replica) use follower::{Follower, IncompletePrepare, MissingBodies};
#[cfg(feature = "model")]
pub(in crate::replica) use leader::Contact;
pub(in crate::replica) use leader::{Batch, Leader, Newcomer, Progress};
pub(in crate::replica) use log_durability::{CommitCount, LogWatchers};
pub(in crate::replica) use view_change::{Transfer, ViewChange};
pub(in crate::replica) use waiting::{Awaited, Waiter, WaitingRead};

use super::refusals::Refusals;
use crate::message::{Peer, RoleName};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use syros_types::{Instant, OpNumber};

/// What a replica is doing (VR 4: status).
#[derive(Clone, Debug)]
pub(in crate::replica) enum Role {
    /// Takes part in its view, and leads it.
    Leader(Leader),
    /// Takes part in its view.
    Follower(Follower),
    /// Has left its last view and has not entered the next.
    ViewChange(Box<ViewChange>),
    /// Lost its memory; waits for a view newer than the one it may have acted in. Or it has never been a member, and learns what the
    /// group holds.
    Recovering(Recovering),
}

/// What a leader and a follower know of the clients of their view.
#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct ViewClients {
    pub(in crate::replica) refusals: Refusals,
    /// Reads, and updates that a leader has ordered, which are not answered yet.
    pub(in crate::replica) waiting: usize,
    /// Reads that wait until an entry is applied.
    pub(in crate::replica) reads_unapplied: BTreeMap<OpNumber, Vec<WaitingRead>>,
    /// Members that want to hear how far the log is durable.
    pub(in crate::replica) log_watchers: LogWatchers,
}

/// A replica without memory, or one that is no member yet.
#[derive(Clone, Debug, Default)]
pub(in crate::replica) struct Recovering {
    pub(in crate::replica) transfer: Option<Transfer>,
    /// It has never been a member, and learns.
    pub(in crate::replica) learning: Option<Learning>,
}

/// What a replica has learned that is no member yet.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::replica) struct Learning {
    /// Snapshots that it has taken over: with the second one it has begun anew.
    pub(in crate::replica) snapshots: u32,
    /// It has in its log what a leader has said to be committed, up to here, and had all of it at this time.
    pub(in crate::replica) learned: Option<(OpNumber, Instant)>,
}

impl Role {
    /// True if the replica takes part in its view.
    pub(in crate::replica) const fn is_normal(&self) -> bool {
        matches!(self, Self::Leader(_) | Self::Follower(_))
    }

    pub(in crate::replica) const fn name(&self) -> RoleName {
        match self {
            Self::Leader(_) => RoleName::Leader,
            Self::Follower(_) => RoleName::Follower,
            Self::ViewChange(_) => RoleName::ViewChange,
            Self::Recovering(_) => RoleName::Recovering,
        }
    }

    pub(in crate::replica) const fn leading(&self) -> Option<&Leader> {
        match self {
            Self::Leader(leader) => Some(leader),
            _ => None,
        }
    }

    pub(in crate::replica) const fn leading_mut(&mut self) -> Option<&mut Leader> {
        match self {
            Self::Leader(leader) => Some(leader),
            _ => None,
        }
    }

    pub(in crate::replica) const fn following(&self) -> Option<&Follower> {
        match self {
            Self::Follower(follower) => Some(follower),
            _ => None,
        }
    }

    pub(in crate::replica) const fn following_mut(&mut self) -> Option<&mut Follower> {
        match self {
            Self::Follower(follower) => Some(follower),
            _ => None,
        }
    }

    pub(in crate::replica) const fn in_view(&self) -> Option<&ViewClients> {
        match self {
            Self::Leader(leader) => Some(&leader.in_view),
            Self::Follower(follower) => Some(&follower.in_view),
            _ => None,
        }
    }

    pub(in crate::replica) const fn in_view_mut(&mut self) -> Option<&mut ViewClients> {
        match self {
            Self::Leader(leader) => Some(&mut leader.in_view),
            Self::Follower(follower) => Some(&mut follower.in_view),
            _ => None,
        }
    }

    /// The view that the replica is about to enter once it has that view's log.
    pub(in crate::replica) const fn transfer(&self) -> Option<&Transfer> {
        match self {
            Self::ViewChange(change) => change.transfer.as_ref(),
            Self::Recovering(recovering) => recovering.transfer.as_ref(),
            _ => None,
        }
    }

    /// Between views: where that is kept.
    pub(in crate::replica) const fn transfer_mut(&mut self) -> Option<&mut Option<Transfer>> {
        match self {
            Self::ViewChange(change) => Some(&mut change.transfer),
            Self::Recovering(recovering) => Some(&mut recovering.transfer),
            _ => None,
        }
    }

    /// Operations that wait for an answer.
    pub(in crate::replica) const fn waiting(&self) -> usize {
        match self.in_view() {
            Some(in_view) => in_view.waiting,
            None => 0,
        }
    }

    /// Those who wait for an answer.
    pub(in crate::replica) fn waiting_clients(&self) -> impl Iterator<Item = Peer> {
        let leader = self.leading();
        let waiters = leader.into_iter().flat_map(|leader| leader.waiters.values().flatten());
        let unapplied = self.in_view().into_iter().flat_map(|view| view.reads_unapplied.values().flatten());
        let unconfirmed = leader.into_iter().flat_map(|leader| &leader.reads_unconfirmed);
        waiters.map(|waiter| waiter.to).chain(unapplied.chain(unconfirmed).map(|read| read.to))
    }

    /// Forgets what a client waits for.
    pub(in crate::replica) fn forget_client(&mut self, client: Peer) {
        if let Self::Leader(leader) = self {
            leader.waiters.retain(|_, waiters: &mut Vec<Waiter>| {
                waiters.retain(|waiter| waiter.to != client);
                !waiters.is_empty()
            });
            leader.reads_unconfirmed.retain(|read| read.to != client);
        }
        let Some(in_view) = self.in_view_mut() else { return };
        in_view.reads_unapplied.retain(|_, reads| {
            reads.retain(|read| read.to != client);
            !reads.is_empty()
        });
        let waiting = self.waiting_clients().count();
        if let Some(in_view) = self.in_view_mut() {
            in_view.waiting = waiting;
        }
        if let Self::Leader(leader) = self {
            leader.count_reading();
        }
    }
}
