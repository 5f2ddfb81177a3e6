//! What a follower knows, for as long as it follows the leader of its view.

use super::{CommitCount, ViewClients};
use crate::hash::HashMap;
use crate::message::{Prepared, Update};
use crate::replica::timers::{Timer, Timers};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use syros_types::{Instant, OpNumber, OperationId, WallTime};

/// A member that takes part in a view and does not lead it.
#[derive(Clone, Debug)]
pub(in crate::replica) struct Follower {
    pub(in crate::replica) in_view: ViewClients,
    pub(in crate::replica) leader_commit: OpNumber,
    pub(in crate::replica) ack_due: Option<Instant>,
    /// Last sign of life of the leader: until one lease later, a promise not to change views.
    pub(in crate::replica) leader_contact: Instant,
    pub(in crate::replica) suspecting: bool,
    pub(in crate::replica) missing: MissingBodies,
    /// When it last asked the leader for a part of the log.
    pub(in crate::replica) state_requested: Option<Instant>,
    /// What it counts commits by, if somebody has direct answers of it.
    pub(in crate::replica) commits: CommitCount,
    /// When the leader last said that the disks of a majority are nearly full.
    pub(in crate::replica) majority_short: Option<Instant>,
}

/// A Prepare whose entries are not all here yet.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "model", derive(Hash))]
pub(in crate::replica) struct IncompletePrepare {
    pub(in crate::replica) first: OpNumber,
    pub(in crate::replica) commit: OpNumber,
    pub(in crate::replica) time: WallTime,
    pub(in crate::replica) entries: Vec<Prepared>,
    /// Entries before this one are known to be complete.
    pub(in crate::replica) complete: usize,
}

impl IncompletePrepare {
    pub(in crate::replica) const fn last(&self) -> OpNumber {
        OpNumber(self.first.0 + self.entries.len() as u64 - 1)
    }
}

/// Prepares that wait for bodies, and what is known of those.
#[derive(Clone, Debug)]
pub(in crate::replica) struct MissingBodies {
    pub(in crate::replica) parked: VecDeque<IncompletePrepare>,
    pub(in crate::replica) fetched: HashMap<OperationId, Update>,
    /// The last op number whose body has been asked for, since parked Prepares began to wait.
    pub(in crate::replica) fetch_asked: OpNumber,
}

impl MissingBodies {
    /// No Prepare waits.
    pub(in crate::replica) fn none() -> Self {
        Self { parked: VecDeque::new(), fetched: HashMap::default(), fetch_asked: OpNumber(0) }
    }

    /// The first parked Prepare has so many complete entries, some of which have become so just now, and waits for the body
    /// of the entry with this number. It is asked for at `fetch_at`, unless one is asked for before that will do.
    pub(in crate::replica) fn wait_for(
        &mut self,
        number: OpNumber,
        (complete, has_advanced): (usize, bool),
        (timers, fetch_at): (&mut Timers, Instant),
    ) {
        let is_asked = number <= self.fetch_asked;
        if timers.get(Timer::FetchBodies) == Instant::NEVER || (has_advanced && !is_asked) {
            timers.set(Timer::FetchBodies, fetch_at);
        }
        if let Some(parked) = self.parked.front_mut() {
            parked.complete = complete;
        }
    }

    /// No Prepare waits for bodies any more.
    pub(in crate::replica) fn clear(&mut self) {
        self.parked.clear();
        self.fetched.clear();
        self.fetch_asked = OpNumber(0);
    }
}

impl Follower {
    /// One that has just entered its view.
    pub(in crate::replica) fn new(now: Instant) -> Self {
        Self {
            in_view: ViewClients::default(),
            leader_commit: OpNumber(0),
            ack_due: None,
            leader_contact: now,
            suspecting: false,
            missing: MissingBodies::none(),
            state_requested: None,
            commits: CommitCount::default(),
            majority_short: None,
        }
    }

    /// Answers with the newest leader clock heard, once for all messages handled together.
    pub(in crate::replica) fn owe_ack(&mut self, sent_at: Instant) {
        self.ack_due = Some(self.ack_due.map_or(sent_at, |due| due.max(sent_at)));
    }

    /// The leader has committed its log up to here.
    pub(in crate::replica) fn hear_commit(&mut self, commit: OpNumber) {
        self.leader_commit = self.leader_commit.max(commit);
    }
}
