//! Engines on disk: the seeds of memory worlds are left alone, and what is done wrong with a disk shows.

use syros_protocol::replica::PlantedBug;
use syros_sim::{Options, Swarm, run_swarm};

#[test]
fn where_engines_are_changes_nothing_else_that_is_drawn() {
    let mut on_disk = 0;
    for seed in 1..=300 {
        let (drawn, memory, disk) =
            (Swarm::draw(seed), Swarm::draw_in_memory(seed), Swarm::draw_on_disk(seed));
        assert!(memory.disk_engine.is_none() && disk.disk_engine.is_some());
        assert!(drawn == if drawn.disk_engine.is_some() { disk } else { memory });
        on_disk += u64::from(drawn.disk_engine.is_some());
    }
    assert!((70..130).contains(&on_disk), "{on_disk} of 300 worlds have engines on disk");
}

#[test]
fn worlds_with_engines_on_disk_are_well() {
    for seed in 1..=60 {
        let report = run_swarm(&Swarm::draw_on_disk(seed), &Options::default());
        assert!(report.violation.is_none(), "seed {seed}: {:?}", report.violation);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| run_swarm(&Swarm::draw_on_disk(seed), &Options::default()).trace_hash;
    for seed in 1..=10 {
        assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn what_is_done_wrong_with_a_disk_shows() {
    let bugs = [
        PlantedBug::NobodyMeets,
        PlantedBug::CheckpointBeforeRecord,
        PlantedBug::CheckpointInPassing,
        PlantedBug::CheckpointWithoutSessions,
        PlantedBug::ReadOfSeveralInPassing,
    ];
    for bug in bugs {
        let options = Options { planted: Some(bug), ..Options::default() };
        let shows = |seed: &u64| run_swarm(&Swarm::draw_on_disk(*seed), &options).violation.is_some();
        assert!((1..=2_000).any(|seed| shows(&seed)), "{} is not found", bug.name());
    }
}

/// Where the log alone never asks for a checkpoint, what is in memory does, and clients are served.
#[test]
fn checkpoints_come_by_what_is_in_memory() {
    let run = |seed, planted| {
        let mut swarm = Swarm::draw_on_disk(seed);
        swarm.protocol.replica.snapshot_log_bytes = usize::MAX;
        swarm.workload.value_bytes = 2_000;
        run_swarm(&swarm, &Options { planted, service: true, ..Options::default() }).violation
    };
    let mut found = 0;
    for seed in 1..=20 {
        let violation = run(seed, None);
        assert!(violation.is_none(), "seed {seed}: {violation:?}");
        found += u64::from(run(seed, Some(PlantedBug::CheckpointByLogAlone)).is_some());
    }
    assert!(found > 0, "no world shows that clients wait for ever");
}
