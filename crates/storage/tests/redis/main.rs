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
//! - An offset of a bit from 2^27 on, which Redis refuses as `proto-max-bulk-len` is 16 MiB, can be read as in a Redis of 512
//!   MiB, and is an error of SETRANGE's words where it would be written (this difference is produced, and known).
//! - An offset of BITFIELD in units that exceeds 64 bits is an error; Redis takes what is left of it.
//! - An argument of SETRANGE or INCRBYFLOAT that no string could take, or an option that LCS does not have, is an error,
//!   whatever kind of value the key has; Redis looks at the key first (this difference is produced, and known).
//!
//! HRANDFIELD and SRANDMEMBER are only compared in how much they answer, and what SPOP takes at one it takes at the other.
//! The fields of hashes are compared as sets, but where a test says otherwise, and so are the members of sets: those of
//! numbers alone have an order of their own in Redis. SCAN's cursors and the order of KEYS differ by nature and are compared as sets; RANDOMKEY is only
//! checked to name a key; answers that depend on the time may differ by [`TOLERANCE_MS`].

mod payloads;
#[path = "../../../resp/tests/redis_server/process.rs"]
mod process;
mod request;

use process::RedisProcess;
use request::request;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use syros_commands::access::{Announcement, Notification};
use syros_commands::families::{
    ExpireTime, FieldPart, Get, HGetAll, HScan, Interval, Keys, Rename, SPop, SScan, Scan, ScanOptions,
    SetNx, Sort, Ttl, ZScan,
};
use syros_commands::{
    Command, CommandError, ExecutionError, Operation, Parsed, ReplyRef, Unit, parse, write_decimal,
    write_double,
};
use syros_storage::conformance::Generator;
use syros_storage::{Engine, MemoryEngine};
use syros_types::{Database, Prng, WallTime};

/// How far apart the two executions of a command may be; a loaded machine is slow.
const TOLERANCE_MS: i64 = 5000;

/// A connection to a server, which answers soon.
fn connection_to(process: &RedisProcess) -> BufReader<UnixStream> {
    let stream = process.connect().expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a read timeout");
    BufReader::new(stream)
}

/// A redis-server of our own, ended when dropped.
struct Server {
    /// Of the connection that has started it.
    process: Option<RedisProcess>,
    connection: BufReader<UnixStream>,
}

impl Server {
    /// `None`, with a notice, if redis-server is not installed.
    fn start() -> Option<Self> {
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let settings = ["--databases", "16", "--proto-max-bulk-len", "16777216"];
        let limits = [
            ["--hash-max-listpack-entries", "128", "--hash-max-listpack-value", "64"],
            ["--zset-max-listpack-entries", "128", "--zset-max-listpack-value", "64"],
        ];
        let arguments = [&settings[..], limits.as_flattened()].concat();
        let process = RedisProcess::start(&format!("storage-{number}"), &arguments)?;
        let connection = connection_to(&process);
        Some(Self { process: Some(process), connection })
    }

    /// Another connection, which gets all events of keys from now on, and messages in a channel of the test.
    fn listen(&mut self) -> Listener {
        self.call(&[b"CONFIG", b"SET", b"notify-keyspace-events", b"AEn"]);
        let process = self.process.as_ref().expect("the connection that has started the server");
        let mut listener = Listener(Server { process: None, connection: connection_to(process) });
        listener.0.call(&[b"PSUBSCRIBE", b"__keyevent@*"]);
        listener.0.call(&[b"SUBSCRIBE", Listener::END]);
        listener
    }

    fn call(&mut self, words: &[&[u8]]) -> Answer {
        self.connection.get_mut().write_all(&request(words)).expect("redis-server reads");
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
            b'*' if number() >= 0 => Answer::Array((0..number()).map(|_| self.answer()).collect()),
            _ => Answer::Plain(line),
        }
    }
}

/// A connection that gets events of keys.
struct Listener(Server);

impl Listener {
    const END: &[u8] = b"end-of-events";

    /// What has happened to keys before this call: databases, events and keys. Redis finds out that a key has expired when it
    /// comes across it, and calls what GEORADIUS stores by another name.
    fn events(&mut self, server: &mut Server) -> Vec<String> {
        server.call(&[b"PUBLISH", Self::END, b""]);
        let mut events = Vec::new();
        loop {
            let Answer::Array(message) = self.0.answer() else { panic!("a message") };
            let texts: Vec<Vec<u8>> = message.iter().map(content).collect();
            match texts.as_slice() {
                [_, channel, _] if channel == Self::END => return events,
                [_, _, channel, key] => {
                    let channel = String::from_utf8_lossy(channel);
                    let shown = format!("{} {}", &channel["__keyevent@".len()..], key.escape_ascii());
                    events.push(shown.replace("georadiusstore", "geosearchstore"));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The events of this engine, in the same form.
fn events_of(engine: &mut MemoryEngine) -> Vec<String> {
    let show = |Notification { database, key, event, .. }: Notification| {
        format!("{}__:{} {}", database.number(), event.name(), key.escape_ascii())
    };
    let told = engine.take_announcements().into_iter().filter_map(Announcement::into_key_event);
    told.filter(|one| !one.event.is_silent()).map(show).collect()
}

/// Without what Redis finds out later.
fn without_expired(events: Vec<String>) -> Vec<String> {
    events.into_iter().filter(|event| !event.contains("__:expired ")).collect()
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
            ReplyRef::NilArray | ReplyRef::Waits => line("*", b"-1"),
            ReplyRef::Double(number) => Self::of_number(number.value(), write_double),
            ReplyRef::Decimal(number) => Self::of_number(number.value(), write_decimal),
            ReplyRef::Nil => line("$", b"-1"),
            ReplyRef::Boolean(flag) => line(":", if flag { b"1" } else { b"0" }),
            ReplyRef::BigNumber(text) | ReplyRef::Verbatim(_, text) => Self::of(ReplyRef::Bulk(text)),
            ReplyRef::Ok => line("+", b"OK"),
            ReplyRef::Integer(value) => line(":", value.to_string().as_bytes()),
            ReplyRef::Bulk(bytes) => line(&format!("${}\r\n", bytes.len()), bytes),
            ReplyRef::Simple(text) => line("+", text),
            ReplyRef::Error(text) => line("-", text),
            ReplyRef::Array(array) | ReplyRef::Set(array) => Self::Array(array.map(Self::of).collect()),
            ReplyRef::Keyed(pairs) => Self::Array(
                pairs.map(|(name, reply)| Self::Array(vec![Self::of(name), Self::of(reply)])).collect(),
            ),
            ReplyRef::Map(pairs) | ReplyRef::Pairs(pairs) => {
                Self::Array(pairs.flat().map(Self::of).collect())
            }
        }
    }

    fn of_number(value: f64, write: fn(&mut Vec<u8>, f64)) -> Self {
        let mut text = Vec::new();
        write(&mut text, value);
        Self::of(ReplyRef::Bulk(&text))
    }

    fn len(&self) -> usize {
        if let Self::Array(parts) = self { parts.len() } else { 1 }
    }

    /// With fields and values in pairs, in the answer itself or in its second part, and sorted.
    fn sorted_pairs(&self) -> Self {
        match self {
            Self::Array(parts) if matches!(parts.get(1), Some(Self::Array(_))) => {
                Self::Array(vec![parts[0].clone(), parts[1].sorted_pairs()])
            }
            Self::Array(parts) => {
                Self::Array(parts.chunks(2).map(|pair| Self::Array(pair.to_vec())).collect()).sorted_outside()
            }
            plain => plain.clone(),
        }
    }

    /// With its parts sorted, but not what is in them.
    fn sorted_outside(mut self) -> Self {
        if let Self::Array(parts) = &mut self {
            parts.sort();
        }
        self
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
        (Command::HRandField(_) | Command::SRandMember(_) | Command::ZRandMember(_), ..) => {
            let nothing = Answer::of(ReplyRef::Nil);
            ours.is_error() == theirs.is_error()
                && (*ours == nothing) == (*theirs == nothing)
                && ours.len() == theirs.len()
                && (!ours.is_error() || ours == theirs)
        }
        (Command::HGetAll(HGetAll { part: FieldPart::Both, .. }), ..)
        | (Command::HScan(HScan { cursor: 0, options: ScanOptions::Valid { count: 1001.., .. }, .. }), ..)
        | (Command::ZScan(ZScan { cursor: 0, options: ScanOptions::Valid { count: 1001.., .. }, .. }), ..) => {
            ours.sorted_pairs() == theirs.sorted_pairs()
        }
        (
            Command::HGetAll(_)
            | Command::SMembers(_)
            | Command::SInter(_)
            | Command::SScan(SScan { cursor: 0, options: ScanOptions::Valid { count: 1001.., .. }, .. }),
            ..,
        ) => ours.sorted() == theirs.sorted(),
        // The order of a set is another one, bytes are compared as the locale says, and equal weights have no order.
        (Command::Sort(Sort { options, .. }), ..)
            if options
                .iter()
                .any(|option| [&b"by"[..], b"alpha"].contains(&&option.to_ascii_lowercase()[..])) =>
        {
            let is_limited = options.iter().any(|option| option.eq_ignore_ascii_case(b"limit"));
            if is_limited { ours.len() == theirs.len() } else { ours.sorted() == theirs.sorted() }
        }
        // What one step of several visits is up to each: only errors can be compared.
        (Command::Scan(_) | Command::HScan(_) | Command::SScan(_) | Command::ZScan(_), ..) => {
            ours.is_error() == theirs.is_error()
        }
        _ => ours == theirs,
    }
}

/// The members that an answer to SPOP has, if there are any.
fn members(answer: &Answer) -> Vec<Vec<u8>> {
    match answer {
        Answer::Array(parts) => parts.iter().flat_map(members).collect(),
        Answer::Plain(bytes) if bytes.starts_with(b"$") && !bytes.starts_with(b"$-1") => {
            let start = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
            vec![bytes[start..bytes.len() - 2].to_vec()]
        }
        Answer::Plain(_) => Vec::new(),
    }
}

/// Takes from a set what Redis has taken from it. True if as much could have been taken here.
fn pop_like(engine: &mut MemoryEngine, operation: &Operation<'_>, key: &[u8], theirs: &Answer) -> bool {
    let taken = members(theirs);
    let mut other = engine.clone();
    let ours = execute(&mut other, operation);
    if taken.is_empty() {
        *engine = other;
        return ours == *theirs;
    }
    let words = [&[&b"SREM"[..], key], &taken.iter().map(Vec::as_slice).collect::<Vec<_>>()[..]].concat();
    let Ok(Parsed::Data(removal)) = parse(&words) else { panic!("{words:?}") };
    let removed = execute(engine, &removal.in_database(operation.database)).integer();
    removed == Some(taken.len() as i64) && members(&ours).len() == taken.len() && ours.len() == theirs.len()
}

/// True if a command goes by the order of members that have different scores, or asks what only later versions know.
fn is_undefined(engine: &mut MemoryEngine, words: &[&[u8]], database: Database) -> bool {
    let Ok(Parsed::Data(operation)) = parse(words) else { return words.len() > 3 && is_rank(words[0]) };
    let (key, interval) = match operation.command {
        Command::ZCount(count) => (count.get().key, count.get().interval),
        Command::ZRemRange(range) => (range.get().key, range.get().interval),
        Command::ZRange(range) => (range.get().key, range.get().selection.interval),
        Command::ZRangeStore(range) => (range.get().source, range.get().selection.interval),
        Command::ZRank(_) => return words.len() > 3,
        _ => return false,
    };
    if !matches!(interval, Interval::Members { .. }) {
        return false;
    }
    let question = [&b"ZRANGE"[..], key, b"0", b"-1", b"WITHSCORES"];
    let Ok(Parsed::Data(question)) = parse(&question) else { return false };
    let Answer::Array(members) = execute(engine, &question.in_database(database)) else { return false };
    let mut scores = members.iter().skip(1).step_by(2);
    let first = scores.next();
    scores.any(|score| Some(score) != first)
}

fn is_rank(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"zrank") || name.eq_ignore_ascii_case(b"zrevrank")
}

fn compare(seed: u64, steps: usize) {
    let Some(mut server) = Server::start() else { return };
    let mut engine = MemoryEngine::new();
    let mut listener = server.listen();
    engine.set_notifying(true);
    // Expiries decades away and far apart: neither is reached, nor the order of two mistaken, because
    // the servers execute a command some milliseconds apart. Absolute ones may be in the past, too.
    let (decade, today) = (315_360_000_000, now().as_millis());
    let mut generator = Generator::new(seed, decade..40 * decade, 1..today + 40 * decade);
    let (mut errors, mut values, mut events) = (0, 0, 0);
    let wrong_type = Answer::of(ReplyRef::Error(ExecutionError::WrongType.text().as_bytes()));
    let bit_offset = Answer::of(ReplyRef::Error(&CommandError::BitOffset.text()));
    let not_strings = Answer::of(ReplyRef::Error(ExecutionError::NotStrings.text().as_bytes()));
    let mut database = Database::FIRST;
    for step in 0..steps {
        if step % 5 == 0 {
            database = generator.database();
            server.call(&[b"SELECT", database.number().to_string().as_bytes()]);
        }
        let words = generator.command();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        if words[0].eq_ignore_ascii_case(b"DBSIZE") {
            // Redis counts keys that have expired until it comes across them.
            server.call(&[b"SCAN", b"0", b"COUNT", b"1000000"]);
        }
        if is_undefined(&mut engine, &words, database) {
            continue;
        }
        engine.take_announcements();
        let theirs = server.call(&words);
        let their_events = without_expired(listener.events(&mut server));
        let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>();
        if theirs == bit_offset && may_differ_in_offset(&words) {
            continue;
        }
        match parse(&words) {
            Err(error) => {
                let ours = Answer::of(ReplyRef::Error(&error.text()));
                let looks_first = ["setrange", "incrbyfloat", "zunion", "zinter", "zdiff", "lcs"];
                let looks_first =
                    looks_first.into_iter().chain(["zunionstore", "zinterstore", "zdiffstore", "zintercard"]);
                let name = words[0].to_ascii_lowercase();
                if (theirs == wrong_type || theirs == not_strings)
                    && looks_first.clone().any(|other| name == other.as_bytes())
                {
                    continue;
                }
                assert_eq!(ours, theirs, "seed {seed}, step {step}: {:?}", shown());
                errors += 1;
            }
            Ok(Parsed::Data(operation @ Operation { command: Command::SPop(SPop { key, .. }), .. })) => {
                let agree = pop_like(&mut engine, &operation.in_database(database), key, &theirs);
                assert!(agree, "seed {seed}, step {step}: {:?}\ntheirs {theirs:?}", shown());
            }
            Ok(Parsed::Data(operation)) => {
                let ours = execute(&mut engine, &operation.in_database(database));
                let agree = agree(&operation.command, &ours, &theirs);
                assert!(agree, "seed {seed}, step {step}: {:?}\nours {ours:?}\ntheirs {theirs:?}", shown());
                let our_events = without_expired(events_of(&mut engine));
                assert_eq!(our_events, their_events, "seed {seed}, step {step}: {:?}", shown());
                events += our_events.len();
                if ours.is_error() { errors += 1 } else { values += 1 }
            }
            Ok(Parsed::Local(local)) => panic!("the generator made {local:?}"),
        }
    }
    for database in Database::all() {
        server.call(&[b"SELECT", database.number().to_string().as_bytes()]);
        let all = Operation::new(Keys { pattern: b"*" }).in_database(database);
        assert_eq!(execute(&mut engine, &all).sorted(), server.call(&[b"KEYS", b"*"]).sorted());
    }
    assert!(errors > steps / 20 && values > steps / 2, "{errors} errors, {values} values");
    assert!(events > steps / 10, "{events} events");
}

/// True if nothing is changed here, and if there is an error, it is the one of a string that would be too long.
fn may_differ_in_offset(words: &[&[u8]]) -> bool {
    match parse(words) {
        Ok(Parsed::Data(operation)) => operation.command.is_read(),
        Ok(Parsed::Local(_)) => false,
        Err(error) => error == CommandError::ValueTooLong,
    }
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
    let Some(mut server) = Server::start() else { return };
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

/// The fields of a small hash have the order that they have in Redis, whatever is done to them.
#[test]
fn small_hashes_have_the_order_of_redis() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(9));
    for step in 0..6_000 {
        if step % 500 == 0 {
            compare_one(&mut server, &mut engine, &[b"DEL", b"h"]);
        }
        let [first, second] = [(); 2].map(|()| prng.below(70).to_string().into_bytes());
        let value = random_bytes(&mut prng, b"0123456789abc", 64);
        let number = prng.below(1000).to_string().into_bytes();
        let command: &[&[u8]] = match prng.below(8) {
            0 => &[b"HDEL", b"h", &first, &second],
            1 => &[b"HSETNX", b"h", &first, &value],
            2 => &[b"HINCRBY", b"h", &first, &number],
            3 => &[b"HINCRBYFLOAT", b"h", &first, &number],
            4 => &[b"HMSET", b"h", &first, &value, &second, &number],
            5 => &[b"HSTRLEN", b"h", &first],
            _ => &[b"HSET", b"h", &first, &value, &second, &value],
        };
        compare_one(&mut server, &mut engine, command);
        for question in ["HGETALL h", "HKEYS h", "HVALS h", "HSCAN h 0"] {
            let question: Vec<&[u8]> = question.split(' ').map(str::as_bytes).collect();
            let Ok(Parsed::Data(operation)) = parse(&question) else {
                panic!("{question:?} is no operation")
            };
            assert_eq!(execute(&mut engine, &operation), server.call(&question), "step {step}");
        }
    }
}

/// Sets of many sizes, and what becomes of several of them.
#[test]
fn intersections_unions_and_differences_are_those_of_redis() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(12));
    const KEYS: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];
    for step in 0..4_000 {
        if step % 400 == 0 {
            compare_one(&mut server, &mut engine, &[b"DEL", b"a", b"b", b"c", b"d", b"e", b"f"]);
        }
        let mut key = || KEYS[prng.below(6) as usize];
        let (first, keys) = (key(), [(); 3].map(|()| key()));
        let keys = &keys[..1 + prng.below(3) as usize];
        let numbers = prng.below(300);
        let members: Vec<Vec<u8>> =
            (0..1 + prng.below(80)).map(|_| prng.below(20 + numbers).to_string().into_bytes()).collect();
        let members: Vec<&[u8]> = members.iter().map(Vec::as_slice).collect();
        let (count, limit) = (keys.len().to_string(), prng.below(40).to_string());
        let command = match prng.below(12) {
            0 => [&[b"SINTERSTORE", first], keys].concat(),
            1 => [&[b"SUNIONSTORE", first], keys].concat(),
            2 => [&[b"SDIFFSTORE", first], keys].concat(),
            3 => [&[&b"SREM"[..], first], &members[..]].concat(),
            4 => vec![b"SMOVE", first, keys[0], members[0]],
            _ => [&[&b"SADD"[..], first], &members[..]].concat(),
        };
        compare_one(&mut server, &mut engine, &command);
        for question in [
            [&[&b"SINTER"[..], first], keys].concat(),
            [&[&b"SUNION"[..], first], keys].concat(),
            [&[&b"SDIFF"[..], first], keys].concat(),
            [&[&b"SINTERCARD"[..], count.as_bytes()], keys, &[b"LIMIT", limit.as_bytes()]].concat(),
            [&[&b"SMISMEMBER"[..], first], &members[..]].concat(),
            vec![b"SMEMBERS", first],
        ] {
            compare_one(&mut server, &mut engine, &question);
        }
    }
}

#[test]
fn sums_in_fields_are_those_of_redis() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(10));
    for _ in 0..10_000 {
        // Some of them hexadecimal.
        let stored = random_bytes(&mut prng, b"0012349..eE+-xinfa ", 8);
        compare_one(&mut server, &mut engine, &[b"HSET", b"h", b"f", &stored]);
        compare_one(&mut server, &mut engine, &[b"HINCRBYFLOAT", b"h", b"f", b"1.5"]);
        compare_one(&mut server, &mut engine, &[b"HINCRBY", b"h", b"f", b"-3"]);
        let delta = random_bytes(&mut prng, b"0012349..eE+-xinfa ", 6);
        for command in [&b"HINCRBYFLOAT"[..], b"HINCRBY"] {
            let words = [command, b"h", b"g", &delta];
            match parse(&words) {
                Ok(_) => compare_one(&mut server, &mut engine, &words),
                Err(error) => {
                    let ours = Answer::of(ReplyRef::Error(&error.text()));
                    assert_eq!(ours, server.call(&words), "{:?}", delta.escape_ascii().to_string());
                }
            }
        }
    }
}

/// Each server takes the HyperLogLogs of the other, finds the same registers and estimates, and adds to them alike.
#[test]
fn sketches_are_understood_by_redis() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(12));
    for step in 0..600 {
        let number = prng.below(3);
        let key = format!("pf:{number}").into_bytes();
        // The first one stays sparse, the last one soon is dense.
        let count = 1 + prng.below([4, 40, 400][number as usize]);
        let elements: Vec<_> = (0..count).map(|_| random_bytes(&mut prng, b"0123456789ab", 30)).collect();
        let words: Vec<&[u8]> =
            [&b"PFADD"[..], &key].into_iter().chain(elements.iter().map(Vec::as_slice)).collect();
        compare_one(&mut server, &mut engine, &words);
        compare_one(&mut server, &mut engine, &[b"PFCOUNT", &key]);
        compare_one(&mut server, &mut engine, &[b"PFCOUNT", b"pf:0", b"pf:1", b"pf:2"]);
        if step % 20 == 0 {
            exchange(&mut server, &mut engine, &key);
            compare_one(&mut server, &mut engine, &[b"PFMERGE", b"all", b"pf:1", &key, b"none"]);
            compare_one(&mut server, &mut engine, &[b"PFCOUNT", b"all"]);
        }
        if step % 200 == 0 {
            compare_one(&mut server, &mut engine, &[b"DEL", b"pf:1", b"all"]);
        }
    }
}

/// Gives each server the string that the other has.
fn exchange(server: &mut Server, engine: &mut MemoryEngine, key: &[u8]) {
    let get = Operation::new(Get { key });
    let (ours, theirs) = (execute(engine, &get), server.call(&[b"GET", key]));
    let content = |answer: &Answer| {
        let Answer::Plain(bytes) = answer else { panic!("{answer:?} is no string") };
        let start = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
        bytes[start..bytes.len() - 2].to_vec()
    };
    let registers = server.call(&[b"PFDEBUG", b"GETREG", key]);
    server.call(&[b"SET", key, &content(&ours)]);
    assert_eq!(server.call(&[b"PFDEBUG", b"GETREG", key]), registers);
    server.call(&[b"SET", key, &content(&ours)]);
    execute(engine, &Operation::new(SetNx { key: b"other", value: &content(&theirs) }));
    execute(engine, &Operation::new(Rename { from: b"other", to: key }));
}

#[test]
fn floats_add_as_in_redis() {
    let Some(mut server) = Server::start() else { return };
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

/// Sorted sets that are small, large, and both in turn.
#[test]
fn sorted_sets_are_those_of_redis() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(12));
    for step in 0..12_000 {
        if step % 3000 == 0 {
            compare_in_order(&mut server, &mut engine, &["DEL", "z"]);
        }
        let names = if step % 3000 < 1000 { 100 } else { 400 };
        let [first, second] = [(); 2].map(|()| prng.below(names).to_string());
        let score = (prng.below(100) as f64 / 4.0).to_string();
        let [start, stop] = [(); 2].map(|()| (prng.below(300) as i64 - 150).to_string());
        let [min, max] =
            [(); 2].map(|()| ["", "("][prng.below(2) as usize].to_string() + &(prng.below(25)).to_string());
        match prng.below(40) {
            0 => compare_in_order(&mut server, &mut engine, &["ZREMRANGEBYRANK", "z", &start, &start]),
            1 => compare_in_order(&mut server, &mut engine, &["ZREMRANGEBYSCORE", "z", &score, &score]),
            2 => compare_in_order(&mut server, &mut engine, &["ZPOPMAX", "z", "2"]),
            3 => compare_in_order(&mut server, &mut engine, &["ZREM", "z", &first, &second]),
            4 => compare_in_order(
                &mut server,
                &mut engine,
                &["ZUNIONSTORE", "y", "2", "z", "y", "WEIGHTS", "0.5", &score],
            ),
            5 => compare_in_order(
                &mut server,
                &mut engine,
                &["ZINTERSTORE", "x", "3", "z", "y", "z", "AGGREGATE", "MAX"],
            ),
            6 => compare_in_order(&mut server, &mut engine, &["ZDIFFSTORE", "x", "2", "z", "x"]),
            7 => compare_in_order(&mut server, &mut engine, &["ZRANGESTORE", "y", "z", &start, &stop, "REV"]),
            8..12 => compare_in_order(&mut server, &mut engine, &["ZINCRBY", "z", &score, &first]),
            12 => compare_in_order(
                &mut server,
                &mut engine,
                &["ZADD", "z", "GT", "CH", &score, &first, &score, &second],
            ),
            _ => compare_in_order(&mut server, &mut engine, &["ZADD", "z", &score, &first, &score, &second]),
        }
        let questions: [&[&str]; 12] = [
            &["ZRANGE", "z", &start, &stop, "WITHSCORES"],
            &["ZREVRANGE", "y", &start, &stop, "WITHSCORES"],
            &["ZRANGEBYSCORE", "z", &min, &max, "WITHSCORES"],
            &["ZREVRANGEBYSCORE", "x", &max, &min, "LIMIT", "2", "5"],
            &["ZCOUNT", "z", &min, &max],
            &["ZRANK", "z", &first],
            &["ZREVRANK", "z", &first],
            &["ZMSCORE", "z", &first, &second],
            &["ZUNION", "3", "z", "y", "x", "WITHSCORES"],
            &["ZINTER", "2", "z", "x", "WITHSCORES"],
            &["ZDIFF", "2", "z", "y", "WITHSCORES"],
            &["ZINTERCARD", "2", "z", "y", "LIMIT", "7"],
        ];
        compare_in_order(&mut server, &mut engine, questions[step % questions.len()]);
    }
}

/// Compares one command that is no error in itself; the order of the answer counts.
fn compare_in_order(server: &mut Server, engine: &mut MemoryEngine, words: &[&str]) {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let Ok(Parsed::Data(operation)) = parse(&words) else { panic!("{words:?} is no operation") };
    let (ours, theirs) = (execute(engine, &operation), server.call(&words));
    let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>();
    assert_eq!(ours, theirs, "{:?}", shown());
}

/// Scores and bounds are read as Redis reads them, and scores are written as it writes them.
#[test]
fn scores_are_those_of_redis() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(13));
    // A large one keeps the sign of zero.
    compare_any(&mut server, &mut engine, &[b"ZADD", b"large", b"1", &[b'm'; 65]]);
    for step in 0..15_000 {
        let score = match step % 3 {
            0 => random_bytes(&mut prng, b"0012349..eE+-xXpinfa ", 9),
            1 => f64::from_bits(prng.next_u64()).to_string().into_bytes(),
            // Ties between two numbers of seventeen digits, and integers.
            _ => (prng.below(1 << 40) as f64 / f64::from(1_u32 << prng.below(22))).to_string().into_bytes(),
        };
        let bound =
            [[&b"("[..], b"", b" ", b"("][step % 4], &score, [&b""[..], b"\0x", b""][step % 3]].concat();
        for key in [&b"small"[..], b"large"] {
            compare_any(&mut server, &mut engine, &[b"ZADD", key, &score, b"m"]);
            compare_any(&mut server, &mut engine, &[b"ZSCORE", key, b"m"]);
            compare_any(&mut server, &mut engine, &[b"ZINCRBY", key, &score, b"n"]);
            compare_any(&mut server, &mut engine, &[b"ZRANGEBYSCORE", key, &bound, b"+inf", b"WITHSCORES"]);
            compare_any(&mut server, &mut engine, &[b"ZCOUNT", key, &bound, b"1"]);
            compare_any(&mut server, &mut engine, &[b"ZUNION", b"1", key, b"WEIGHTS", &score, b"WITHSCORES"]);
        }
        compare_any(&mut server, &mut engine, &[b"ZSCAN", b"small", b"0"]);
    }
}

/// Compares one command, which may be an error in itself; the order of the answer counts.
fn compare_any(server: &mut Server, engine: &mut MemoryEngine, words: &[&[u8]]) {
    let ours = match parse(words) {
        Ok(Parsed::Data(operation)) => execute(engine, &operation),
        Ok(local) => panic!("{local:?}"),
        Err(error) => Answer::of(ReplyRef::Error(&error.text())),
    };
    let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>();
    assert_eq!(ours, server.call(words), "{:?}", shown());
}

/// Places all over the world are found where Redis finds them.
#[test]
fn places_are_those_of_redis() {
    let Some(mut server) = Server::start() else { return };
    let (mut engine, mut prng) = (MemoryEngine::new(), Prng::new(14));
    let degrees = |prng: &mut Prng, around: f64, width: f64, max: f64| {
        let offset = (prng.next_u64() as f64 / u64::MAX as f64 - 0.5) * width;
        (around + offset).clamp(-max, max).to_string()
    };
    for round in 0..300 {
        // All over the world, or near one place, some of them at the edges of the map.
        let width = [400.0, 20.0, 0.2, 0.001][round % 4];
        let centre = [(13.0, 37.0), (179.9, 10.0), (-180.0, -84.9), (0.0, 0.0), (-70.0, 66.0)][round % 5];
        compare_any(&mut server, &mut engine, &[b"DEL", b"g"]);
        for number in 0..60 {
            let place =
                [degrees(&mut prng, centre.0, width, 180.0), degrees(&mut prng, centre.1, width, 85.05)];
            let member = format!("m{number}");
            let words = ["GEOADD", "g", &place[0], &place[1], &member];
            compare_any(&mut server, &mut engine, &words.map(str::as_bytes));
            let words = ["GEOPOS", "g", &member];
            compare_any(&mut server, &mut engine, &words.map(str::as_bytes));
            let words = ["GEOHASH", "g", &member, "m0"];
            compare_any(&mut server, &mut engine, &words.map(str::as_bytes));
            let words = ["GEODIST", "g", &member, "m0", ["m", "km", "mi", "ft"][number % 4]];
            compare_any(&mut server, &mut engine, &words.map(str::as_bytes));
        }
        for _ in 0..20 {
            let place =
                [degrees(&mut prng, centre.0, width, 180.0), degrees(&mut prng, centre.1, width, 85.05)];
            let size = (prng.below(1000) as f64 * width / 4.0).to_string();
            let circle = [
                "GEOSEARCH",
                "g",
                "FROMLONLAT",
                &place[0],
                &place[1],
                "BYRADIUS",
                &size,
                "km",
                "ASC",
                "WITHDIST",
            ];
            compare_search(&mut server, &mut engine, &circle.map(str::as_bytes));
            let near = ["GEOSEARCH", "g", "FROMMEMBER", "m7", "BYRADIUS", &size, "m", "ASC", "WITHDIST"];
            compare_search(&mut server, &mut engine, &near.map(str::as_bytes));
            let sides =
                ["GEOSEARCH", "g", "FROMMEMBER", "m7", "BYBOX", &size, &size, "km", "ASC", "WITHDIST"];
            compare_search(&mut server, &mut engine, &sides.map(str::as_bytes));
            assert_all_are_found(&mut engine, &size);
        }
    }
}

/// Compares a search. Redis finds too little near the poles, and if the radius is about that of the world.
fn compare_search(server: &mut Server, engine: &mut MemoryEngine, words: &[&[u8]]) {
    let Ok(Parsed::Data(operation)) = parse(words) else { panic!("{words:?} is no operation") };
    let (Answer::Array(ours), Answer::Array(theirs)) = (execute(engine, &operation), server.call(words))
    else {
        panic!("{words:?} answers no array")
    };
    let shown = || words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>();
    assert!(theirs.iter().all(|found| ours.contains(found)), "{:?}: {ours:?}\n{theirs:?}", shown());
}

/// A search finds all members that are not farther than its radius, in kilometres.
fn assert_all_are_found(engine: &mut MemoryEngine, radius: &str) {
    let limit: f64 = radius.parse().expect("a number");
    let words = ["GEOSEARCH", "g", "FROMMEMBER", "m7", "BYRADIUS", radius, "km"].map(str::as_bytes);
    let Ok(Parsed::Data(search)) = parse(&words) else { panic!("{words:?} is no operation") };
    let found = execute(engine, &search).len();
    let distance = |engine: &mut MemoryEngine, number: u32| -> f64 {
        let member = format!("m{number}");
        let words = ["GEODIST", "g", "m7", &member, "km"].map(str::as_bytes);
        let Ok(Parsed::Data(question)) = parse(&words) else { panic!("{words:?} is no operation") };
        let Answer::Plain(text) = execute(engine, &question) else { panic!("{words:?} answers an array") };
        let text = String::from_utf8(text).expect("digits");
        text.lines().nth(1).and_then(|line| line.parse().ok()).expect("a distance")
    };
    let distances: Vec<f64> = (0..60).map(|number| distance(engine, number)).collect();
    // Distances are rounded when they are answered.
    let within = |limit: f64| distances.iter().filter(|distance| **distance <= limit).count();
    let near = within(limit - 1e-4)..=within(limit + 1e-4);
    assert!(near.contains(&found), "{found} of {near:?} within {radius} km");
}

/// The bytes of an answer that is a string.
fn content(answer: &Answer) -> Vec<u8> {
    let Answer::Plain(bytes) = answer else { panic!("{answer:?} is no string") };
    let start = bytes.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
    bytes[start..bytes.len() - 2].to_vec()
}
