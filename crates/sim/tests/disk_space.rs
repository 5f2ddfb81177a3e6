//! Disks that are nearly full: a majority with space goes on; without one, updates are refused by name, and everything
//! that needs no space goes on.

use syros_protocol::client::Outcome;
use syros_protocol::message::Refusal;
use syros_sim::swarm::MILLI;
use syros_sim::workload::ClientCommand;
use syros_sim::{Play, Scenario};
use syros_types::FastQuorum;

const DISK_FULL: Outcome = Outcome::Refused(Refusal::DiskFull);

fn set(key: u64) -> ClientCommand {
    ClientCommand::Set(key, b"value".to_vec())
}

fn fill(play: &mut Play, replicas: &[usize], is_short: bool) {
    replicas.iter().for_each(|replica| play.fill_disk(*replica, is_short));
    // Followers say so along with what they answer.
    play.run(100 * MILLI);
}

#[test]
fn with_all_disks_full_reads_and_deletions_go_on_and_updates_are_refused_at_once() {
    let mut play = Scenario::new(3).start();
    let client = play.client();
    for key in 0..4 {
        assert_eq!(play.call(client, set(key)), Outcome::Done);
    }
    fill(&mut play, &[0, 1, 2], true);
    play.run(2_000 * MILLI);
    let view = play.world().replica(0).unwrap().core().view();
    for step in [set(7), ClientCommand::IncrBy { key: 8, delta: 1, blind: false }, set(0)] {
        let update = play.submit(client, step);
        assert!(play.finish(update) < 100 * MILLI, "at once");
        assert_eq!(play.outcome(update), Some(DISK_FULL));
    }
    assert_eq!(play.get(client, 0), Some(b"value".to_vec()));
    assert_eq!(play.get(client, 7), None);
    assert!(matches!(play.call(client, ClientCommand::Del { key: 0, blind: false }), Outcome::Reply(_)));
    assert_eq!(play.call(client, ClientCommand::Del { key: 1, blind: true }), Outcome::Done);
    play.run(5_000 * MILLI);
    assert_eq!(play.world().replica(0).unwrap().core().view(), view, "the lead does not go round");

    // Views change as before.
    let leader = play.leader();
    play.crash(leader);
    play.run(2_000 * MILLI);
    assert_eq!(play.get(client, 2), Some(b"value".to_vec()));
    play.restart(leader);
    play.fill_disk(leader, true);
    play.run(1_000 * MILLI);
    assert_eq!(play.call(client, set(9)), DISK_FULL);
    fill(&mut play, &[0, 1, 2], false);
    play.run(500 * MILLI);
    assert_eq!(play.call(client, set(9)), Outcome::Done);
    play.judge().unwrap();
}

#[test]
fn a_majority_with_space_goes_on() {
    let mut play = Scenario::new(3).start();
    let client = play.client();
    let leader = play.leader();
    let follower = (leader + 1) % 3;
    fill(&mut play, &[follower], true);
    for key in 0..4 {
        assert_eq!(play.call(client, set(key)), Outcome::Done, "a follower");
    }
    fill(&mut play, &[follower], false);
    fill(&mut play, &[leader], true);
    play.run(2_000 * MILLI);
    assert_ne!(play.leader(), leader, "one with space leads");
    for key in 0..4 {
        assert_eq!(play.call(client, set(key)), Outcome::Done, "a leader");
    }
    // Two of three: nothing new can be on a majority of the disks.
    let other = play.leader();
    fill(&mut play, &[(3 - leader - other)], true);
    assert_eq!(play.leader(), other);
    assert_eq!(play.call(client, set(5)), DISK_FULL);
    assert!(play.get(client, 1).is_some());
    fill(&mut play, &[0, 1, 2], false);
    play.judge().unwrap();
}

/// Until the leader has handed over it refuses, and others accept: what they have accepted the next leader executes.
#[test]
fn nothing_ends_unknown_because_the_leader_is_about_to_give_way() {
    let mut play = Scenario::new(3).fast_quorum(FastQuorum::Mixed).start();
    let client = play.client();
    assert_eq!(play.call(client, set(0)), Outcome::Done);
    let leader = play.leader();
    play.fill_disk(leader, true);
    let updates: Vec<_> = (0..20)
        .map(|key| match key % 2 {
            0 => play.submit(client, set(key)),
            _ => play.submit(client, ClientCommand::IncrBy { key: 100 + key, delta: 1, blind: false }),
        })
        .collect();
    for update in updates {
        assert!(play.finish(update) < 2_000 * MILLI);
        let outcome = play.outcome(update).unwrap();
        assert!(matches!(outcome, Outcome::Done | Outcome::Reply(_)), "{outcome:?}");
    }
    assert_ne!(play.leader(), leader);
    play.judge().unwrap();
}

/// The member that has room accepts what the others refuse: a client could not be told that nothing was executed.
#[test]
fn nothing_ends_unknown_because_a_minority_has_room() {
    for fast_quorum in [FastQuorum::Majority, FastQuorum::Mixed] {
        let mut play = Scenario::new(3).fast_quorum(fast_quorum).start();
        let client = play.client();
        assert_eq!(play.call(client, set(0)), Outcome::Done);
        for with_room in 0..3 {
            let short = [0, 1, 2].into_iter().filter(|replica| *replica != with_room);
            fill(&mut play, &short.collect::<Vec<_>>(), true);
            play.run(1_000 * MILLI);
            for key in 1..20 {
                let counter = ClientCommand::IncrBy { key: 100 + key, delta: 1, blind: false };
                for update in [set(key), counter] {
                    let update = play.submit(client, update);
                    assert!(play.finish(update) < 100 * MILLI, "at once");
                    assert_eq!(
                        play.outcome(update),
                        Some(DISK_FULL),
                        "{with_room} has room, {fast_quorum:?}"
                    );
                }
            }
            fill(&mut play, &[0, 1, 2], false);
            play.run(1_000 * MILLI);
            assert_eq!(play.call(client, set(with_room as u64)), Outcome::Done);
        }
        play.judge().unwrap();
    }
}
