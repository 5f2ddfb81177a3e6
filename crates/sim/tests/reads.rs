//! Reads that are not answered by the leader alone: what they cost, exactly, and what each of them would get
//! wrong without one of its rules.

mod common;

use common::assert_cures;
use core::time::Duration;
use syros_protocol::client::Outcome;
use syros_protocol::replica::{Durability, PlantedBug};
use syros_sim::scenario::DELAY as D;
use syros_sim::swarm::{DiskEngineSettings, MILLI};
use syros_sim::workload::ClientCommand;
use syros_sim::{Node, Play, Scenario};
use syros_types::FastQuorum::{Majority, Supermajority};
use syros_types::ReadPolicy;

fn set(key: u64, value: &str) -> ClientCommand {
    ClientCommand::Set(key, value.as_bytes().to_vec())
}

fn cost(play: &mut Play, client: usize, step: ClientCommand) -> u64 {
    let operation = play.submit(client, step);
    play.finish(operation)
}

/// Every link is one [`D`] long, nothing else takes time, and nothing is ordered before somebody waits for it.
fn start(replicas: usize) -> Play {
    let slow = |swarm: &mut syros_sim::Swarm| swarm.protocol.replica.order_delay = Duration::from_millis(500);
    Scenario::new(replicas).durability(Durability::Replicated).with(slow).start()
}

/// Who answers, and where, makes no difference to somebody who is as far from everybody.
#[test]
fn every_way_to_read_takes_one_round_trip() {
    for replicas in [1, 3, 5, 7, 9] {
        for mode in [Majority, Supermajority] {
            for policy in ReadPolicy::ALL {
                let mut play =
                    Scenario::new(replicas).fast_quorum(mode).durability(Durability::Replicated).start();
                let reader = play.reader(policy);
                let several = ClientCommand::MGet(vec![1, 2, 3]);
                for step in [ClientCommand::Get(1), ClientCommand::Get(1), several, ClientCommand::Get(99)] {
                    assert_eq!(cost(&mut play, reader, step), 2 * D, "n={replicas} {mode} {policy}");
                }
            }
        }
    }
}

/// What somebody else has just written is in the durability logs only. A linearizable read has the leader
/// order it: it asks the leader at once, or once it has been told.
#[test]
fn behind_an_unordered_update_reads_take_two_round_trips_or_three() {
    for replicas in [3, 5, 7, 9] {
        for (policy, trips) in
            [(ReadPolicy::Leader, 2), (ReadPolicy::Meta, 2), (ReadPolicy::Quorum, 3), (ReadPolicy::Stale, 1)]
        {
            let mut play = start(replicas);
            let (writer, reader) = (play.client(), play.reader(policy));
            assert_eq!(play.call(writer, set(1, "new")), Outcome::Done);
            let took = cost(&mut play, reader, ClientCommand::Get(1));
            assert_eq!(took, 2 * trips * D, "n={replicas} {policy}");
            if policy != ReadPolicy::Stale {
                assert_eq!(play.get(reader, 1), Some(b"new".to_vec()), "n={replicas} {policy}");
            }
        }
    }
}

/// An update that a majority has in its log and nobody has executed: a quorum sees it, and a second round trip
/// to one member brings its value.
#[test]
fn a_reread_takes_a_second_round_trip() {
    for replicas in [3, 5] {
        let mut play = start(replicas);
        let (writer, reader) = (play.client(), play.reader(ReadPolicy::Quorum));
        let write = play.submit(writer, ClientCommand::IncrBy { key: 1, delta: 7, blind: false });
        // The Prepares have arrived; the leader does not know yet.
        play.run(2 * D);
        let read = play.submit(reader, ClientCommand::Get(1));
        // In one, if it happened to ask the leader for the sake of knowing how far that is.
        assert!(play.finish(read) <= 4 * D, "n={replicas}");
        play.finish(write);
        assert_eq!(play.get(reader, 1), Some(b"7".to_vec()));
    }
}

/// A reader next to followers, a leader far away: only what has to be ordered costs the long way.
#[test]
fn a_quorum_is_as_far_as_its_members() {
    for replicas in [3, 5] {
        let mut play = start(replicas);
        let reader = play.reader(ReadPolicy::Auto);
        let far = 50 * D;
        play.set_delay(Node::Client(reader), Node::Replica(0), far);
        play.set_delay(Node::Replica(0), Node::Client(reader), far);
        // It learns how far everybody is.
        for _ in 0..40 {
            let read = play.submit(reader, ClientCommand::Get(1));
            play.finish(read);
            play.run(20 * MILLI);
        }
        for _ in 0..20 {
            assert_eq!(cost(&mut play, reader, ClientCommand::Get(1)), 2 * D, "n={replicas}");
        }
    }
}

/// One key is changed through the log; before that is committed another one is set, and acknowledged at once, and a
/// quorum finds the first as it was. A read of both that waits at the leader meanwhile sees the change that came first
/// in the log: so it must see what had completed before that, too.
///
/// Found by seed 5033496.
#[test]
fn a_read_of_several_keys_sees_what_was_complete_before_what_it_sees() {
    let story = |scenario: Scenario| {
        let unhurried =
            |swarm: &mut syros_sim::Swarm| swarm.protocol.replica.order_delay = Duration::from_secs(1);
        let mut play = scenario.with(unhurried).start();
        let [first, second, both] = [(); 3].map(|()| play.client());
        let reader = play.reader(ReadPolicy::Quorum);
        [1, 2].iter().for_each(|follower| {
            play.set_delay(Node::Replica(0), Node::Replica(*follower), 100 * MILLI);
        });
        play.cut(Node::Client(reader), Node::Replica(0));
        play.submit(first, ClientCommand::IncrBy { key: 1, delta: 7, blind: false });
        play.run(2 * D);
        let read_of_both = play.submit(both, ClientCommand::MGet(vec![1, 2]));
        play.run(2 * D);
        play.submit(second, set(2, "new"));
        play.run(3 * D);
        let read = play.submit(reader, ClientCommand::Get(1));
        play.run(60 * D);
        play.mend(Node::Client(reader), Node::Replica(0));
        play.finish(read);
        play.finish(read_of_both);
        play.judge()
    };
    assert_cures(PlantedBug::SharedKeysIgnored, story);
}

/// A key expires when the log says so, and no update of it is pending anywhere. Once somebody has found it
/// gone, a quorum whose members have not executed that entry may not find it.
#[test]
fn a_key_that_somebody_found_expired_does_not_come_back_in_a_quorum() {
    let story = |scenario: Scenario| {
        let mut play = scenario.start();
        let (writer, reader) = (play.client(), play.reader(ReadPolicy::Quorum));
        play.call(writer, ClientCommand::SetFor(1, b"here".to_vec(), 300));
        play.run(100 * MILLI);
        let before = play.status(1).op_number;
        play.until("the followers have the entry that lets it expire", |play| {
            [1, 2].iter().all(|follower| play.status(*follower).op_number > before)
        });
        // They hear of its commitment late, and the reader does not reach the leader.
        [1, 2].iter().for_each(|follower| play.cut(Node::Replica(0), Node::Replica(*follower)));
        play.cut(Node::Client(reader), Node::Replica(0));
        play.until("the leader has executed it", |play| play.status(0).applied > before);
        assert_eq!(play.get(writer, 1), None, "the leader has a lease");
        let read = play.submit(reader, ClientCommand::Get(1));
        play.run(100 * MILLI);
        let answered = play.outcome(read);
        play.mend_all();
        play.finish(read);
        (answered, play.outcome(read), play.get(reader, 1))
    };
    let nothing = |outcome: &Option<Outcome>| matches!(outcome, Some(Outcome::Reply(body)) if syros_commands::Reply::decode_all(body) == Ok(vec![syros_commands::Reply::Nil]));
    let (early, late, again) = story(Scenario::new(3));
    assert!(early.is_none(), "{early:?}");
    assert!(nothing(&late), "{late:?}");
    assert_eq!(again, None);
    let (early, ..) = story(Scenario::new(3).plant(PlantedBug::ExpiryOverlooked));
    assert!(early.is_some() && !nothing(&early), "the story shows the bug: {early:?}");
}

/// Updates find a key gone from the moment on at which it expires. So do reads that come then, although the entry that
/// says so is not committed before two messages later: they wait for it.
#[test]
fn a_read_shows_no_key_that_updates_find_expired() {
    let story = |scenario: Scenario, engine: Option<DiskEngineSettings>, policy, step: ClientCommand| {
        let mut play = scenario.with(|swarm| swarm.disk_engine = engine).start();
        let (writer, reader) = (play.client(), play.reader(policy));
        play.call(writer, ClientCommand::SetFor(1, b"here".to_vec(), 300));
        play.run(100 * MILLI);
        assert_eq!(play.get(reader, 1), Some(b"here".to_vec()));
        let before = play.status(0).op_number;
        play.until("the leader has the entry that lets it expire", |play| play.status(0).op_number > before);
        let read = play.submit(reader, step);
        play.finish(read);
        let Some(Outcome::Reply(reply)) = play.outcome(read) else { panic!("no reply") };
        format!("{:?}", syros_commands::Reply::decode_all(&reply).expect("a reply"))
    };
    let on_disk = DiskEngineSettings {
        lanes: 2,
        apply_ahead: 0,
        step_delay: 0,
        steps_max: 64,
        readers_one_in: 1,
        report_delay: 0,
        flush_delay: 0,
        refused_percent: 0,
    };
    for engine in [None, Some(on_disk)] {
        for policy in [ReadPolicy::Leader, ReadPolicy::Meta, ReadPolicy::Quorum, ReadPolicy::Auto] {
            for step in [ClientCommand::Get(1), ClientCommand::MGet(vec![1, 2])] {
                let shown = story(Scenario::new(3), engine.clone(), policy, step.clone());
                assert!(!shown.contains("Bulk"), "{shown}, {step:?} with {policy}, {engine:?}");
            }
        }
        let bug = Scenario::new(3).plant(PlantedBug::FollowersAhead);
        let shown = story(bug, engine, ReadPolicy::Leader, ClientCommand::Get(1));
        assert!(shown.contains("Bulk"), "the story shows the bug: {shown}");
    }
}

/// The same across a view change: the next leader has the entry, and does not know that others have executed it.
#[test]
fn a_key_that_somebody_found_expired_does_not_come_back_with_the_next_leader() {
    let story = |scenario: Scenario| {
        let mut play = scenario.start();
        let (writer, reader) = (play.client(), play.client());
        play.call(writer, ClientCommand::SetFor(1, b"here".to_vec(), 300));
        play.run(100 * MILLI);
        let before = play.status(1).op_number;
        play.until("the followers have the entry that lets it expire", |play| {
            [1, 2].iter().all(|follower| play.status(*follower).op_number > before)
        });
        [1, 2].iter().for_each(|follower| play.cut(Node::Replica(0), Node::Replica(*follower)));
        play.until("the leader has executed it", |play| play.status(0).applied > before);
        assert_eq!(play.get(writer, 1), None, "the leader has a lease");
        play.crash(0);
        let read = play.submit(reader, ClientCommand::Get(1));
        play.until("there is another leader", |play| {
            play.world().replica(1).is_some_and(|replica| replica.core().is_leader())
        });
        // One message tells it of both: that it has a lease, and that the entry is committed.
        play.cut(Node::Replica(2), Node::Replica(1));
        play.run(30 * D);
        play.mend(Node::Replica(2), Node::Replica(1));
        play.finish(read);
        play.outcome(read)
    };
    let answer = |outcome: Option<Outcome>| match outcome {
        Some(Outcome::Reply(body)) => syros_commands::Reply::decode_all(&body).expect("a reply"),
        other => panic!("the read ended as {other:?}"),
    };
    assert_eq!(answer(story(Scenario::new(3))), [syros_commands::Reply::Nil]);
    let shown = answer(story(Scenario::new(3).plant(PlantedBug::FollowersAhead)));
    assert_ne!(shown, [syros_commands::Reply::Nil], "the story shows the bug");
}
