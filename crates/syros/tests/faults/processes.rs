//! Leaders that are killed, and leaders that sleep and wake.

use crate::common::{Redis, wait_for};
use crate::load::Load;
use crate::setup::{GIVE_UP_AFTER, PATIENCE, sleep, start, start_with_spare};
use syros_bench::cluster::LinkEnd;

#[test]
fn leaders_are_killed_again_and_again() {
    let Some(mut setup) = start("killed", 3) else { return };
    let load = Load::start(&setup.cluster, 3);
    for round in 0..6 {
        sleep(400);
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        setup.cluster.kill(leader).unwrap();
        if round % 2 == 0 {
            sleep(800);
            load.must_go_on();
            sleep(300);
        }
        // Else it is back before anybody misses it.
        setup.cluster.restart(leader).unwrap();
    }
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("killed");
}

#[test]
fn any_two_of_five_are_killed() {
    let Some(mut setup) = start("two-of-five", 5) else { return };
    let load = Load::start(&setup.cluster, 5);
    for round in 0..3 {
        sleep(400);
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        let other = (leader + 1 + round) % 5;
        setup.cluster.kill(leader).unwrap();
        setup.cluster.kill(other).unwrap();
        sleep(1500);
        load.must_go_on();
        sleep(300);
        setup.cluster.restart(other).unwrap();
        setup.cluster.restart(leader).unwrap();
    }
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("two-of-five");
}

#[test]
fn all_are_killed_at_once() {
    let Some(mut setup) = start("all-killed", 3) else { return };
    let load = Load::start(&setup.cluster, 3);
    for _ in 0..3 {
        sleep(600);
        (0..3).for_each(|node| setup.cluster.kill(node).unwrap());
        sleep(100);
        (0..3).for_each(|node| setup.cluster.restart(node).unwrap());
        setup.cluster.wait_until_well(PATIENCE).unwrap();
    }
    sleep(500);
    load.finish("all-killed");
}

/// A leader that was stopped believes in its lease when it wakes, unless it looks at the clock. In every other
/// round it wakes without the others, so that nobody but the clock can tell it.
#[test]
fn a_deposed_leader_that_wakes_reads_nothing_stale() {
    let Some(mut setup) = start("stopped", 3) else { return };
    let load = Load::start(&setup.cluster, 3);
    for round in 0..6 {
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        let others = [(leader + 1) % 3, (leader + 2) % 3].map(LinkEnd::Node);
        let directions = others.map(|other| [(LinkEnd::Node(leader), other), (other, LinkEnd::Node(leader))]);
        let directions = if round % 2 == 0 { &[][..] } else { directions.as_flattened() };
        let connect = |node| Redis::connect_to(setup.cluster.redis_address(node), GIVE_UP_AFTER * 2).unwrap();
        let mut sleeper = connect(leader);
        assert_eq!(sleeper.ask(&["SET", "probe", "old"]), "+OK");
        assert_eq!(sleeper.ask(&["GET", "probe"]), "old");
        setup.cluster.suspend(leader).unwrap();
        for (from, to) in directions {
            setup.cluster.cut_one_way(*from, *to).unwrap();
        }
        // Through another node, as soon as that takes it: it has a new leader then.
        let (mut other, new) = (connect((leader + 1) % 3), format!("new {round}"));
        wait_for("a new leader", || (other.ask(&["SET", "probe", &new]) == "+OK").then_some(()));
        // These reads wait in the sleeper's socket when it wakes; others follow.
        (0..3).for_each(|_| sleeper.send(&["GET", "probe"]).unwrap());
        setup.cluster.resume(leader).unwrap();
        sleep(300);
        for (from, to) in directions {
            setup.cluster.mend_one_way(*from, *to).unwrap();
        }
        for read in 0..20 {
            let value = sleeper.reply().unwrap();
            assert!(value == new || value.starts_with('-'), "read {read} of round {round} is stale: {value}");
            sleeper.send(&["GET", "probe"]).unwrap();
        }
        sleep(300);
        // The next one sleeps for less than its lease: perhaps it still leads, perhaps not.
        let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        setup.cluster.suspend(leader).unwrap();
        sleep(200 + 25 * round);
        setup.cluster.resume(leader).unwrap();
        sleep(300);
    }
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("stopped");
}

/// From three to five and seven and back. New nodes are killed as soon as they are in, and so are leaders; one of those that go leads
/// the last time.
#[test]
fn groups_grow_and_shrink() {
    let Some(mut setup) = start_with_spare("sizes", 3, 4) else { return };
    let load = Load::start(&setup.cluster, 3);
    let work = || {
        let enough = load.updates() + 300;
        wait_for("300 updates", || (load.updates() >= enough).then_some(()));
    };
    for new in [3, 5] {
        work();
        setup.cluster.grow().unwrap();
        setup.cluster.wait_until_well(PATIENCE).unwrap();
        load.must_go_on();
        setup.cluster.kill(new).unwrap();
        let leader = setup.cluster.leader().unwrap();
        setup.cluster.kill(leader).unwrap();
        // More than are under way: others lead by then.
        load.must_go_on();
        work();
        setup.cluster.restart(new).unwrap();
        setup.cluster.restart(leader).unwrap();
        setup.cluster.wait_until_well(PATIENCE).unwrap();
    }
    for last in [6, 4] {
        work();
        let mut leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        while last == 4 && leader != last {
            setup.cluster.hand_over(leader).unwrap();
            leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
        }
        setup.cluster.shrink(PATIENCE).unwrap();
        load.must_go_on();
    }
    let leader = setup.cluster.wait_until_well(PATIENCE).unwrap();
    setup.cluster.kill(leader).unwrap();
    load.must_go_on();
    work();
    setup.cluster.restart(leader).unwrap();
    setup.cluster.wait_until_well(PATIENCE).unwrap();
    load.finish("sizes");
}
