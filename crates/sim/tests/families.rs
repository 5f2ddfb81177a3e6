//! Updates of every family of commands: how many round trips they take by default.

use syros_experiment::{Distribution, KeyChoice};
use syros_sim::families::{Families, Place, UPDATE_KINDS};

fn families(replicas: usize, place: Place, distribution: Distribution) -> Families {
    Families { replicas, place, choice: KeyChoice::Of(distribution), keys: 100_000, updates: 100, seed: 1 }
}

/// Of updates whose keys nothing else concerns.
#[test]
fn updates_by_themselves_take_one_round_trip() {
    for (replicas, place) in [(3, Place::Nodes), (3, Place::Gateways(2)), (5, Place::Nodes)] {
        let families = families(replicas, place, Distribution::Uniform);
        for kind in UPDATE_KINDS.iter().filter(|kind| !kind.concerns_everything()) {
            let found = families.measure(kind).unwrap();
            assert_eq!(found.one, found.updates, "{} at {place:?} of {replicas}: {found:?}", kind.name);
        }
    }
}

/// Of updates of popular keys, most of them at the Redis ports of three nodes; and all of those that concern everything, as
/// the leader orders them at once.
#[test]
fn updates_of_popular_keys_mostly_take_one_round_trip() {
    let families = families(3, Place::Nodes, Distribution::Zipfian { skew: 0.99 });
    for kind in &UPDATE_KINDS {
        let found = families.measure(kind).unwrap();
        let least = if kind.concerns_everything() { 100 } else { 85 };
        assert!(found.one * 100 >= least * found.updates, "{}: {found:?}", kind.name);
    }
}

/// From gateways, those that concern everything meet each other, which the measurement has to see.
#[test]
fn updates_of_everything_meet_each_other() {
    let families = families(5, Place::Gateways(2), Distribution::Uniform);
    let swaps = UPDATE_KINDS.iter().find(|kind| kind.name == "SWAPDB").unwrap();
    let found = families.measure(swaps).unwrap();
    assert!(found.one < found.updates / 2, "{found:?}");
    let sets = families.measure(&UPDATE_KINDS[0]).unwrap();
    assert_eq!(sets.one, sets.updates, "{sets:?}");
}
