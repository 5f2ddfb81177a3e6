//! Data that reaches its limit in memory: what would make it grow is refused and nowhere, everything else goes on.

use syros_protocol::client::Outcome;
use syros_protocol::message::Refusal;
use syros_protocol::replica::PlantedBug;
use syros_sim::swarm::MILLI;
use syros_sim::workload::ClientCommand;
use syros_sim::{Node, Scenario};

const LIMIT: usize = 8192;
const OUT_OF_MEMORY: Outcome = Outcome::Refused(Refusal::OutOfMemory);

fn with_limit(scenario: Scenario) -> Scenario {
    scenario.with(|swarm| swarm.maxmemory = Some(LIMIT))
}

fn set(key: u64) -> ClientCommand {
    ClientCommand::Set(key, vec![b'v'; 200])
}

#[test]
fn at_the_limit_updates_are_refused_by_name_and_deletions_make_room() {
    let mut play = with_limit(Scenario::new(3)).start();
    let clients = [play.client(), play.client(), play.client()];
    let mut stored = Vec::new();
    let mut refused = Vec::new();
    for round in 0..30 {
        let keys = [0, 1, 2].map(|client: u64| 1000 + 3 * round + client);
        let all: Vec<_> =
            keys.iter().zip(clients).map(|(key, client)| play.submit(client, set(*key))).collect();
        for (operation, key) in all.into_iter().zip(keys) {
            play.finish(operation);
            match play.outcome(operation) {
                Some(Outcome::Done) => stored.push(key),
                Some(outcome) if outcome == OUT_OF_MEMORY => refused.push(key),
                // Nobody can be in doubt: all replicas come to the limit together.
                outcome => panic!("{key} ended as {outcome:?}"),
            }
        }
    }
    assert!(stored.len() > 10 && refused.len() > 10, "{} stored, {} refused", stored.len(), refused.len());
    let [one, two, _] = clients;
    // What is left is too little for a value of 200 bytes, and may do for a few short ones.
    let increment = |key| ClientCommand::IncrBy { key, delta: 1, blind: false };
    let fit = (100..110).take_while(|key| play.call(one, increment(*key)) != OUT_OF_MEMORY).count();
    assert!(fit < 4, "{fit} short values fit");
    assert_eq!(play.call(one, increment(7)), OUT_OF_MEMORY);
    for key in &refused {
        assert_eq!(play.get(two, *key), None, "refused, and there");
    }
    for key in &stored[..5] {
        assert!(matches!(play.call(one, ClientCommand::Del { key: *key, blind: false }), Outcome::Reply(_)));
        assert_eq!(play.call(two, ClientCommand::Del { key: *key, blind: true }), Outcome::Done);
    }
    assert_eq!(play.call(one, set(5)), Outcome::Done);
    assert!(play.get(two, stored[9]).is_some());
    // A replica that starts again with as much data does start, and refuses as the others do.
    play.crash(1);
    play.restart(1);
    play.run(1000 * MILLI);
    play.judge().unwrap();
}

/// The leader has executed what the followers have not: it refuses an update that they have accepted, and that the next
/// leader recovers. Its client may not have been told that it is nowhere.
#[test]
fn an_update_that_only_the_leader_refuses_is_not_reported_as_refused() {
    let story = |scenario: Scenario| {
        let mut play = with_limit(scenario).start();
        let (one, two) = (play.client(), play.client());
        for replica in [1, 2] {
            play.set_delay(Node::Replica(0), Node::Replica(replica), 30 * MILLI);
        }
        let large = ClientCommand::Append { key: 1, value: vec![b'x'; LIMIT + 300], blind: false };
        let outcome = play.call(one, large);
        assert!(matches!(outcome, Outcome::Reply(_)), "{outcome:?}");
        let outcome = play.call(two, set(2));
        assert_ne!(outcome, Outcome::Done, "the leader has refused it");
        assert!(matches!(play.call(one, ClientCommand::Del { key: 1, blind: false }), Outcome::Reply(_)));
        play.crash(0);
        play.run(3_000 * MILLI);
        play.get(one, 2);
        play.judge()
    };
    story(Scenario::new(3)).unwrap();
    let shown = story(Scenario::new(3).plant(PlantedBug::LeaderRefusalIsEnough)).unwrap_err();
    assert!(shown.contains("ended as Some(Refused(OutOfMemory)) and is executed"), "{shown}");
}
