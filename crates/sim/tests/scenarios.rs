//! What can go wrong, each as the shortest story that shows it: it ends well, and it ends badly when the
//! bug is planted. Bugs that were found are here, and those that random seeds take long to find.

mod common;

use common::{assert_cures, assert_cures_as};
use core::time::Duration;
use syros_protocol::client::Outcome;
use syros_protocol::replica::PlantedBug;
use syros_sim::swarm::{MICRO, MILLI};
use syros_sim::workload::ClientCommand;
use syros_sim::{Node, Play, Scenario};
use syros_types::{FastQuorum, ReadPolicy};

fn set(key: u64, value: &str) -> ClientCommand {
    ClientCommand::Set(key, value.as_bytes().to_vec())
}

/// Long enough for a view change and for whoever waits for one.
const VIEW_CHANGE: u64 = 2_000 * MILLI;

/// How far a client's clock is ahead, microseconds: less than what makes it go by the replicas' clocks instead.
const AHEAD: i64 = 200_000;

/// A session is being ended in the log while a client still uses it. Once that has happened, recovery
/// leaves out what the session had in the durability logs; so the leader may not vouch for any of it.
///
/// Found by seed 10861 of an early generator, and explained much later.
#[test]
fn an_update_of_an_expiring_session_is_not_lost() {
    assert_cures(PlantedBug::ExpiringSessionAccepted, |scenario| {
        let scenario = scenario.with(|swarm| {
            swarm.protocol.replica.session_timeout = Duration::from_secs(4);
            swarm.protocol.replica.order_delay = Duration::from_millis(300);
        });
        let mut play = scenario.start();
        let writer = play.client();
        for replica in 0..3 {
            play.set_delay(Node::Client(writer), Node::Replica(replica), 100 * MICRO);
        }
        play.run(500 * MILLI);
        // For the group the session has been idle for an hour.
        (0..3).for_each(|replica| play.jump_clock(replica, 3_600_000_000));
        let before = play.status(0).op_number;
        while play.status(0).op_number == before {
            play.run(100 * MICRO);
        }
        // The entry that ends the session is on its way to the followers.
        let write = play.submit(writer, set(1, "kept"));
        play.run(20 * MILLI);
        assert!(play.outcome(write).is_some(), "it was vouched for or refused");
        play.crash(0);
        play.run(2_000 * MILLI);
        let reader = play.client();
        play.get(reader, 1);
        play.judge()
    });
}

/// The leader is cut off from its followers, and replica 2 misses an update that completes all the same,
/// with a timestamp ahead of what the writer's will be. Returns the writer.
fn second_replica_misses_an_update(scenario: Scenario) -> (Play, usize) {
    let mut play = scenario.unhurried().start();
    let (ahead, writer) = (play.client(), play.client());
    play.jump_client_clock(ahead, AHEAD);
    play.isolate(0);
    play.cut_client(ahead, &[2]);
    assert_eq!(play.call(ahead, set(1, "first")), Outcome::Done);
    (play, writer)
}

/// An update with an older timestamp than one that completed before it was invoked, on the one replica
/// that never saw the other. Executing both, by timestamp, would answer it and leave no trace of it.
#[test]
fn an_older_stamp_on_a_replica_that_missed_the_newer_update() {
    assert_cures(PlantedBug::RecoverEverything, |scenario| {
        let (mut play, writer) = second_replica_misses_an_update(scenario);
        let second = play.submit(writer, set(1, "second"));
        play.run(VIEW_CHANGE);
        play.finish(second);
        play.get(writer, 1);
        play.judge()
    });
}

/// The leader has ordered an update after a conflict, and a copy of the request arrives. Had it said `Ok`
/// now, a follower that saw no conflict would complete the quorum, and recovery would drop the update.
#[test]
fn an_update_ordered_after_a_conflict_is_vouched_for_when_it_is_committed() {
    assert_cures(PlantedBug::OkForOrdered, |scenario| {
        let (mut play, writer) = second_replica_misses_an_update(scenario);
        let second = play.submit(writer, set(1, "second"));
        play.run(10 * MILLI);
        play.break_connection(writer, 0);
        play.run(80 * MILLI);
        play.crash(0);
        play.run(VIEW_CHANGE);
        play.finish(second);
        play.get(writer, 1);
        play.judge()
    });
}

/// A request sent for an earlier view carries an older timestamp than the copies sent for this one.
#[test]
fn a_request_for_an_earlier_view_is_not_accepted() {
    assert_cures(PlantedBug::AnyViewAccepted, |scenario| {
        let mut play = scenario.unhurried().start();
        let (ahead, writer) = (play.client(), play.client());
        play.jump_client_clock(ahead, AHEAD);
        // A view change of which the writer does not hear.
        play.crash(0);
        play.restart(0);
        play.run(200 * MILLI);
        assert_eq!(play.leader(), 1);
        play.cut_client(ahead, &[2]);
        assert_eq!(play.call(ahead, set(1, "first")), Outcome::Done);
        // Its request reaches one replica, and it learns of the view late enough to stamp it anew.
        play.cut_client(writer, &[0, 1]);
        play.set_delay(Node::Replica(2), Node::Client(writer), 230 * MILLI);
        let second = play.submit(writer, set(1, "second"));
        play.run(200 * MILLI);
        play.mend(Node::Client(writer), Node::Replica(1));
        play.run(250 * MILLI);
        play.set_delay(Node::Replica(2), Node::Client(writer), MILLI);
        play.run(20 * MILLI);
        play.crash(1);
        play.run(VIEW_CHANGE);
        play.finish(second);
        play.get(writer, 1);
        play.judge()
    });
}

/// Two of three replicas lose their disks: nobody can tell what they had promised. So the group answers
/// nothing any more, rather than anything wrong.
#[test]
fn a_majority_without_memory_answers_nothing() {
    let mut play = Scenario::new(3).start();
    let client = play.client();
    assert_eq!(play.call(client, set(1, "kept")), Outcome::Done);
    [0, 1].iter().for_each(|replica| {
        play.crash(*replica);
        play.lose_disk(*replica);
        play.restart(*replica);
    });
    play.run(VIEW_CHANGE);
    let operations = [set(1, "other"), ClientCommand::Get(1)].map(|step| play.submit(client, step));
    play.run(30_000 * MILLI);
    for operation in operations {
        let outcome = play.outcome(operation);
        assert!(!matches!(outcome, Some(Outcome::Done | Outcome::Reply(_))), "{outcome:?}");
    }
    assert_eq!(play.world().violation(), None);
}

/// One of three does, and gets everything back from the others.
#[test]
fn a_replica_that_lost_its_disk_comes_back() {
    let mut play = Scenario::new(3).start();
    let client = play.client();
    assert_eq!(play.call(client, set(1, "kept")), Outcome::Done);
    for replica in [2, 0, 1] {
        play.crash(replica);
        play.lose_disk(replica);
        play.restart(replica);
        play.run(VIEW_CHANGE);
    }
    assert_eq!(play.get(client, 1).as_deref(), Some(&b"kept"[..]));
    play.judge().unwrap();
}

/// Five replicas: the new leader missed the first of two updates, so its log has the second first.
#[test]
fn recovered_updates_are_ordered_by_timestamp() {
    let five = Scenario::new(5).fast_quorum(FastQuorum::Supermajority);
    let said = "operation 1.2 is recovered at 3 after one that acknowledges it";
    assert_cures_as(&five, PlantedBug::RecoverInArrivalOrder, said, |scenario| {
        let mut play = scenario.unhurried().start();
        let writer = play.client();
        play.isolate(0);
        play.cut_client(writer, &[1]);
        assert_eq!(play.call(writer, set(1, "first")), Outcome::Done);
        play.mend(Node::Client(writer), Node::Replica(1));
        assert_eq!(play.call(writer, set(1, "second")), Outcome::Done);
        play.crash(0);
        play.run(VIEW_CHANGE);
        // With the bug the world is broken by now, and nobody waits for an answer in it.
        play.submit(writer, ClientCommand::Get(1));
        play.run(VIEW_CHANGE);
        play.judge()
    });
}

/// No update is answered before its leader has it on disk, so a leader with a slow disk is in everybody's
/// way although it answers every heartbeat.
#[test]
fn a_leader_with_a_slow_disk_lets_another_one_lead() {
    let mut play = Scenario::new(3).start();
    let writer = play.client();
    play.call(writer, set(1, "before"));
    let slow = play.leader();
    play.slow_disk(slow, 4_000 * MILLI);
    let write = play.submit(writer, set(1, "after"));
    let took = play.finish(write);
    assert_ne!(play.leader(), slow);
    assert!(took < 1_500 * MILLI, "the write took {took} ns");
    // A follower's disk is in nobody's way.
    let quick = play.leader();
    let write = play.submit(writer, set(1, "at last"));
    let took = play.finish(write);
    assert!(took < 10 * MILLI && play.leader() == quick, "the write took {took} ns");
    play.judge().unwrap();
}

/// FOUND A1: replica 2 has acknowledged what replica 1 has not heard of; it is wiped, and started as a new one while only
/// replica 1 is there.
fn wiped_while_the_leader_is_away(planted: Option<PlantedBug>) -> (Option<Vec<u8>>, Result<(), String>) {
    let scenario = Scenario::new(3);
    let mut play = planted.map_or(scenario.clone(), |bug| scenario.plant(bug)).start();
    let client = play.client();
    play.crash(1);
    assert_eq!(play.call(client, set(1, "gold")), Outcome::Done);
    play.crash(0);
    play.crash(2);
    play.bootstrap(2);
    play.restart(1);
    play.run(2_000 * MILLI);
    let read = play.get(client, 1);
    play.restart(0);
    (read, play.judge())
}

#[test]
fn a_wiped_disk_does_not_come_back_as_a_new_one() {
    let (read, judged) = wiped_while_the_leader_is_away(None);
    assert!(read.is_some(), "what was acknowledged is read");
    judged.unwrap();
}

#[test]
fn a_wiped_disk_that_joins_loses_what_was_acknowledged() {
    let (read, judged) = wiped_while_the_leader_is_away(Some(PlantedBug::WipedDiskJoins));
    assert_eq!(read, None);
    assert!(judged.is_err());
}

/// A group is formed by two members; both fail, and one comes back wiped, with the third that has never been there.
fn formed_before_all_were_there(planted: Option<PlantedBug>) -> Result<(), String> {
    let scenario = Scenario::new(3).unformed(1);
    let mut play = planted.map_or(scenario.clone(), |bug| scenario.plant(bug)).start();
    if planted.is_none() {
        assert_eq!(play.world().leader(), None, "nobody acts before all are there");
        play.start_late(2);
        play.run(200 * MILLI);
        play.client();
        return play.judge();
    }
    let client = play.client();
    assert_eq!(play.call(client, set(1, "gold")), Outcome::Done);
    play.crash(1);
    play.crash(0);
    play.bootstrap(0);
    play.start_late(2);
    play.run(2_000 * MILLI);
    assert_eq!(play.get(client, 1), None);
    play.judge()
}

#[test]
fn a_group_is_formed_by_all_its_members() {
    formed_before_all_were_there(None).unwrap();
}

#[test]
fn a_group_that_is_formed_by_a_quorum_loses_what_was_acknowledged() {
    assert!(formed_before_all_were_there(Some(PlantedBug::FormationByQuorum)).is_err());
}

/// FOUND A2: the first leader counts promises of 200 ms as 10 s, and answers reads when another one has taken over.
fn a_leader_with_a_longer_lease(planted: Option<PlantedBug>) -> Result<(), String> {
    let scenario = Scenario::new(3).with(|swarm| swarm.odd_lease = Some(50));
    let mut play = planted.map_or(scenario.clone(), |bug| scenario.plant(bug)).start();
    if planted.is_none() {
        play.run(VIEW_CHANGE);
        assert_ne!(play.leader(), 0, "the others do not talk to it");
        let client = play.client();
        play.call(client, set(1, "new"));
        return play.judge();
    }
    let (reader, writer) = (play.reader(ReadPolicy::Leader), play.client());
    play.call(writer, set(1, "old"));
    assert!(play.get(reader, 1).is_some());
    play.isolate(0);
    play.cut(Node::Client(writer), Node::Replica(0));
    [1, 2].iter().for_each(|replica| play.cut(Node::Client(reader), Node::Replica(*replica)));
    play.run(VIEW_CHANGE);
    play.call(writer, set(1, "new"));
    play.get(reader, 1);
    play.judge()
}

#[test]
fn members_with_different_leases_do_not_talk_to_each_other() {
    a_leader_with_a_longer_lease(None).unwrap();
}

#[test]
fn a_leader_that_counts_promises_by_its_own_lease_gives_stale_reads() {
    assert!(a_leader_with_a_longer_lease(Some(PlantedBug::PromiseByOwnLease)).is_err());
}

/// It has nobody to hear: what a leader that hears too few followers does is not for it.
#[test]
fn a_group_of_one_keeps_its_view() {
    let mut play = Scenario::new(1).start();
    let view = play.world().replica(0).expect("it runs").core().view();
    play.run(10 * VIEW_CHANGE);
    assert_eq!(play.world().replica(0).expect("it runs").core().view(), view);
}
