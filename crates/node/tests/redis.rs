//! The same requests of subscribers and publishers to a front end and to a real Redis 7: the same bytes.

#[path = "../../resp/tests/redis_server/process.rs"]
mod process;

use process::RedisProcess;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use syros_node::front_end::{FrontEndSettings, RedisFrontEnd};
use syros_protocol::client::Config;
use syros_resp::{Connection, Context, DebugAccess, Identity, ServerInfo, ServerReport};
use syros_types::{Configuration, FastQuorum, Group, Instant, Now, WallTime};

struct NoServer;

impl ServerInfo for NoServer {
    fn report(&self) -> ServerReport {
        ServerReport::default()
    }
    fn reset_statistics(&self) {}
}

const NOW: Now = Now { instant: Instant(1_000_000_000), wall: WallTime(1_700_000_000_000_000) };

/// A front end with two connections.
struct FrontEnd(RedisFrontEnd);

impl FrontEnd {
    fn new() -> Self {
        let group = Group::new(3).unwrap();
        let config = Config::new(Configuration::first(group, FastQuorum::Majority), 1);
        let settings = FrontEndSettings {
            client_memory: 1 << 30,
            quorum_timeout: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(1),
            users_valid: syros_node::front_end::USERS_VALID,
            is_gateway: false,
            debug: DebugAccess::Nobody,
        };
        let mut front_end = RedisFrontEnd::new(config, settings, NOW);
        for address in [0, 1] {
            let identity = Identity { id: address, address: String::new(), local_address: String::new() };
            front_end.open(address, Connection::new(identity, NOW.wall));
        }
        Self(front_end)
    }

    fn send(&mut self, address: u64, mut bytes: &[u8]) {
        let context = Context { now: NOW.wall, info: &NoServer, unavailable: None };
        loop {
            let (connection, _) = self.0.connection_mut(NOW, address).unwrap();
            let consumed = connection.receive(bytes, &context);
            bytes = &bytes[consumed..];
            if !self.0.on_received(NOW, address) {
                break;
            }
        }
        while self.0.poll(NOW).is_some() || self.0.go_on(NOW).is_some() {}
    }

    fn take(&mut self, address: u64) -> Vec<u8> {
        let output = self.0.output(address).to_vec();
        self.0.sent(address, output.len());
        output
    }
}

/// Reads until the reply to a PING with this text has come.
fn read_until(stream: &mut UnixStream, mark: &str) -> Vec<u8> {
    let mut received = Vec::new();
    let mut buffer = [0; 65_536];
    let end = format!("{mark}\r\n").into_bytes();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    while !received.ends_with(&end) {
        let bytes = stream.read(&mut buffer).unwrap_or_else(|error| {
            panic!("{mark}: {error} after {}", received.escape_ascii());
        });
        assert!(bytes > 0, "Redis closed the connection after {}", received.escape_ascii());
        received.extend_from_slice(&buffer[..bytes]);
    }
    received
}

/// Sends each line by the connection whose number begins it, to both; all that both connections then get is the same.
fn compare(redis: &RedisProcess, script: &[&str]) {
    let mut streams = [redis.connect().unwrap(), redis.connect().unwrap()];
    run(&mut streams, &mut FrontEnd::new(), script);
}

fn run(streams: &mut [UnixStream; 2], front_end: &mut FrontEnd, script: &[&str]) {
    for (number, line) in script.iter().enumerate() {
        let (who, command) = line.split_once(' ').unwrap();
        let who: u64 = who.parse().unwrap();
        let bytes = format!("{}\r\n", command.replace(" ; ", "\r\n"));
        streams[who as usize].write_all(bytes.as_bytes()).unwrap();
        front_end.send(who, bytes.as_bytes());
        // First that one which has done something: what it has done has then been done.
        for address in [who, 1 - who] {
            let mark = format!("mark{number}");
            let ping = format!("PING {mark}\r\n");
            streams[address as usize].write_all(ping.as_bytes()).unwrap();
            front_end.send(address, ping.as_bytes());
            let expected = read_until(&mut streams[address as usize], &mark);
            let got = front_end.take(address);
            let show = |bytes: &[u8]| bytes.escape_ascii().to_string();
            assert_eq!(show(&got), show(&expected), "connection {address} after {line:?}, line {number}");
        }
    }
}

#[test]
fn subscribers_are_told_what_redis_tells_them() {
    let Some(redis) = RedisProcess::start("node", &[]) else { return };
    for protocol in [2, 3] {
        let mut script = vec![
            "0 SUBSCRIBE a b a",
            "1 PUBLISH a hello",
            "1 PUBLISH c hello",
            // One pattern for each channel: Redis follows the order of its table.
            "0 PSUBSCRIBE a* z?",
            "1 PUBLISH a both",
            "1 PUBLISH ab one",
            "0 SSUBSCRIBE a",
            "1 SPUBLISH a shard",
            "1 SPUBLISH b shard",
            "1 PUBSUB CHANNELS [b]",
            "1 PUBSUB CHANNELS a*",
            "1 PUBSUB NUMSUB a b c",
            "1 PUBSUB NUMSUB",
            "1 PUBSUB NUMPAT",
            "1 PUBSUB NUMPAT x",
            "1 PUBSUB SHARDCHANNELS",
            "1 PUBSUB SHARDCHANNELS b*",
            "1 PUBSUB SHARDNUMSUB a b",
            "1 PUBSUB CHANNELS a b",
            "1 PUBSUB HELP",
            "1 PUBSUB NOSUCH",
            "1 PUBSUB",
            "1 PUBLISH a",
            "1 SPUBLISH a",
            "1 SUBSCRIBE",
            "0 PING",
            "0 PING text",
            "0 PING too many",
            "0 SUBSCRIBE",
            "0 NOSUCH",
            "0 UNSUBSCRIBE b",
            "0 UNSUBSCRIBE nosuch",
            "0 PUNSUBSCRIBE a* nosuch",
            "0 SUNSUBSCRIBE nosuch",
            "1 PUBLISH a late",
            "0 SUNSUBSCRIBE",
            "0 SUNSUBSCRIBE",
            "1 SPUBLISH a late",
            "0 UNSUBSCRIBE",
            "0 PUNSUBSCRIBE ?",
            "0 PUNSUBSCRIBE",
            "0 PUNSUBSCRIBE",
            "0 UNSUBSCRIBE",
            "1 PUBLISH a nobody",
            "0 SUBSCRIBE a ; PING ; UNSUBSCRIBE a ; ECHO x",
            "0 SUBSCRIBE a",
            "1 SUBSCRIBE a",
            "0 CLIENT REPLY OFF ; SUBSCRIBE b ; UNSUBSCRIBE b ; CLIENT REPLY ON",
            "0 RESET",
            "0 ECHO x",
            "1 UNSUBSCRIBE",
            "1 MULTI ; PUBLISH a x ; PING ; PUBSUB NUMSUB a ; EXEC",
            "0 SUBSCRIBE a",
            "1 MULTI ; PUBLISH a x ; PUBLISH a y ; EXEC",
            "1 MULTI ; PUBLISH a x ; DISCARD",
            "1 MULTI ; PUBLISH a x ; PUBLISH a ; EXEC",
            "1 MULTI ; PUBSUB NOSUCH ; EXEC",
            "1 CLIENT REPLY SKIP ; PUBLISH a silent",
        ];
        if protocol == 2 {
            script.extend([
                "0 GET x",
                "0 MULTI",
                "0 CLIENT ID",
                "0 CONFIG GET x",
                "0 PUBLISH a self",
                "0 CLIENT NOSUCH",
                "0 SET x",
            ]);
            compare(&redis, &script);
        } else {
            compare_resp3(&redis, &script);
            let own = ["0 SUBSCRIBE a", "0 PUBLISH a self", "0 PSUBSCRIBE a", "0 PUBLISH a self", "0 ECHO x"];
            compare_resp3(&redis, &own);
        }
    }
}

/// As [`compare`], with connections that speak RESP3; the reply to HELLO, which names the connection, is left out.
fn compare_resp3(redis: &RedisProcess, script: &[&str]) {
    let mut streams = [redis.connect().unwrap(), redis.connect().unwrap()];
    let mut front_end = FrontEnd::new();
    for (address, stream) in streams.iter_mut().enumerate() {
        let hello = b"HELLO 3\r\nPING hello-mark\r\n";
        stream.write_all(hello).unwrap();
        read_until(stream, "hello-mark");
        front_end.send(address as u64, hello);
        front_end.take(address as u64);
    }
    run(&mut streams, &mut front_end, script);
}
