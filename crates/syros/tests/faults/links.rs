//! Links that are cut, in both directions or in one.

use crate::load::Load;
use crate::setup::{PATIENCE, Setup, say, sleep, start};
use syros_bench::cluster::LinkEnd;

/// Cuts these directions for a while, and mends them. Updates must go through in the meantime. Returns the
/// leader at the end of it.
fn cut_for_a_while(
    test: &str,
    setup: &Setup,
    load: &Load,
    directions: &[(LinkEnd, LinkEnd)],
) -> Option<usize> {
    for (from, to) in directions {
        setup.cluster.cut_one_way(*from, *to).unwrap();
    }
    sleep(1300);
    load.must_go_on();
    let before = load.updates();
    sleep(500);
    let (updates, leader) = (load.updates() - before, setup.cluster.leader());
    say(&format!("{test}: {updates} updates in 500 ms, leader {leader:?}, without {directions:?}"));
    for (from, to) in directions {
        setup.cluster.mend_one_way(*from, *to).unwrap();
    }
    leader
}

#[test]
fn leaders_are_cut_off() {
    let Some(mut setup) = start("cut-off", 3) else { return };
    let load = Load::start(&setup.cluster, 3);
    for _ in 0..3 {
        sleep(400);
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        setup.cluster.cut(leader).unwrap();
        sleep(1000);
        load.must_go_on();
        sleep(500);
        setup.cluster.mend(leader).unwrap();
    }
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("cut-off");
}

/// The leader is cut off from the other replicas, but its clients are not: it must tell them nothing that it
/// cannot know.
#[test]
fn leaders_are_alone_with_their_clients() {
    let Some(mut setup) = start("alone", 3) else { return };
    let load = Load::start(&setup.cluster, 3);
    for _ in 0..3 {
        sleep(400);
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        let others = (0..3).filter(|node| *node != leader).map(LinkEnd::Node);
        let directions = |other| [(LinkEnd::Node(leader), other), (other, LinkEnd::Node(leader))];
        let directions: Vec<_> = others.flat_map(directions).collect();
        let new = cut_for_a_while("alone", &setup, &load, &directions);
        assert!(new.is_some_and(|new| new != leader), "{new:?} after {leader}");
    }
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("alone");
}

#[test]
fn a_leader_that_is_not_heard() {
    let Some(mut setup) = start("mute", 3) else { return };
    let load = Load::start(&setup.cluster, 3);
    for _ in 0..3 {
        sleep(400);
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        let others = (0..3).filter(|node| *node != leader).map(LinkEnd::Node);
        let directions: Vec<_> = others.map(|other| (LinkEnd::Node(leader), other)).collect();
        let new = cut_for_a_while("mute", &setup, &load, &directions);
        assert!(new.is_some_and(|new| new != leader), "{new:?} after {leader}");
    }
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("mute");
}

/// Nothing that the others say reaches it. TCP tells it nothing else than a line cut in both directions, but
/// some of its last words are still heard.
#[test]
fn a_leader_that_hears_nothing() {
    let Some(mut setup) = start("deaf", 3) else { return };
    let load = Load::start(&setup.cluster, 3);
    for _ in 0..3 {
        sleep(400);
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        let others = (0..3).filter(|node| *node != leader).map(LinkEnd::Node);
        let directions: Vec<_> = others.map(|other| (other, LinkEnd::Node(leader))).collect();
        let new = cut_for_a_while("deaf", &setup, &load, &directions);
        assert!(new.is_some_and(|new| new != leader), "{new:?} after {leader}");
    }
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("deaf");
}

/// Each of the six directions between three replicas, one at a time: the group has a quorum all the while.
#[test]
fn one_direction_of_one_link() {
    let Some(mut setup) = start("one-way", 3) else { return };
    let load = Load::start(&setup.cluster, 3);
    for from in 0..3 {
        for to in (0..3).filter(|to| *to != from) {
            setup.cluster.wait_until_well(PATIENCE).unwrap();
            cut_for_a_while("one-way", &setup, &load, &[(LinkEnd::Node(from), LinkEnd::Node(to))]);
        }
    }
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("one-way");
}

/// Clients that do not hear the leader, though the replicas do.
#[test]
fn clients_that_do_not_hear_the_leader() {
    let Some(mut setup) = start("unheard", 3) else { return };
    let load = Load::start(&setup.cluster, 3);
    for _ in 0..2 {
        sleep(400);
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        // The Redis clients of the other nodes go on.
        cut_for_a_while("unheard", &setup, &load, &[(LinkEnd::Node(leader), LinkEnd::Clients)]);
    }
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("unheard");
}
