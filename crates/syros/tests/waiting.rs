//! Clients that wait for elements at the nodes of a cluster, of which some are killed meanwhile.

mod common;

use std::time::Duration;

use common::{DevNode, Redis, Scratch, free_ports, kill};
use rustix::process::Signal;

/// A client that has begun to wait is in the queue after so long, even on a busy machine.
const SETTLED: Duration = Duration::from_millis(300);

/// A client that waits for elements of these keys.
fn waiting(node: &DevNode, keys: &[&str]) -> Redis {
    let mut redis = Redis::connect(node.redis);
    let words: Vec<&str> = ["BLPOP"].iter().chain(keys).chain(&["0"]).copied().collect();
    redis.send(&words).unwrap();
    std::thread::sleep(SETTLED);
    redis
}

/// The key and the element that a client has waited for.
fn popped(redis: &mut Redis) -> (String, String) {
    assert_eq!(redis.reply().unwrap(), "*2");
    (redis.reply().unwrap(), redis.reply().unwrap())
}

fn pair(key: &str, element: &str) -> (String, String) {
    (key.to_owned(), element.to_owned())
}

#[test]
fn who_came_first_at_any_node_is_served_first() {
    let (scratch, port) = (Scratch::new("waiting-order"), free_ports());
    let dev = common::Dev::start(&scratch.0.join("cluster"), port, &[]);
    let node = |number: usize| &dev.nodes[number % dev.nodes.len()];
    let mut clients: Vec<Redis> = (0..6)
        .map(|number| waiting(node(number), if number % 2 == 0 { &["first", "second"] } else { &["first"] }))
        .collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let mut pusher = Redis::connect(node(number + 1).redis);
        assert_eq!(pusher.ask(&["RPUSH", "first", &number.to_string()]), ":1");
        assert_eq!(popped(client), pair("first", &number.to_string()), "client {number}");
        // It goes on as any other.
        assert_eq!(client.ask(&["LLEN", "second"]), ":0");
    }
    // Moved elements wake those who wait where they are moved to.
    let mut last = waiting(node(0), &["third"]);
    let mut mover = Redis::connect(node(1).redis);
    mover.send(&["BLMOVE", "first", "third", "LEFT", "RIGHT", "0"]).unwrap();
    std::thread::sleep(SETTLED);
    assert_eq!(Redis::connect(node(2).redis).ask(&["RPUSH", "first", "moved"]), ":1");
    assert_eq!(mover.reply().unwrap(), "moved");
    assert_eq!(popped(&mut last), pair("third", "moved"));
    let mut patient = Redis::connect(node(2).redis);
    assert_eq!(patient.ask(&["BZPOPMIN", "nothing", "0.1"]), "*-1");
    assert_eq!(patient.ask(&["KEYS", "*"]), "*0", "queues are not shown");
    drop(dev);
}

#[test]
fn killed_nodes_take_nothing_and_those_who_wait_elsewhere_go_on() {
    let (scratch, port) = (Scratch::new("waiting-kills"), free_ports());
    let dev = common::Dev::start(&scratch.0.join("cluster"), port, &["--replicas", "5"]);
    let leader = dev.leader().clone();
    let followers: Vec<DevNode> = dev.nodes.iter().filter(|node| !node.leads).cloned().collect();
    let mut doomed = [waiting(&followers[0], &["q"]), waiting(&leader, &["q"])];
    let mut second = waiting(&followers[1], &["other", "q"]);
    let mut third = waiting(&followers[2], &["q"]);
    kill(followers[0].pid, Signal::KILL);
    kill(leader.pid, Signal::KILL);
    for client in &mut doomed {
        assert!(client.reply().is_err(), "its node has gone");
    }
    let mut pusher = Redis::connect(followers[3].redis);
    for (number, client) in [&mut second, &mut third].into_iter().enumerate() {
        let element = format!("e{number}");
        let reply = pusher.ask(&["RPUSH", "q", &element]);
        assert!(reply.starts_with(':'), "{reply}");
        assert_eq!(popped(client), pair("q", &element));
    }
    assert_eq!(pusher.ask(&["LLEN", "q"]), ":0");
    drop(dev);
}

/// The id of the one entry that a client has waited for.
fn entry(redis: &mut Redis) -> String {
    // Streams, one of them; its name and its entries, one of them; its id and its fields.
    for expected in ["*1", "*2", "s", "*1", "*2"] {
        assert_eq!(redis.reply().unwrap(), expected);
    }
    let id = redis.reply().unwrap();
    for expected in ["*2", "f", "v"] {
        assert_eq!(redis.reply().unwrap(), expected);
    }
    id
}

#[test]
fn entries_reach_readers_at_all_nodes_and_one_consumer_of_a_group() {
    let (scratch, port) = (Scratch::new("waiting-streams"), free_ports());
    let dev = common::Dev::start(&scratch.0.join("cluster"), port, &["--replicas", "5"]);
    let leader = dev.leader().clone();
    let followers: Vec<DevNode> = dev.nodes.iter().filter(|node| !node.leads).cloned().collect();
    let mut adder = Redis::connect(followers[0].redis);
    assert_eq!(adder.ask(&["XGROUP", "CREATE", "s", "g", "$", "MKSTREAM"]), "+OK");
    let begin = |node: &DevNode, words: &[&str]| {
        let mut redis = Redis::connect(node.redis);
        redis.send(words).unwrap();
        redis
    };
    let reader = ["XREAD", "BLOCK", "0", "STREAMS", "s", "$"];
    let consumer = |name| ["XREADGROUP", "GROUP", "g", name, "BLOCK", "0", "STREAMS", "s", ">"];
    let mut readers: Vec<Redis> = followers.iter().map(|node| begin(node, &reader)).collect();
    let mut doomed = begin(&leader, &consumer("doomed"));
    std::thread::sleep(SETTLED);
    kill(leader.pid, Signal::KILL);
    assert!(doomed.reply().is_err(), "its node has gone");
    assert_eq!(adder.ask(&["XADD", "s", "1-1", "f", "v"]), "1-1");
    for redis in &mut readers {
        assert_eq!(entry(redis), "1-1");
    }
    let mut consumers = [begin(&followers[1], &consumer("one")), begin(&followers[1], &consumer("two"))];
    assert_eq!(entry(&mut consumers[0]), "1-1", "the killed node has taken nothing");
    std::thread::sleep(SETTLED);
    let shown = Redis::connect(followers[1].redis).ask(&["CLIENT", "LIST"]);
    assert!(shown.contains("flags=b") && shown.contains("cmd=xreadgroup"), "{shown}");
    assert_eq!(adder.ask(&["XADD", "s", "1-2", "f", "v"]), "1-2");
    assert_eq!(entry(&mut consumers[1]), "1-2");
    // Time passes, a stream goes.
    assert_eq!(adder.ask(&["XREAD", "BLOCK", "50", "STREAMS", "s", "$"]), "*-1");
    let mut last = begin(&followers[2], &consumer("last"));
    std::thread::sleep(SETTLED);
    assert_eq!(adder.ask(&["DEL", "s"]), ":1");
    assert!(last.reply().unwrap().starts_with("-NOGROUP"));
    drop(dev);
}

#[test]
fn clients_that_go_or_are_unblocked_take_nothing() {
    let (scratch, port) = (Scratch::new("waiting-gone"), free_ports());
    let dev = common::Dev::start(&scratch.0.join("cluster"), port, &["--replicas", "1"]);
    let node = &dev.nodes[0];
    drop(waiting(node, &["q"]));
    let mut unblocked = Redis::connect(node.redis);
    let id = unblocked.ask(&["CLIENT", "ID"]);
    let mut other = Redis::connect(node.redis);
    let mut unblock = |reason: &str| other.ask(&["CLIENT", "UNBLOCK", &id[1..], reason]);
    assert_eq!(unblock("TIMEOUT"), ":0");
    for (reason, reply) in [("TIMEOUT", "*-1"), ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK")] {
        unblocked.send(&["BLPOP", "q", "0"]).unwrap();
        std::thread::sleep(SETTLED);
        assert_eq!(unblock(reason), ":1");
        assert_eq!(unblocked.reply().unwrap(), reply);
    }
    assert_eq!(other.ask(&["RPUSH", "q", "e"]), ":1");
    assert_eq!(unblocked.ask(&["LPOP", "q"]), "e");
    // A queue that was flushed is made again.
    let mut waits = waiting(node, &["q"]);
    assert_eq!(other.ask(&["FLUSHALL"]), "+OK");
    assert_eq!(other.ask(&["RPUSH", "q", "after"]), ":1");
    assert_eq!(popped(&mut waits), pair("q", "after"));
    // A node that is told to stop answers those who wait.
    let mut last = waiting(node, &["q"]);
    assert!(dev.stop().success());
    assert_eq!(last.reply().unwrap(), "*-1");
}
