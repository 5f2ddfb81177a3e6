//! The same random commands on streams go to a redis-server and to this engine; the answers must be the same. Skipped, with a
//! notice, where redis-server is not installed.
//!
//! Known differences of version 7.0, which the test makes up for or leaves out:
//! - it does not create a consumer that gets nothing, so all consumers are created with their group;
//! - it does not know when a consumer has got something last;
//! - what `~` removes depends on its nodes; and it does not know `+`;
//! - it looks at keys before it looks at some words: of a command that is wrong in two ways both only have to fail;
//! - times may differ by [`TOLERANCE_MS`].

#[path = "../../resp/tests/redis_server/process.rs"]
mod process;
#[path = "redis/request.rs"]
mod request;

use process::RedisProcess;
use request::request;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use syros_commands::{Parsed, Reply, parse};
use syros_storage::conformance::{Generator, STREAM_NAMES};
use syros_storage::{Engine, MemoryEngine};
use syros_types::WallTime;

/// How far apart two times may be that should be the same; a loaded machine is slow.
const TOLERANCE_MS: u64 = 100_000;

struct Server {
    connection: BufReader<UnixStream>,
    /// It ends with the test.
    _process: RedisProcess,
}

impl Server {
    /// `None`, with a notice, if redis-server is not installed.
    fn start(name: &str) -> Option<Self> {
        let process = RedisProcess::start(&format!("streams-{name}"), &[])?;
        let stream = process.connect().expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a read timeout");
        Some(Self { connection: BufReader::new(stream), _process: process })
    }

    fn call(&mut self, words: &[&[u8]]) -> Answer {
        self.connection.get_mut().write_all(&request(words)).expect("redis-server reads");
        self.answer()
    }

    fn answer(&mut self) -> Answer {
        let mut line = Vec::new();
        self.connection.read_until(b'\n', &mut line).expect("redis-server answers");
        let text = String::from_utf8_lossy(line.strip_suffix(b"\r\n").expect("a line")).into_owned();
        let (kind, text) = text.split_at(1);
        match kind {
            "$" if text != "-1" => {
                let mut bytes = vec![0; text.parse::<usize>().expect("a length") + 2];
                self.connection.read_exact(&mut bytes).expect("a bulk string");
                bytes.truncate(bytes.len() - 2);
                Answer::Bulk(bytes)
            }
            "*" if text != "-1" => {
                Answer::Array((0..text.parse().expect("a count")).map(|_| self.answer()).collect())
            }
            ":" => Answer::Integer(text.parse().expect("an integer")),
            "-" => Answer::Error(text.to_string()),
            "*" => Answer::NilArray,
            "$" => Answer::Nil,
            _ => Answer::Simple(text.to_string()),
        }
    }
}

/// An answer in RESP2.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Nil,
    NilArray,
    Integer(i64),
    Bulk(Vec<u8>),
    Simple(String),
    Error(String),
    Array(Vec<Answer>),
}

impl Answer {
    fn of(reply: Reply) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        match reply {
            Reply::Nil => Self::Nil,
            Reply::NilArray => Self::NilArray,
            Reply::Ok => Self::Simple("OK".into()),
            Reply::Integer(value) => Self::Integer(value),
            Reply::Bulk(bytes) => Self::Bulk(bytes),
            Reply::Simple(bytes) => Self::Simple(text(bytes)),
            Reply::Error(bytes) => Self::Error(text(bytes)),
            Reply::Array(replies) => Self::Array(replies.into_iter().map(Self::of).collect()),
            Reply::Map(pairs) => Self::Array(
                pairs.into_iter().flat_map(|(name, value)| [Self::of(name), Self::of(value)]).collect(),
            ),
            Reply::Keyed(pairs) => Self::Array(
                pairs
                    .into_iter()
                    .map(|(key, value)| Self::Array(vec![Self::of(key), Self::of(value)]))
                    .collect(),
            ),
            other => panic!("no command on streams answers {other:?}"),
        }
    }

    fn is_error(&self) -> bool {
        matches!(self, Self::Error(_))
    }

    /// Without what only one of both knows, and with times that are about the same made the same.
    fn normalized(self, now_ms: u64, of_pending: bool) -> Self {
        let Self::Array(parts) = self else { return self };
        let is_map = matches!(parts.first(), Some(Self::Bulk(name)) if is_field(name)) && parts.len() > 3;
        // An entry that is pending: its id, its consumer, a time, and a number.
        let is_pending = |parts: &[Self]| match parts {
            [Self::Bulk(_), Self::Bulk(_), Self::Integer(_), Self::Integer(_)] => Some(2),
            [Self::Bulk(_), Self::Integer(_), Self::Integer(_)] => Some(1),
            _ => None,
        };
        let time_at = is_pending(&parts).filter(|_| of_pending);
        let (mut kept, mut parts) = (Vec::new(), parts.into_iter().enumerate());
        while let Some((index, part)) = parts.next() {
            let name = match &part {
                Self::Bulk(name) if is_map => Some(name.clone()),
                _ => None,
            };
            match name.as_deref() {
                Some(b"radix-tree-keys" | b"radix-tree-nodes" | b"inactive" | b"active-time") => {
                    parts.next();
                }
                Some(b"idle" | b"seen-time") => {
                    kept.push(part);
                    kept.extend(parts.next().map(|(_, time)| rounded(time, now_ms)));
                }
                Some(_) => {
                    kept.push(part);
                    kept.extend(parts.next().map(|(_, value)| value.normalized(now_ms, of_pending)));
                }
                None if time_at == Some(index) => kept.push(rounded(part, now_ms)),
                None => kept.push(part.normalized(now_ms, of_pending)),
            }
        }
        Self::Array(kept)
    }
}

fn is_field(name: &[u8]) -> bool {
    name == b"length" || name == b"name"
}

/// How long ago a time is, or how long it is, in steps of the tolerance.
fn rounded(time: Answer, now_ms: u64) -> Answer {
    let Answer::Integer(ms) = time else { return time };
    let ms = ms.unsigned_abs();
    let ago = if ms > now_ms / 2 { now_ms.saturating_sub(ms) } else { ms };
    Answer::Integer((ago / TOLERANCE_MS) as i64)
}

fn now() -> WallTime {
    WallTime(SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_micros() as u64)
}

/// What this engine answers; an update takes `now_ms` for the present.
fn execute(engine: &mut MemoryEngine, words: &[&[u8]], now_ms: u64) -> Answer {
    let mut operation = match parse(words) {
        Ok(Parsed::Data(operation)) => operation,
        Ok(other) => panic!("{other:?}"),
        Err(error) => return Answer::of(Reply::Error(error.text())),
    };
    if let Some(now) = operation.now_mut() {
        *now = now_ms;
    }
    let (mut body, mut reply) = (Vec::new(), Vec::new());
    operation.encode(&mut body);
    let time = WallTime(now_ms * 1000);
    engine.advance(time);
    if operation.command.is_read() {
        engine.read(time, &body, &mut reply);
    } else {
        engine.apply(time, &body, &mut reply);
    }
    Answer::of(Reply::decode(&mut &reply[..]).expect("a reply"))
}

fn compare(seed: u64, steps: usize) {
    let Some(mut server) = Server::start(&seed.to_string()) else { return };
    let mut engine = MemoryEngine::new();
    let mut generator = Generator::new(seed, 1..2, 1..2);
    let mut successes = 0;
    for key in [&b"a"[..], b"b"] {
        assert_eq!(
            execute(&mut engine, &[b"SET", key, b"x"], now().as_millis()),
            server.call(&[b"SET", key, b"x"])
        );
    }
    for step in 0..steps {
        let words = generator.stream_command();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
        let theirs = server.call(&words);
        let mut now_ms = now().as_millis();
        let is_add = words[0].eq_ignore_ascii_case(b"xadd") && words.contains(&&b"*"[..]);
        if let Answer::Bulk(id) = &theirs
            && is_add
        {
            // The id has the time that Redis took for the present.
            let ms = id.split(|byte| *byte == b'-').next().unwrap_or_default();
            now_ms = String::from_utf8_lossy(ms).parse().unwrap_or(now_ms);
            let ours = execute(&mut engine, &words, now_ms);
            assert_eq!(ours, theirs, "seed {seed}, step {step}: {}", shown());
            successes += 1;
            continue;
        }
        let ours = execute(&mut engine, &words, now_ms);
        let of_pending = !words[0].eq_ignore_ascii_case(b"xadd") && !words[0].eq_ignore_ascii_case(b"xread");
        let is_same =
            ours.clone().normalized(now_ms, of_pending) == theirs.clone().normalized(now_ms, of_pending);
        let both_fail = parse(&words).is_err() && theirs.is_error();
        assert!(
            is_same || both_fail,
            "seed {seed}, step {step}: {}\nours   {ours:?}\ntheirs {theirs:?}",
            shown()
        );
        successes += usize::from(!theirs.is_error());
        create_consumers(&mut server, &mut engine, &words, now_ms);
    }
    assert!(successes > steps / 3, "only {successes} of {steps} commands succeeded");
}

/// Creates all consumers of a group that may be new, or have lost one.
fn create_consumers(server: &mut Server, engine: &mut MemoryEngine, words: &[&[u8]], now_ms: u64) {
    let is = |index: usize, name: &[u8]| words.get(index).is_some_and(|word| word.eq_ignore_ascii_case(name));
    if !is(0, b"xgroup") || !(is(1, b"create") || is(1, b"delconsumer")) || words.len() < 5 {
        return;
    }
    for name in STREAM_NAMES {
        let words = [&b"XGROUP"[..], b"CREATECONSUMER", words[2], words[3], name];
        assert_eq!(execute(engine, &words, now_ms), server.call(&words), "{words:?}");
    }
}

#[test]
fn streams_are_those_of_redis() {
    for seed in 0..4 {
        compare(seed, 8_000);
    }
}
