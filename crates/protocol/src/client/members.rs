//! What a client knows of the replicas: who can be reached, who answers, and whether the leader does.

use syros_types::{Group, Instant, ReplicaId, ReplicaSet};

/// The replicas as a client sees them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Members {
    pub(super) connected: ReplicaSet,
    /// The driver knows that no majority can be reached.
    pub(super) quorum_lost: bool,
    /// Replicas that did not answer in time; not waited for until they do answer.
    pub(super) slow: ReplicaSet,
    /// Replicas that have last said that they are in an earlier view: they accept nothing at present.
    pub(super) behind: ReplicaSet,
    pub(super) leader_heard: Instant,
    /// When all were last asked for their views.
    pub(super) probed: Instant,
    /// Replicas of builds with which no group has another size, and which cannot be asked for configurations.
    pub(super) tell_none: ReplicaSet,
    /// When each was last asked for its configuration, since that of the client is known.
    pub(super) asked_configuration: [Option<Instant>; Group::SIZE_MAX],
}

impl Members {
    /// None is known to be reachable.
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            connected: ReplicaSet(0),
            quorum_lost: false,
            slow: ReplicaSet(0),
            behind: ReplicaSet(0),
            leader_heard: now,
            probed: now,
            tell_none: ReplicaSet(0),
            asked_configuration: [None; Group::SIZE_MAX],
        }
    }

    /// A replica has said something, if it `is_behind` that it is in an earlier view. True if it may have changed its view
    /// unknown to the client, or is about to.
    pub(super) fn on_heard(&mut self, from: ReplicaId, is_behind: bool) -> bool {
        let may_enter = is_behind || self.behind.contains(from) || self.slow.contains(from);
        self.slow = self.slow.without(from);
        self.behind = if is_behind { self.behind.with(from) } else { self.behind.without(from) };
        may_enter
    }

    pub(super) fn on_connected(&mut self, replica: ReplicaId) {
        self.connected = self.connected.with(replica);
        self.tell_none = self.tell_none.without(replica);
        self.asked_configuration[replica.index()] = None;
        self.slow = self.slow.without(replica);
    }

    /// These replicas did not answer in time.
    pub(super) fn on_silent(&mut self, replicas: ReplicaSet) {
        self.slow = self.slow.and(replicas);
    }

    /// Replicas that can be expected to answer.
    pub(super) const fn usable(&self) -> ReplicaSet {
        self.connected.except(self.slow)
    }
}
