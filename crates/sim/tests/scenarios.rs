//! Bugs that were found, each as the shortest story that shows it: it ends well, and it ends badly when
//! the bug is planted again.

use core::time::Duration;
use syros_protocol::client::Outcome;
use syros_protocol::replica::PlantedBug;
use syros_sim::swarm::{MICRO, MILLI};
use syros_sim::workload::Step;
use syros_sim::{Node, Play, Scenario};

fn set(key: u64, value: &str) -> Step {
    Step::Set(key, value.as_bytes().to_vec())
}

/// Plays a story twice: as the protocol is, and with the bug it is about.
fn assert_cures(bug: PlantedBug, story: impl Fn(Scenario) -> Result<(), String>) {
    story(Scenario::new(3)).unwrap();
    story(Scenario::new(3).plant(bug)).expect_err("the story shows the bug");
}

fn op_number(play: &mut Play, replica: usize) -> u64 {
    let process = play.world().replica(replica).expect("the replica runs");
    process.core().status().op_number
}

/// A session is being ended in the log while a client still uses it. Once that has happened, recovery
/// leaves out what the session had in the durability logs; so the leader may not vouch for any of it.
///
/// Found by seed 10861 of an early generator, and explained much later.
#[test]
fn an_update_of_an_expiring_session_is_not_lost() {
    assert_cures(PlantedBug::ExpiringSessionAccepted, |scenario| {
        let scenario = scenario.with(|swarm| {
            swarm.protocol.session_timeout = Duration::from_secs(4);
            swarm.protocol.order_delay = Duration::from_millis(300);
        });
        let mut play = scenario.start();
        let writer = play.client();
        for replica in 0..3 {
            play.set_delay(Node::Client(writer), Node::Replica(replica), 100 * MICRO);
        }
        play.run(500 * MILLI);
        // For the leader the session has been idle for an hour.
        play.jump_clock(0, 3_600_000_000);
        let before = op_number(&mut play, 0);
        while op_number(&mut play, 0) == before {
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

/// Two replicas hold copies of one request that were sent at different times. If the later copy
/// acknowledged more than the earlier one, the follower that executes it would take another update for
/// dealt with which is only in the durability logs yet.
#[test]
fn a_request_sent_again_acknowledges_nothing_new() {
    assert_cures(PlantedBug::ResentAcknowledgesMore, |scenario| {
        let scenario = scenario.with(|swarm| {
            swarm.network.in_order = false;
            swarm.protocol.order_delay = Duration::from_millis(900);
            swarm.protocol.sync_after = Duration::from_secs(2);
        });
        let mut play = scenario.start();
        let (writer, reader) = (play.client(), play.client());
        // The first update is slow to reach the leader.
        let leader_link = (Node::Client(writer), Node::Replica(0));
        play.set_delay(leader_link.0, leader_link.1, 5 * MILLI);
        let first = play.submit(writer, set(1, "kept"));
        play.set_delay(leader_link.0, leader_link.1, MILLI);
        // The second reaches the leader alone, and a read has it ordered before the first is there.
        for follower in [1, 2] {
            play.cut(Node::Client(writer), Node::Replica(follower));
        }
        play.set_delay(Node::Replica(0), Node::Replica(1), 70 * MILLI);
        let second = play.submit(writer, set(2, "too"));
        play.run(1_200 * MICRO);
        play.submit(reader, Step::Get(2));
        play.run(5 * MILLI);
        play.finish(first);
        assert_eq!(play.outcome(first), Some(Outcome::Done));
        // The second is sent to one of the followers again, now that the first is done.
        play.mend(Node::Client(writer), Node::Replica(1));
        play.break_connection(writer, 1);
        play.run(180 * MILLI);
        assert_eq!(play.outcome(second), Some(Outcome::Done), "both have been vouched for");
        play.crash(0);
        play.run(2_000 * MILLI);
        play.get(reader, 1);
        play.judge()
    });
}
