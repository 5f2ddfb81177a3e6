//! Running seeds: one, or as many as it takes until a planted bug shows.

use crate::clock::VirtualTime;
use crate::stale;
use crate::stories::STORIES;
use crate::swarm::{Hunt, RemainingLinks, SECOND, Swarm};
use crate::tally::Tally;
use crate::verdict;
use crate::world::World;
use core::fmt;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use syros_protocol::replica::{Durability, PlantedBug};
use syros_types::{FastQuorum, Group, Protocol};

/// Longest safety phase, in virtual time, divided by the swarm's speed. Operations that were not issued
/// by then are not issued at all.
const SAFETY_PHASE_MAX: VirtualTime = 12 * SECOND;

/// How to run seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Keep a line of text for everything that happens.
    pub trace: bool,
    /// Run a known-wrong variant of the protocol.
    pub planted: Option<PlantedBug>,
    /// Give every world the settings of this protocol.
    pub protocol: Option<Protocol>,
    /// Give every world so many replicas.
    pub replicas: Option<Group>,
    /// Give every world the mixed mode.
    pub mixed: bool,
    /// Give every world permanent faults.
    pub permanent: bool,
    /// Judge service in every world.
    pub service: bool,
}

/// What came of one seed.
#[derive(Clone, Debug)]
pub struct SeedReport {
    /// The seed.
    pub seed: u64,
    /// Client operations invoked.
    pub operations: u64,
    /// What broke, and what came of it.
    pub tally: Tally,
    /// What was wrong; `None` if nothing was.
    pub violation: Option<String>,
    /// Hash of everything that happened: equal for equal runs.
    pub trace_hash: u64,
    /// Everything that happened, one line each, if it was asked for.
    pub trace: Vec<String>,
    /// Virtual time that passed, in nanoseconds.
    pub virtual_time: VirtualTime,
}

/// What came of many seeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Seeds run.
    pub seeds: u64,
    /// Client operations invoked.
    pub operations: u64,
    /// What broke, and what came of it.
    pub tally: Tally,
    /// Seeds with a violation.
    pub violations: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, operations, violations, .. } = self;
        let faults = self.tally.faults();
        write!(f, "{seeds} seeds, {operations} operations, {faults} faults, {violations} violations")
    }
}

impl Summary {
    /// Adds one seed's result.
    pub fn add(&mut self, report: &SeedReport) {
        self.seeds += 1;
        self.operations += report.operations;
        self.tally.add(&report.tally);
        self.violations += u64::from(report.violation.is_some());
    }

    /// What broke and what came of it, by kind: several lines.
    #[must_use]
    pub fn table(&self) -> String {
        self.tally.table()
    }
}

/// The command that runs one seed again.
#[must_use]
pub fn replay_command(seed: u64, options: &Options) -> String {
    let planted = options.planted.map(|bug| format!(" --plant {}", bug.name())).unwrap_or_default();
    let protocol = options.protocol.map(|protocol| format!(" --protocol {protocol}")).unwrap_or_default();
    let replicas = options.replicas.map(|group| format!(" --replicas {}", group.size())).unwrap_or_default();
    let mixed = if options.mixed { " --mixed" } else { "" };
    let permanent = if options.permanent { " --permanent" } else { "" };
    let service = if options.service { " --service" } else { "" };
    format!("syros-lab sim --seed {seed}{planted}{protocol}{replicas}{mixed}{permanent}{service}")
}

thread_local! {
    /// The replay command of the seed that this thread runs, and the panic that ended it.
    static RUNNING: RefCell<Option<String>> = const { RefCell::new(None) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes a failed assertion of a core tell which seed it belongs to, even where panics abort.
fn install_panic_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let running = RUNNING.with_borrow(Clone::clone);
            match running {
                None => before(info),
                Some(command) => {
                    PANIC.set(Some(format!("assertion failed: {info}")));
                    if cfg!(panic = "abort") {
                        eprintln!("{info}\nreplay with: {command}");
                    }
                }
            }
        }));
    });
}

/// Runs the world of one seed.
#[must_use]
pub fn run_seed(seed: u64, options: &Options) -> SeedReport {
    let mut swarm = match &options.protocol {
        Some(protocol) => Swarm::draw_for(seed, protocol),
        None => Swarm::draw(seed),
    };
    if options.mixed && swarm.fast_quorum != FastQuorum::Mixed {
        swarm.become_mixed();
    }
    let is_alone = options.protocol.is_some_and(|protocol| protocol.is_alone);
    if let Some(group) = options.replicas.filter(|_| !is_alone) {
        swarm.resize(group);
    }
    if options.permanent {
        swarm.draw_permanent();
    }
    swarm.service_judged |= options.service;
    if options.service {
        swarm.keep_size();
    }
    run_swarm(&swarm, options)
}

/// Runs a world.
#[must_use]
pub fn run_swarm(swarm: &Swarm, options: &Options) -> SeedReport {
    install_panic_hook();
    let seed = swarm.seed;
    RUNNING.set(Some(replay_command(seed, options)));
    let mut world = World::new(swarm.clone(), options.planted, options.trace);
    world.trace.line(0, format_args!("{swarm:?}"));
    let outcome = catch_unwind(AssertUnwindSafe(|| run_phases(&mut world)));
    RUNNING.set(None);
    let violation = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(violation)) => Some(violation),
        Err(_) => Some(PANIC.take().unwrap_or_default()),
    };
    let virtual_time = world.now();
    if let Some(violation) = &violation {
        world.trace.line(virtual_time, format_args!("violation: {violation}"));
    }
    SeedReport {
        seed,
        operations: world.history.operations().len() as u64,
        tally: world.tally,
        violation,
        trace_hash: world.trace.hash(),
        trace: world.trace.into_lines(),
        virtual_time,
    }
}

fn run_phases(world: &mut World) -> Result<(), String> {
    for _ in 0..world.swarm.workload.clients {
        world.add_client();
    }
    world.schedule_strike();
    world.begin_copying();
    let end = SAFETY_PHASE_MAX / u64::from(world.swarm.protocol.speed);
    while world.now() < end && !(world.left_to_issue == 0 && world.history.all_finished()) {
        if !world.step(end) {
            break;
        }
        world.violation().map_or(Ok(()), Err)?;
    }
    let settled = if world.is_ruined() {
        world.ruined_phase()
    } else {
        world.endure().and_then(|()| world.liveness_phase()).and_then(|()| world.judge_service())
    };
    let conversed = if settled.is_ok() && !world.is_ruined() {
        world.copies_phase().and_then(|()| world.conversation_phase())
    } else {
        Ok(())
    };
    world.judge_copy();
    world.violation().map_or(Ok(()), Err)?;
    // A history that is wrong says more than a group that is stuck.
    verdict::judge(&world.history, &world.invariants, world.lifetimes())?;
    stale::judge(&world.history, &world.invariants, world.swarm.disk_engine.is_some())?;
    world.judge_users()?;
    settled.and(conversed)
}

/// What shows a planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// This seed, which without the bug shows nothing.
    Seed(u64),
    /// This story, which ends well without the bug.
    Story(&'static str),
    /// Neither: the tests in this file do, which are not part of the simulator.
    Tests(&'static str),
}

/// Planted bugs that no random world shows, because what they take is not drawn or too rare, with the tests that show them.
const TESTED_ELSEWHERE: [(PlantedBug, &str); 41] = [
    (PlantedBug::DirectToStranger, "crates/protocol/src/replica/tests/direct.rs"),
    (PlantedBug::LogOfAnyView, "crates/protocol/src/replica/tests/direct.rs"),
    (PlantedBug::MixedEpochAnswers, "crates/protocol/src/client/tests/epochs.rs"),
    (PlantedBug::AmnesiacGivesState, "crates/protocol/src/replica/tests/amnesia.rs"),
    (PlantedBug::AmnesiacGoesBack, "crates/protocol/src/replica/tests/amnesia.rs"),
    (PlantedBug::RegistrationAbandoned, "crates/protocol/src/client/tests/sessions.rs"),
    (PlantedBug::NobodyWoken, "crates/node/src/driver/tests.rs"),
    (PlantedBug::SnapshotCutShort, "crates/node/src/snapshots/tests.rs"),
    (PlantedBug::LeaderRefusalIsEnough, "crates/sim/tests/memory.rs"),
    (PlantedBug::CheckpointByLogAlone, "crates/sim/tests/disk_engines.rs"),
    (PlantedBug::RefusalOutlivesProcess, "crates/protocol/src/client/tests/refusals.rs"),
    (PlantedBug::CrowdedOutForGood, "crates/protocol/src/replica/tests/sessions.rs"),
    (PlantedBug::RefusedUnheard, "crates/protocol/src/replica/tests/sessions.rs"),
    (PlantedBug::WindowOfExecuted, "crates/protocol/src/replica/tests/sessions.rs"),
    (PlantedBug::LeftOnce, "crates/node/src/front_end/waits/tests.rs"),
    (PlantedBug::FormationByQuorum, "crates/protocol/src/formation/tests/mod.rs"),
    (PlantedBug::HandshakeTellsEnough, "crates/protocol/src/formation/tests/handshakes.rs"),
    (PlantedBug::PromiseByOwnLease, "crates/protocol/src/replica/tests/clocks.rs"),
    (PlantedBug::SourceAskedAlone, "crates/protocol/src/replica/tests/view_changes.rs"),
    (PlantedBug::ShrunkByThoseThatGo, "crates/protocol/src/replica/tests/sizes.rs"),
    (PlantedBug::NewMembersNeverBegin, "crates/protocol/src/replica/tests/first_views.rs"),
    // Seed 44446 shows it, too, the 15,000th world or so of those that change their size.
    (PlantedBug::FirstRuleOfNow, "crates/protocol/src/replica/tests/first_views.rs"),
    (PlantedBug::FetchingUnheard, "crates/protocol/src/replica/tests/liveness.rs"),
    (PlantedBug::FruitlessLeaderStays, "crates/protocol/src/replica/tests/liveness.rs"),
    (PlantedBug::RestartsUnheard, "crates/protocol/src/replica/tests/liveness.rs"),
    (PlantedBug::OwnPatience, "crates/protocol/src/replica/tests/schedules/stars.rs"),
    (PlantedBug::UnansweredViewBegan, "crates/protocol/src/replica/tests/schedules/stars.rs"),
    (PlantedBug::AbsentStaysActive, "crates/protocol/src/replica/tests/active.rs"),
    (PlantedBug::ModeOfConfiguration, "crates/protocol/src/replica/tests/active.rs"),
    (PlantedBug::SlowStaysActive, "crates/sim/tests/protocols.rs"),
    (PlantedBug::ActiveWithinView, "crates/model/src/mixed.rs"),
    (PlantedBug::RuleForgotten, "crates/model/src/mixed.rs"),
    (PlantedBug::RuleOfOwnView, "crates/model/src/mixed.rs"),
    (PlantedBug::SilentForGood, "crates/protocol/src/replica/tests/liveness.rs"),
    (PlantedBug::AbsentAwaited, "crates/protocol/src/client/tests/quorums.rs"),
    (PlantedBug::FailuresMeasured, "crates/protocol/src/client/tests/quorums.rs"),
    (PlantedBug::AttachmentKept, "crates/protocol/src/client/tests/quorums.rs"),
    (PlantedBug::BehindForGood, "crates/protocol/src/client/tests/quorums.rs"),
    (PlantedBug::RefusedReadAwaited, "crates/protocol/src/client/tests/reads.rs"),
    (PlantedBug::CopiesOutliveState, "crates/node/src/front_end/tracking/cluster_tests.rs"),
    (PlantedBug::PeersNotValidated, "crates/protocol/src/replica/tests/hostile.rs"),
];

/// The worlds that aim at a planted bug.
fn aim(bug: PlantedBug) -> Options {
    use PlantedBug::{
        ActiveOfOtherView, BackoffOutlastsSession, ClockOfAnybody, DeadSourceAskedOn, DeposedLeaderStays,
        PassiveAccepts, PassiveRecovered, PatienceByAverages, RefusalByRecipients, RefusedForGood,
        StrongByUnion, StrongWithOneLess, UnheardLeaderStays,
    };
    let is_mixed = matches!(
        bug,
        ActiveOfOtherView | PassiveAccepts | PassiveRecovered | StrongByUnion | StrongWithOneLess
    );
    Options {
        planted: Some(bug),
        protocol: if is_mixed { "default".parse().ok() } else { None },
        permanent: matches!(bug, DeadSourceAskedOn | DeposedLeaderStays | UnheardLeaderStays),
        service: matches!(
            bug,
            PatienceByAverages
                | ClockOfAnybody
                | RefusedForGood
                | RefusalByRecipients
                | BackoffOutlastsSession
        ),
        ..Options::default()
    }
}

/// The only worlds that may show a planted bug, if they are so rare among all worlds that the others are left out.
fn hunt(bug: PlantedBug) -> Option<Hunt> {
    match bug {
        PlantedBug::SuffixDroppedForSnapshot => Some(Hunt::Snapshots),
        _ => None,
    }
}

/// True if the clients of a world ask for what may show a planted bug.
fn has_what_it_takes(bug: PlantedBug, swarm: &Swarm) -> bool {
    let world = swarm.front_ends;
    match bug {
        PlantedBug::GoneClientWaits
        | PlantedBug::WaiterNotWoken
        | PlantedBug::TakenForNothing
        | PlantedBug::PlaceNotKept
        | PlantedBug::DepartureForgotten => world.is_some_and(|world| world.waiters > 0),
        PlantedBug::PipelineForgotten | PlantedBug::CompletionToPlace => world.is_some(),
        PlantedBug::AnyNewcomerTaken
        | PlantedBug::FetchingCounted
        | PlantedBug::GrowthNotDeclared
        | PlantedBug::FirstRuleOfNow => swarm.sizes.is_some(),
        PlantedBug::EvictedInPassing | PlantedBug::EvictedBeside => {
            swarm.eviction.policy.order().is_some() && swarm.disk_engine.is_none()
        }
        PlantedBug::UserChangeToldEarly
        | PlantedBug::UsersElsewhereForgotten
        | PlantedBug::UsersForEver
        | PlantedBug::UsersOfNewCluster
        | PlantedBug::ProvisionalLoginKept
        | PlantedBug::ScriptOfNobody
        | PlantedBug::ExecNotChecked
        | PlantedBug::RemovedUserGoesOn => world.is_some_and(|world| world.users.is_some()),
        PlantedBug::AnnouncedAgain => world.is_some_and(|world| {
            world.converses && world.scripts_publish && world.at_nodes > 1 && world.gateways > 0
        }),
        PlantedBug::InvalidationLate | PlantedBug::InvalidationForgotten => {
            world.is_some_and(|world| world.keepers > 0)
        }
        PlantedBug::ScriptConcernsDeclared | PlantedBug::UnknownTriedAgain => {
            world.is_some_and(|world| world.joined_percent > 0)
        }
        PlantedBug::ScriptNotUndone => world.is_some_and(|world| world.joined_percent > 0 && world.declares),
        PlantedBug::SecondKeyForgotten => {
            swarm.workload.collections.is_some_and(|settings| settings.transfer_percent > 0)
        }
        _ => true,
    }
}

/// Plays the story of a planted bug, or if it has none, runs the first `seeds_max` seeds from 1 on of the worlds that aim at
/// it until one shows it, which without the bug shows nothing. `None` if neither does.
#[must_use]
pub fn run_planted(bug: PlantedBug, protocol: Option<Protocol>, seeds_max: u64) -> Option<Shown> {
    if let Some(story) = STORIES.iter().find(|story| story.bug == bug).filter(|_| protocol.is_none()) {
        return (story.play(false).is_ok() && story.play(true).is_err()).then_some(Shown::Story(story.name));
    }
    if let Some((_, tests)) = TESTED_ELSEWHERE.iter().find(|(other, _)| *other == bug) {
        return Some(Shown::Tests(tests));
    }
    let aimed = aim(bug);
    let options = Options { protocol: protocol.or(aimed.protocol), ..aimed };
    let sound = Options { planted: None, ..options };
    let fails = |seed, options: &Options| run_seed(seed, options).violation.is_some();
    let is_aimed = |seed: &u64| {
        let mut swarm = Swarm::draw(*seed);
        if options.permanent {
            swarm.draw_permanent();
        }
        // Those who return have to get everything from their sources: with fsync they have most of it.
        let chases = swarm.durability == Durability::Replicated
            && swarm.replicas >= 5
            && swarm.permanent.as_ref().is_some_and(|permanent| {
                permanent.chases && permanent.dead_max >= 2 && permanent.links == RemainingLinks::All
            });
        hunt(bug).is_none_or(|hunt| swarm.hunt == Some(hunt))
            && has_what_it_takes(bug, &swarm)
            && (chases || bug != PlantedBug::DeadSourceAskedOn)
    };
    let mut seeds = (1..).filter(is_aimed).take(usize::try_from(seeds_max).unwrap_or(usize::MAX));
    seeds.find(|seed| fails(*seed, &options) && !fails(*seed, &sound)).map(Shown::Seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_that_are_tested_elsewhere_are_tested_there() {
        for (bug, file) in TESTED_ELSEWHERE {
            let path = format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(text.contains(&format!("{bug:?}")), "{file} says nothing of {bug:?}");
        }
    }
}
