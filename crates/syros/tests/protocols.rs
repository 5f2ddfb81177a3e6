//! Every protocol in real processes: it starts by its name, serves Redis clients, and counters that clients of all
//! nodes increment at the same time answer each number once.

mod common;

use common::{Dev, Redis, Scratch, free_ports};
use std::thread;
use syros_types::Protocol;

/// Increments of each client.
const INCREMENTS: usize = 60;

/// Keys that they share.
const KEYS: usize = 3;

fn serves(protocol: &Protocol, engine: &str) {
    let (scratch, port) = (Scratch::new(&format!("{protocol}-{engine}")), free_ports());
    let name = protocol.to_string();
    let options = ["--protocol", &name, "--durability", "replicated", "--engine", engine];
    let dev = Dev::start(&scratch.0.join("cluster"), port, &options);
    assert_eq!(dev.nodes.len(), protocol.replicas(3), "{protocol}");
    let client = |node: usize| {
        let port = dev.nodes[node % dev.nodes.len()].redis;
        thread::spawn(move || {
            let mut redis = Redis::connect(port);
            let answers = (0..INCREMENTS).map(|number| {
                let key = format!("counter:{}", number % KEYS);
                redis.ask(&["INCR", &key]).trim_start_matches(':').parse::<usize>().unwrap()
            });
            answers.collect::<Vec<_>>()
        })
    };
    let clients: Vec<_> = (0..4).map(client).collect();
    let answers: Vec<Vec<usize>> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    for key in 0..KEYS {
        let of_key =
            |answers: &Vec<usize>| answers.iter().copied().skip(key).step_by(KEYS).collect::<Vec<_>>();
        for one in &answers {
            assert!(of_key(one).is_sorted_by(|a, b| a < b), "{protocol}, {engine}: {answers:?}");
        }
        let mut all: Vec<usize> = answers.iter().flat_map(of_key).collect();
        all.sort_unstable();
        let each_once: Vec<usize> = (1..=all.len()).collect();
        assert_eq!(all, each_once, "{protocol}, {engine}");
    }
    // A counter that expires cannot be answered before it is executed.
    let mut redis = Redis::connect(port);
    assert_eq!(redis.ask(&["SET", "limit", "9", "EX", "100"]), "+OK");
    assert_eq!(redis.ask(&["INCR", "limit"]), ":10", "{protocol}, {engine}");
    assert_eq!(redis.ask(&["BLIND", "INCR", "limit"]), "+OK");
    assert_eq!(redis.ask(&["GETSET", "limit", "0"]), "11", "{protocol}, {engine}");
    for node in &dev.nodes {
        assert_eq!(Redis::connect(node.redis).ask(&["GET", "limit"]), "0", "{protocol}, {engine}");
    }
    assert!(dev.stop().success());
}

#[test]
fn every_protocol_serves_in_memory() {
    Protocol::ALL.iter().for_each(|protocol| serves(protocol, "memory"));
}

#[test]
fn protocols_that_answer_before_they_execute_serve_from_disk() {
    for name in ["skyros-comm", "curp-c", "vr-pe", "ionia"] {
        serves(&name.parse().unwrap(), "disk");
    }
}

#[test]
fn one_replica_is_all_that_there_is_without_replication() {
    let scratch = Scratch::new("alone");
    let mut command = common::syros();
    let output = common::run(command.arg("dev").arg("--dir").arg(&scratch.0).args([
        "--protocol",
        "unreplicated",
        "--replicas",
        "3",
    ]));
    let text = common::text(&output);
    assert!(
        !output.status.success() && text.contains("--protocol unreplicated has 1 replica, not 3"),
        "{text}"
    );
}
