//! The same random commands, legal and not, go to a redis-server and to this engine; the answers must
//! be the same bytes. Skipped, with a notice, where redis-server is not installed.
//!
//! Known differences that the generator does not produce:
//! - INCRBYFLOAT reads hexadecimal numbers such as 0x10 as its argument, not as a stored value.
//! - Option words with a NUL byte inside, such as `NX\0x`, are a syntax error here; Redis reads them up
//!   to the NUL.
//! - A relative expiry between the year 2109 and the year when the sum with the current time overflows
//!   64 bits is refused here in any year (`RELATIVE_EXPIRY_MS_MAX`).
//! - Keys, patterns, numbers of keys and replies have limits that Redis does not have.
//!
//! SCAN's cursors and the order of KEYS differ by nature and are compared as sets; RANDOMKEY is only
//! checked to name a key; answers that depend on the time may differ by [`TOLERANCE_MS`].

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command as Process, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use syros_commands::families::{ExpireTime, Keys, Scan, Ttl};
use syros_commands::{Command, CommandError, Operation, Parsed, ReplyRef, Unit, parse};
use syros_storage::conformance::Generator;
use syros_storage::{Engine, MemoryEngine};
use syros_types::{Prng, WallTime};

/// How far apart the two executions of a command may be; a loaded machine is slow.
const TOLERANCE_MS: i64 = 5000;

/// A redis-server of our own, ended when dropped.
struct Server {
    process: Child,
    connection: BufReader<UnixStream>,
    socket: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; its socket is all that it leaves.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Server {
    /// `None` if redis-server is not installed.
    fn start() -> Option<Self> {
        // A port that was free a moment ago may have gone to the server of another test, and nobody would notice.
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let socket = std::env::temp_dir().join(format!("syros-redis-{}-{number}.socket", std::process::id()));
        let settings = ["--port", "0", "--save", "", "--proto-max-bulk-len", "16777216"];
        let mut process = Process::new("redis-server")
            .args(settings)
            .arg("--unixsocket")
            .arg(&socket)
            .stdout(Stdio::null())
            .current_dir(std::env::temp_dir())
            .spawn()
            .ok()?;
        for _ in 0..200 {
            if let Ok(stream) = UnixStream::connect(&socket) {
                stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a read timeout");
                return Some(Self { process, connection: BufReader::new(stream), socket });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = process.kill();
        let _ = process.wait();
        panic!("redis-server does not accept connections");
    }

    fn call(&mut self, words: &[&[u8]]) -> Answer {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.connection.get_mut().write_all(&request).expect("redis-server reads");
        self.answer()
    }

    fn answer(&mut self) -> Answer {
        let mut line = Vec::new();
        self.connection.read_until(b'\n', &mut line).expect("redis-server answers");
        let text = line.strip_suffix(b"\r\n").expect("a line");
        let number = || str::from_utf8(&text[1..]).unwrap().parse::<i64>().unwrap();
        match text[0] {
            b'$' if number() >= 0 => {
                let mut bytes = vec![0; number() as usize + 2];
                self.connection.read_exact(&mut bytes).expect("a bulk string");
                line.extend_from_slice(&bytes);
                Answer::Plain(line)
            }
            b'*' => Answer::Array((0..number()).map(|_| self.answer()).collect()),
            _ => Answer::Plain(line),
        }
    }
}

/// An answer in RESP2, cut into its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Answer {
    /// Anything but an array, as its bytes.
    Plain(Vec<u8>),
    Array(Vec<Answer>),
}

impl Answer {
    /// The answer that RESP2 makes of a reply.
    fn of(reply: ReplyRef<'_>) -> Self {
        let line = |kind: &str, text: &[u8]| Self::Plain([kind.as_bytes(), text, b"\r\n"].concat());
        match reply {
            ReplyRef::Nil => line("$", b"-1"),
            ReplyRef::Ok => line("+", b"OK"),
            ReplyRef::Integer(value) => line(":", value.to_string().as_bytes()),
            ReplyRef::Bulk(bytes) => line(&format!("${}\r\n", bytes.len()), bytes),
            ReplyRef::Simple(text) => line("+", text),
            ReplyRef::Error(text) => line("-", text),
            ReplyRef::Array(array) => Self::Array(array.map(Self::of).collect()),
        }
    }

    fn is_error(&self) -> bool {
        matches!(self, Self::Plain(bytes) if bytes[0] == b'-')
    }

    fn integer(&self) -> Option<i64> {
        match self {
            Self::Plain(bytes) if bytes[0] == b':' => str::from_utf8(&bytes[1..]).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    fn sorted(&self) -> Self {
        match self {
            Self::Array(parts) => {
                let mut parts: Vec<_> = parts.iter().map(Self::sorted).collect();
                parts.sort();
                Self::Array(parts)
            }
            plain => plain.clone(),
        }
    }
}

fn now() -> WallTime {
    WallTime(SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_micros() as u64)
}

fn execute(engine: &mut MemoryEngine, operation: &Operation<'_>) -> Answer {
    let (mut body, mut reply) = (Vec::new(), Vec::new());
    operation.encode(&mut body);
    engine.advance(now());
    if operation.command.is_read() {
        engine.read(now(), &body, &mut reply);
    } else {
        engine.apply(now(), &body, &mut reply);
    }
    let mut rest = &reply[..];
    let answer = Answer::of(ReplyRef::decode(&mut rest).expect("a reply"));
    assert!(rest.is_empty());
    answer
}

/// True if the answers agree as far as the two servers can.
fn agree(command: &Command<'_>, ours: &Answer, theirs: &Answer) -> bool {
    let tolerance = match command {
        Command::Ttl(Ttl { unit, .. }) | Command::ExpireTime(ExpireTime { unit, .. }) => match unit {
            Unit::Milliseconds => TOLERANCE_MS,
            Unit::Seconds => TOLERANCE_MS / 1000,
        },
        _ => 0,
    };
    match (command, ours.integer(), theirs.integer()) {
        (_, Some(ours), Some(theirs)) if ours >= 0 && theirs >= 0 => (ours - theirs).abs() <= tolerance,
        (Command::Keys(_) | Command::Scan(Scan { cursor: 0, count: 1001.., .. }), ..) => {
            ours.sorted() == theirs.sorted()
        }
        (Command::RandomKey(_), ..) => {
            let nothing = Answer::of(ReplyRef::Nil);
            (*ours == nothing) == (*theirs == nothing)
        }
        // What one step of several visits is up to each: only errors can be compared.
        (Command::Scan(_), ..) => ours.is_error() == theirs.is_error(),
        _ => ours == theirs,
    }
}

fn compare(seed: u64, steps: usize) {
    let Some(mut server) = Server::start() else {
        println!("skipped: redis-server is not installed");
        return;
    };
    let mut engine = MemoryEngine::new();
    // Expiries decades away and far apart: neither is reached, nor the order of two mistaken, because
    // the servers execute a command some milliseconds apart. Absolute ones may be in the past, too.
    let (decade, today) = (315_360_000_000, now().as_millis());
    let mut generator = Generator::new(seed, decade..40 * decade, 1..today + 40 * decade);
    let (mut errors, mut values) = (0, 0);
    for step in 0..steps {
        let words = generator.command();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        if words[0].eq_ignore_ascii_case(b"DBSIZE") {
            // Redis counts keys that have expired until it comes across them.
            server.call(&[b"SCAN", b"0", b"COUNT", b"1000000"]);
        }
        let theirs = server.call(&words);
        let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>();
        match parse(&words) {
            Err(error) => {
                let ours = Answer::of(ReplyRef::Error(&error.text()));
                assert_eq!(ours, theirs, "seed {seed}, step {step}: {:?}", shown());
                errors += 1;
            }
            Ok(Parsed::Data(operation)) => {
                let ours = execute(&mut engine, &operation);
                let agree = agree(&operation.command, &ours, &theirs);
                assert!(agree, "seed {seed}, step {step}: {:?}\nours {ours:?}\ntheirs {theirs:?}", shown());
                if ours.is_error() { errors += 1 } else { values += 1 }
            }
            Ok(Parsed::Local(local)) => panic!("the generator made {local:?}"),
        }
    }
    assert_eq!(
        execute(&mut engine, &Operation::new(Keys { pattern: b"*" })).sorted(),
        server.call(&[b"KEYS", b"*"]).sorted()
    );
    assert!(errors > steps / 20 && values > steps / 2, "{errors} errors, {values} values");
}

#[test]
fn answers_are_those_of_redis() {
    compare(1, 30_000);
}

#[test]
fn answers_are_those_of_redis_with_another_seed() {
    compare(2, 30_000);
}

/// Compares one command that is no error in itself.
fn compare_one(server: &mut Server, engine: &mut MemoryEngine, words: &[&[u8]]) {
    let Ok(Parsed::Data(operation)) = parse(words) else { panic!("{words:?} is no operation") };
    let (ours, theirs) = (execute(engine, &operation).sorted(), server.call(words).sorted());
    let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>();
    assert_eq!(ours, theirs, "{:?}", shown());
}

fn random_bytes(prng: &mut Prng, alphabet: &[u8], length_max: u64) -> Vec<u8> {
    (0..prng.below(length_max + 1)).map(|_| alphabet[prng.below(alphabet.len() as u64) as usize]).collect()
}

#[test]
fn patterns_match_as_in_redis() {
    let Some(mut server) = Server::start() else {
        println!("skipped: redis-server is not installed");
        return;
    };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(4));
    for _ in 0..300 {
        let key = random_bytes(&mut prng, b"aabbc-]^[\\*?\xff", 6);
        compare_one(&mut server, &mut engine, &[b"SET", &key, b"v"]);
    }
    for _ in 0..20_000 {
        let pattern = random_bytes(&mut prng, b"**??[[]]^--\\aabbc\xff", 12);
        compare_one(&mut server, &mut engine, &[b"KEYS", &pattern]);
    }
}

#[test]
fn floats_add_as_in_redis() {
    let Some(mut server) = Server::start() else {
        println!("skipped: redis-server is not installed");
        return;
    };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(6));
    let mut number = || {
        let digits = random_bytes(&mut prng, b"00012345679999", 30);
        let decimals = random_bytes(&mut prng, b"00012345679999", 30);
        let sign = [&b""[..], b"-", b"+"][prng.below(3) as usize];
        let exponent = match prng.below(8) {
            0 => format!("e{}", prng.below(10_000) as i64 - 5000),
            1..4 => format!("E{}", prng.below(60) as i64 - 30),
            _ => String::new(),
        };
        [sign, &digits, b".", &decimals, exponent.as_bytes()].concat()
    };
    for _ in 0..20_000 {
        let (first, second) = (number(), number());
        if parse(&[b"INCRBYFLOAT", b"f", &second]).is_err() {
            let theirs = server.call(&[b"INCRBYFLOAT", b"f", &second]);
            assert_eq!(theirs, Answer::of(ReplyRef::Error(&CommandError::NotFloat.text())));
            continue;
        }
        compare_one(&mut server, &mut engine, &[b"SET", b"f", &first]);
        compare_one(&mut server, &mut engine, &[b"INCRBYFLOAT", b"f", &second]);
        // What was printed is read again.
        compare_one(&mut server, &mut engine, &[b"INCRBYFLOAT", b"f", b"-0.1"]);
    }
}
