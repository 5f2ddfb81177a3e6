//! Operations on data, typed. Commands that differ in syntax only share a variant: SETEX is a SET
//! with a lifetime, DECR an increment by -1, UNLINK a DEL, GETSET a SET that returns the old value.

use crate::extended::Extended;
use core::fmt;
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::{Class, Footprint, key_hash};

/// One operation: a command and whether its reply is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// What to do.
    pub command: Command<'a>,
    /// True for `BLIND <command>`: the reply is always `+OK`, whatever the command would have answered,
    /// an error included. Only an update can be blind.
    pub blind: bool,
}

/// What an operation does to the data. Byte strings are borrowed from the client's words or the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are the Redis command's own arguments, under their own names")]
pub enum Command<'a> {
    /// GET; also GETEX without options, which changes nothing.
    Get { key: &'a [u8] },
    /// MGET.
    MGet { keys: Arguments<'a> },
    /// STRLEN.
    StrLen { key: &'a [u8] },
    /// GETRANGE and SUBSTR: both ends inclusive, negative ones count from the end.
    GetRange { key: &'a [u8], start: i64, end: i64 },
    /// EXISTS: a key named twice counts twice.
    Exists { keys: Arguments<'a> },
    /// TYPE.
    Type { key: &'a [u8] },
    /// TTL and PTTL: time left.
    Ttl { key: &'a [u8], unit: Unit },
    /// EXPIRETIME and PEXPIRETIME: the moment of expiry.
    ExpireTime { key: &'a [u8], unit: Unit },
    /// SCAN. `pattern` of `*` is left out by the parser; `count` is at least 1.
    Scan { cursor: u64, pattern: Option<&'a [u8]>, count: u64, only_type: Option<&'a [u8]> },
    /// KEYS.
    Keys { pattern: &'a [u8] },
    /// RANDOMKEY.
    RandomKey,
    /// DBSIZE.
    DbSize,
    /// SET with any options, SETEX, PSETEX, GETSET. With `get` the old value is the reply.
    Set { key: &'a [u8], value: &'a [u8], condition: Condition, lifetime: Lifetime, get: bool },
    /// MSET: keys and values alternate.
    MSet { pairs: Arguments<'a> },
    /// MSETNX: keys and values alternate.
    MSetNx { pairs: Arguments<'a> },
    /// SETNX: SET NX that answers 1 or 0.
    SetNx { key: &'a [u8], value: &'a [u8] },
    /// GETDEL.
    GetDel { key: &'a [u8] },
    /// GETEX with an option.
    GetEx { key: &'a [u8], change: TtlChange },
    /// APPEND.
    Append { key: &'a [u8], value: &'a [u8] },
    /// SETRANGE. `offset + value.len()` is a legal length, unless the value is empty.
    SetRange { key: &'a [u8], offset: u64, value: &'a [u8] },
    /// INCR, DECR, INCRBY, DECRBY.
    IncrBy { key: &'a [u8], delta: i64 },
    /// INCRBYFLOAT.
    IncrByFloat { key: &'a [u8], delta: Extended },
    /// DEL and UNLINK.
    Del { keys: Arguments<'a> },
    /// RENAME.
    Rename { from: &'a [u8], to: &'a [u8] },
    /// RENAMENX.
    RenameNx { from: &'a [u8], to: &'a [u8] },
    /// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT.
    Expire { key: &'a [u8], deadline: Deadline, condition: ExpireCondition },
    /// PERSIST.
    Persist { key: &'a [u8] },
    /// FLUSHALL and FLUSHDB: there is one database.
    FlushAll,
}

/// Unit in which a time is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, rounded to the nearest.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// Condition of a SET.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// None.
    #[default]
    Always,
    /// NX: only a key that does not exist.
    IfAbsent,
    /// XX: only a key that exists.
    IfPresent,
}

/// The first millisecond of log time in which a key is gone. At or before the log time means at once.
///
/// A client counts milliseconds as Redis does: a key that expires at a millisecond is still there in all of it, so
/// that none goes before its time although clocks have more digits than the number. So what a client says is
/// one less than what stands here; bodies in older logs have what the client said, and mean what they meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// So long after the log time at which the operation executes; at most
    /// [`RELATIVE_EXPIRY_MS_MAX`](crate::limits::RELATIVE_EXPIRY_MS_MAX).
    After(u64),
    /// At this time since the Unix epoch; at most [`EXPIRY_MS_MAX`](crate::limits::EXPIRY_MS_MAX).
    At(u64),
}

impl Deadline {
    /// The expiry, in milliseconds since the Unix epoch, of an operation that executes at `now_ms`.
    #[must_use]
    pub const fn resolve(self, now_ms: u64) -> u64 {
        let expiry = match self {
            Self::After(ms) => now_ms.saturating_add(ms),
            Self::At(ms) => ms,
        };
        if expiry > crate::limits::EXPIRY_MS_MAX { crate::limits::EXPIRY_MS_MAX } else { expiry }
    }
}

/// What a SET does to the key's expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// The key will not expire.
    #[default]
    Forever,
    /// KEEPTTL: the old expiry stays.
    Keep,
    /// EX, PX, EXAT, PXAT.
    Until(Deadline),
}

/// What a GETEX does to the key's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlChange {
    /// PERSIST: removes it.
    Persist,
    /// EX, PX, EXAT, PXAT: sets it.
    Until(Deadline),
    /// The expiry is no integer: an error if the key exists. Redis looks at the expiry after it has found the key.
    NotInteger,
    /// The expiry is not positive or too large: an error if the key exists.
    Invalid,
}

/// Condition of an EXPIRE. A key without expiry counts as one that expires after any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ExpireCondition {
    /// None.
    #[default]
    Always,
    /// NX: only if the key has no expiry.
    IfNone,
    /// XX: only if it has one.
    IfSome,
    /// GT, and XX with GT: only if the new one is later (never, where there is none).
    IfLater,
    /// LT: only if the new one is earlier, or there is none.
    IfEarlier,
    /// XX with LT: only if there is one and the new one is earlier.
    IfSomeAndEarlier,
}

/// A list of byte strings, borrowed from a client's words or from an encoded body: no allocation.
#[derive(Clone, Copy)]
pub struct Arguments<'a>(pub(crate) Source<'a>);

/// Where a list of byte strings comes from.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The words of a command.
    Words(&'a [&'a [u8]]),
    /// `count` length-prefixed strings, checked when they were decoded.
    Encoded { count: usize, bytes: &'a [u8] },
}

impl<'a> Arguments<'a> {
    /// The list of these words.
    #[must_use]
    pub const fn new(words: &'a [&'a [u8]]) -> Self {
        Self(Source::Words(words))
    }

    /// Number of strings.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self.0 {
            Source::Words(words) => words.len(),
            Source::Encoded { count, .. } => count,
        }
    }

    /// True if there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The strings in order.
    #[must_use]
    pub const fn iter(&self) -> ArgumentsIter<'a> {
        ArgumentsIter(self.0)
    }

    /// The strings two by two; one left over is dropped.
    pub fn pairs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let (keys, values) = (self.iter().step_by(2), self.iter().skip(1).step_by(2));
        keys.zip(values)
    }
}

impl<'a> IntoIterator for Arguments<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgumentsIter<'a>;
    fn into_iter(self) -> ArgumentsIter<'a> {
        self.iter()
    }
}

impl PartialEq for Arguments<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Arguments<'_> {}

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(String::from_utf8_lossy)).finish()
    }
}

/// Iterator over [`Arguments`].
#[derive(Clone)]
pub struct ArgumentsIter<'a>(Source<'a>);

impl<'a> Iterator for ArgumentsIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match &mut self.0 {
            Source::Words(words) => {
                let (first, rest) = words.split_first()?;
                *words = rest;
                Some(first)
            }
            Source::Encoded { count, bytes } => {
                *count = count.checked_sub(1)?;
                crate::primitive::take_bytes(bytes).ok()
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = Arguments(self.0).len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for ArgumentsIter<'_> {}

impl<'a> Operation<'a> {
    /// The operation that wants its reply.
    #[must_use]
    pub const fn new(command: Command<'a>) -> Self {
        Self { command, blind: false }
    }

    /// The operation's class: the only place that decides it.
    ///
    /// An *overwrite* names one key and neither its effect on that key nor its reply depends on what
    /// was there before. A *merge* answers `+OK` whatever happens, and is no overwrite.
    #[must_use]
    pub fn class(&self) -> Class {
        let nilext = if self.overwrites_one_key() { Class::Overwrite } else { Class::Merge };
        match self.command {
            _ if self.command.is_read() => Class::Read,
            _ if self.blind => nilext,
            Command::Set { condition: Condition::Always, get: false, .. }
            | Command::MSet { .. }
            | Command::FlushAll => nilext,
            _ => Class::Update,
        }
    }

    /// Bytes by which it may make the data grow, at most, but for what an engine keeps of each key beside its bytes; it
    /// takes `encoded` bytes itself. More than 0 for the commands that Redis refuses when there is no memory (`denyoom`),
    /// and for one that gives a key a longer name: what one replica has no room for, no other has.
    #[must_use]
    pub fn growth(&self, encoded: usize) -> usize {
        /// What a key takes beside its name and its value, about.
        const KEY_BYTES: usize = 64;
        /// The longest decimal of a number that INCRBYFLOAT knows, about.
        const DECIMAL_BYTES: usize = 5_000;
        match self.command {
            Command::Set { .. } | Command::SetNx { .. } | Command::Append { .. } | Command::IncrBy { .. } => {
                encoded + KEY_BYTES
            }
            Command::MSet { pairs } | Command::MSetNx { pairs } => encoded + pairs.len() / 2 * KEY_BYTES,
            // The gap before the value is filled with zeros.
            Command::SetRange { offset, .. } => {
                offset.min(VALUE_BYTES_MAX as u64) as usize + encoded + KEY_BYTES
            }
            Command::IncrByFloat { .. } => encoded + KEY_BYTES + DECIMAL_BYTES,
            Command::Rename { from, to } | Command::RenameNx { from, to } => {
                to.len().saturating_sub(from.len())
            }
            _ => 0,
        }
    }

    /// True if it may make the data grow.
    #[must_use]
    pub fn grows(&self) -> bool {
        self.growth(0) > 0
    }

    /// True if the new state of the one key it names is known from the operation alone.
    fn overwrites_one_key(&self) -> bool {
        match self.command {
            Command::Set { condition, lifetime, .. } => {
                condition == Condition::Always && lifetime != Lifetime::Keep
            }
            Command::MSet { pairs } => pairs.len() == 2,
            Command::Del { keys } => keys.len() == 1,
            Command::GetDel { .. } => true,
            _ => false,
        }
    }

    /// The hashes of the keys it touches.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        match self.keys() {
            None => Footprint::All,
            Some(Keys::One(key)) => Footprint::One(key_hash(key)),
            Some(keys) => {
                let mut hashes = Vec::with_capacity(keys.len());
                keys.each(|key| hashes.push(key_hash(key)));
                Footprint::of(hashes)
            }
        }
    }

    /// Visits the keys it names. False, without a visit, if it concerns all there are.
    pub fn each_key(&self, visit: impl FnMut(&'a [u8])) -> bool {
        self.keys().map(|keys| keys.each(visit)).is_some()
    }

    /// The key, if it names exactly one, once: what may be packed into one body with others on the
    /// same key.
    #[must_use]
    pub fn single_key(&self) -> Option<&'a [u8]> {
        match self.keys()? {
            Keys::One(key) => Some(key),
            _ => None,
        }
    }

    /// True if it concerns all keys there are: SCAN, KEYS, RANDOMKEY, DBSIZE, FLUSHALL. Such an operation
    /// is a body of its own; it cannot be packed with others.
    #[must_use]
    pub const fn concerns_all_keys(&self) -> bool {
        matches!(
            self.command,
            Command::Scan { .. }
                | Command::Keys { .. }
                | Command::RandomKey
                | Command::DbSize
                | Command::FlushAll
        )
    }

    /// The keys it names; `None` if it concerns all there are.
    pub(crate) fn keys(&self) -> Option<Keys<'a>> {
        Some(match self.command {
            Command::Get { key }
            | Command::StrLen { key }
            | Command::GetRange { key, .. }
            | Command::Type { key }
            | Command::Ttl { key, .. }
            | Command::ExpireTime { key, .. }
            | Command::Set { key, .. }
            | Command::SetNx { key, .. }
            | Command::GetDel { key }
            | Command::GetEx { key, .. }
            | Command::Append { key, .. }
            | Command::SetRange { key, .. }
            | Command::IncrBy { key, .. }
            | Command::IncrByFloat { key, .. }
            | Command::Expire { key, .. }
            | Command::Persist { key } => Keys::One(key),
            Command::Rename { from, to } | Command::RenameNx { from, to } => Keys::Two(from, to),
            Command::MGet { keys } | Command::Exists { keys } | Command::Del { keys } => Keys::every(keys, 1),
            Command::MSet { pairs } | Command::MSetNx { pairs } => Keys::every(pairs, 2),
            Command::Scan { .. }
            | Command::Keys { .. }
            | Command::RandomKey
            | Command::DbSize
            | Command::FlushAll => return None,
        })
    }
}

impl Command<'_> {
    /// True if it changes nothing.
    #[must_use]
    pub const fn is_read(&self) -> bool {
        matches!(
            self,
            Self::Get { .. }
                | Self::MGet { .. }
                | Self::StrLen { .. }
                | Self::GetRange { .. }
                | Self::Exists { .. }
                | Self::Type { .. }
                | Self::Ttl { .. }
                | Self::ExpireTime { .. }
                | Self::Scan { .. }
                | Self::Keys { .. }
                | Self::RandomKey
                | Self::DbSize
        )
    }
}

/// The keys an operation names.
#[derive(Clone, Copy)]
pub(crate) enum Keys<'a> {
    One(&'a [u8]),
    Two(&'a [u8], &'a [u8]),
    /// Every `step`-th string of the list, from the first.
    Every {
        list: Arguments<'a>,
        step: usize,
    },
}

impl<'a> Keys<'a> {
    fn every(list: Arguments<'a>, step: usize) -> Self {
        match list.iter().next() {
            Some(key) if list.len() == step => Self::One(key),
            _ => Self::Every { list, step },
        }
    }

    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Two(..) => 2,
            Self::Every { list, step } => list.len() / *step,
        }
    }

    pub(crate) fn each(&self, mut visit: impl FnMut(&'a [u8])) {
        match *self {
            Self::One(key) => visit(key),
            Self::Two(from, to) => {
                visit(from);
                visit(to);
            }
            Self::Every { list, step } => list.iter().step_by(step).for_each(visit),
        }
    }
}
