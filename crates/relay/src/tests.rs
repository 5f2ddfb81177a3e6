//! The relay between sockets of the test.

use super::*;
use core::time::Duration;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Three replicas in one region, clients in another.
fn regions(rtt_ms: f64) -> Regions {
    let text = format!(
        "replicas = ['near', 'near', 'near']\nclients = ['far']\n[[line]]\nwithin-each = true\nrtt-ms = 0.2\n\
         [[line]]\nbetween = ['near', 'far']\nrtt-ms = {rtt_ms}\n"
    );
    Regions::parse(&text).unwrap()
}

/// A relay to a socket of the test's, and its address from the clients' region.
fn start(rtt_ms: f64) -> (Relay, std::net::TcpListener, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let replica = listener.local_addr().unwrap();
    let relay = Relay::start(&regions(rtt_ms), &[replica; 3], 1).unwrap();
    let address = relay.addresses_from(1)[0];
    (relay, listener, address)
}

fn connect(listener: &std::net::TcpListener, address: SocketAddr) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(address).unwrap();
    let (replica, _) = listener.accept().unwrap();
    for stream in [&client, &replica] {
        stream.set_read_timeout(Some(10 * SECOND)).unwrap();
        stream.set_nodelay(true).unwrap();
    }
    (client, replica)
}

/// How long a byte takes there and another one back.
fn round_trip(client: &mut TcpStream, replica: &mut TcpStream) -> Duration {
    let (started, mut byte) = (Instant::now(), [0]);
    client.write_all(b"a").unwrap();
    replica.read_exact(&mut byte).unwrap();
    replica.write_all(b"b").unwrap();
    client.read_exact(&mut byte).unwrap();
    started.elapsed()
}

#[test]
fn a_round_trip_takes_as_long_as_the_lines_say() {
    for rtt_ms in [0.0, 0.3, 40.0] {
        let (_relay, listener, address) = start(rtt_ms);
        let (mut client, mut replica) = connect(&listener, address);
        let times: Vec<Duration> = (0..20).map(|_| round_trip(&mut client, &mut replica)).collect();
        let (rtt, least) = (Duration::from_secs_f64(rtt_ms / 1000.0), times.iter().min().unwrap());
        assert!(*least >= rtt, "{least:?} for {rtt:?}");
        assert!(*least < rtt + SECOND, "{least:?} for {rtt:?}");
    }
}

#[test]
fn each_place_has_its_own_way_to_each_replica() {
    let (relay, listener, _) = start(1.0);
    let replica = listener.local_addr().unwrap();
    let mut all = [relay.addresses_from(0), relay.addresses_from(1)].concat();
    let own = relay.addresses_for_replica(1);
    assert_eq!(own, [all[0], replica, all[2]], "it itself is not reached through the relay");
    all.sort_unstable();
    all.dedup();
    assert!(all.len() == 6 && !all.contains(&replica));
}

#[test]
fn megabytes_pass_both_ways_unchanged() {
    const BYTES: usize = 20 << 20;
    let (_relay, listener, address) = start(1.0);
    let (client, replica) = connect(&listener, address);
    let byte = |index: usize, salt: usize| ((index * 31 + index / 1000 + salt) % 251) as u8;
    std::thread::scope(|scope| {
        for (mut stream, salt) in [(client, 0), (replica, 7)] {
            let mut reader = stream.try_clone().unwrap();
            scope.spawn(move || {
                let bytes: Vec<u8> = (0..BYTES).map(|index| byte(index, salt)).collect();
                stream.write_all(&bytes).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                // More waits than may be under way.
                std::thread::sleep(Duration::from_millis(200));
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes).unwrap();
                assert_eq!(bytes.len(), BYTES);
                assert!((0..BYTES).all(|index| bytes[index] == byte(index, 7 - salt)));
            });
        }
    });
}

#[test]
fn an_end_comes_after_what_was_sent_and_late() {
    let (_relay, listener, address) = start(40.0);
    let (mut client, mut replica) = connect(&listener, address);
    let started = Instant::now();
    client.write_all(b"last words").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut words = String::new();
    replica.read_to_string(&mut words).unwrap();
    assert_eq!(words, "last words");
    assert!(started.elapsed() >= Duration::from_millis(20));
    // The other direction goes on.
    replica.write_all(b"answer").unwrap();
    drop(replica);
    words.clear();
    client.read_to_string(&mut words).unwrap();
    assert_eq!(words, "answer");
}

#[test]
fn a_lost_connection_is_lost_at_the_other_end_too() {
    let (_relay, listener, address) = start(1.0);
    let (client, mut replica) = connect(&listener, address);
    drop(client);
    // What is sent to it is refused, some time.
    let lost = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        replica.write_all(b"a").is_err()
    });
    assert!(lost);
}

#[test]
fn nobody_at_the_other_end_is_noticed() {
    let (relay, listener, address) = start(40.0);
    drop(listener);
    let started = Instant::now();
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(10 * SECOND)).unwrap();
    match client.read(&mut [0]) {
        Ok(count) => assert_eq!(count, 0),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert!(started.elapsed() >= Duration::from_millis(20), "it takes as long as a refusal would");
    drop(relay);
}

#[test]
fn everything_ends_with_the_relay() {
    let (relay, listener, address) = start(1.0);
    let (mut client, mut replica) = connect(&listener, address);
    round_trip(&mut client, &mut replica);
    // Waits until its thread has ended.
    drop(relay);
    assert!(!matches!(client.read(&mut [0]), Ok(1..)));
    assert!(!matches!(replica.read(&mut [0]), Ok(1..)));
    assert!(TcpStream::connect(address).is_err());
}
