//! Why a replica did what an operator will ask about: suspicions, view changes, leadership handed over, a quorum out of
//! reach. Emitted as [`Action::Trace`](super::Action::Trace) when something changes, never for each operation.
//! The driver logs them; nothing that the replica does depends on them.

use crate::message::{Advice, Advised};
use core::time::Duration;
use syros_types::{FastQuorum, OpNumber, ReplicaId, ReplicaSet, View};

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
    /// The group's next configuration is without it.
    Replaced,
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
    /// It leads, and goes on with other active members: it has not heard those that it leaves out, and those that it takes
    /// back have caught up.
    ActiveMembers {
        /// Active no longer.
        left_out: ReplicaSet,
        /// Active again.
        taken_back: ReplicaSet,
    },
    /// It leads, and goes on in another mode, as was asked for.
    Mode(FastQuorum),
    /// It led, and the group's next configuration has been committed.
    Reconfigured,
    /// It led, and lets this member lead.
    HandedOver(ReplicaId, HandOverReason),
}

impl ViewChangeCause {
    /// The names of all causes in metrics.
    pub const NAMES: [&'static str; 14] = [
        "leader-silent",
        "not-begun",
        "leader-left",
        "followed",
        "challenged",
        "yielded",
        "memory-lost",
        "restarted",
        "deposed",
        "unheard",
        "active-members",
        "mode",
        "reconfigured",
        "handed-over",
    ];

    /// Its place in [`NAMES`](Self::NAMES).
    #[must_use]
    pub const fn place(self) -> usize {
        match self {
            Self::LeaderSilent => 0,
            Self::NotBegun => 1,
            Self::LeaderLeft => 2,
            Self::Followed(_) => 3,
            Self::Challenged(_) => 4,
            Self::Yielded(_) => 5,
            Self::MemoryLost(_) => 6,
            Self::Restarted => 7,
            Self::Deposed(_) => 8,
            Self::Unheard(_) => 9,
            Self::ActiveMembers { .. } => 10,
            Self::Mode(_) => 11,
            Self::Reconfigured => 12,
            Self::HandedOver(..) => 13,
        }
    }
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
    /// A member or a learner gets entries that are gone from memory, from the log on disk.
    DroppedEntriesGiven {
        /// Who gets them.
        to: ReplicaId,
        /// The first one.
        first: OpNumber,
        /// How many.
        entries: u64,
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
    /// A leader tells its clients how updates, or reads, had better come.
    Advised {
        /// Which of them.
        of: Advised,
        /// How.
        advice: Advice,
        /// So many updates a second it has executed until now.
        rate: u64,
        /// For this share of that time its process was busy, in thousandths.
        load: u64,
    },
    /// It hears enough of them again.
    QuorumRegained {
        /// The view that it leads.
        view: View,
    },
}
