//! Random commands, most of them sensible.

mod hashes;
mod lists;
mod sets;
mod sorted_sets;
mod streams;

mod bitmaps;
mod generic;
mod hyperloglog;

pub use streams::NAMES as STREAM_NAMES;

use super::{LEARNING, body_if_data};
use core::ops::Range;
use syros_types::{Database, Prng};

/// Draws commands on a few keys: with every option, with values that are numbers, text, empty or
/// binary, and now and then with a mistake.
#[derive(Clone, Debug)]
pub struct Generator {
    prng: Prng,
    relative_ms: Range<u64>,
    absolute_ms: Range<u64>,
    /// True to put BLIND before some commands.
    pub blind: bool,
    /// True to give HyperLogLogs to commands that show their bytes, and other strings to commands on HyperLogLogs.
    pub mixes_sketches: bool,
    /// True for commands on streams, too. Their answers depend on the time.
    pub has_streams: bool,
    /// True for commands on fields that expire, too. No Redis before 7.4 has them.
    pub has_field_expiry: bool,
    /// The time in ids of streams.
    stream_clock: u64,
}

/// Commands on strings, and on any type; a word that starts with `%` stands for a random argument, see [`Generator::expand`].
const STRINGS: &[&str] = &[
    "GET %key",
    "GET %key",
    "MGET %keys",
    "STRLEN %key",
    "GETRANGE %key %integer %integer",
    "GETRANGE %key %small %small",
    "SUBSTR %key %small %small",
    "LCS %key %key %lcs",
    "LCS %key %key %lcs",
    "EXISTS %keys",
    "TYPE %key",
    "TTL %key",
    "PTTL %key",
    "EXPIRETIME %key",
    "PEXPIRETIME %key",
    "SCAN 0 COUNT 1000000 %scan",
    "SCAN %cursor %scan",
    "KEYS %pattern",
    "KEYS %pattern",
    "RANDOMKEY",
    "DBSIZE",
    "SET %key %value",
    "SET %key %value",
    "SET %key %value",
    "SET %key %value %set",
    "SET %key %value %set",
    "SET %key %value %set",
    "SET %key %value %set",
    "SETEX %key %seconds %value",
    "PSETEX %key %ms %value",
    "SETNX %key %value",
    "MSET %pairs",
    "MSETNX %pairs",
    "GETSET %key %value",
    "GETDEL %key",
    "GETEX %key",
    "GETEX %key %getex",
    "GETEX %key %getex",
    "APPEND %key %value",
    "APPEND %key %small",
    "SETRANGE %key %offset %value",
    "INCR %key",
    "DECR %key",
    "INCRBY %key %integer",
    "DECRBY %key %integer",
    "INCRBYFLOAT %key %float",
    "INCRBYFLOAT %key %float",
    "INCRBYFLOAT %key %float",
    "DEL %key",
    "DEL %keys",
    "UNLINK %keys",
    "RENAME %key %key",
    "RENAMENX %key %key",
    "EXPIRE %key %seconds %expire",
    "PEXPIRE %key %ms %expire",
    "EXPIREAT %key %atseconds %expire",
    "PEXPIREAT %key %atms %expire",
    "PEXPIRE %key %ms %expire",
    "PEXPIREAT %key %atms %expire",
    "PERSIST %key",
    "MOVE %key %database",
    "MOVE %key %database",
    "nosuch %key %value",
];

/// The templates of every family, which come as often as they have templates.
const FAMILIES: &[&[&str]] = &[
    STRINGS,
    bitmaps::TEMPLATES,
    generic::TEMPLATES,
    hyperloglog::TEMPLATES,
    hashes::TEMPLATES,
    lists::TEMPLATES,
    sets::TEMPLATES,
    sorted_sets::TEMPLATES,
];

/// Keys that are collections most of the time.
const COLLECTIONS: &[&[&[u8]]] = &[hashes::KEYS, lists::KEYS, sets::KEYS, sorted_sets::KEYS, streams::KEYS];

/// Commands that would leave too little to work with if they came as often as the others.
const RARE_TEMPLATES: &[&str] =
    &["FLUSHALL", "FLUSHDB ASYNC", "flushall %value", "FLUSHDB sync %value", "SWAPDB %database %database"];

/// How many databases commands are on.
const DATABASES: u64 = 3;

const KEYS: &[&[u8]] = &[b"", b"a", b"b", b"c", b"ab", b"[x]", b"k*", b"key:1", b"key:2", b"\0\xff", b"a b"];

const NUMBERS: &[&[u8]] = &[
    b"0",
    b"1",
    b"-1",
    b"10",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775806",
    b"9223372036854775808",
    b"007",
    b"+1",
    b" 1",
    b"1.5",
    b"",
    b"-0",
    b"x",
];

/// What is no expiry, or one in the past or at the end of time.
const BAD_EXPIRIES: &[&[u8]] = &[
    b"0",
    b"-1",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"9223372036854775808",
    b"9223372036854776",
    b"007",
    b"1.5",
    b"",
    b"x",
];

const FLOATS: &[&[u8]] = &[
    b"0",
    b"1",
    b"-1.5",
    b"0.1",
    b"3.0",
    b"1e3",
    b"-2.5E-4",
    b".5",
    b"5.",
    b"1e20",
    b"-1e20",
    b"1e-17",
    b"4.9e-18",
    b"inf",
    b"-infinity",
    b"nan",
    b"1e4932",
    b"1e4933",
    b"1e-4960",
    b"x",
    b"",
    b"1 ",
    b" 1",
    b"1e",
    b"--1",
    b"99999999999999999999",
    b"-0",
];

const WORDS: &[&str] =
    &["NX", "xx", "GET", "KEEPTTL", "EX", "px", "EXAT", "PXAT", "PERSIST", "GT", "lt", "FOO", "COUNT", ""];

impl Generator {
    /// A generator determined by `seed`, whose relative expiries lie in `relative_ms` and whose
    /// absolute ones lie in `absolute_ms`, apart from those that are mistakes or in the past.
    #[must_use]
    pub const fn new(seed: u64, relative_ms: Range<u64>, absolute_ms: Range<u64>) -> Self {
        Self {
            prng: Prng::new(seed),
            relative_ms,
            absolute_ms,
            blind: false,
            mixes_sketches: false,
            has_streams: false,
            has_field_expiry: false,
            stream_clock: 1,
        }
    }

    /// The next command as a body; `None` if it is no operation on data.
    #[must_use]
    pub fn body(&mut self) -> Option<Vec<u8>> {
        let words = self.command();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        body_if_data(&words, self.database())
    }

    /// The database that the next command is executed in: most often the first one.
    #[must_use]
    pub fn database(&mut self) -> Database {
        if self.prng.chance(2, 3) {
            return Database::FIRST;
        }
        Database::all().nth(self.prng.below(DATABASES) as usize).unwrap_or_default()
    }

    /// The words of the next command.
    #[must_use]
    pub fn command(&mut self) -> Vec<Vec<u8>> {
        if self.has_streams && self.prng.chance(1, 6) {
            let template = self.stream_template();
            return self.of_template(template);
        }
        if self.has_field_expiry && self.prng.chance(1, 12) {
            let template = self.pick(hashes::EXPIRY_TEMPLATES);
            return self.of_template(template);
        }
        let template =
            if self.prng.chance(1, 100) { self.pick(RARE_TEMPLATES) } else { self.pick_of_all(FAMILIES) };
        self.of_template(template)
    }

    /// The words that run [`LEARNING`] on a key of some type.
    pub(super) fn learning(&mut self) -> Vec<Vec<u8>> {
        let keys = [KEYS, hashes::KEYS, lists::KEYS, sets::KEYS, sorted_sets::KEYS, streams::KEYS];
        vec![b"EVAL".to_vec(), LEARNING.into(), b"1".to_vec(), self.pick_of_all(&keys).to_vec()]
    }

    /// The words of a command of a template.
    fn of_template(&mut self, template: &str) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        if self.blind && self.prng.chance(1, 8) {
            words.push(b"BLIND".to_vec());
        }
        for word in template.split(' ') {
            self.expand(word, &mut words);
        }
        match self.prng.below(60) {
            0 if words.len() > 1 => drop(words.pop()),
            1 => words.push(self.number()),
            2 => words.push(self.pick(WORDS).as_bytes().to_vec()),
            _ => {}
        }
        if self.prng.chance(1, 4) {
            words[0].make_ascii_lowercase();
        }
        words
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.prng.below(from.len() as u64) as usize]
    }

    /// One of all these, whatever list it is in.
    fn pick_of_all<T: Copy>(&mut self, lists: &[&[T]]) -> T {
        let count: usize = lists.iter().map(|list| list.len()).sum();
        let index = self.prng.below(count as u64) as usize;
        *lists.iter().copied().flatten().nth(index).expect("the index is below their number")
    }

    fn expand(&mut self, word: &str, words: &mut Vec<Vec<u8>>) {
        let word = match word {
            "%key" if self.prng.chance(1, 20) => self.pick_of_all(COLLECTIONS).to_vec(),
            "%key" => self.exposed_sketch().unwrap_or_else(|| self.pick(KEYS).to_vec()),
            "%value" => self.value(),
            "%integer" => self.integer(),
            "%small" => self.small(),
            "%float" => self.float(),
            "%pattern" => self.pattern(),
            "%offset" if self.prng.chance(1, 8) => {
                self.pick(&[&b"16777216"[..], b"-1", b"x", b"9223372036854775807"]).to_vec()
            }
            "%offset" => self.prng.below(40).to_string().into_bytes(),
            "%database" if self.prng.chance(1, 10) => self.number(),
            "%database" => self.prng.below(DATABASES).to_string().into_bytes(),
            "%cursor" if self.prng.chance(1, 2) => self.number(),
            "%cursor" => self.prng.below(8).to_string().into_bytes(),
            "%seconds" => self.expiry(false, 1000),
            "%ms" => self.expiry(false, 1),
            "%atseconds" => self.expiry(true, 1000),
            "%atms" => self.expiry(true, 1),
            "%keys" | "%pairs" => {
                for _ in 0..1 + self.prng.below(3) {
                    words.push(self.pick(KEYS).to_vec());
                    if word == "%pairs" {
                        words.push(self.value());
                    }
                }
                return;
            }
            sketch if sketch.starts_with("%pf") => return self.expand_sketch(sketch, words),
            bits if bits.starts_with("%bit") => return self.expand_bits(bits, words),
            "%set" | "%getex" | "%expire" | "%scan" | "%hscan" | "%lcs" | "%lpos" | "%zadd" | "%zrange" => {
                return self.options(word, words);
            }
            _ if self.expand_of_hashes(word, words)
                || self.expand_of_lists(word, words)
                || self.expand_of_sets(word, words)
                || self.expand_of_sorted_sets(word, words)
                || self.expand_of_generic(word, words)
                || self.expand_of_streams(word, words) =>
            {
                return;
            }
            literal => literal.as_bytes().to_vec(),
        };
        words.push(word);
    }

    /// Options for the kind of command, in any order, legal or not.
    fn options(&mut self, kind: &str, words: &mut Vec<Vec<u8>>) {
        let legal: &[&str] = match kind {
            "%lcs" => &["LEN", "IDX", "idx", "WITHMATCHLEN", "MINMATCHLEN"],
            "%set" => &["NX", "XX", "GET", "KEEPTTL", "EX", "PX", "EXAT", "PXAT"],
            "%getex" => &["PERSIST", "EX", "PX", "EXAT", "PXAT"],
            "%expire" => &["NX", "XX", "GT", "LT"],
            "%hscan" => &["MATCH", "COUNT"],
            "%lpos" => &["RANK", "COUNT", "MAXLEN"],
            "%zadd" => &["NX", "XX", "GT", "LT", "CH", "INCR"],
            "%zrange" => &["WITHSCORES", "LIMIT", "REV", "BYSCORE", "WITHSCORES"],
            _ => &["MATCH", "COUNT", "TYPE"],
        };
        for _ in 0..self.prng.below(3) {
            let option = if self.prng.chance(1, 30) { self.pick(WORDS) } else { self.pick(legal) };
            words.push(option.as_bytes().to_vec());
            let argument = match option {
                "EX" => self.expiry(false, 1000),
                "PX" | "px" => self.expiry(false, 1),
                "EXAT" => self.expiry(true, 1000),
                "PXAT" => self.expiry(true, 1),
                "MATCH" => self.pattern(),
                "MINMATCHLEN" => self.small(),
                "LIMIT" => {
                    words.push(self.small());
                    self.small()
                }
                "TYPE" => self
                    .pick(&[&b"string"[..], b"STRING", b"hash", b"HASH", b"set", b"list", b"zset", b"bogus"])
                    .to_vec(),
                "RANK" => self.rank(),
                "MAXLEN" => self.element_count(),
                "COUNT" if kind == "%lpos" => self.element_count(),
                // Only few: the reply must not depend on which keys come first.
                "COUNT" => self.pick(&[&b"1000000"[..], b"1000001", b"0", b"-1", b"x"]).to_vec(),
                _ => continue,
            };
            words.push(argument);
        }
    }

    /// A number of units of so many milliseconds, mostly in the range that was asked for.
    fn expiry(&mut self, absolute: bool, unit_ms: u64) -> Vec<u8> {
        if self.prng.chance(1, 12) {
            return self.pick(BAD_EXPIRIES).to_vec();
        }
        let range = if absolute { &self.absolute_ms } else { &self.relative_ms };
        let ms = range.start + self.prng.below(range.end - range.start);
        (ms / unit_ms).to_string().into_bytes()
    }

    fn number(&mut self) -> Vec<u8> {
        self.pick(NUMBERS).to_vec()
    }

    fn small(&mut self) -> Vec<u8> {
        (self.prng.below(24) as i64 - 12).to_string().into_bytes()
    }

    fn integer(&mut self) -> Vec<u8> {
        match self.prng.below(3) {
            0 => self.number(),
            1 => (self.prng.next_u64() as i64 >> self.prng.below(64)).to_string().into_bytes(),
            _ => self.small(),
        }
    }

    fn float(&mut self) -> Vec<u8> {
        if self.prng.chance(1, 2) {
            return self.pick(FLOATS).to_vec();
        }
        let whole = self.prng.next_u64() as i64 >> self.prng.below(64);
        let decimals = self.prng.next_u64() >> self.prng.below(64);
        match self.prng.below(3) {
            0 => format!("{whole}.{decimals}"),
            1 => format!("{whole}.{decimals}e{}", self.prng.below(60) as i64 - 30),
            _ => format!("{whole}.{}", decimals % 1000),
        }
        .into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        match self.prng.below(8) {
            0 => self.number(),
            1 | 2 => self.float(),
            3 => (0..self.prng.below(200)).map(|_| self.prng.next_u64() as u8).collect(),
            4 => vec![b'x'; self.prng.below(70) as usize],
            _ => self.small(),
        }
    }

    fn pattern(&mut self) -> Vec<u8> {
        if self.prng.chance(1, 4) {
            return self.pick(&[&b"*"[..], b"key:?", b"k*", b"[a-c]", b"*:*", b"\\[x\\]"]).to_vec();
        }
        (0..self.prng.below(7)).map(|_| self.pick(b"**??[]^-\\abkx:1 \xff")).collect()
    }
}
