//! What clients publish and subscribe to, at several nodes and a gateway, while one of them fails.

mod common;

use common::{Dev, Redis, Scratch, free_ports, kill, syros, wait_for, wait_for_end};
use rustix::process::Signal;
use std::process::{Child, Stdio};

/// Messages that a test publishes before and after a failure.
const MESSAGES: usize = 200;

/// A gateway to a cluster, and the ports of the nodes and of the gateway.
fn with_gateway(dev: &Dev) -> (Child, Vec<u16>) {
    let replicas: Vec<String> = dev.nodes.iter().map(|node| format!("127.0.0.1:{}", node.replica)).collect();
    let port = free_ports();
    let mut gateway = syros();
    gateway.args(["gateway", "--cluster", &replicas.join(","), "--port", &port.to_string()]);
    let gateway = gateway.stderr(Stdio::null()).spawn().unwrap();
    (gateway, dev.nodes.iter().map(|node| node.redis).chain([port]).collect())
}

/// Connects to a process when it has started: before, it may answer that it is loading, and close the connection.
fn started(port: u16) -> Redis {
    wait_for("the node", || {
        let mut redis = Redis::try_connect(port).ok()?;
        (redis.try_ask(&["PING"]).ok()? == "+PONG").then_some(redis)
    })
}

/// Subscribes, and waits for the answer.
fn subscriber(port: u16, channel: &str) -> Redis {
    let mut redis = started(port);
    assert_eq!(redis.ask(&["SUBSCRIBE", channel]), "*3");
    assert_eq!(parts(&mut redis, 3), ["subscribe", channel, ":1"]);
    redis
}

/// The next so many elements of an array.
fn parts(redis: &mut Redis, count: usize) -> Vec<String> {
    (0..count).map(|_| redis.reply().unwrap()).collect()
}

/// How many subscribers of a channel a process knows of, at all processes.
fn known(redis: &mut Redis, channel: &str) -> String {
    assert_eq!(redis.ask(&["PUBSUB", "NUMSUB", channel]), "*2");
    parts(redis, 2).remove(1)
}

/// Waits until a process knows of so many subscribers: it may answer clients before it is connected to all others.
fn wait_until_known(redis: &mut Redis, channel: &str, count: &str) {
    wait_for("the subscribers to be known", || (known(redis, channel) == count).then_some(()));
}

/// A subscriber of the channel `c` at each of these ports, and publishers there who know of them all.
fn conversation(ports: &[u16]) -> (Vec<Redis>, Vec<Redis>) {
    let subscribers: Vec<Redis> = ports.iter().map(|port| subscriber(*port, "c")).collect();
    let mut publishers: Vec<Redis> = ports.iter().map(|port| Redis::connect(*port)).collect();
    for publisher in &mut publishers {
        wait_until_known(publisher, "c", &format!(":{}", ports.len()));
    }
    (subscribers, publishers)
}

/// The next message, which is one of this channel.
fn message(redis: &mut Redis, channel: &str) -> String {
    assert_eq!(redis.reply().unwrap(), "*3");
    let [kind, name, payload] = parts(redis, 3).try_into().unwrap();
    assert_eq!((kind.as_str(), name.as_str()), ("message", channel));
    payload
}

#[test]
fn messages_reach_every_node_and_gateway_also_after_a_node_has_failed() {
    let scratch = Scratch::new("messages");
    let dev = Dev::start(&scratch.0, free_ports(), &[]);
    let (mut gateway, ports) = with_gateway(&dev);
    let (mut subscribers, mut publishers) = conversation(&ports);
    for number in 0..MESSAGES {
        let number = number.to_string();
        for publisher in &mut publishers {
            assert_eq!(publisher.ask(&["PUBLISH", "c", &number]), ":4");
        }
    }
    for subscriber in &mut subscribers {
        let mut last = vec![0; MESSAGES];
        for _ in 0..MESSAGES * publishers.len() {
            last[message(subscriber, "c").parse::<usize>().unwrap()] += 1;
        }
        assert!(last.iter().all(|count| *count == publishers.len()), "{last:?}");
    }

    // The node is started again by `syros dev`; its subscribers have to come back by themselves.
    let failed = dev.nodes.iter().position(|node| !node.leads).unwrap();
    kill(dev.nodes[failed].pid, Signal::KILL);
    let other = (failed + 1) % dev.nodes.len();
    drop(subscribers.remove(failed));
    wait_for("the node to be missed", || {
        let count = publishers[other].ask(&["PUBLISH", "other", "x"]);
        (count == ":0" && known(&mut publishers[other], "c") == ":3").then_some(())
    });
    subscribers.insert(failed, subscriber(ports[failed], "c"));
    wait_until_known(&mut publishers[other], "c", ":4");
    assert_eq!(publishers[other].ask(&["PUBLISH", "c", "after"]), ":4");
    for subscriber in &mut subscribers {
        assert_eq!(message(subscriber, "c"), "after");
    }
    kill(gateway.id().try_into().unwrap(), Signal::TERM);
    assert!(wait_for_end(&mut gateway).success());
    assert!(dev.stop().success());
}

#[test]
fn a_subscriber_finds_what_was_set_before_a_message_was_published() {
    let scratch = Scratch::new("set-and-publish");
    let dev = Dev::start(&scratch.0, free_ports(), &[]);
    let port = |node: usize| dev.nodes[node % dev.nodes.len()].redis;
    for node in 0..dev.nodes.len() {
        let mut listener = subscriber(port(node), "set");
        let (mut writer, mut reader) = (Redis::connect(port(node + 1)), Redis::connect(port(node + 2)));
        wait_until_known(&mut writer, "set", ":1");
        for number in 0..MESSAGES {
            let number = number.to_string();
            // In one pipeline: the message is published when the key is set.
            writer.send(&["SET", "k", &number]).unwrap();
            writer.send(&["PUBLISH", "set", &number]).unwrap();
            let heard: usize = message(&mut listener, "set").parse().unwrap();
            assert!(reader.ask(&["GET", "k"]).parse::<usize>().unwrap() >= heard);
            assert_eq!((writer.reply().unwrap(), writer.reply().unwrap()), ("+OK".into(), ":1".into()));
        }
    }
    assert!(dev.stop().success());
}

#[test]
fn scripts_publish_to_every_node_and_gateway_once() {
    let scratch = Scratch::new("scripts-publish");
    let dev = Dev::start(&scratch.0, free_ports(), &[]);
    let (mut gateway, ports) = with_gateway(&dev);
    let (mut subscribers, mut publishers) = conversation(&ports);
    let script = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('PUBLISH', 'c', ARGV[1])";
    for number in 0..MESSAGES {
        for (place, publisher) in publishers.iter_mut().enumerate() {
            let text = format!("{place}:{number}");
            assert_eq!(publisher.ask(&["EVAL", script, "1", &format!("k{place}"), &text]), ":0");
        }
    }
    let expected: Vec<String> = (0..MESSAGES)
        .flat_map(|number| (0..publishers.len()).map(move |place| format!("{place}:{number}")))
        .collect();
    for subscriber in &mut subscribers {
        let heard: Vec<String> = expected.iter().map(|_| message(subscriber, "c")).collect();
        assert_eq!(heard, expected, "in the order of the log");
    }
    kill(gateway.id().try_into().unwrap(), Signal::TERM);
    assert!(wait_for_end(&mut gateway).success());
    assert!(dev.stop().success());
}

/// Has a process tell its clients of keys that are set.
fn listener(port: u16) -> Redis {
    let mut redis = started(port);
    assert_eq!(redis.ask(&["CONFIG", "SET", "notify-keyspace-events", "E$x"]), "+OK");
    subscriber(port, "__keyevent@0__:set")
}

/// Nodes tell of a change, and a gateway does, once each, in one order; a node that starts again tells nothing again.
fn events_are_told_once(engine: &[&str]) {
    let scratch = Scratch::new(&format!("events-{}", engine.len()));
    let dev = Dev::start(&scratch.0, free_ports(), engine);
    let (mut gateway, ports) = with_gateway(&dev);
    let mut listeners: Vec<Redis> = ports.iter().map(|port| listener(*port)).collect();
    let mut writers: Vec<Redis> = ports.iter().map(|port| Redis::connect(*port)).collect();
    for number in 0..MESSAGES {
        for (place, writer) in writers.iter_mut().enumerate() {
            assert_eq!(writer.ask(&["SET", &format!("{place}:{number}"), "v"]), "+OK");
        }
    }
    let heard: Vec<Vec<String>> = listeners
        .iter_mut()
        .map(|redis| (0..MESSAGES * ports.len()).map(|_| message(redis, "__keyevent@0__:set")).collect())
        .collect();
    assert!(heard.iter().all(|one| *one == heard[0]), "all in the order of the log");
    let distinct: std::collections::BTreeSet<&String> = heard[0].iter().collect();
    assert_eq!(distinct.len(), MESSAGES * ports.len(), "each of them once");

    // The node is started again by `syros dev`, and goes through its log again.
    let failed = dev.nodes.iter().position(|node| !node.leads).unwrap();
    kill(dev.nodes[failed].pid, Signal::KILL);
    drop(listeners.remove(failed));
    let mut again = listener(ports[failed]);
    let other = (failed + 1) % dev.nodes.len();
    assert_eq!(writers[other].ask(&["SET", "after", "v"]), "+OK");
    assert_eq!(message(&mut again, "__keyevent@0__:set"), "after", "nothing is told again");
    // The gateway may have lost its home, and is told nothing twice.
    let of_gateway = listeners.last_mut().unwrap();
    for number in 0.. {
        writers[other].ask(&["SET", &format!("last:{number}"), "v"]);
        let key = message(of_gateway, "__keyevent@0__:set");
        assert!(!distinct.contains(&key), "{key} is told twice");
        if key.starts_with("last:") {
            break;
        }
    }
    kill(gateway.id().try_into().unwrap(), Signal::TERM);
    assert!(wait_for_end(&mut gateway).success());
    assert!(dev.stop().success());
}

#[test]
fn events_of_keys_are_told_once_at_every_node_and_gateway() {
    events_are_told_once(&[]);
}

#[test]
fn events_of_keys_are_told_once_with_an_engine_on_disk() {
    events_are_told_once(&["--engine", "disk"]);
}
