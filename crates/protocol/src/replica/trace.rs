//! When a replica emits which [`TraceEvent`], and what it has told already.

use super::role::Role;
use super::{Action, Replica, TraceEvent, ViewChangeCause};
use core::time::Duration;
use syros_types::{Group, Instant, ReplicaId, ReplicaSet, View};

/// What has been told already, and since when things are as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traced {
    /// When the replica started, left its last view, or entered the present one.
    since: Instant,
    /// A leader has told that it has no quorum.
    quorum_lost: bool,
    /// A replica between views has told that it is alone.
    alone: bool,
    /// Members that have sent what no right member sends.
    implausible: ReplicaSet,
    /// When members have last said that they lost their memory. Only a replica that lost its own takes note of that.
    without_memory: [Option<Instant>; Group::SIZE_MAX],
    /// A replica without memory has told that a majority is.
    memory_gone: bool,
}

impl Traced {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            quorum_lost: false,
            alone: false,
            implausible: ReplicaSet(0),
            without_memory: [None; Group::SIZE_MAX],
            memory_gone: false,
        }
    }
}

impl Replica {
    pub(super) fn trace(&mut self, event: TraceEvent) {
        self.actions.push_back(Action::Trace(event));
    }

    pub(super) fn trace_left(&mut self, to: View, cause: ViewChangeCause) {
        self.trace(TraceEvent::LeftView { from: self.view, to, cause });
        // What takes several views is one time without any.
        if self.is_normal() {
            self.traced = Traced::new(self.now.instant);
        }
        self.traced.alone = false;
    }

    pub(super) fn trace_entered(&mut self) {
        let took = self.now.instant.since(self.traced.since);
        self.traced = Traced::new(self.now.instant);
        self.trace(TraceEvent::EnteredView { view: self.view, leader: self.leader(), took });
    }

    pub(super) fn trace_alone(&mut self) {
        if !core::mem::replace(&mut self.traced.alone, true) {
            self.trace(TraceEvent::Alone { view: self.view });
        }
    }

    pub(super) fn trace_implausible(&mut self, from: ReplicaId, message: &'static str) {
        self.counters.refused += 1;
        if !self.traced.implausible.contains(from) {
            self.traced.implausible = self.traced.implausible.with(from);
            self.trace(TraceEvent::Implausible { from, message });
        }
    }

    /// Replica without memory: a member says that it has none.
    pub(super) fn on_without_memory(&mut self, member: ReplicaId) {
        self.traced.without_memory[member.index()] = Some(self.now.instant);
    }

    /// Replica without memory: tells if a majority has none. They say so again and again until a view takes them in.
    pub(super) fn trace_memory_gone(&mut self) {
        let (now, patience) = (self.now.instant, self.config.settings.suspect_after);
        let is_without = |member: &ReplicaId| {
            let heard = self.traced.without_memory[member.index()];
            *member == self.config.replica || heard.is_some_and(|heard| now < heard.after(patience))
        };
        let members: ReplicaSet = self.config.configuration.members().filter(is_without).collect();
        let is_gone =
            members.len() >= self.config.configuration.majority() && now >= self.traced.since.after(patience);
        if is_gone && !core::mem::replace(&mut self.traced.memory_gone, true) {
            self.trace(TraceEvent::MemoryGone { members });
        }
    }

    /// Leader: tells when it stops hearing as many followers as it needs, and when it hears them again.
    pub(super) fn trace_quorum(&mut self) {
        let silent = self.now.instant.since(self.quorum_contact());
        let lost = silent >= self.config.settings.suspect_after;
        if lost != core::mem::replace(&mut self.traced.quorum_lost, lost) {
            let view = self.view;
            self.trace(if lost {
                TraceEvent::QuorumLost { view, silent }
            } else {
                TraceEvent::QuorumRegained { view }
            });
        }
    }

    /// For how long this replica has known of no working majority; `None` if one works without it: others have a log or a
    /// view that it is still to get, or it waits without its memory to be let in.
    #[must_use]
    pub fn quorum_silence(&self, now: Instant) -> Option<Duration> {
        let is_elsewhere = matches!(self.role, Role::Recovering(_)) || self.awaits_transfer();
        (!is_elsewhere).then(|| now.since(self.quorum_contact()))
    }

    /// The newest moment at which this replica knew of a working majority that it is part of: as a leader, because `f`
    /// followers answered; as a follower, because its leader spoke; or because it had just started or changed views.
    #[must_use]
    pub fn quorum_contact(&self) -> Instant {
        let heard = match &self.role {
            Role::Leader(_) => self.confirmed_at().unwrap_or_default(),
            Role::Follower(follower) => follower.leader_contact,
            Role::ViewChange(_) | Role::Recovering(_) => Instant(0),
        };
        heard.max(self.traced.since)
    }
}
