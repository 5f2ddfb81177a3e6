//! Worlds whose Redis clients are users, and whose users change.

use syros_sim::{Options, Swarm, run_swarm};

/// The first worlds of their kind.
fn worlds() -> impl Iterator<Item = Swarm> {
    (1..).map(Swarm::draw).filter(|swarm| swarm.front_ends.is_some_and(|world| world.users.is_some()))
}

#[test]
fn rights_are_linearizable() {
    for swarm in worlds().take(30) {
        let report = run_swarm(&swarm, &Options::default());
        assert_eq!(report.violation, None, "seed {}", swarm.seed);
    }
}
