//! Nanoseconds per command from received bytes to submissions, and from completions to reply bytes.
//!
//! `cargo run --release -p syros-resp --example parse_bench`

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use syros_commands::acl::{UserChange, Users};
use syros_commands::{put_bulk, put_integer};
use syros_resp::{Completion, Connection, Context, Identity, ServerInfo, ServerReport, Shared, Submission};
use syros_types::{Class, WallTime};

struct Nobody;

impl ServerInfo for Nobody {
    fn report(&self) -> ServerReport {
        ServerReport::default()
    }
    fn reset_statistics(&self) {}
}

/// Commands in one read, as `redis-benchmark -P 16` sends them.
const PIPELINE: usize = 16;
const CONNECTIONS: usize = 50;
const ROUNDS: usize = 4000;

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// Runs a pipeline of requests through many connections of the default user, who may do everything; prints what a command
/// costs each way.
fn measure(name: &str, reply: &[u8], request_of: impl Fn(usize) -> Vec<u8>) {
    measure_as(name, None, reply, request_of);
}

/// The same for a user whom these rules have made.
fn measure_as(name: &str, rules: Option<&str>, reply: &[u8], request_of: impl Fn(usize) -> Vec<u8>) {
    let shared = Arc::<Shared>::default();
    if let Some(rules) = rules {
        let rules: Vec<&[u8]> = rules.split(' ').map(str::as_bytes).collect();
        let mut users = Users::default();
        users.set(b"u", &rules, UserChange::Always).expect("rules");
        shared.learn_users(users);
    }
    let context = Context { now: WallTime(0), info: &Nobody, unavailable: None };
    let mut connections: Vec<Connection> = (0..CONNECTIONS)
        .map(|id| {
            let identity = Identity { id: id as u64, address: String::new(), local_address: String::new() };
            let mut connection = Connection::with_shared(identity, WallTime(0), Arc::clone(&shared));
            if rules.is_some() {
                connection.receive(&request(&["AUTH", "u", ""]), &context);
                assert_eq!(connection.output(), b"+OK\r\n");
                connection.sent(5);
            }
            connection
        })
        .collect();
    let inputs: Vec<Vec<u8>> = (0..CONNECTIONS)
        .map(|connection| {
            (0..PIPELINE).flat_map(|command| request_of(connection * PIPELINE + command)).collect()
        })
        .collect();
    let (mut forward, mut backward) = (Vec::new(), Vec::new());
    let (mut submissions, mut total, mut output) = (Vec::<(usize, Submission)>::new(), 0, 0);
    // The reply to each of the operations of a pack, as a client of the group would hand it over.
    let replies: Vec<Arc<[u8]>> = (0..=PIPELINE).map(|count| Arc::from(reply.repeat(count))).collect();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for (index, (connection, input)) in connections.iter_mut().zip(&inputs).enumerate() {
            assert_eq!(connection.receive(black_box(input), &context), input.len());
            while let Some(submission) = connection.poll_submit() {
                submissions.push((index, submission));
            }
        }
        forward.push(start.elapsed());
        total += submissions.len();
        let each = (PIPELINE * CONNECTIONS).checked_div(submissions.len()).unwrap_or(0);
        let start = Instant::now();
        for (index, submission) in submissions.drain(..) {
            let completion = match submission.class {
                Class::Overwrite | Class::Merge => Completion::Done,
                Class::Read | Class::Update => Completion::Reply(replies[each].clone()),
            };
            assert!(connections[index].complete(submission.slot, completion));
        }
        for connection in &mut connections {
            output += black_box(connection.output()).len();
            connection.sent(connection.output().len());
            assert_eq!(connection.outstanding(), 0);
        }
        backward.push(start.elapsed());
    }
    let commands = (ROUNDS * CONNECTIONS * PIPELINE) as f64;
    // The lower quartile of the rounds: what it takes when nobody else has the core.
    let nanoseconds = |mut rounds: Vec<Duration>| {
        rounds.sort_unstable();
        rounds[ROUNDS / 4].as_nanos() as f64 / (CONNECTIONS * PIPELINE) as f64
    };
    println!(
        "{name:28} {:6.1} ns in {:6.1} ns out  ({:.2} submissions, {:.1} reply bytes per command)",
        nanoseconds(forward),
        nanoseconds(backward),
        total as f64 / commands,
        output as f64 / commands,
    );
}

fn main() {
    let value = "xxxxxxxxxxxxxxxx";
    let (mut bulk, mut integer) = (Vec::new(), Vec::new());
    put_bulk(&mut bulk, value.as_bytes());
    put_integer(&mut integer, 12345);
    let key = |number: usize| format!("key:{number:012}");
    measure("SET, different keys", &[], |number| request(&["SET", &key(number), value]));
    measure("GET, different keys", &bulk, |number| request(&["GET", &key(number)]));
    measure("INCR, different keys", &integer, |number| request(&["INCR", &key(number)]));
    measure("SET, one key (packed)", &[], |_| request(&["SET", "key:__rand_int__", value]));
    measure("INCR, one key (packed)", &integer, |_| request(&["INCR", "key:__rand_int__"]));
    measure("MSET of 10 keys", &[], |number| {
        let keys: Vec<String> = (0..10).map(|index| key(number * 10 + index)).collect();
        let mut words = vec!["MSET"];
        keys.iter().for_each(|key| words.extend([key.as_str(), value]));
        request(&words)
    });
    measure("PING", &[], |_| request(&["PING"]));
    for rules in [
        "on nopass ~key:* +@all -@dangerous",
        "on nopass ~a:* ~b:* ~c:* ~key:*0* ~k* +get +set (~key:* +del)",
    ] {
        println!("as a user with the rules {rules}:");
        measure_as("SET, different keys", Some(rules), &[], |number| request(&["SET", &key(number), value]));
        measure_as("GET, different keys", Some(rules), &bulk, |number| request(&["GET", &key(number)]));
    }
}
