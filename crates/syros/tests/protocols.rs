//! Every protocol in real processes: it starts by its name, serves Redis clients, and counters that clients of all
//! nodes increment at the same time answer each number once.

mod common;

use common::{Dev, Redis, Scratch, free_ports, wait_for};
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

/// The node that leads answers what changes nothing, and does not order it. From the others it takes its place in the log.
#[test]
fn an_update_that_changes_nothing_takes_no_place_in_the_log_of_the_node_that_leads() {
    const ROUNDS: u64 = 200;
    let scratch = Scratch::new("no-ops");
    let dev = Dev::start(&scratch.0.join("data"), free_ports(), &[]);
    let (leader, other) = (dev.leader(), dev.nodes.iter().find(|node| !node.leads).unwrap());
    let [mut leader, mut other] = [leader, other].map(|node| Redis::connect(node.redis));
    assert_eq!(leader.ask(&["SADD", "set", "a", "b"]), ":2");
    assert_eq!(leader.ask(&["ZADD", "sorted", "1", "a"]), ":1");
    assert_eq!(leader.ask(&["SET", "lock", "mine", "NX", "PX", "1000000"]), "+OK");
    assert_eq!(leader.ask(&["HSET", "hash", "field", "value"]), ":1");
    let no_ops: [(&[&str], &str); 9] = [
        (&["SADD", "set", "b", "a"], ":0"),
        (&["ZADD", "sorted", "1", "a"], ":0"),
        (&["SET", "lock", "yours", "NX", "PX", "1000000"], "nil"),
        (&["HSETNX", "hash", "field", "other"], ":0"),
        (&["LPOP", "queue"], "nil"),
        (&["DEL", "nothing"], ":0"),
        (&["EXPIRE", "nothing", "10"], ":0"),
        (&["PERSIST", "set"], ":0"),
        (&["SADD", "lock", "a"], "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ];
    let applied = |redis: &mut Redis| {
        let text = redis.ask(&["INFO", "syros"]);
        let line = text.lines().find_map(|line| line.strip_prefix("applied:")).expect("applied");
        line.trim_end().parse::<u64>().unwrap()
    };
    let rounds = |redis: &mut Redis| {
        let before = applied(redis);
        for _ in 0..ROUNDS {
            for (command, reply) in no_ops {
                assert_eq!(redis.ask(command), reply, "{command:?}");
            }
        }
        before
    };
    // At first some find what was before them pending.
    let before = rounds(&mut leader);
    let ordered = applied(&mut leader) - before;
    assert!(ordered < ROUNDS / 2, "{ordered} entries");
    let before = rounds(&mut other);
    // A node may have the answer of another one before it has executed the last entry itself.
    wait_for("a place in the log for each", || {
        (applied(&mut other) - before >= ROUNDS * no_ops.len() as u64).then_some(())
    });
    // What changes something is ordered, whatever was said of the same command before.
    assert_eq!(other.ask(&["SREM", "set", "b"]), ":1");
    assert_eq!(leader.ask(&["SADD", "set", "b", "a"]), ":1");
    assert_eq!(other.ask(&["RPUSH", "queue", "work"]), ":1");
    assert_eq!(leader.ask(&["LPOP", "queue"]), "work");
    assert!(dev.stop().success());
}
