//! Users of real nodes and a gateway: who may do what, when a change holds elsewhere, and that a node which starts again lets
//! nobody in as long as it does not know them.

mod common;

use common::{Dev, Redis, Scratch, free_ports, kill, syros, wait_for, wait_for_end};
use rustix::process::Signal;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const NOT_AUTHENTICATED: &str = "-NOAUTH Authentication required.";

/// A gateway to a cluster, and its port.
fn gateway_of(dev: &Dev) -> (Child, u16) {
    let replicas: Vec<String> = dev.nodes.iter().map(|node| format!("127.0.0.1:{}", node.replica)).collect();
    let port = free_ports();
    let mut gateway = syros();
    gateway.args(["gateway", "--cluster", &replicas.join(","), "--port", &port.to_string()]);
    (gateway.stderr(Stdio::null()).spawn().unwrap(), port)
}

/// A client of a process that knows the users.
fn started(port: u16) -> Redis {
    wait_for("the process", || {
        let mut redis = Redis::try_connect(port).ok()?;
        let answer = redis.try_ask(&["PING"]).ok()?;
        (answer == "+PONG" || answer == NOT_AUTHENTICATED).then_some(redis)
    })
}

/// A client that is this user.
fn logged_in(port: u16, user: &str, password: &str) -> Redis {
    wait_for("the user", || {
        let mut redis = Redis::try_connect(port).ok()?;
        (redis.try_ask(&["AUTH", user, password]).ok()? == "+OK").then_some(redis)
    })
}

#[test]
fn a_change_of_users_holds_at_every_node_and_gateway() {
    let scratch = Scratch::new("users");
    let dev = Dev::start(&scratch.0, free_ports(), &[]);
    let (mut gateway, port) = gateway_of(&dev);
    let ports: Vec<u16> = dev.nodes.iter().map(|node| node.redis).chain([port]).collect();
    let mut administrators: Vec<Redis> = ports.iter().map(|port| started(*port)).collect();
    let rules = ["on", ">secret", "~a:*", "&news", "+@all", "-@dangerous"];
    assert_eq!(administrators[1].ask(&[&["ACL", "SETUSER", "alice"], &rules[..]].concat()), "+OK");
    // Where it was changed, it holds at once.
    assert_eq!(Redis::connect(ports[1]).ask(&["AUTH", "alice", "secret"]), "+OK");
    let mut clients: Vec<Redis> = ports.iter().map(|port| logged_in(*port, "alice", "secret")).collect();
    for client in &mut clients {
        assert_eq!(client.ask(&["ACL", "WHOAMI"]), "alice");
        assert_eq!(client.ask(&["SET", "a:1", "x"]), "+OK");
        assert_eq!(client.ask(&["GET", "b"]), "-NOPERM No permissions to access a key");
        assert_eq!(client.ask(&["READ", "stale", "GET", "b"]), "-NOPERM No permissions to access a key");
        assert_eq!(client.ask(&["BLIND", "DEL", "b"]), "-NOPERM No permissions to access a key");
        assert_eq!(client.ask(&["PUBLISH", "other", "x"]), "-NOPERM No permissions to access a channel");
        let refused = "-NOPERM User alice has no permissions to run the 'flushall' command";
        assert_eq!(client.ask(&["FLUSHALL"]), refused);
        // What a script calls needs the rights of the client, at every replica.
        assert_eq!(client.ask(&["EVAL", "return redis.call('GET', KEYS[1])", "1", "a:1"]), "x");
        for eval in ["EVAL", "EVAL_RO"] {
            let answer = client.ask(&[eval, "return redis.pcall('GET', 'b')", "0"]);
            assert_eq!(answer, "-ERR ACL failure in script: No permissions to access a key");
        }
    }
    assert_eq!(administrators[0].ask(&["EVAL", "return redis.call('SET', 'b', 1)", "0"]), "+OK");

    // A right that is gone is gone everywhere, and in a transaction that was begun before.
    assert_eq!(clients[3].ask(&["MULTI"]), "+OK");
    assert_eq!(clients[3].ask(&["GET", "a:1"]), "+QUEUED");
    let asked = Instant::now();
    assert_eq!(administrators[2].ask(&["ACL", "SETUSER", "alice", "-get"]), "+OK");
    let refused = "-NOPERM User alice has no permissions to run the 'get' command";
    assert_eq!(clients[2].ask(&["GET", "a:1"]), refused);
    for client in &mut clients[..2] {
        assert_eq!(client.ask(&["GET", "a:1"]), refused);
    }
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(logged_in(ports[3], "alice", "secret").ask(&["GET", "a:1"]), refused);
    let answer = clients[3].ask(&["EXEC"]);
    assert!(answer.starts_with("-EXECABORT") && answer.contains("NOPERM ACLs rules changed"), "{answer}");

    // The connections of a user that is removed are closed, wherever they are.
    assert_eq!(administrators[3].ask(&["ACL", "DELUSER", "alice"]), ":1");
    for client in &mut clients {
        wait_for("the connection to end", || client.try_ask(&["PING"]).is_err().then_some(()));
    }
    kill(gateway.id().try_into().unwrap(), Signal::TERM);
    assert!(wait_for_end(&mut gateway).success());
    assert!(dev.stop().success());
}

#[test]
fn a_subscriber_that_may_not_hear_a_channel_any_more_is_disconnected() {
    let scratch = Scratch::new("users-channels");
    let dev = Dev::start(&scratch.0, free_ports(), &[]);
    let port = |node: usize| dev.nodes[node].redis;
    let mut administrator = started(port(0));
    assert_eq!(administrator.ask(&["ACL", "SETUSER", "ear", "on", "nopass", "+@all", "&a", "&b"]), "+OK");
    let mut subscribers = [logged_in(port(1), "ear", ""), logged_in(port(1), "ear", "")];
    for (subscriber, channel) in subscribers.iter_mut().zip(["a", "b"]) {
        assert_eq!(subscriber.ask(&["SUBSCRIBE", channel]), "*3");
        (0..3).for_each(|_| drop(subscriber.reply().unwrap()));
    }
    assert_eq!(administrator.ask(&["ACL", "SETUSER", "ear", "resetchannels", "&a"]), "+OK");
    wait_for("the connection to end", || subscribers[1].try_ask(&["PING"]).is_err().then_some(()));
    assert_eq!(subscribers[0].ask(&["PING"]), "*2", "it may still hear a");
    assert!(dev.stop().success());
}

#[test]
fn nodes_that_start_again_let_nobody_in_before_they_know_the_users() {
    let scratch = Scratch::new("users-restart");
    let dev = Dev::start(&scratch.0, free_ports(), &[]);
    let ports: Vec<u16> = dev.nodes.iter().map(|node| node.redis).collect();
    let mut administrator = started(ports[0]);
    assert_eq!(administrator.ask(&["SET", "k", "v"]), "+OK");
    assert_eq!(administrator.ask(&["CONFIG", "SET", "requirepass", "secret"]), "+OK");
    // Their log, or a snapshot, has the password; none of them has heard of it from another one when it starts.
    for node in &dev.nodes {
        kill(node.pid, Signal::KILL);
    }
    drop(administrator);
    for port in &ports {
        let mut seen = 0;
        wait_for("the node to ask for a password", || {
            let mut redis = Redis::try_connect(*port).ok()?;
            let answer = redis.try_ask(&["GET", "k"]).ok()?;
            seen += 1;
            let is_refused = answer == NOT_AUTHENTICATED
                || answer.starts_with("-LOADING")
                || answer.starts_with("-NOQUORUM");
            assert!(is_refused, "after {seen}: {answer}");
            (answer == NOT_AUTHENTICATED).then_some(())
        });
    }
    let mut client = logged_in(ports[2], "default", "secret");
    assert_eq!(client.ask(&["GET", "k"]), "v");
    assert_eq!(client.ask(&["CONFIG", "SET", "requirepass", ""]), "+OK");
    assert_eq!(Redis::connect(ports[2]).ask(&["GET", "k"]), "v");
    assert!(dev.stop().success());
}
