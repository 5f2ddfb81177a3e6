//! One command of a client: as the workload makes it up, in the words of Redis, and as bytes of a body.

use super::collections;
use super::waiting::{WaitCommand, word_of};
use std::sync::OnceLock;
use syros_checker::collections::CollectionOperation;
use syros_checker::transfer::Transfer;
use syros_commands::families::{
    Append, DbSize, Del, FlushAll, Get, IncrBy, Keys, MGet, MSet, RecordVersions, Set, SetNx, Unchanged,
    Versions,
};
use syros_commands::{Arguments, Command, Deadline, Lifetime, Operation};
use syros_types::Database;
use syros_types::key_hash;

/// One command of an operation. Keys are numbers; [`key_name`] gives their bytes; high bits are their
/// database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCommand {
    /// GET.
    Get(u64),
    /// MGET.
    MGet(Vec<u64>),
    /// SET.
    Set(u64, Vec<u8>),
    /// SET with a lifetime: so many milliseconds later the key is gone.
    SetFor(u64, Vec<u8>, u64),
    /// GETSET.
    GetSet(u64, Vec<u8>),
    /// SETNX.
    SetNx(u64, Vec<u8>),
    /// MSET.
    MSet(Vec<(u64, Vec<u8>)>),
    /// INCRBY.
    IncrBy {
        /// Key.
        key: u64,
        /// Increment.
        delta: i64,
        /// Without its reply.
        blind: bool,
    },
    /// APPEND.
    Append {
        /// Key.
        key: u64,
        /// What is appended.
        value: Vec<u8>,
        /// Without its reply.
        blind: bool,
    },
    /// DEL of one key.
    Del {
        /// Key.
        key: u64,
        /// Without its reply.
        blind: bool,
    },
    /// An operation on a collection.
    Collection {
        /// Key.
        key: u64,
        /// What is to be done.
        operation: CollectionOperation,
        /// Without its reply.
        blind: bool,
    },
    /// RENAME.
    Rename(u64, u64),
    /// LMOVE, SMOVE, COPY, MOVE, SUNIONSTORE, ZRANGESTORE and SORT with STORE: takes something from the first key and leaves it
    /// at the second.
    Transfer(u64, u64, Transfer),
    /// SPOP of one member of a set, whichever that is.
    PopMember(u64),
    /// A command that waits for elements. Only Redis clients send them, on connections of their own.
    Wait(WaitCommand),
    /// PEXPIRE: so many milliseconds later the key is gone; 2 at least, as Redis knows no shorter lifetime than `PX 1`.
    Expire {
        /// Key.
        key: u64,
        /// Lifetime.
        millis: u64,
        /// Without its reply.
        blind: bool,
    },
    /// PERSIST.
    Persist {
        /// Key.
        key: u64,
        /// Without its reply.
        blind: bool,
    },
    /// FLUSHALL.
    FlushAll,
    /// DBSIZE.
    DbSize,
    /// KEYS with a pattern that every key fits.
    Keys,
    /// Asks for the versions of keys, as WATCH does.
    Watch(Vec<u64>),
    /// Has versions recorded, as the first WATCH does.
    RecordVersions,
    /// The condition of a transaction that its keys have the versions which its client was told, as EXEC has it. The steps
    /// behind it are executed only then.
    Unchanged {
        /// The keys, with what they held when the client read them.
        seen: Vec<(u64, Option<Vec<u8>>)>,
        /// Their versions before.
        versions: Vec<i64>,
    },
    /// The words of a command that the judge of histories knows nothing of: for experiments that ask for nothing else.
    Unjudged(Vec<Vec<u8>>),
}

/// A lifetime as clients count it. The server counts to the first millisecond without the key (`Deadline`), its clients
/// to the last one with it.
fn last_millisecond(millis: u64) -> String {
    (millis - 1).to_string()
}

/// From this bit on the number of a key has that of its database, if it is [`ELSEWHERE`].
const DATABASE_BIT: u32 = 24;

/// The highest bits of the 32 that a key's number has outside of the first database. No experiment has as many keys.
const ELSEWHERE: u64 = 0xf000_0000;

/// True if the number of a key has that of its database in it.
const fn is_elsewhere(key: u64) -> bool {
    key >> 28 == ELSEWHERE >> 28
}

/// The bytes of a key.
#[must_use]
pub fn key_name(key: u64) -> Vec<u8> {
    let key = if is_elsewhere(key) { key & ((1 << DATABASE_BIT) - 1) } else { key };
    let place = key.checked_sub(SHARED_PART_FIRST).and_then(|place| usize::try_from(place).ok());
    match place.and_then(|place| names_of_shared_part().get(place)) {
        Some(name) => name.clone(),
        None => format!("k{key}").into_bytes(),
    }
}

/// The database of a key.
fn database_of(key: u64) -> Database {
    let number = if is_elsewhere(key) { key >> DATABASE_BIT & 0xf } else { 0 };
    u8::try_from(number).ok().and_then(Database::new).unwrap_or_default()
}

/// The first of the keys that share a part of the table of removals. No ordinary key has so high a number.
pub(crate) const SHARED_PART_FIRST: u64 = 1_000;

/// Most keys that share a part of the table of removals.
const SHARED_PART_MAX: u64 = 4;

/// Bits of a key's hash that name its part of the table of removals.
const PART_BITS: u32 = 12;

/// Names whose hashes begin with the same bits.
fn names_of_shared_part() -> &'static [Vec<u8>] {
    static NAMES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let is_first = |name: &Vec<u8>| key_hash(name) >> (u64::BITS - PART_BITS) == 0;
        let names =
            |place| (0_u64..).map(move |n| format!("k{}.{n}", SHARED_PART_FIRST + place).into_bytes());
        (0..SHARED_PART_MAX).filter_map(|place| names(place).find(is_first)).collect()
    })
}

/// The key of these bytes; `None` if no key has them.
#[must_use]
pub fn key_of(name: &[u8]) -> Option<u64> {
    core::str::from_utf8(name).ok()?.strip_prefix('k')?.split('.').next()?.parse().ok()
}

impl ClientCommand {
    /// The same on keys of the same names in this database. What concerns all keys stays as it is.
    pub(crate) fn in_database(mut self, database: Database) -> Self {
        if database.is_first() {
            return self;
        }
        let bits = ELSEWHERE | u64::from(database.number()) << DATABASE_BIT;
        match &mut self {
            Self::FlushAll | Self::DbSize | Self::Keys | Self::RecordVersions | Self::Unjudged(_) => {}
            Self::MGet(keys) | Self::Watch(keys) => keys.iter_mut().for_each(|key| *key |= bits),
            Self::Unchanged { seen, .. } => seen.iter_mut().for_each(|(key, _)| *key |= bits),
            Self::MSet(pairs) => pairs.iter_mut().for_each(|(key, _)| *key |= bits),
            Self::Wait(wait) => wait.change_keys(|key| *key |= bits),
            Self::Rename(from, to) | Self::Transfer(from, to, _) => {
                *from |= bits;
                *to |= bits;
            }
            Self::Get(key)
            | Self::Set(key, _)
            | Self::SetFor(key, ..)
            | Self::GetSet(key, _)
            | Self::SetNx(key, _)
            | Self::IncrBy { key, .. }
            | Self::Append { key, .. }
            | Self::Collection { key, .. }
            | Self::Expire { key, .. }
            | Self::Persist { key, .. }
            | Self::PopMember(key)
            | Self::Del { key, .. } => *key |= bits,
        }
        self
    }

    /// True if it may be one of several that are executed as one, as far as the judge knows them.
    pub(crate) fn can_be_joined(&self) -> bool {
        let has_lifetime = matches!(self, Self::SetFor(..) | Self::Expire { .. } | Self::Persist { .. });
        let is_elsewhere = matches!(self, Self::Transfer(_, _, Transfer::Copy { .. } | Transfer::Whole));
        let is_told_apart = matches!(self, Self::Wait(_) | Self::PopMember(_));
        !has_lifetime && !is_elsewhere && !is_told_apart && self.key().is_some()
    }

    /// The same, whose reply is wanted.
    pub(crate) fn with_reply(mut self) -> Self {
        if let Self::IncrBy { blind, .. }
        | Self::Append { blind, .. }
        | Self::Del { blind, .. }
        | Self::Collection { blind, .. }
        | Self::Expire { blind, .. }
        | Self::Persist { blind, .. } = &mut self
        {
            *blind = false;
        }
        self
    }

    /// True if it may wait.
    #[must_use]
    pub const fn waits(&self) -> bool {
        matches!(self, Self::Wait(_))
    }

    /// The same, if it takes something from one key and leaves it at another in this database.
    pub(crate) fn into_database(mut self, database: Database) -> Self {
        if let Self::Transfer(from, to, transfer @ Transfer::Copy { .. }) = &mut self
            && database_of(*from) != database
        {
            // Half of them move what is copied.
            if *from % 2 == 0 {
                (*to, *transfer) = (*from, Transfer::Whole);
            }
            let name = if is_elsewhere(*to) { *to & ((1 << DATABASE_BIT) - 1) } else { *to };
            let bits = ELSEWHERE | u64::from(database.number()) << DATABASE_BIT;
            *to = if database.is_first() { name } else { name | bits };
        }
        self
    }

    /// The database of its keys, or of the first one.
    pub(crate) fn database(&self) -> Database {
        self.key().map_or(Database::FIRST, database_of)
    }

    /// The first key it names; `None` if it concerns all keys.
    #[must_use]
    pub fn key(&self) -> Option<u64> {
        match self {
            Self::FlushAll | Self::DbSize | Self::Keys | Self::RecordVersions | Self::Unjudged(_) => None,
            Self::Get(key)
            | Self::Set(key, _)
            | Self::SetFor(key, ..)
            | Self::GetSet(key, _)
            | Self::SetNx(key, _)
            | Self::IncrBy { key, .. }
            | Self::Append { key, .. }
            | Self::Collection { key, .. }
            | Self::Rename(key, _)
            | Self::Transfer(key, ..)
            | Self::PopMember(key)
            | Self::Expire { key, .. }
            | Self::Persist { key, .. }
            | Self::Del { key, .. } => Some(*key),
            Self::MGet(keys) | Self::Watch(keys) => keys.first().copied(),
            Self::Wait(wait) => wait.keys.first().copied(),
            Self::Unchanged { seen, .. } => seen.first().map(|(key, _)| *key),
            Self::MSet(pairs) => pairs.first().map(|(key, _)| *key),
        }
    }

    /// True if it changes nothing.
    #[must_use]
    pub fn is_read(&self) -> bool {
        match self {
            Self::Collection { operation, .. } => operation.is_read(),
            // A condition changes nothing by itself.
            other => matches!(
                other,
                Self::Get(_)
                    | Self::MGet(_)
                    | Self::DbSize
                    | Self::Keys
                    | Self::Watch(_)
                    | Self::Unchanged { .. }
            ),
        }
    }

    /// True if its reply is not wanted.
    #[must_use]
    pub const fn is_blind(&self) -> bool {
        match self {
            Self::IncrBy { blind, .. }
            | Self::Append { blind, .. }
            | Self::Del { blind, .. }
            | Self::Collection { blind, .. }
            | Self::Expire { blind, .. }
            | Self::Persist { blind, .. } => *blind,
            _ => false,
        }
    }

    /// Visits the keys it names: none if it concerns all keys.
    pub fn for_each_key(&self, visit: &mut dyn FnMut(u64)) {
        match self {
            Self::MGet(keys) | Self::Watch(keys) => keys.iter().for_each(|key| visit(*key)),
            Self::Unchanged { seen, .. } => seen.iter().for_each(|(key, _)| visit(*key)),
            Self::MSet(pairs) => pairs.iter().for_each(|(key, _)| visit(*key)),
            Self::Rename(from, to) | Self::Transfer(from, to, _) => [*from, *to].into_iter().for_each(visit),
            Self::Wait(wait) => wait.for_each_key(visit),
            one => one.key().into_iter().for_each(visit),
        }
    }

    /// True if a reply may be an error with this code.
    pub(crate) fn may_fail_with(&self, code: &[u8]) -> bool {
        match self {
            Self::IncrBy { .. } => true,
            Self::Collection { operation, .. } => code == b"WRONGTYPE" || collections::may_fail(operation),
            Self::Rename(..) => code == b"ERR",
            Self::Transfer(..)
            | Self::PopMember(_)
            | Self::Wait(_)
            | Self::Get(_)
            | Self::GetSet(..)
            | Self::Append { .. } => code == b"WRONGTYPE",
            _ => false,
        }
    }

    /// The words of the command.
    pub(crate) fn words(&self) -> Vec<Vec<u8>> {
        let mut words = if self.is_blind() { vec![b"BLIND".to_vec()] } else { Vec::new() };
        let mut put = |name: &str, key: &u64, rest: &[&[u8]]| {
            words.extend([name.as_bytes().to_vec(), key_name(*key)]);
            words.extend(rest.iter().map(|word| word.to_vec()));
        };
        match self {
            Self::Get(key) => put("GET", key, &[]),
            Self::MGet(keys) => {
                words.push(b"MGET".to_vec());
                words.extend(keys.iter().copied().map(key_name));
            }
            Self::Set(key, value) => put("SET", key, &[value]),
            Self::SetFor(key, value, millis) => {
                put("SET", key, &[value, b"PX", last_millisecond(*millis).as_bytes()]);
            }
            Self::GetSet(key, value) => put("GETSET", key, &[value]),
            Self::SetNx(key, value) => put("SETNX", key, &[value]),
            Self::MSet(pairs) => {
                words.push(b"MSET".to_vec());
                words.extend(pairs.iter().flat_map(|(key, value)| [key_name(*key), value.clone()]));
            }
            Self::IncrBy { key, delta, .. } => put("INCRBY", key, &[delta.to_string().as_bytes()]),
            Self::Append { key, value, .. } => put("APPEND", key, &[value]),
            Self::Del { key, .. } => put("DEL", key, &[]),
            Self::Collection { key, operation, .. } => {
                words.extend(collections::words(&key_name(*key), operation));
            }
            Self::Rename(from, to) => put("RENAME", from, &[&key_name(*to)]),
            Self::Transfer(from, to, transfer) => words.extend(words_of_transfer(*from, *to, transfer)),
            Self::PopMember(key) => put("SPOP", key, &[]),
            Self::Wait(wait) => words.extend(wait.words(key_name)),
            Self::Expire { key, millis, .. } => put("PEXPIRE", key, &[last_millisecond(*millis).as_bytes()]),
            Self::Persist { key, .. } => put("PERSIST", key, &[]),
            Self::FlushAll => words.push(b"FLUSHALL".to_vec()),
            Self::DbSize => words.push(b"DBSIZE".to_vec()),
            Self::Keys => words.extend([b"KEYS".to_vec(), b"*".to_vec()]),
            Self::Unjudged(all) => words.extend(all.iter().cloned()),
            // No client sends these: its connection does.
            Self::Watch(_) | Self::RecordVersions | Self::Unchanged { .. } => {}
        }
        words
    }

    /// Appends the step's encoding to a body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let database = self.database();
        let mut put = |command: Command<'_>, blind: bool| {
            Operation { blind, ..Operation::new(command) }.in_database(database).encode(out);
        };
        match self {
            Self::Get(key) => put(Get { key: &key_name(*key) }.into(), false),
            Self::FlushAll => put(FlushAll.into(), false),
            Self::DbSize => put(DbSize.into(), false),
            Self::Keys => put(Keys { pattern: b"*" }.into(), false),
            Self::RecordVersions => put(RecordVersions.into(), false),
            Self::Watch(keys) => {
                let names: Vec<Vec<u8>> = keys.iter().copied().map(key_name).collect();
                let words: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                put(Versions { keys: Arguments::new(&words) }.into(), false);
            }
            Self::Unchanged { seen, versions } => {
                let names: Vec<Vec<u8>> = seen.iter().map(|(key, _)| key_name(*key)).collect();
                let versions: Vec<[u8; 8]> = versions.iter().map(|version| version.to_be_bytes()).collect();
                let mut words: Vec<&[u8]> = Vec::new();
                for (name, version) in names.iter().zip(&versions) {
                    words.extend([name.as_slice(), version]);
                }
                put(Unchanged { pairs: Arguments::new(&words) }.into(), false);
            }
            Self::MGet(keys) => {
                let names: Vec<Vec<u8>> = keys.iter().copied().map(key_name).collect();
                let words: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                put(MGet { keys: Arguments::new(&words) }.into(), false);
            }
            Self::Set(key, value) => put(Set::new(&key_name(*key), value).into(), false),
            Self::SetFor(key, value, millis) => {
                let lifetime = Lifetime::Until(Deadline::After(*millis));
                put(Set::unconditional(&key_name(*key), value, lifetime, false).into(), false);
            }
            Self::GetSet(key, value) => {
                put(Set::unconditional(&key_name(*key), value, Lifetime::Forever, true).into(), false);
            }
            Self::SetNx(key, value) => put(SetNx { key: &key_name(*key), value }.into(), false),
            Self::MSet(pairs) => {
                let names: Vec<Vec<u8>> = pairs.iter().map(|(key, _)| key_name(*key)).collect();
                let mut words: Vec<&[u8]> = Vec::new();
                for (name, (_, value)) in names.iter().zip(pairs) {
                    words.extend([name.as_slice(), value]);
                }
                put(MSet { pairs: Arguments::new(&words) }.into(), false);
            }
            Self::IncrBy { key, delta, blind } => {
                put(IncrBy { key: &key_name(*key), delta: *delta }.into(), *blind);
            }
            Self::Append { key, value, blind } => {
                put(Append { key: &key_name(*key), value }.into(), *blind);
            }
            Self::Del { key, blind } => {
                put(Del { keys: Arguments::new(&[&key_name(*key)]) }.into(), *blind);
            }
            Self::Collection { .. }
            | Self::Rename(..)
            | Self::Transfer(..)
            | Self::PopMember(_)
            | Self::Wait(_)
            | Self::Expire { .. }
            | Self::Persist { .. }
            | Self::Unjudged(_) => {
                put_parsed(&self.words(), database, out);
            }
        }
    }
}

/// The words of a command that takes something from one key and leaves it at another.
fn words_of_transfer(from: u64, to: u64, transfer: &Transfer) -> Vec<Vec<u8>> {
    let command = |name: &str, first: u64, rest: Vec<Vec<u8>>| {
        [vec![name.as_bytes().to_vec(), key_name(first)], rest].concat()
    };
    let database = || database_of(to).number().to_string().into_bytes();
    match transfer {
        Transfer::Element(one, other) => {
            command("LMOVE", from, vec![key_name(to), word_of(*one), word_of(*other)])
        }
        Transfer::Member(member) => command("SMOVE", from, vec![key_name(to), member.clone()]),
        Transfer::Copy { replace } => {
            let mut rest = vec![key_name(to), b"DB".to_vec(), database()];
            rest.extend(replace.then(|| b"REPLACE".to_vec()));
            command("COPY", from, rest)
        }
        Transfer::Whole => command("MOVE", from, vec![database()]),
        Transfer::Union => command("SUNIONSTORE", to, vec![key_name(from), key_name(to)]),
        Transfer::Range => command("ZRANGESTORE", to, vec![key_name(from), b"0".to_vec(), b"-1".to_vec()]),
        Transfer::Sorted => command("SORT", from, vec![b"ALPHA".to_vec(), b"STORE".to_vec(), key_name(to)]),
    }
}

/// Appends the encoding of what a server makes of a command in this database.
pub(crate) fn put_parsed(words: &[Vec<u8>], database: Database, out: &mut Vec<u8>) {
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    if let Ok(syros_commands::Parsed::Data(operation)) = syros_commands::parse(&words) {
        operation.in_database(database).encode(out);
    }
}

/// The body of some steps, executed as one.
#[must_use]
pub fn encode(steps: &[ClientCommand]) -> Vec<u8> {
    let mut body = Vec::with_capacity(32);
    steps.iter().for_each(|step| step.encode(&mut body));
    body
}
