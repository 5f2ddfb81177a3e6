//! Why a replica did what an operator will ask about: suspicions, view changes, leadership handed over, a quorum out of
//! reach. Emitted as [`Action::Trace`](super::Action::Trace) when something changes, never for each operation.
//! The driver logs them; nothing that the replica does depends on them.

use super::role::Role;
use super::{Action, Replica};
use core::time::Duration;
use syros_types::{Group, Instant, OpNumber, ReplicaId, ReplicaSet, View};

/// Why a leader gave the lead to another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HandOverReason {
    /// A client asked for it ([`Message::HandOver`](crate::message::Message::HandOver)).
    Requested,
    /// Its process stops or starts anew ([`Event::StepDown`](super::Event::StepDown)).
    Stopping,
    /// Its disk is behind those of `f` followers, for this long.
    SlowDisk(Duration),
    /// Its disk is nearly full, and those of a majority are not.
    FullDisk,
    /// Its wall clock has contradicted the group's clock, which its members' clocks make up, for some time.
    WrongClock(ClockError),
    /// Its state is not that of the majority.
    Diverged,
}

/// How far a wall clock is from the group's clock, which the members' clocks make up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockError {
    /// How far.
    pub off: Duration,
    /// It is ahead of the others; else behind.
    pub ahead: bool,
}

/// Why a replica left its view for a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ViewChangeCause {
    /// It missed its leader, and so did `f` others.
    LeaderSilent,
    /// The view before did not begin in time, and `f` others want to move on, too.
    NotBegun,
    /// The leader of its view left that view.
    LeaderLeft,
    /// This member has moved there.
    Followed(ReplicaId),
    /// It leads, this member has moved to a later view and cannot come back: it starts one that it leads again.
    Challenged(ReplicaId),
    /// It leads, and this member has moved on; it follows, because it has only just begun to lead or was told to.
    Yielded(ReplicaId),
    /// It leads, and this member lost its memory, which can enter a new view only.
    MemoryLost(ReplicaId),
    /// It led when its process ended: nobody may lead the same view twice.
    Restarted,
    /// It led, and this member already took part in a later view.
    Deposed(ReplicaId),
    /// It led, and fewer than `f` followers have answered it for this long.
    Unheard(Duration),
    /// It led, and lets this member lead.
    HandedOver(ReplicaId, HandOverReason),
}

/// Something about the group that a log should tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceEvent {
    /// Members have executed different things in a segment of the log.
    Differing {
        /// The segment's last entry.
        op_number: OpNumber,
    },
    /// This replica's state is not that of the majority: it answers no reads any more.
    Diverged {
        /// The last entry of the segment that showed it.
        op_number: OpNumber,
    },
    /// A follower misses its leader, and tells the others. It moves on only if `f` others agree.
    Suspected {
        /// The view that the replica is in.
        view: View,
        /// Whom it misses.
        leader: ReplicaId,
        /// How long it has not heard from it.
        silent: Duration,
    },
    /// A follower that missed its leader has heard it again, and stays.
    LeaderReturned {
        /// The view that the replica is in.
        view: View,
    },
    /// A replica left its view.
    LeftView {
        /// The view it was in.
        from: View,
        /// The view it moves to, which has not begun yet.
        to: View,
        /// Why.
        cause: ViewChangeCause,
    },
    /// A view change has not ended in time, and too few others are heard to want another view.
    Alone {
        /// The view that does not begin.
        view: View,
    },
    /// The log of a view that the replica is about to enter has to be fetched first.
    TransferBegan {
        /// That view.
        view: View,
        /// Who has the log.
        from: ReplicaId,
        /// The first entry that is asked for.
        first: OpNumber,
    },
    /// The log begins after what this replica lacks: it receives a snapshot.
    SnapshotBegan {
        /// Who has it.
        from: ReplicaId,
        /// Its last op number.
        op_number: OpNumber,
        /// Its length in bytes.
        bytes: u64,
    },
    /// A replica takes part in a view.
    EnteredView {
        /// The view.
        view: View,
        /// Who leads it.
        leader: ReplicaId,
        /// How long ago the replica left its last view, or started.
        took: Duration,
    },
    /// A leader has heard fewer than `f` followers for too long: it can complete nothing.
    QuorumLost {
        /// The view that it leads.
        view: View,
        /// How long ago it last heard as many as it needs.
        silent: Duration,
    },
    /// This replica has lost its memory, and so have so many others that a majority of the members has: nobody can say
    /// what was acknowledged, and no view begins any more. Told once in each life of a process.
    MemoryGone {
        /// All members known to have lost it.
        members: ReplicaSet,
    },
    /// A leader's wall clock has contradicted the group's clock, which its members' clocks make up, for some time. Log time does not follow it.
    WrongClock(ClockError),
    /// A member has sent a message that no right member sends. Told once in each view.
    Implausible {
        /// Who sent it.
        from: ReplicaId,
        /// The name of the message.
        message: &'static str,
    },
    /// It hears enough of them again.
    QuorumRegained {
        /// The view that it leads.
        view: View,
    },
}

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
        let (now, patience) = (self.now.instant, self.config.suspect_after);
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
        let lost = silent >= self.config.suspect_after;
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
