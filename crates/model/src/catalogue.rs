//! The models there are, each with the known-wrong variants that it must show to be wrong.

use crate::machine::Operation::{Append, AppendAndGet, Get, Set};
use crate::script_step::{End, ScriptStep};
use crate::search::{Report, search};
use crate::setup::{Bounded, Budget, Change, DiskSteps, Setup, Time};
use syros_protocol::replica::{Durability, PlantedBug};
use syros_types::{FastQuorum, ReadPolicy};

/// One model and its known-wrong variants.
#[derive(Clone, Debug)]
pub struct Model {
    setup: Setup,
    wrong: &'static [PlantedBug],
}

impl Model {
    pub(crate) const fn new(setup: Setup, wrong: &'static [PlantedBug]) -> Self {
        Self { setup, wrong }
    }

    /// Its name on the command line.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.setup.name
    }

    /// What it is about, in one line.
    #[must_use]
    pub const fn about(&self) -> &'static str {
        self.setup.about
    }

    /// The known-wrong variants that it must find something in.
    #[must_use]
    pub const fn wrong(&self) -> &'static [PlantedBug] {
        self.wrong
    }

    #[cfg(test)]
    pub(crate) fn setup(&self) -> Setup {
        self.setup.clone()
    }

    /// Searches it, as it is or with something planted. `transitions_max` may only lower its own limit.
    #[must_use]
    pub fn check(&self, planted: Option<PlantedBug>, transitions_max: Option<usize>) -> Report {
        let mut setup = self.setup.clone();
        setup.planted = planted;
        setup.transitions_max =
            transitions_max.map_or(setup.transitions_max, |max| max.min(setup.transitions_max));
        search(setup)
    }
}

pub(crate) const NOTHING: Budget = Budget([0; crate::setup::BOUNDED]);

/// Transitions after which a search ends undecided: those that end by themselves take fewer.
const TRANSITIONS_MAX: usize = 40_000_000;

/// The same for spaces that are too large in any case: more would not fit into 6 GiB.
pub(crate) const TRANSITIONS_OF_LARGE_MAX: usize = 20_000_000;

pub(crate) fn base(name: &'static str, about: &'static str) -> Setup {
    Setup {
        name,
        about,
        members: 3,
        change: Change::Replacement,
        mode: FastQuorum::Majority,
        durability: Durability::Replicated,
        programs: &[],
        reads: ReadPolicy::Leader,
        walls: &[],
        budget: NOTHING,
        view_max: 0,
        time: Time::Timers,
        answers_at_once: true,
        heartbeats: false,
        transfers: false,
        slow_disk: None,
        slow_engine: None,
        script: &[],
        transitions_max: TRANSITIONS_MAX,
        planted: None,
    }
}

/// The models of all modes but the mixed one.
pub(crate) fn models() -> Vec<Model> {
    vec![
        normal(),
        majority(),
        duplicates(),
        supermajority(),
        second_view(),
        old_requests(),
        late_answers(),
        fork(),
        five(),
        commutative(),
        commutative_views(),
        commutative_five(),
        rejoin(),
        replaced(),
        replacement(),
        grown(),
        growth(),
        learned(),
        shrunk(),
        restart(),
        slow_disk(),
        disk_steps(),
        disk_steps_next(),
        damaged_log(),
        leases(),
        quorum_reads(),
        member_reads(),
        reads_over_views(),
    ]
}

fn normal() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)], &[Set(0, 2), Get(0)]],
        walls: &[&[10, 20], &[20, 10]],
        time: Time::Clocks,
        heartbeats: true,
        budget: NOTHING.with(Bounded::Ordering, 2),
        ..base("normal", "fast path, conflict, ordering and a read, without a view change")
    };
    Model { setup, wrong: &[PlantedBug::ReadSkipsPending, PlantedBug::FastQuorumWithoutLeader] }
}

fn majority() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)], &[Set(0, 2)]],
        walls: &[&[20, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Ordering, 1),
        view_max: 1,
        ..base("majority", "a view change with recovery of the durability logs, in majority mode")
    };
    Model {
        setup,
        wrong: &[
            PlantedBug::NoConflictCheck,
            PlantedBug::RecoverNothing,
            PlantedBug::RecoverEverything,
            PlantedBug::FastQuorumWithoutLeader,
        ],
    }
}

fn duplicates() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)], &[Set(0, 2)]],
        walls: &[&[20, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Duplicate, 1),
        view_max: 1,
        ..base("duplicates", "the same without background ordering, and with a message that arrives twice")
    };
    Model { setup, wrong: &[PlantedBug::OkForOrdered] }
}

fn supermajority() -> Model {
    let setup = Setup {
        mode: FastQuorum::Supermajority,
        programs: &[&[Append(0, 1)], &[Append(0, 2)]],
        walls: &[&[20, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Ordering, 1),
        view_max: 1,
        ..base("supermajority", "a view change in supermajority mode, with updates that read the old value")
    };
    Model {
        setup,
        wrong: &[
            PlantedBug::NoConflictCheck,
            PlantedBug::RecoverNothing,
            PlantedBug::RecoveryThresholdTooHigh,
        ],
    }
}

fn second_view() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)], &[Set(0, 2)]],
        walls: &[&[11, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2),
        view_max: 2,
        script: &[ScriptStep::Move(1), ScriptStep::Move(2), ScriptStep::Quiesce],
        ..base("second-view", "a second view change, with requests of the first view still on their way")
    };
    Model { setup, wrong: &[PlantedBug::NoConflictCheck] }
}

fn old_requests() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)], &[Set(0, 2)]],
        walls: &[&[11, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2),
        view_max: 2,
        script: &[
            ScriptStep::Move(1),
            ScriptStep::Move(2),
            ScriptStep::Quiesce,
            ScriptStep::Invoke(1),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(2)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(1)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(0)),
        ],
        ..base("old-requests", "the same, one update of the second view being complete")
    };
    Model { setup, wrong: &[PlantedBug::AnyViewAccepted] }
}

fn late_answers() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)]],
        walls: &[&[10]],
        budget: NOTHING.with(Bounded::Suspicion, 2),
        view_max: 2,
        answers_at_once: false,
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
            ScriptStep::Move(1),
            ScriptStep::Move(2),
            ScriptStep::Deliver("DoViewChange", End::Member(2), End::Member(1)),
            ScriptStep::Deliver("StartView", End::Member(1), End::Member(0)),
            ScriptStep::Deliver("StartView", End::Member(1), End::Member(2)),
        ],
        ..base("late-answers", "a second view change, with answers of the first view still on their way")
    };
    Model { setup, wrong: &[PlantedBug::AcksOfOtherViewsCounted] }
}

fn fork() -> Model {
    let setup = Setup {
        programs: &[&[AppendAndGet(0, 1)], &[AppendAndGet(0, 2)], &[Set(0, 3)]],
        walls: &[&[10, 10, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 1).with(Bounded::Ordering, 1),
        view_max: 3,
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Invoke(1),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(0)),
            ScriptStep::Lose,
            ScriptStep::Move(1),
            ScriptStep::Move(2),
            ScriptStep::Deliver("DoViewChange", End::Member(2), End::Member(1)),
            ScriptStep::Deliver("StartView", End::Member(1), End::Member(2)),
        ],
        ..base("fork", "a leader that was left behind with uncommitted entries comes back")
    };
    Model { setup, wrong: &[PlantedBug::StaleLogChosen] }
}

fn five() -> Model {
    let setup = Setup {
        members: 5,
        mode: FastQuorum::Supermajority,
        programs: &[&[Append(0, 1)], &[Append(0, 2)]],
        walls: &[&[10, 20]],
        budget: NOTHING.with(Bounded::Suspicion, 3),
        view_max: 1,
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(2)),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(3)),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(4)),
            ScriptStep::Invoke(1),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(1)),
        ],
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base("five", "a view change of five replicas in supermajority mode")
    };
    Model { setup, wrong: &[PlantedBug::RecoverInArrivalOrder, PlantedBug::RecoveryThresholdTooHigh] }
}

fn commutative() -> Model {
    let setup = Setup {
        mode: FastQuorum::NilextOrCommutative,
        programs: &[&[AppendAndGet(0, 1)], &[AppendAndGet(0, 2)]],
        walls: &[&[20, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Ordering, 1),
        view_max: 1,
        ..base("commutative", "a view change, with updates that the leader answers before it executes them")
    };
    Model {
        setup,
        wrong: &[
            PlantedBug::EvaluatedBeforeExecuted,
            PlantedBug::EvaluationIsEnough,
            PlantedBug::RecoverNothing,
        ],
    }
}

fn commutative_views() -> Model {
    let setup = Setup {
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Invoke(1),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(1)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(2)),
        ],
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..commutative().setup
    };
    let setup = Setup {
        name: "commutative-views",
        about: "the same, from where leader and followers differ",
        ..setup
    };
    Model { setup, wrong: &[PlantedBug::EvaluationOfOtherViewKept] }
}

fn commutative_five() -> Model {
    let setup = Setup {
        members: 5,
        mode: FastQuorum::NilextOrCommutative,
        programs: &[&[Append(0, 1)], &[AppendAndGet(0, 2)]],
        walls: &[&[10, 20]],
        budget: NOTHING.with(Bounded::Suspicion, 3),
        view_max: 1,
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(3)),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(4)),
            ScriptStep::Invoke(1),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(0)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(1)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(3)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(4)),
        ],
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base("commutative-five", "the same with five replicas, two of which hold an update that is pending")
    };
    Model { setup, wrong: &[PlantedBug::OverlapIgnored] }
}

fn rejoin() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)]],
        walls: &[&[10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Restart, 1),
        view_max: 3,
        transfers: true,
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base("rejoin", "a replica restarts without memory and is let in again")
    };
    Model { setup, wrong: &[PlantedBug::AmnesiacRejoinsAtOnce] }
}

/// One update is complete with the leader and one follower, the next configuration is committed, and the follower has left its
/// view for the first one of that.
fn replaced() -> Model {
    let setup = Setup {
        durability: Durability::Fsync,
        programs: &[&[Set(0, 1)], &[Set(0, 2)]],
        walls: &[&[10, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Newcomer, 1).with(Bounded::Retry, 3),
        view_max: 4,
        transfers: true,
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(1)),
            ScriptStep::Reconfigure(0),
            ScriptStep::Deliver("Prepare", End::Member(0), End::Member(1)),
            ScriptStep::Deliver("PrepareOk", End::Member(1), End::Member(0)),
            ScriptStep::Deliver("Configuration", End::Member(0), End::Member(1)),
            ScriptStep::Deliver("StartViewChange", End::Member(0), End::Member(1)),
        ],
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base("replaced", "a new node comes into a group whose leader has moved to its configuration")
    };
    Model { setup, wrong: &[PlantedBug::RecoverNothing] }
}

/// The same from the beginning.
fn replacement() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)]],
        walls: &[&[10]],
        budget: NOTHING
            .with(Bounded::Suspicion, 2)
            .with(Bounded::Reconfiguration, 1)
            .with(Bounded::Newcomer, 1)
            .with(Bounded::Retry, 1),
        script: &[],
        name: "replacement",
        about: "a member is replaced before, during or after an update and a view change",
        ..replaced().setup
    };
    Model { setup, wrong: &[] }
}

/// A group of one has done an update and grows by two nodes, which hold nothing.
fn grown() -> Model {
    let setup = Setup {
        change: Change::Growth,
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Newcomer, 2).with(Bounded::Retry, 3),
        view_max: 5,
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
            ScriptStep::Reconfigure(0),
        ],
        name: "grown",
        about: "two new nodes come into a group of one, whose leader has moved to their configuration",
        ..replaced().setup
    };
    Model { setup, wrong: &[PlantedBug::SizeOfBefore] }
}

/// The same from the beginning.
fn growth() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1), Get(0)]],
        walls: &[&[10]],
        budget: NOTHING
            .with(Bounded::Suspicion, 2)
            .with(Bounded::Reconfiguration, 1)
            .with(Bounded::Newcomer, 2)
            .with(Bounded::Retry, 2),
        script: &[],
        name: "growth",
        about: "a group of one grows before, during or after an update and a view change",
        ..grown().setup
    };
    Model { setup, wrong: &[] }
}

/// A group of one has done an update, which two nodes have copied, and another one, which they have not.
fn learned() -> Model {
    let setup = Setup {
        change: Change::Learning,
        programs: &[&[Set(0, 1), Set(0, 2), Get(0)]],
        walls: &[&[10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Reconfiguration, 1).with(Bounded::Retry, 3),
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
            ScriptStep::Newcome(1),
            ScriptStep::Tick(1),
            ScriptStep::Deliver("GetStartView", End::Member(1), End::Member(0)),
            ScriptStep::Deliver("StartView", End::Member(0), End::Member(1)),
            ScriptStep::Deliver("GetState", End::Member(1), End::Member(0)),
            ScriptStep::Deliver("NewState", End::Member(0), End::Member(1)),
            ScriptStep::Newcome(2),
            ScriptStep::Tick(2),
            ScriptStep::Deliver("GetStartView", End::Member(2), End::Member(0)),
            ScriptStep::Deliver("StartView", End::Member(0), End::Member(2)),
            ScriptStep::Deliver("GetState", End::Member(2), End::Member(0)),
            ScriptStep::Deliver("NewState", End::Member(0), End::Member(2)),
            ScriptStep::Invoke(0),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
        ],
        name: "learned",
        about: "a group of one grows by two nodes that have copied some of what it holds",
        ..grown().setup
    };
    // Two that hold something may lead, unlike two that hold nothing.
    Model { setup, wrong: &[PlantedBug::OldQuorumSkipped] }
}

/// One update is complete with the leader and one of the two followers that the group shrinks by.
fn shrunk() -> Model {
    let setup = Setup {
        change: Change::Shrinking,
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Retry, 3),
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(1)),
            ScriptStep::Reconfigure(0),
            ScriptStep::Deliver("Prepare", End::Member(0), End::Member(1)),
            ScriptStep::Deliver("PrepareOk", End::Member(1), End::Member(0)),
        ],
        name: "shrunk",
        about: "a group of three becomes one of one, whose leader has moved to that configuration",
        ..replaced().setup
    };
    Model { setup, wrong: &[PlantedBug::RecoverNothing, PlantedBug::OldQuorumSkipped] }
}

fn restart() -> Model {
    let setup = Setup {
        durability: Durability::Fsync,
        programs: &[&[Set(0, 1)]],
        walls: &[&[10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Restart, 1).with(Bounded::Ordering, 1),
        view_max: 1,
        ..base("restart", "a replica restarts from its disk, before, during or after a view change")
    };
    Model { setup, wrong: &[PlantedBug::DlogNotCleared] }
}

fn slow_disk() -> Model {
    let setup = Setup {
        durability: Durability::Fsync,
        programs: &[&[AppendAndGet(0, 1)], &[AppendAndGet(0, 2)]],
        walls: &[&[10, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Restart, 1),
        view_max: 1,
        slow_disk: Some((0, DiskSteps::Together)),
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base("slow-disk", "a leader whose records wait to be written restarts")
    };
    Model { setup, wrong: &[PlantedBug::RestartedLeaderResumes, PlantedBug::CommitTooEarly] }
}

fn disk_steps() -> Model {
    let setup = Setup {
        durability: Durability::Fsync,
        programs: &[&[Set(0, 1)]],
        walls: &[&[10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Restart, 1),
        view_max: 1,
        slow_disk: Some((0, DiskSteps::Apart)),
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base(
            "disk-steps",
            "a leader restarts: of its records some are on disk, and its core knows of fewer",
        )
    };
    Model { setup, wrong: &[PlantedBug::SentBeforeRecord, PlantedBug::OkBeforePersist] }
}

fn disk_steps_next() -> Model {
    let setup = Setup {
        name: "disk-steps-next",
        about: "the same at the leader of the next view, with an update that returns a value",
        programs: &[&[Set(0, 1)], &[AppendAndGet(0, 2)]],
        walls: &[&[10, 10]],
        slow_disk: Some((1, DiskSteps::Apart)),
        ..disk_steps().setup
    };
    Model {
        setup,
        wrong: &[
            PlantedBug::SentBeforeRecord,
            PlantedBug::OkBeforePersist,
            PlantedBug::ViewChangeBeforePersist,
            PlantedBug::PrepareOkBeforePersist,
        ],
    }
}

fn damaged_log() -> Model {
    let setup = Setup {
        durability: Durability::Fsync,
        programs: &[&[Set(0, 1)]],
        walls: &[&[10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Damage, 1),
        view_max: 3,
        transfers: true,
        script: &[
            ScriptStep::Move(2),
            ScriptStep::Deliver("DoViewChange", End::Member(2), End::Member(1)),
            ScriptStep::Deliver("StartView", End::Member(1), End::Member(0)),
        ],
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base(
            "damaged-log",
            "a replica's log is damaged: of what it knew it has its view, in a file of its own",
        )
    };
    Model { setup, wrong: &[PlantedBug::ViewNotNoted, PlantedBug::AmnesiacRejoinsAtOnce] }
}

fn leases() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)], &[Get(0)]],
        walls: &[&[10, 10]],
        time: Time::Leases,
        budget: NOTHING.with(Bounded::Time, 3).with(Bounded::Suspicion, 2),
        view_max: 1,
        script: &[
            ScriptStep::Pass,
            ScriptStep::Pass,
            ScriptStep::Tick(0),
            ScriptStep::Deliver("Commit", End::Member(0), End::Member(1)),
            ScriptStep::Deliver("PrepareOk", End::Member(1), End::Member(0)),
            ScriptStep::Lose,
            ScriptStep::Pass,
        ],
        ..base("leases", "reads under a lease while a view changes, with one clock for all")
    };
    Model { setup, wrong: &[PlantedBug::ReadWithoutLease, PlantedBug::PromiseForgotten] }
}

fn quorum_reads() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)], &[Get(0), Get(0)]],
        reads: ReadPolicy::Quorum,
        walls: &[&[10, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Ordering, 1),
        view_max: 1,
        heartbeats: true,
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base("quorum-reads", "two reads, each of a majority, while a view changes")
    };
    Model {
        setup,
        wrong: &[PlantedBug::QuorumSkipsDlog, PlantedBug::AcceptedForgotten, PlantedBug::QuorumOfOneLess],
    }
}

fn member_reads() -> Model {
    let setup = Setup {
        programs: &[&[Set(0, 1)], &[Get(0), Get(0)]],
        reads: ReadPolicy::Meta,
        walls: &[&[10, 10]],
        time: Time::Clocks,
        heartbeats: true,
        budget: NOTHING.with(Bounded::Ordering, 2),
        ..base("member-reads", "reads of a follower's value, with the leader's word, without a view change")
    };
    Model {
        setup,
        wrong: &[PlantedBug::MetaSkipsPending, PlantedBug::HistoryTooLow, PlantedBug::FreshnessByLeader],
    }
}

/// The beginning of [`reads_over_views`]: an update has two numbers, in view 1 that only its leader has begun, and in
/// view 2 that has begun without that one.
const ONE_UPDATE_IN_TWO_PLACES: &[ScriptStep] = &[
    // Replica 0 orders something that only replica 4 gets, and completes an update with replicas 1 and 4.
    ScriptStep::Invoke(1),
    ScriptStep::Deliver("Request", End::Client(1), End::Member(0)),
    ScriptStep::Deliver("Prepare", End::Member(0), End::Member(4)),
    ScriptStep::Lose,
    ScriptStep::Invoke(0),
    ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
    ScriptStep::Deliver("Request", End::Client(0), End::Member(1)),
    ScriptStep::Deliver("Request", End::Client(0), End::Member(4)),
    ScriptStep::Deliver("Ok", End::Member(0), End::Client(0)),
    ScriptStep::Deliver("Ok", End::Member(1), End::Client(0)),
    ScriptStep::Deliver("Ok", End::Member(4), End::Client(0)),
    ScriptStep::Lose,
    // The reader reaches the other three, of which two answer in view 0.
    ScriptStep::Disconnect(2, 0),
    ScriptStep::Disconnect(2, 4),
    ScriptStep::Invoke(2),
    ScriptStep::Deliver("Read", End::Client(2), End::Member(2)),
    ScriptStep::Deliver("Read", End::Client(2), End::Member(3)),
    // Replicas 1, 2, and 3 make view 1.
    ScriptStep::Move(1),
    ScriptStep::Move(2),
    ScriptStep::Move(3),
    ScriptStep::Deliver("DoViewChange", End::Member(2), End::Member(1)),
    ScriptStep::Deliver("DoViewChange", End::Member(3), End::Member(1)),
    // Replicas 2, 3, and 4 do not hear of that, and make view 2.
    ScriptStep::Move(4),
    ScriptStep::Deliver("StartViewChange", End::Member(3), End::Member(2)),
    ScriptStep::Deliver("StartViewChange", End::Member(4), End::Member(2)),
    ScriptStep::LoseAmongMembers,
    ScriptStep::Timeout(2),
    ScriptStep::Timeout(2),
    ScriptStep::Timeout(2),
    ScriptStep::Deliver("StartViewChange", End::Member(2), End::Member(3)),
    ScriptStep::Deliver("StartViewChange", End::Member(2), End::Member(4)),
    ScriptStep::Deliver("DoViewChange", End::Member(3), End::Member(2)),
    ScriptStep::LoseTo(1),
    ScriptStep::Deliver("DoViewChange", End::Member(4), End::Member(2)),
    ScriptStep::Deliver("StartView", End::Member(2), End::Member(3)),
    ScriptStep::Deliver("StartView", End::Member(2), End::Member(4)),
    ScriptStep::Deliver("PrepareOk", End::Member(3), End::Member(2)),
    ScriptStep::Deliver("PrepareOk", End::Member(4), End::Member(2)),
    ScriptStep::Timeout(2),
    // The others are out of this.
    ScriptStep::LoseTo(0),
    ScriptStep::LoseTo(3),
    ScriptStep::LoseTo(4),
];

fn reads_over_views() -> Model {
    let setup = Setup {
        members: 5,
        programs: &[&[Set(0, 1)], &[AppendAndGet(1, 1)], &[Get(0)]],
        reads: ReadPolicy::Quorum,
        walls: &[&[10, 10, 10]],
        budget: NOTHING,
        view_max: 2,
        answers_at_once: false,
        heartbeats: true,
        slow_engine: Some(1),
        script: ONE_UPDATE_IN_TWO_PLACES,
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base(
            "reads-over-views",
            "a read of a majority of five over two view changes, one member executing in parts",
        )
    };
    Model { setup, wrong: &[PlantedBug::RinseOfOtherView] }
}
