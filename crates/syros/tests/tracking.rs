//! Clients of nodes that keep copies of what they read, while clients of other nodes write.

mod common;

use common::{Dev, Redis, Scratch, free_ports, syros, wait_for, wait_for_end};
use rustix::process::Signal;
use std::process::Stdio;

/// Updates that a test does for each node.
const UPDATES: usize = 100;

/// A client that keeps a copy of the key `k`.
struct Keeper {
    redis: Redis,
    copy: Option<String>,
}

impl Keeper {
    /// Connects to a node when it has started, and keeps copies from now on.
    fn new(port: u16) -> Self {
        let mut redis = wait_for("the node", || {
            let mut redis = Redis::try_connect(port).ok()?;
            (redis.try_ask(&["PING"]).ok()? == "+PONG").then_some(redis)
        });
        assert_eq!(redis.ask(&["HELLO", "3"]), "%7");
        // Names and values; the last value is an empty array.
        let hello: Vec<String> = (0..14).map(|_| redis.reply().unwrap()).collect();
        assert_eq!(hello[12..], ["modules", "*0"]);
        assert_eq!(redis.ask(&["CLIENT", "TRACKING", "ON"]), "+OK");
        Self { redis, copy: None }
    }

    /// What comes next: `None` if it is that the copy is to be dropped.
    fn next(&mut self) -> Option<String> {
        let reply = self.redis.reply().unwrap();
        if reply != ">2" {
            return Some(reply);
        }
        let told: Vec<String> = (0..3).map(|_| self.redis.reply().unwrap()).collect();
        assert_eq!(told, ["invalidate", "*1", "k"]);
        self.copy = None;
        None
    }

    /// Reads the key, which must not have another value than the copy.
    fn get(&mut self) -> String {
        self.redis.send(&["GET", "k"]).unwrap();
        let value = loop {
            if let Some(value) = self.next() {
                break value;
            }
        };
        let copy = self.copy.get_or_insert_with(|| value.clone());
        assert_eq!(*copy, value, "nobody has said that the copy is old");
        value
    }
}

/// At each node a client keeps a copy of a key that a client of the next node changes.
fn copies_are_dropped_in_time(engine: &[&str]) {
    let scratch = Scratch::new(&format!("tracking-{}", engine.len()));
    let dev = Dev::start(&scratch.0, free_ports(), engine);
    let port = |node: usize| dev.nodes[node % dev.nodes.len()].redis;
    for node in 0..dev.nodes.len() {
        let (mut keeper, mut writer) = (Keeper::new(port(node)), Redis::connect(port(node + 1)));
        for number in 0..UPDATES {
            let number = format!("{node}.{number}");
            keeper.get();
            assert_eq!(writer.ask(&["SET", "k", &number]), "+OK");
            if number.ends_with('7') {
                // It is told without asking.
                while keeper.copy.is_some() {
                    assert_eq!(keeper.next(), None);
                }
            }
            assert_eq!(keeper.get(), number);
        }
        assert_eq!(writer.ask(&["PEXPIRE", "k", "30"]), ":1");
        keeper.get();
        while keeper.copy.is_some() {
            assert_eq!(keeper.next(), None);
        }
        wait_for("the expiry of the key", || (keeper.get() == "_").then_some(()));
    }
    assert!(dev.stop().success());
}

#[test]
fn copies_are_dropped_before_replies_show_other_values() {
    copies_are_dropped_in_time(&[]);
}

#[test]
fn copies_are_dropped_before_replies_show_other_values_of_an_engine_on_disk() {
    copies_are_dropped_in_time(&["--engine", "disk"]);
}

#[test]
fn a_gateway_refuses_to_have_its_clients_keep_copies() {
    let scratch = Scratch::new("tracking-gateway");
    let dev = Dev::start(&scratch.0, free_ports(), &[]);
    let replicas: Vec<String> = dev.nodes.iter().map(|node| format!("127.0.0.1:{}", node.replica)).collect();
    let port = free_ports();
    let mut gateway = syros();
    gateway.args(["gateway", "--cluster", &replicas.join(","), "--port", &port.to_string()]);
    let mut gateway = gateway.stderr(Stdio::null()).spawn().unwrap();
    let answer = wait_for("the gateway", || {
        Redis::try_connect(port).ok()?.try_ask(&["CLIENT", "TRACKING", "ON"]).ok()
    });
    assert!(answer.starts_with("-ERR a gateway has no replica"), "{answer}");
    common::kill(gateway.id().try_into().unwrap(), Signal::TERM);
    assert!(wait_for_end(&mut gateway).success());
    assert!(dev.stop().success());
}
