//! Nodes that die, and what remains.

mod common;

use common::{Dev, Redis, Scratch, free_ports, kill, run, syros, text, wait_for};
use rustix::process::Signal;

/// Adds one to `counter` until it has been told so `times` times; whatever the answer, a counter never
/// misses what was acknowledged.
fn count(port: u16, times: u32) -> u64 {
    let mut redis = Redis::connect(port);
    let mut last = 0;
    for _ in 0..times {
        let answer = redis.ask(&["INCR", "counter"]);
        if let Some(number) = answer.strip_prefix(':') {
            let number: u64 = number.parse().unwrap();
            assert!(number > last, "{number} after {last}");
            last = number;
        }
    }
    last
}

#[test]
fn writes_go_on_after_the_leader_is_killed() {
    let (scratch, port) = (Scratch::new("leader"), free_ports());
    let dev = Dev::start(&scratch.0.join("cluster"), port, &[]);
    let survivor = dev.nodes.iter().find(|node| !node.leads).unwrap().clone();
    let before = count(survivor.redis, 100);
    assert_eq!(before, 100);
    kill(dev.leader().pid, Signal::KILL);
    let after = count(survivor.redis, 100);
    assert!(after >= before + 90, "only {after} after {before}");
    // The one that was killed is back, and knows everything.
    let killed = dev.leader().redis;
    let value = wait_for("the return of the killed node", || {
        let value = Redis::try_connect(killed).ok()?.try_ask(&["GET", "counter"]).ok()?;
        value.parse::<u64>().ok()
    });
    assert_eq!(value, after);
    let status = wait_for("all nodes to take part", || {
        let output = run(syros().args(["status", "--addr", &format!("127.0.0.1:{}", survivor.redis)]));
        output.status.success().then(|| text(&output))
    });
    assert_eq!(status.lines().count(), 3, "{status}");
    // Of a replica that is not asked nobody knows whether it is there.
    let two: Vec<String> = dev.nodes[..2].iter().map(|node| format!("127.0.0.1:{}", node.replica)).collect();
    let output = run(syros().args(["status", "--replicas", &two.join(",")]));
    let told = text(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("not all of them were asked"), "{told}");
    assert!(dev.stop().success());
}

/// The cluster serves while its mode changes, and keeps it when its nodes are started again, with the old configuration too.
#[test]
fn the_mode_of_a_running_cluster_is_changed() {
    let (scratch, port) = (Scratch::new("mode"), free_ports());
    let dir = scratch.0.join("cluster");
    let dev = Dev::start(&dir, port, &["--fast-quorum", "majority"]);
    let redis = dev.leader().redis;
    let addr = format!("127.0.0.1:{redis}");
    let secret = dir.join("secret");
    let mode = |arguments: &[&str]| {
        let output = run(syros().args(["mode", "--addr", &addr]).args(arguments));
        (output.status.success(), text(&output))
    };
    let with_secret = ["--secret-file", secret.to_str().unwrap()];
    assert_eq!(mode(&[]), (true, "majority\n".to_owned()));
    let (is_done, answer) = mode(&["mixed"]);
    assert!(!is_done && answer.contains("give it with --secret-file"), "{answer}");
    let (is_done, answer) = mode(&["curp"]);
    assert!(!is_done && answer.contains("majority, mixed"), "{answer}");
    assert_eq!(count(redis, 50), 50);
    let (is_done, answer) = mode(&[&["mixed"][..], &with_secret].concat());
    assert!(is_done && answer.starts_with("the cluster goes by mixed from view "), "{answer}");
    assert_eq!(count(redis, 50), 100);
    let (is_done, answer) = mode(&[&["mixed"][..], &with_secret].concat());
    assert!(is_done && answer.contains("goes by mixed already"), "{answer}");
    assert!(dev.stop().success());
    let dev = Dev::start(&dir, port, &[]);
    assert_eq!(mode(&[]), (true, "mixed\n".to_owned()));
    assert_eq!(count(redis, 50), 150);
    assert!(dev.stop().success());
}

#[test]
fn a_replica_without_memory_comes_back() {
    let (scratch, port) = (Scratch::new("amnesia"), free_ports());
    let dev = Dev::start(&scratch.0.join("cluster"), port, &["--durability", "replicated"]);
    let victim = dev.nodes.iter().find(|node| !node.leads).unwrap().clone();
    let leader = dev.leader().redis;
    assert_eq!(count(leader, 50), 50);
    kill(victim.pid, Signal::KILL);
    let after = count(leader, 50);
    let value = wait_for("the return of the killed node", || {
        let value = Redis::try_connect(victim.redis).ok()?.try_ask(&["GET", "counter"]).ok()?;
        value.parse::<u64>().ok()
    });
    assert_eq!(value, after);
    assert!(dev.stop().success());
}

#[test]
fn nothing_acknowledged_is_lost_when_all_are_killed() {
    let (scratch, port) = (Scratch::new("power"), free_ports());
    let dir = scratch.0.join("cluster");
    let dev = Dev::start(&dir, port, &["--no-restart"]);
    let mut redis = Redis::connect(port + 1);
    for number in 0..500 {
        assert_eq!(redis.ask(&["SET", &format!("key{number}"), &format!("value{number}")]), "+OK");
    }
    assert_eq!(redis.ask(&["INCRBY", "counter", "41"]), ":41");
    for node in &dev.nodes {
        kill(node.pid, Signal::KILL);
    }
    assert!(dev.stop().success());
    let dev = Dev::start(&dir, port, &[]);
    let mut redis = Redis::connect(port + 2);
    for number in 0..500 {
        assert_eq!(redis.ask(&["GET", &format!("key{number}")]), format!("value{number}"));
    }
    assert_eq!(redis.ask(&["INCR", "counter"]), ":42");
    assert!(dev.stop().success());
}
