//! Where updates that depend on chance get it from: each its own seed, in the body, which does not change any more.

mod common;

use common::{CONTEXT, connection, requests, submissions};
use std::collections::BTreeSet;
use syros_commands::{Operation, operations};
use syros_resp::{Connection, Identity};
use syros_types::WallTime;

/// The seeds of what a connection submits when it receives this.
fn seeds(connection: &mut Connection, lines: &[&str]) -> Vec<u64> {
    let input = requests(lines);
    assert_eq!(connection.receive(&input, &CONTEXT), input.len());
    let bodies = submissions(connection).into_iter().map(|submission| submission.body);
    let seeds_of = |body: &[u8]| -> Vec<u64> {
        let seed = |operation: Result<Operation<'_>, _>| operation.expect("a body").seed_mut().copied();
        operations(body).filter_map(seed).collect()
    };
    bodies.flat_map(|body| seeds_of(&body)).collect()
}

#[test]
fn every_update_that_draws_has_a_seed_of_its_own() {
    let mut all = BTreeSet::new();
    for id in 1..20 {
        let mut connection = connection(id);
        let drawn = seeds(&mut connection, &["SPOP s", "SET k v", "SPOP t 3", "BLIND SPOP u"]);
        assert_eq!(drawn.len(), 3);
        all.extend(drawn);
    }
    assert_eq!(all.len(), 19 * 3, "each is another one");
}

/// What depends on the present has it from the node, each time anew.
#[test]
fn updates_that_depend_on_the_present_have_it_in_their_bodies() {
    let lines = [
        "XADD a * f v",
        "XADD b 1-* f v",
        "XREADGROUP GROUP g c STREAMS c >",
        "XCLAIM d g c 0 1-1",
        "XAUTOCLAIM e g c 0 0",
        "XGROUP CREATECONSUMER f g c",
        "XGROUP CREATE g g $",
    ];
    let transaction = [&["MULTI"][..], &lines, &["EXEC"]].concat();
    for lines in [&lines[..], &transaction] {
        let mut connection = connection(1);
        let input = requests(lines);
        assert_eq!(connection.receive(&input, &CONTEXT), input.len());
        let mut times = Vec::new();
        for submission in submissions(&mut connection) {
            let operations = operations(&submission.body);
            times.extend(operations.filter_map(|operation| operation.expect("a body").now_mut().copied()));
        }
        assert_eq!(times, [CONTEXT.now.as_millis(); 5]);
    }
}

/// The first connections of two nodes, accepted at one time, differ in their addresses.
#[test]
fn connections_of_different_nodes_have_different_seeds() {
    let accepted = |client: &str, node: &str, now| {
        let identity = Identity { id: 1, address: client.into(), local_address: node.into() };
        seeds(&mut Connection::new(identity, WallTime(now)), &["SPOP s"])
    };
    let first = accepted("10.0.0.9:50000", "10.0.0.1:6379", 5);
    assert_eq!(first, accepted("10.0.0.9:50000", "10.0.0.1:6379", 5), "nothing else is drawn from");
    for other in [
        accepted("10.0.0.9:50001", "10.0.0.1:6379", 5),
        accepted("10.0.0.9:50000", "10.0.0.2:6379", 5),
        accepted("10.0.0.9:50000", "10.0.0.1:6379", 6),
    ] {
        assert_ne!(first, other);
    }
}

#[test]
fn each_update_of_a_transaction_has_a_seed_of_its_own() {
    let drawn = seeds(&mut connection(1), &["MULTI", "SPOP s", "SPOP s", "EXEC"]);
    assert_eq!(drawn.len(), 2);
    assert!(drawn[0] != drawn[1] && !drawn.contains(&0), "{drawn:?}");
}
