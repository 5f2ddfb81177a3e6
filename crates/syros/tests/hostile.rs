//! Peers that send anything but what they should: a node closes their connections and goes on.

mod common;

use common::{Dev, PATIENCE, Redis, Scratch, free_ports, is_running};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};
use syros_types::{ConfigurationEpoch, ConfigurationId, GroupId};
use syros_wire::tag::message::STATUS_REQUEST;
use syros_wire::{Channel, put_frame, put_frame_of};

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends `bytes` and returns all that comes until the node closes the connection.
fn send_and_drain(port: u16, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(port);
    // The node may close before it has all of it.
    let _ = stream.write_all(bytes);
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return received,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return received,
            Err(error) => panic!("the node did not close the connection: {error}"),
        }
    }
}

/// Bytes that look random and are the same in every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..length).map(|_| next()).collect()
}

fn frame(channel: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len() + 1).unwrap();
    [&length.to_le_bytes()[..], &[channel], payload].concat()
}

/// A frame on one of the other channels, whose checksum is right.
fn checked(channel: Channel, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    put_frame(&mut frame, channel, |out| out.extend_from_slice(payload));
    frame
}

/// A message for another group, or for another epoch, than the node's.
fn foreign(group: u32, epoch: u64) -> Vec<u8> {
    let configuration = ConfigurationId { group: GroupId(group), epoch: ConfigurationEpoch(epoch) };
    let mut frame = Vec::new();
    put_frame_of(&mut frame, Channel::Client, configuration, |out| out.push(STATUS_REQUEST));
    frame
}

/// The handshake of a client of any cluster.
fn hello() -> Vec<u8> {
    frame(2, b"SYRS\x04\0\0\0\0\0\0\0\0\0\0\x01")
}

#[test]
fn garbage_on_every_port() {
    let (scratch, port) = (Scratch::new("garbage"), free_ports());
    let dir = scratch.0.join("cluster");
    let dev = Dev::start(&dir, port, &["--no-restart"]);
    let mut friend = Redis::connect(port);
    assert_eq!(friend.ask(&["SET", "k", "v"]), "+OK");
    for node in &dev.nodes {
        for seed in 0..20 {
            send_and_drain(node.replica, &noise(seed, 3000));
            // Redis speaks to people too: a line of noise is an unknown command, and is answered.
            let mut line = noise(seed, 3000);
            line.extend_from_slice(b"\r\nQUIT\r\n");
            send_and_drain(node.redis, &line);
        }
        for bytes in [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            frame(2, b"SYRS\xff\xffwhatever"),
            frame(2, b"SYRS\x04\0\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
            frame(0, b"no handshake"),
            [hello(), frame(1, &noise(1, 100))].concat(),
            [hello(), checked(Channel::Replica, &noise(1, 100))].concat(),
            [hello(), checked(Channel::Client, &noise(2, 100))].concat(),
            [hello(), frame(2, &noise(3, 100))].concat(),
            [hello(), foreign(7, 0)].concat(),
            [hello(), foreign(0, 1)].concat(),
            [hello(), 0x7fff_ffff_u32.to_le_bytes().to_vec(), vec![1; 100]].concat(),
            [hello(), vec![0; 5]].concat(),
        ] {
            send_and_drain(node.replica, &bytes);
        }
        let answer = send_and_drain(node.redis, b"*1\r\n$x\r\nabc\r\n");
        assert!(answer.starts_with(b"-ERR Protocol error"), "{:?}", String::from_utf8_lossy(&answer));
        let answer = send_and_drain(node.redis, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$99999999999\r\n");
        assert!(answer.starts_with(b"-ERR Protocol error"), "{:?}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(friend.ask(&["GET", "k"]), "v");
    assert!(dev.nodes.iter().all(|node| is_running(node.pid)), "a node has ended");
    // What nodes say is in their logs when they have ended.
    assert!(dev.stop().success());
    complaints_are_few_and_name_the_version(&dir);
}

fn complaints_are_few_and_name_the_version(dir: &Path) {
    for node in 0..3 {
        let log = std::fs::read_to_string(dir.join(format!("node-{node}.log"))).unwrap();
        let complaints = log.lines().filter(|line| line.contains("WARN")).count();
        assert!((1..40).contains(&complaints), "{complaints} complaints:\n{log}");
        assert!(!log.contains("panicked"), "{log}");
    }
}

#[test]
fn silent_peers_are_closed_and_idle_clients_are_not() {
    let (scratch, port) = (Scratch::new("silent"), free_ports());
    let dev = Dev::start(&scratch.0.join("cluster"), port, &["--replicas", "1"]);
    let mut idle = Redis::connect(port);
    let start = Instant::now();
    let answer = send_and_drain(dev.nodes[0].replica, b"\x10");
    assert!(answer.is_empty());
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(4) && waited < Duration::from_secs(20), "{waited:?}");
    assert_eq!(idle.ask(&["PING"]), "+PONG");
}

#[test]
fn a_client_that_closes_its_side_gets_its_replies() {
    let (scratch, port) = (Scratch::new("half"), free_ports());
    let dev = Dev::start(&scratch.0.join("cluster"), port, &[]);
    let mut stream = connect(port);
    let requests: String = (0..1000).map(|n| format!("SET k{n} v\r\nGET k{n}\r\n")).collect();
    stream.write_all(requests.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "+OK\r\n$1\r\nv\r\n".repeat(1000));
    drop(dev);
}

#[test]
fn a_client_that_does_not_read_costs_no_more_than_its_share() {
    let (scratch, port) = (Scratch::new("deaf"), free_ports());
    let dev = Dev::start(&scratch.0.join("cluster"), port, &[]);
    let mut friend = Redis::connect(port);
    let value = "x".repeat(1 << 18);
    assert_eq!(friend.ask(&["SET", "big", &value]), "+OK");
    let mut deaf = connect(port);
    // 5 GB of replies; the node stops reading, so this may not be taken whole.
    deaf.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let _ = deaf.write_all("GET big\r\n".repeat(20_000).as_bytes());
    for _ in 0..100 {
        assert_eq!(friend.ask(&["GET", "big"]).len(), value.len());
    }
    let memory = friend.ask(&["INFO", "memory"]);
    let used = memory.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    let used: u64 = used.trim_end().parse().unwrap();
    assert!(used < 1 << 29, "{used} bytes");
    // What it takes up again, it gets.
    let mut start = vec![0; 9 + value.len()];
    deaf.read_exact(&mut start).unwrap();
    assert!(start.starts_with(b"$262144\r\nxxxx"));
    drop(dev);
}
