//! The models of mixed fast quorums: overwrites of one key complete with a majority and are recovered by union, all other
//! updates complete with all active members and are recovered by intersection; each view names its active members.

use crate::catalogue::{Model, NOTHING, TRANSITIONS_OF_LARGE_MAX, base};
use crate::machine::Operation::{Append, AppendAndGet, Copy, Get, Set, SetBoth};
use crate::script_step::{End, ScriptStep};
use crate::setup::{Bounded, Setup, Time};
use syros_protocol::replica::{Durability, PlantedBug};
use syros_types::{FastQuorum, ReplicaSet};

/// Replicas 0 and 1.
const WITHOUT_LAST: ReplicaSet = ReplicaSet(0b011);

/// Replicas 0 and 2.
const WITHOUT_NEXT: ReplicaSet = ReplicaSet(0b101);

/// All three.
const EVERYBODY: ReplicaSet = ReplicaSet(0b111);

/// View 3 has begun at its leader, with replicas 0 and 2 active. The StartViews are on their way.
const NEXT_IS_PASSIVE: &[ScriptStep] = &[
    ScriptStep::Activate(0, WITHOUT_NEXT),
    ScriptStep::Deliver("StartViewChange", End::Member(0), End::Member(2)),
    ScriptStep::Deliver("DoViewChange", End::Member(2), End::Member(0)),
    ScriptStep::Deliver("StartView", End::Member(0), End::Member(2)),
];

fn mixed_base(name: &'static str, about: &'static str) -> Setup {
    Setup {
        mode: FastQuorum::Mixed,
        programs: &[&[AppendAndGet(0, 1)], &[Set(0, 2)]],
        walls: &[&[20, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Ordering, 1),
        view_max: 1,
        transitions_max: TRANSITIONS_OF_LARGE_MAX,
        ..base(name, about)
    }
}

/// Every one.
pub(crate) fn models() -> Vec<Model> {
    vec![
        mixed(),
        mixed_merges(),
        mixed_overwrites(),
        mixed_keys(),
        mixed_copies(),
        mixed_views(),
        mixed_passive(),
        mixed_restart(),
        mixed_rejoin(),
        mixed_active(),
        mixed_return(),
        mixed_late(),
    ]
}

fn mixed() -> Model {
    let setup = mixed_base(
        "mixed",
        "a view change in mixed mode, with an overwrite and an update that returns a value",
    );
    Model::new(
        setup,
        &[
            PlantedBug::StrongWithOneLess,
            PlantedBug::EvaluationIsEnough,
            PlantedBug::OverlapIgnored,
            PlantedBug::EvaluatedBeforeExecuted,
            PlantedBug::NoConflictCheck,
            PlantedBug::RecoverNothing,
            PlantedBug::AcceptedLeftBehind,
        ],
    )
}

fn mixed_merges() -> Model {
    let setup = Setup {
        programs: &[&[Append(0, 1)], &[Set(0, 2)]],
        walls: &[&[10, 20]],
        ..mixed_base("mixed-merges", "the same with a merge in the place of the update that returns a value")
    };
    Model::new(setup, &[PlantedBug::NoConflictCheck])
}

fn mixed_overwrites() -> Model {
    let setup = Setup {
        programs: &[&[AppendAndGet(0, 1)], &[Set(0, 2)], &[Set(0, 3)]],
        walls: &[&[10, 20, 10]],
        script: &[
            ScriptStep::Invoke(1),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(0)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(2)),
        ],
        ..mixed_base("mixed-overwrites", "the same with two overwrites, one of which is complete")
    };
    Model::new(setup, &[PlantedBug::RecoverEverything, PlantedBug::StrongByUnion])
}

fn mixed_keys() -> Model {
    let setup = Setup {
        programs: &[&[SetBoth(1)], &[Set(0, 2), Get(1)]],
        walls: &[&[10, 20]],
        time: Time::Clocks,
        heartbeats: true,
        budget: NOTHING.with(Bounded::Suspicion, 2),
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(1)),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(2)),
            ScriptStep::Invoke(1),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(0)),
        ],
        ..mixed_base(
            "mixed-keys",
            "the same with an update of two keys, which only followers have, and a read",
        )
    };
    Model::new(setup, &[PlantedBug::SharedKeysAtLeaderOnly])
}

fn mixed_copies() -> Model {
    let setup = Setup {
        programs: &[&[Copy(0, 1)], &[Set(0, 2), Set(0, 3)]],
        walls: &[&[11, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2),
        script: &[
            ScriptStep::Invoke(1),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(0)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(2)),
            ScriptStep::Invoke(0),
        ],
        ..mixed_base("mixed-copies", "the same with an update that shows an overwrite in another key")
    };
    Model::new(setup, &[PlantedBug::SharedKeysIgnored, PlantedBug::NoConflictCheck])
}

fn mixed_views() -> Model {
    let setup = Setup {
        budget: NOTHING.with(Bounded::Suspicion, 2),
        view_max: 2,
        script: &[ScriptStep::Move(1), ScriptStep::Move(2), ScriptStep::Quiesce],
        ..mixed_base(
            "mixed-views",
            "a second view change, the first leader being passive since the first one",
        )
    };
    Model::new(setup, &[PlantedBug::PassiveAccepts, PlantedBug::PassiveRecovered])
}

fn mixed_passive() -> Model {
    let setup = Setup {
        view_max: 4,
        script: NEXT_IS_PASSIVE,
        ..mixed_base("mixed-passive", "a passive member is to lead the next view")
    };
    Model::new(setup, &[PlantedBug::PassiveAccepts, PlantedBug::PassiveRecovered])
}

fn mixed_restart() -> Model {
    let setup = Setup {
        durability: Durability::Fsync,
        programs: &[&[Append(0, 1)], &[Set(0, 2)]],
        walls: &[&[10, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Restart, 1),
        view_max: 4,
        script: NEXT_IS_PASSIVE,
        ..mixed_base("mixed-restart", "the same, and a member restarts from its disk")
    };
    Model::new(setup, &[PlantedBug::RuleForgotten])
}

fn mixed_rejoin() -> Model {
    let setup = Setup {
        programs: &[&[AppendAndGet(0, 1)]],
        walls: &[&[10]],
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Restart, 1),
        view_max: 3,
        transfers: true,
        ..mixed_base("mixed-rejoin", "an active member restarts without memory and is let in again")
    };
    Model::new(setup, &[PlantedBug::AmnesiacRejoinsAtOnce])
}

fn mixed_active() -> Model {
    let setup = Setup {
        budget: NOTHING.with(Bounded::Suspicion, 2).with(Bounded::Activation, 1),
        view_max: 4,
        ..mixed_base("mixed-active", "a leader leaves a member out, and another view change follows")
    };
    Model::new(setup, &[PlantedBug::ActiveWithinView])
}

fn mixed_return() -> Model {
    let setup = Setup {
        programs: &[&[AppendAndGet(0, 1), AppendAndGet(0, 3)], &[Set(0, 2)]],
        walls: &[&[10, 10]],
        budget: NOTHING.with(Bounded::Suspicion, 2),
        view_max: 7,
        script: &[
            ScriptStep::Activate(0, WITHOUT_LAST),
            ScriptStep::Deliver("StartViewChange", End::Member(0), End::Member(1)),
            ScriptStep::Deliver("DoViewChange", End::Member(1), End::Member(0)),
            ScriptStep::Quiesce,
            ScriptStep::Invoke(0),
            ScriptStep::Quiesce,
            ScriptStep::Activate(0, EVERYBODY),
            ScriptStep::Deliver("StartViewChange", End::Member(0), End::Member(1)),
            ScriptStep::Deliver("DoViewChange", End::Member(1), End::Member(0)),
        ],
        ..mixed_base("mixed-return", "a leader takes a member back, and another view change follows")
    };
    Model::new(
        setup,
        &[PlantedBug::ActiveOfOtherView, PlantedBug::RuleOfOwnView, PlantedBug::StrongWithOneLess],
    )
}

fn mixed_late() -> Model {
    let setup = Setup {
        programs: &[&[AppendAndGet(0, 1)], &[AppendAndGet(0, 2)]],
        walls: &[&[10, 10]],
        budget: NOTHING,
        answers_at_once: false,
        script: &[
            ScriptStep::Invoke(0),
            ScriptStep::Invoke(1),
            ScriptStep::Deliver("Request", End::Client(0), End::Member(0)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(1)),
            ScriptStep::Deliver("Request", End::Client(1), End::Member(2)),
            ScriptStep::Deliver("Evaluated", End::Member(0), End::Client(0)),
            ScriptStep::Move(1),
            ScriptStep::Move(2),
        ],
        ..mixed_base("mixed-late", "a view change with answers of the view before still on their way")
    };
    Model::new(setup, &[PlantedBug::EvaluationOfOtherViewKept])
}
