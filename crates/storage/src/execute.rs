//! What each command does.

use crate::glob::glob_matches;
use crate::keyspace::{Entry, Expiry, Keyspace};
use core::num::NonZeroU64;
use syros_commands::limits::REPLY_BYTES_MAX;
use syros_commands::{
    Arguments, Command, Condition, Deadline, ExecutionError, ExpireCondition, Extended, Lifetime, TtlChange,
    Unit, parse_integer, put_array, put_bulk, put_integer, put_nil, put_ok, put_simple, write_integer,
};
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::{Prng, WallTime};

/// What a read sees besides the keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// What TTL counts from and RANDOMKEY draws from.
    pub(crate) now: WallTime,
    /// How long the reply buffer may become.
    pub(crate) reply_end: usize,
}

impl View {
    /// A view at `now` for a body whose replies start after `reply`.
    pub(crate) const fn new(now: WallTime, reply: &[u8]) -> Self {
        Self { now, reply_end: reply.len() + REPLY_BYTES_MAX }
    }
}

type Outcome = Result<(), ExecutionError>;

/// Executes a command that only reads. After an error, what was added to `reply` is to be dropped.
pub(crate) fn read(keys: &Keyspace, view: View, command: &Command<'_>, reply: &mut Vec<u8>) -> Outcome {
    match *command {
        Command::Get { key } => put_value(keys, key, reply),
        Command::MGet { keys: names } => {
            put_array(reply, names.len());
            for key in names {
                put_value(keys, key, reply);
                if reply.len() > view.reply_end {
                    return Err(ExecutionError::ReplyTooLong);
                }
            }
        }
        Command::StrLen { key } => {
            put_integer(reply, keys.get(key).map_or(0, |entry| entry.value().len() as i64));
        }
        Command::GetRange { key, start, end } => {
            let value = keys.get(key).map_or(&[][..], |entry| entry.value());
            put_bulk(reply, range(value, start, end));
        }
        Command::Exists { keys: names } => {
            put_integer(reply, names.iter().filter(|key| keys.get(key).is_some()).count() as i64);
        }
        Command::Type { key } => {
            put_simple(reply, if keys.get(key).is_some() { b"string" } else { b"none" });
        }
        Command::Ttl { key, unit } => put_integer(
            reply,
            time_of(keys, key, unit, |expiry| expiry.saturating_sub(view.now.as_millis()).max(1)),
        ),
        Command::ExpireTime { key, unit } => put_integer(reply, time_of(keys, key, unit, |expiry| expiry)),
        Command::Scan { cursor, pattern, count, only_type } => {
            let scan = Scan { cursor, pattern, count, only_type };
            scan.run(keys, view, reply);
        }
        Command::Keys { pattern } => return list_keys(keys, view, pattern, reply),
        Command::RandomKey => {
            let mut prng = Prng::new(view.now.0 ^ reply.len() as u64);
            match keys.at(prng.below(keys.len() as u64) as usize) {
                Some((key, _)) => put_bulk(reply, key),
                None => put_nil(reply),
            }
        }
        Command::DbSize => put_integer(reply, keys.len() as i64),
        _ => return Err(ExecutionError::NotRead),
    }
    Ok(())
}

fn put_value(keys: &Keyspace, key: &[u8], reply: &mut Vec<u8>) {
    match keys.get(key) {
        Some(entry) => put_bulk(reply, entry.value()),
        None => put_nil(reply),
    }
}

/// The part of `value` from `start` to `end`, both inclusive; negative ones count from the end.
fn range(value: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let length = value.len() as i64;
    let absolute = |index: i64| if index < 0 { (length.saturating_add(index)).max(0) } else { index };
    let (start, end) = (absolute(start), absolute(end).min(length - 1));
    if start > end {
        return &[];
    }
    &value[start as usize..=end as usize]
}

/// What TTL and EXPIRETIME answer: -2 for no key, -1 for no expiry, else what `show` makes of the
/// expiry, seconds rounded to the nearest.
fn time_of(keys: &Keyspace, key: &[u8], unit: Unit, show: impl FnOnce(u64) -> u64) -> i64 {
    let Some(entry) = keys.get(key) else { return -2 };
    let Some(expiry) = entry.expiry() else { return -1 };
    let ms = show(expiry.get());
    // An expiry is at most the largest signed number.
    match unit {
        Unit::Milliseconds => ms as i64,
        Unit::Seconds => ((ms + 500) / 1000) as i64,
    }
}

fn list_keys(keys: &Keyspace, view: View, pattern: &[u8], reply: &mut Vec<u8>) -> Outcome {
    // Counted first, since the count goes in front.
    let matching: Vec<&[u8]> =
        keys.iter().map(|(key, _)| key).filter(|key| glob_matches(pattern, key)).collect();
    put_array(reply, matching.len());
    for key in matching {
        put_bulk(reply, key);
        if reply.len() > view.reply_end {
            return Err(ExecutionError::ReplyTooLong);
        }
    }
    Ok(())
}

/// SCAN. The cursor is a position, and the keys below it are still to be visited, from the highest
/// down; 0 starts at the end and is also where it ends. New keys are added at the end, and a removed
/// key is replaced by the last one: a key not visited yet only ever moves down. So every key that is
/// there all the time is visited.
struct Scan<'a> {
    cursor: u64,
    pattern: Option<&'a [u8]>,
    count: u64,
    only_type: Option<&'a [u8]>,
}

impl Scan<'_> {
    fn run(&self, keys: &Keyspace, view: View, reply: &mut Vec<u8>) {
        let length = keys.len() as u64;
        let mut position = if self.cursor == 0 { length } else { self.cursor.min(length) };
        let last = position.saturating_sub(self.count);
        let nothing = self.only_type.is_some_and(|name| !name.eq_ignore_ascii_case(b"string"));
        let mut found = Vec::new();
        let mut bytes = reply.len();
        while position > last && bytes <= view.reply_end {
            position -= 1;
            let Some((key, _)) = keys.at(position as usize) else { continue };
            if !nothing && self.pattern.is_none_or(|pattern| glob_matches(pattern, key)) {
                found.push(key);
                // A tag and at most three bytes of length.
                bytes += key.len() + 4;
            }
        }
        let mut cursor = Vec::new();
        write_integer(&mut cursor, position as i64);
        put_array(reply, 2);
        put_bulk(reply, &cursor);
        put_array(reply, found.len());
        found.iter().for_each(|key| put_bulk(reply, key));
    }
}

/// Executes an update at log time `now_ms`. After an error nothing has changed, and what was added to
/// `reply` is to be dropped.
pub(crate) fn update(
    keys: &mut Keyspace,
    now_ms: u64,
    command: &Command<'_>,
    reply: &mut Vec<u8>,
) -> Outcome {
    match *command {
        Command::Set { key, value, condition, lifetime, get } => {
            set(keys, now_ms, &Set { key, value, condition, lifetime, get }, reply);
        }
        Command::MSet { pairs } => {
            pairs.pairs().for_each(|(key, value)| keys.set(key, value, None));
            put_ok(reply);
        }
        Command::MSetNx { pairs } => {
            let free = pairs.pairs().all(|(key, _)| keys.get(key).is_none());
            if free {
                pairs.pairs().for_each(|(key, value)| keys.set(key, value, None));
            }
            put_integer(reply, i64::from(free));
        }
        Command::SetNx { key, value } => {
            let free = keys.get(key).is_none();
            if free {
                keys.set(key, value, None);
            }
            put_integer(reply, i64::from(free));
        }
        Command::GetDel { key } => match keys.remove(key) {
            Some(entry) => put_bulk(reply, entry.value()),
            None => put_nil(reply),
        },
        Command::GetEx { key, change } => {
            put_value(keys, key, reply);
            match change {
                TtlChange::Persist => keys.set_expiry(key, None),
                TtlChange::Until(deadline) => expire(keys, key, deadline, now_ms),
            }
        }
        Command::Append { key, value } => put_integer(reply, append(keys, key, value)?),
        Command::SetRange { key, offset, value } => put_integer(reply, set_range(keys, key, offset, value)),
        Command::IncrBy { key, delta } => put_integer(reply, increment(keys, key, delta)?),
        Command::IncrByFloat { key, delta } => increment_float(keys, key, delta, reply)?,
        Command::Del { keys: names } => put_integer(reply, delete(keys, names)),
        Command::Rename { from, to } => {
            rename(keys, from, to, true)?;
            put_ok(reply);
        }
        Command::RenameNx { from, to } => put_integer(reply, i64::from(rename(keys, from, to, false)?)),
        Command::Expire { key, deadline, condition } => {
            let allowed = may_expire(keys, key, deadline.resolve(now_ms), condition);
            if allowed {
                expire(keys, key, deadline, now_ms);
            }
            put_integer(reply, i64::from(allowed));
        }
        Command::Persist { key } => {
            let expires = keys.get(key).is_some_and(|entry| entry.expiry().is_some());
            if expires {
                keys.set_expiry(key, None);
            }
            put_integer(reply, i64::from(expires));
        }
        Command::FlushAll => {
            keys.clear();
            put_ok(reply);
        }
        _ => unreachable!("{command:?} is a read"),
    }
    Ok(())
}

/// The fields of [`Command::Set`].
struct Set<'a> {
    key: &'a [u8],
    value: &'a [u8],
    condition: Condition,
    lifetime: Lifetime,
    get: bool,
}

fn set(keys: &mut Keyspace, now_ms: u64, set: &Set<'_>, reply: &mut Vec<u8>) {
    if set.get {
        put_value(keys, set.key, reply);
    }
    let allowed = match set.condition {
        Condition::Always => true,
        Condition::IfAbsent => keys.get(set.key).is_none(),
        Condition::IfPresent => keys.get(set.key).is_some(),
    };
    if allowed {
        match set.lifetime {
            Lifetime::Forever => keys.set(set.key, set.value, None),
            Lifetime::Keep => {
                let old = keys.get(set.key).and_then(Entry::expiry);
                keys.set(set.key, set.value, old);
            }
            Lifetime::Until(deadline) => match future(deadline, now_ms) {
                Some(expiry) => keys.set(set.key, set.value, Some(expiry)),
                None => drop(keys.remove(set.key)),
            },
        }
    }
    match (set.get, allowed) {
        (true, _) => {}
        (false, true) => put_ok(reply),
        (false, false) => put_nil(reply),
    }
}

/// The expiry, unless it is not after log time.
fn future(deadline: Deadline, now_ms: u64) -> Expiry {
    NonZeroU64::new(deadline.resolve(now_ms)).filter(|expiry| expiry.get() > now_ms)
}

/// Gives a key, if it exists, an expiry, or removes it if that is in the past.
fn expire(keys: &mut Keyspace, key: &[u8], deadline: Deadline, now_ms: u64) {
    match future(deadline, now_ms) {
        Some(expiry) => keys.set_expiry(key, Some(expiry)),
        None => drop(keys.remove(key)),
    }
}

fn may_expire(keys: &Keyspace, key: &[u8], new: u64, condition: ExpireCondition) -> bool {
    let Some(entry) = keys.get(key) else { return false };
    let old = entry.expiry().map(NonZeroU64::get);
    match condition {
        ExpireCondition::Always => true,
        ExpireCondition::IfNone => old.is_none(),
        ExpireCondition::IfSome => old.is_some(),
        ExpireCondition::IfLater => old.is_some_and(|old| new > old),
        ExpireCondition::IfEarlier => old.is_none_or(|old| new < old),
        ExpireCondition::IfSomeAndEarlier => old.is_some_and(|old| new < old),
    }
}

fn append(keys: &mut Keyspace, key: &[u8], tail: &[u8]) -> Result<i64, ExecutionError> {
    let appended = keys.edit(key, |value| {
        if value.len() + tail.len() > VALUE_BYTES_MAX {
            return Err(ExecutionError::ValueTooLong);
        }
        value.extend_from_slice(tail);
        Ok(value.len() as i64)
    });
    appended.unwrap_or_else(|| {
        keys.set(key, tail, None);
        Ok(tail.len() as i64)
    })
}

/// Decoding has checked that `offset` and the length of `part` stay below the limit.
fn set_range(keys: &mut Keyspace, key: &[u8], offset: u64, part: &[u8]) -> i64 {
    if part.is_empty() {
        return keys.get(key).map_or(0, |entry| entry.value().len() as i64);
    }
    let start = offset as usize;
    let end = start + part.len();
    let write = |value: &mut Vec<u8>| {
        if value.len() < end {
            value.resize(end, 0);
        }
        value[start..end].copy_from_slice(part);
        value.len() as i64
    };
    keys.edit(key, write).unwrap_or_else(|| {
        let mut value = vec![0; start];
        value.extend_from_slice(part);
        keys.set(key, &value, None);
        end as i64
    })
}

fn increment(keys: &mut Keyspace, key: &[u8], delta: i64) -> Result<i64, ExecutionError> {
    let changed = keys.edit(key, |value| {
        let old = parse_integer(value).ok_or(ExecutionError::NotInteger)?;
        let new = old.checked_add(delta).ok_or(ExecutionError::IncrementOverflow)?;
        value.clear();
        write_integer(value, new);
        Ok(new)
    });
    changed.unwrap_or_else(|| {
        let mut value = Vec::new();
        write_integer(&mut value, delta);
        keys.set(key, &value, None);
        Ok(delta)
    })
}

fn increment_float(keys: &mut Keyspace, key: &[u8], delta: Extended, reply: &mut Vec<u8>) -> Outcome {
    let old = match keys.get(key) {
        Some(entry) => Extended::parse(entry.value()).ok_or(ExecutionError::NotFloat)?,
        None => Extended::ZERO,
    };
    let sum = old.checked_add(delta).ok_or(ExecutionError::NotFinite)?;
    let mut value = Vec::new();
    sum.write(&mut value);
    put_bulk(reply, &value);
    let expiry = keys.get(key).and_then(Entry::expiry);
    keys.set(key, &value, expiry);
    Ok(())
}

fn delete(keys: &mut Keyspace, names: Arguments<'_>) -> i64 {
    names.iter().filter(|key| keys.remove(key).is_some()).count() as i64
}

/// True if the key has its new name; false if that was taken and `replace` is false.
fn rename(keys: &mut Keyspace, from: &[u8], to: &[u8], replace: bool) -> Result<bool, ExecutionError> {
    if keys.get(from).is_none() {
        return Err(ExecutionError::NoSuchKey);
    }
    if !replace && keys.get(to).is_some() {
        return Ok(false);
    }
    // Renamed to itself, a key keeps its position.
    if from != to
        && let Some(entry) = keys.remove(from)
    {
        keys.put(to, entry);
    }
    Ok(true)
}
