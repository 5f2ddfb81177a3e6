//! Clients that do all sorts of things at once, and a history of what they saw.

use crate::common::Redis;
use crate::histories::Recorder;
use crate::setup::GIVE_UP_AFTER;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use syros_bench::cluster::Cluster;
use syros_checker::history::{Input, Output};
use syros_client::{Client, Error, ReadPolicy, Reply, Settings};
use syros_types::Prng;

/// Keys are left behind for new ones after this long: what nobody knows the fate of stays concurrent with
/// everything later, and must not pile up on a key.
const ERA: Duration = Duration::from_millis(400);

/// Keys in use at a time. The last one of them is a number.
const KEYS: u32 = 3;

/// A client rests this long between two operations.
const PAUSE: Duration = Duration::from_millis(2);

/// A client without a connection tries again after this long.
const RECONNECT_AFTER: Duration = Duration::from_millis(20);

/// Where there is a quorum, so many updates must be acknowledged within this time.
const PROGRESS: usize = 20;
const PROGRESS_WITHIN: Duration = Duration::from_secs(5);

/// Native clients, besides two Redis clients for every node, of which one only reads: it goes on where updates
/// get stuck, and sees what is stale.
const NATIVE_CLIENTS: u64 = 3;

/// How a client reads: each in another of the ways that are linearizable.
fn policy(process: u64) -> ReadPolicy {
    const LINEARIZABLE: [ReadPolicy; 4] =
        [ReadPolicy::Quorum, ReadPolicy::Meta, ReadPolicy::Auto, ReadPolicy::Leader];
    LINEARIZABLE[process as usize % LINEARIZABLE.len()]
}

/// How an operation ended.
pub(crate) enum Ended {
    With(Output),
    WithoutEffect,
    Unknown,
}

/// Clients at work.
pub(crate) struct Load {
    recorder: Arc<Recorder>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(cluster: &Cluster, replicas: usize) -> Self {
        let mut load = Self { recorder: Arc::default(), is_over: Arc::default(), threads: Vec::new() };
        for process in 0..NATIVE_CLIENTS {
            let read_policy = policy(process);
            let settings = Settings { give_up_after: GIVE_UP_AFTER, read_policy, ..Settings::default() };
            let client = Client::connect(cluster.addresses(), settings.into()).unwrap().wait().unwrap();
            load.spawn(process, choose, move |input| native(&client, input));
        }
        for node in 0..replicas {
            let connection = |patience, policy| {
                let address = cluster.redis_address(node);
                let mut connection = Connection { address, patience, policy, redis: None };
                move |input: &Input| connection.execute(input)
            };
            let process = NATIVE_CLIENTS + 2 * node as u64;
            // The node's own answer comes first, unless the node is away.
            load.spawn(
                process,
                choose,
                connection(GIVE_UP_AFTER + Duration::from_secs(1), policy(node as u64)),
            );
            // Whoever believes in a leader that has been deposed reads from it.
            load.spawn(process + 1, choose_read, connection(READER_PATIENCE, ReadPolicy::Leader));
        }
        load
    }

    fn spawn(
        &mut self,
        process: u64,
        choose: Choose,
        mut execute: impl FnMut(&Input) -> Ended + Send + 'static,
    ) {
        let (recorder, is_over) = (Arc::clone(&self.recorder), Arc::clone(&self.is_over));
        self.threads.push(std::thread::spawn(move || {
            let (mut prng, mut number) = (Prng::new(process), 0);
            while !is_over.load(Ordering::Relaxed) {
                number += 1;
                let input = choose(&mut prng, recorder.elapsed(), process, number);
                recorder.record(process, &input, &mut execute);
                std::thread::sleep(PAUSE);
            }
        }));
    }

    /// Updates acknowledged so far.
    pub(crate) fn updates(&self) -> usize {
        self.recorder.updates()
    }

    /// Updates must be acknowledged now. Patient: the disk of a busy machine may take its time.
    pub(crate) fn must_go_on(&self) {
        let (before, deadline) = (self.updates(), Instant::now() + PROGRESS_WITHIN);
        while self.updates() < before + PROGRESS {
            assert!(Instant::now() < deadline, "no updates within {PROGRESS_WITHIN:?}: {before} so far");
            std::thread::sleep(PAUSE);
        }
    }

    /// Ends the clients; what they saw must be linearizable.
    pub(crate) fn finish(mut self, test: &str) {
        self.end();
        self.recorder.judge(test);
    }

    fn end(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

/// A client that only reads asks for another key if it has no answer by then: a leader that cannot be certain
/// of itself lets reads wait, and there may be keys that it is wrongly certain about.
const READER_PATIENCE: Duration = Duration::from_millis(100);

/// What a client does next: after so much time, which client, and its how-manieth operation.
type Choose = fn(&mut Prng, Duration, u64, i64) -> Input;

/// What a client that only reads does next: what others write now, or wrote lately.
fn choose_read(prng: &mut Prng, elapsed: Duration, _process: u64, _number: i64) -> Input {
    let era = u32::try_from(elapsed.as_nanos() / ERA.as_nanos()).unwrap();
    let old = prng.below(2) as u32;
    Input::Get((era - old.min(era)) * KEYS + prng.below(u64::from(KEYS)) as u32)
}

/// What a client does next. Every value is written once, so that a read says which write it saw.
fn choose(prng: &mut Prng, elapsed: Duration, process: u64, number: i64) -> Input {
    let era = u32::try_from(elapsed.as_nanos() / ERA.as_nanos()).unwrap();
    // Old keys are read, too: what was true must stay true.
    let old = prng.below(u64::from(era).min(5)) as u32;
    let place = prng.below(u64::from(KEYS)) as u32;
    let (key, is_number) = (era * KEYS + place, place == KEYS - 1);
    let value = || format!("{process}:{number};").into_bytes();
    match prng.below(100) {
        0..15 => Input::Get((era - old.min(era)) * KEYS + place),
        40..70 if is_number => Input::Increment(key, 1 + prng.below(9) as i64),
        70..85 if is_number => {
            Input::Exchange(key, (number * 1_000_000 + process as i64 * 1000).to_string().into_bytes())
        }
        40..70 => Input::Set(key, value()),
        70..80 => Input::Append(key, value()),
        80..85 => Input::Exchange(key, value()),
        85..90 => Input::SetIfAbsent(key, if is_number { b"0".to_vec() } else { value() }),
        90..93 => Input::Delete(key),
        93..95 => Input::Increment(key, 1),
        _ => Input::Get(key),
    }
}

/// The Redis command for an operation.
fn words(input: &Input) -> Vec<Vec<u8>> {
    let key = |key: &u32| format!("key:{key}").into_bytes();
    let words = |name: &str, k: &u32, rest: &[&[u8]]| {
        let mut words = vec![name.as_bytes().to_vec(), key(k)];
        words.extend(rest.iter().map(|word| word.to_vec()));
        words
    };
    match input {
        Input::Get(k) => words("GET", k, &[]),
        Input::Set(k, value) => words("SET", k, &[value]),
        Input::SetIfAbsent(k, value) => words("SETNX", k, &[value]),
        Input::Exchange(k, value) => words("GETSET", k, &[value]),
        Input::Append(k, value) => words("APPEND", k, &[value]),
        Input::Increment(k, by) => words("INCRBY", k, &[by.to_string().as_bytes()]),
        Input::Delete(k) => words("DEL", k, &[]),
        other => panic!("the clients do not use {other}"),
    }
}

/// What a reply says of an operation.
fn output(input: &Input, reply: Reply) -> Output {
    match (input, reply) {
        (Input::Get(_) | Input::Exchange(..), Reply::Bulk(value)) => Output::Value(Some(value)),
        (Input::Get(_) | Input::Exchange(..), Reply::Nil) => Output::Value(None),
        (Input::SetIfAbsent(..) | Input::Delete(_), Reply::Integer(truth)) => Output::Flag(truth == 1),
        (Input::Append(..) | Input::Increment(..), Reply::Integer(number)) => Output::Number(number),
        (Input::Set(..), Reply::Ok) => Output::Done,
        (input, reply) => panic!("{reply:?} is no reply to {input}"),
    }
}

fn native(client: &Client, input: &Input) -> Ended {
    let words = words(input);
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    match client.command(&words).wait() {
        Ok(reply) => Ended::With(output(input, reply)),
        Err(Error::Execution(text)) => failed(input, &text),
        Err(Error::Unknown | Error::Closed) => Ended::Unknown,
        Err(Error::Refused(_) | Error::TimedOut | Error::Busy(_) | Error::Disconnected) => {
            Ended::WithoutEffect
        }
        Err(error) => panic!("{input}: {error}"),
    }
}

/// An error in the words of Redis.
fn failed(input: &Input, text: &str) -> Ended {
    let begins = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
    if begins(&["ERR value is not an integer", "ERR increment or decrement would overflow"]) {
        return Ended::With(Output::Error);
    }
    match text {
        _ if begins(&["UNKNOWN"]) => Ended::Unknown,
        _ if begins(&["TIMEOUT", "OVERLOADED", "TRYAGAIN", "NOQUORUM", "LOADING"]) => Ended::WithoutEffect,
        _ => panic!("{input}: {text}"),
    }
}

/// A Redis client of one node, which connects again whenever it must.
struct Connection {
    address: SocketAddr,
    patience: Duration,
    policy: ReadPolicy,
    redis: Option<Redis>,
}

impl Connection {
    fn execute(&mut self, input: &Input) -> Ended {
        let connect = || {
            let mut redis = Redis::connect_to(self.address, self.patience).ok()?;
            redis.try_ask(&["READ", self.policy.name()]).ok().map(|_| redis)
        };
        let Some(redis) = self.redis.take().or_else(connect) else {
            std::thread::sleep(RECONNECT_AFTER);
            return Ended::WithoutEffect;
        };
        let redis = self.redis.insert(redis);
        let words = words(input);
        let words: Vec<&str> = words.iter().map(|word| std::str::from_utf8(word).unwrap()).collect();
        let Ok(answer) = redis.try_ask(&words) else {
            self.redis = None;
            return if input.is_read() { Ended::WithoutEffect } else { Ended::Unknown };
        };
        if let Some(text) = answer.strip_prefix('-') {
            return failed(input, text);
        }
        let integer = answer.strip_prefix(':').and_then(|number| number.parse().ok());
        let reply = match integer {
            Some(number) => Reply::Integer(number),
            None if answer == "nil" => Reply::Nil,
            None if answer == "+OK" => Reply::Ok,
            None => Reply::Bulk(answer.into_bytes()),
        };
        Ended::With(output(input, reply))
    }
}
