//! What a follower knows, for as long as it follows the leader of its view.

use super::ordering::Parked;
use super::role::InView;
use super::timers::{Timer, Timers};
use crate::hash::HashMap;
use crate::message::Update;
use alloc::collections::VecDeque;
use syros_types::{Instant, OpNumber, OperationId};

/// A member that takes part in a view and does not lead it.
#[derive(Clone, Debug)]
pub(super) struct Follower {
    pub(super) in_view: InView,
    pub(super) leader_commit: OpNumber,
    pub(super) ack_due: Option<Instant>,
    /// Last sign of life of the leader: until one lease later, a promise not to change views.
    pub(super) leader_contact: Instant,
    pub(super) suspecting: bool,
    pub(super) missing: MissingBodies,
    /// When it last asked the leader for a part of the log.
    pub(super) state_requested: Option<Instant>,
}

/// Prepares that wait for bodies, and what is known of those.
#[derive(Clone, Debug)]
pub(super) struct MissingBodies {
    pub(super) parked: VecDeque<Parked>,
    pub(super) fetched: HashMap<OperationId, Update>,
    /// The last op number whose body has been asked for, since parked Prepares began to wait.
    pub(super) fetch_asked: OpNumber,
}

impl MissingBodies {
    /// No Prepare waits.
    pub(super) fn none() -> Self {
        Self { parked: VecDeque::new(), fetched: HashMap::default(), fetch_asked: OpNumber(0) }
    }

    /// The first parked Prepare has so many complete entries, some of which have become so just now, and waits for the body
    /// of the entry with this number. It is asked for at `fetch_at`, unless one is asked for before that will do.
    pub(super) fn wait_for(
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
    pub(super) fn clear(&mut self) {
        self.parked.clear();
        self.fetched.clear();
        self.fetch_asked = OpNumber(0);
    }
}

impl Follower {
    /// One that has just entered its view.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            in_view: InView::default(),
            leader_commit: OpNumber(0),
            ack_due: None,
            leader_contact: now,
            suspecting: false,
            missing: MissingBodies::none(),
            state_requested: None,
        }
    }

    /// Answers with the newest leader clock heard, once for all messages handled together.
    pub(super) fn owe_ack(&mut self, sent_at: Instant) {
        self.ack_due = Some(self.ack_due.map_or(sent_at, |due| due.max(sent_at)));
    }

    /// The leader has committed its log up to here.
    pub(super) fn hear_commit(&mut self, commit: OpNumber) {
        self.leader_commit = self.leader_commit.max(commit);
    }
}
