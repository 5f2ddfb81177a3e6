//! What each command does.

use crate::keys::{EntryRef, Expiry, Keys, KeysMut};
use crate::operand::Operand;
use core::num::NonZeroU64;
use core::ops::ControlFlow;
use syros_commands::limits::REPLY_BYTES_MAX;
use syros_commands::{
    Arguments, Command, Condition, Deadline, ExecutionError, ExpireCondition, Extended, Lifetime, Malformed,
    Operation, TtlChange, Unit, glob_matches, operations, put_array, put_bulk, put_error, put_integer,
    put_nil, put_ok, put_simple, write_integer,
};
use syros_types::limits::BODY_BYTES_MAX;
use syros_types::{Prng, WallTime};

/// Executes a body at log time `time`: see [`Engine::apply`](crate::Engine::apply).
pub(crate) fn apply<K: KeysMut>(keys: &mut K, time: WallTime, body: &[u8], reply: &mut Vec<u8>) {
    let view = View::new(time, reply);
    match check(body) {
        Ok((first, false)) => apply_one(keys, view, &first, reply),
        Ok((_, true)) => {
            for operation in operations(body).flatten() {
                apply_one(keys, view, &operation, reply);
            }
        }
        Err(_) => put_error(reply, ExecutionError::Malformed.text().as_bytes()),
    }
}

/// Executes a body of reads: see [`Engine::read`](crate::Engine::read). `now` is not before log time.
pub(crate) fn read<K: Keys>(keys: &K, now: WallTime, body: &[u8], reply: &mut Vec<u8>) {
    let view = View::new(now, reply);
    match check(body) {
        Ok((first, false)) => read_one(keys, view, &first, reply),
        Ok((_, true)) => {
            for operation in operations(body).flatten() {
                read_one(keys, view, &operation, reply);
            }
        }
        Err(_) => put_error(reply, ExecutionError::Malformed.text().as_bytes()),
    }
}

/// The first operation of a body, and whether there are more; fails if any is malformed.
fn check(body: &[u8]) -> Result<(Operation<'_>, bool), Malformed> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Malformed::TooLong { length: body.len() as u64, limit: BODY_BYTES_MAX as u64 });
    }
    let mut rest = body;
    let first = Operation::decode(&mut rest)?;
    if !rest.is_empty() {
        operations(body).try_for_each(|operation| operation.map(drop))?;
    }
    Ok((first, !rest.is_empty()))
}

/// Executes one operation at log time `view.now` and appends its reply.
fn apply_one<K: KeysMut>(keys: &mut K, view: View, operation: &Operation<'_>, reply: &mut Vec<u8>) {
    let start = reply.len();
    let command = &operation.command;
    let now_ms = view.now.as_millis();
    if operation.blind
        && let Some((key, operand)) = Operand::of(command)
        && keys.merge(key, now_ms, operand)
    {
        return put_ok(reply);
    }
    if operation.concerns_all_keys() {
        keys.commit_writes();
    }
    // An operation that answers OK alone is executed in any case: it cannot add much.
    let outcome = if start > view.reply_end && !operation.class().is_nilext() {
        Err(ExecutionError::ReplyTooLong)
    } else if command.is_read() {
        read_command(keys, view, command, reply)
    } else {
        update_command(keys, now_ms, command, reply)
    };
    if operation.blind {
        reply.truncate(start);
        put_ok(reply);
    } else {
        replace_error(outcome, start, reply);
    }
}

/// Executes one operation that must only read and appends its reply.
fn read_one<K: Keys>(keys: &K, view: View, operation: &Operation<'_>, reply: &mut Vec<u8>) {
    let start = reply.len();
    let outcome = if start > view.reply_end {
        Err(ExecutionError::ReplyTooLong)
    } else {
        read_command(keys, view, &operation.command, reply)
    };
    replace_error(outcome, start, reply);
}

/// If the operation failed, replaces what it added to `reply` after `start` by the error.
fn replace_error(outcome: ExecutionResult, start: usize, reply: &mut Vec<u8>) {
    if let Err(error) = outcome {
        reply.truncate(start);
        put_error(reply, error.text().as_bytes());
    }
}

/// What a read sees besides the keys.
#[derive(Clone, Copy, Debug)]
struct View {
    /// What TTL counts from and RANDOMKEY draws from.
    now: WallTime,
    /// How long the reply buffer may become.
    reply_end: usize,
}

impl View {
    /// A view at `now` for a body whose replies start after `reply`.
    const fn new(now: WallTime, reply: &[u8]) -> Self {
        Self { now, reply_end: reply.len() + REPLY_BYTES_MAX }
    }
}

type ExecutionResult = Result<(), ExecutionError>;

/// Executes a command that only reads. After an error, what was added to `reply` is to be dropped.
fn read_command<K: Keys>(
    keys: &K,
    view: View,
    command: &Command<'_>,
    reply: &mut Vec<u8>,
) -> ExecutionResult {
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
            put_integer(reply, keys.get(key).map_or(0, |found| found.value().len() as i64));
        }
        Command::GetRange { key, start, end } => {
            let found = keys.get(key);
            put_bulk(reply, range(found.as_ref().map_or(&[], EntryRef::value), start, end));
        }
        Command::Exists { keys: names } => {
            put_integer(reply, names.iter().filter(|key| keys.get(key).is_some()).count() as i64);
        }
        Command::Type { key } => {
            put_simple(reply, if keys.get(key).is_some() { b"string" } else { b"none" });
        }
        Command::Ttl { key, unit } => {
            put_integer(reply, time_of(keys, key, unit, |last| last.saturating_sub(view.now.as_millis())));
        }
        Command::ExpireTime { key, unit } => put_integer(reply, time_of(keys, key, unit, |last| last)),
        Command::Scan { cursor, pattern, count, only_type } => {
            let scan = Scan { cursor, pattern, count, only_type };
            scan.run(keys, view, reply);
        }
        Command::Keys { pattern } => return list_keys(keys, view, pattern, reply),
        Command::RandomKey => {
            let mut prng = Prng::new(view.now.0 ^ reply.len() as u64);
            let start = reply.len();
            if !keys.random(&mut prng, |key| put_bulk(reply, key)) {
                reply.truncate(start);
                put_nil(reply);
            }
        }
        Command::DbSize => put_integer(reply, keys.count() as i64),
        _ => return Err(ExecutionError::NotRead),
    }
    Ok(())
}

fn put_value<K: Keys>(keys: &K, key: &[u8], reply: &mut Vec<u8>) {
    match keys.get(key) {
        Some(found) => put_bulk(reply, found.value()),
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

/// What TTL and EXPIRETIME answer: -2 for no key, -1 for no expiry, else what `show` makes of the last
/// millisecond in which the key is there, seconds rounded to the nearest.
fn time_of<K: Keys>(keys: &K, key: &[u8], unit: Unit, show: impl FnOnce(u64) -> u64) -> i64 {
    let Some(found) = keys.get(key) else { return -2 };
    let Some(expiry) = found.expiry() else { return -1 };
    let ms = show(expiry.get() - 1);
    // An expiry is at most the largest signed number.
    match unit {
        Unit::Milliseconds => ms as i64,
        Unit::Seconds => ((ms + 500) / 1000) as i64,
    }
}

fn list_keys<K: Keys>(keys: &K, view: View, pattern: &[u8], reply: &mut Vec<u8>) -> ExecutionResult {
    // Counted first, since the count goes in front.
    let mut matching = Names::default();
    let start = reply.len();
    keys.each(|key| {
        if glob_matches(pattern, key) {
            matching.push(key);
        }
        if start + matching.reply_bytes() > view.reply_end {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    if start + matching.reply_bytes() > view.reply_end {
        return Err(ExecutionError::ReplyTooLong);
    }
    matching.put(reply);
    Ok(())
}

/// Names of keys that become an array of a reply.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Each as a bulk string.
    encoded: Vec<u8>,
    count: usize,
}

impl Names {
    pub(crate) fn push(&mut self, key: &[u8]) {
        put_bulk(&mut self.encoded, key);
        self.count += 1;
    }

    /// How long the array is, but for its head.
    pub(crate) const fn reply_bytes(&self) -> usize {
        self.encoded.len()
    }

    pub(crate) fn put(&self, reply: &mut Vec<u8>) {
        put_array(reply, self.count);
        reply.extend_from_slice(&self.encoded);
    }
}

/// Keys that one SCAN looks at, whatever COUNT asks for: some milliseconds' worth, for the event loop of an engine in
/// memory does nothing else meanwhile. A client goes on with the cursor, as with any smaller COUNT.
const SCAN_KEYS_MAX: u64 = 32_768;

/// SCAN: visits as many keys as it was told to, from the cursor on, in the order of the keys' kind of store.
struct Scan<'a> {
    cursor: u64,
    pattern: Option<&'a [u8]>,
    count: u64,
    only_type: Option<&'a [u8]>,
}

impl Scan<'_> {
    fn run<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) {
        let nothing = self.only_type.is_some_and(|name| !name.eq_ignore_ascii_case(b"string"));
        let mut found = Names::default();
        let start = reply.len();
        let next = keys.scan(self.cursor, self.count.min(SCAN_KEYS_MAX), |key| {
            if !nothing && self.pattern.is_none_or(|pattern| glob_matches(pattern, key)) {
                found.push(key);
            }
            if start + found.reply_bytes() > view.reply_end {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        let mut cursor = Vec::new();
        write_integer(&mut cursor, next as i64);
        put_array(reply, 2);
        put_bulk(reply, &cursor);
        found.put(reply);
    }
}

/// Executes an update at log time `now_ms`. After an error nothing has changed, and what was added to
/// `reply` is to be dropped.
fn update_command<K: KeysMut>(
    keys: &mut K,
    now_ms: u64,
    command: &Command<'_>,
    reply: &mut Vec<u8>,
) -> ExecutionResult {
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
        Command::GetDel { key } => {
            put_value(keys, key, reply);
            keys.remove(key);
        }
        Command::GetEx { key, change } => {
            if keys.get(key).is_some() {
                match change {
                    TtlChange::NotInteger => return Err(ExecutionError::NotInteger),
                    TtlChange::Invalid => return Err(ExecutionError::InvalidExpireTime),
                    TtlChange::Persist | TtlChange::Until(_) => {}
                }
            }
            put_value(keys, key, reply);
            match change {
                TtlChange::Persist => keys.set_expiry(key, None),
                TtlChange::Until(deadline) => expire(keys, key, deadline, now_ms),
                TtlChange::NotInteger | TtlChange::Invalid => {}
            }
        }
        Command::Append { key, value } => put_integer(reply, alter(keys, key, Operand::Append(value))?),
        Command::SetRange { key, offset, value } => put_integer(reply, set_range(keys, key, offset, value)),
        Command::IncrBy { key, delta } => put_integer(reply, alter(keys, key, Operand::Add(delta))?),
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
            let expires = keys.get(key).is_some_and(|found| found.expiry().is_some());
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

fn set<K: KeysMut>(keys: &mut K, now_ms: u64, set: &Set<'_>, reply: &mut Vec<u8>) {
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
                let old = keys.get(set.key).and_then(|found| found.expiry());
                keys.set(set.key, set.value, old);
            }
            Lifetime::Until(deadline) => match future(deadline, now_ms) {
                Some(expiry) => keys.set(set.key, set.value, Some(expiry)),
                None => keys.remove(set.key),
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
fn expire<K: KeysMut>(keys: &mut K, key: &[u8], deadline: Deadline, now_ms: u64) {
    match future(deadline, now_ms) {
        Some(expiry) => keys.set_expiry(key, Some(expiry)),
        None => keys.remove(key),
    }
}

fn may_expire<K: Keys>(keys: &K, key: &[u8], new: u64, condition: ExpireCondition) -> bool {
    let Some(found) = keys.get(key) else { return false };
    let old = found.expiry().map(NonZeroU64::get);
    match condition {
        ExpireCondition::Always => true,
        ExpireCondition::IfNone => old.is_none(),
        ExpireCondition::IfSome => old.is_some(),
        ExpireCondition::IfLater => old.is_some_and(|old| new > old),
        ExpireCondition::IfEarlier => old.is_none_or(|old| new < old),
        ExpireCondition::IfSomeAndEarlier => old.is_some_and(|old| new < old),
    }
}

/// Changes the value of a key that need not exist.
fn alter<K: KeysMut>(keys: &mut K, key: &[u8], operand: Operand<'_>) -> Result<i64, ExecutionError> {
    let changed = keys.edit(key, |value| operand.change(value));
    changed.unwrap_or_else(|| {
        let (value, answer) = operand.begin();
        keys.set(key, &value, None);
        Ok(answer)
    })
}

/// Decoding has checked that `offset` and the length of `part` stay below the limit.
fn set_range<K: KeysMut>(keys: &mut K, key: &[u8], offset: u64, part: &[u8]) -> i64 {
    if part.is_empty() {
        return keys.get(key).map_or(0, |found| found.value().len() as i64);
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

fn increment_float<K: KeysMut>(
    keys: &mut K,
    key: &[u8],
    delta: Extended,
    reply: &mut Vec<u8>,
) -> ExecutionResult {
    let old = match keys.get(key) {
        Some(found) => Extended::parse(found.value()).ok_or(ExecutionError::NotFloat)?,
        None => Extended::ZERO,
    };
    let sum = old.checked_add(delta).ok_or(ExecutionError::NotFinite)?;
    let mut value = Vec::new();
    sum.write(&mut value);
    put_bulk(reply, &value);
    let expiry = keys.get(key).and_then(|found| found.expiry());
    keys.set(key, &value, expiry);
    Ok(())
}

fn delete<K: KeysMut>(keys: &mut K, names: Arguments<'_>) -> i64 {
    let mut removed = 0;
    for key in names {
        if keys.get(key).is_some() {
            keys.remove(key);
            removed += 1;
        }
    }
    removed
}

/// True if the key has its new name; false if that was taken and `replace` is false.
fn rename<K: KeysMut>(keys: &mut K, from: &[u8], to: &[u8], replace: bool) -> Result<bool, ExecutionError> {
    if keys.get(from).is_none() {
        return Err(ExecutionError::NoSuchKey);
    }
    if !replace && keys.get(to).is_some() {
        return Ok(false);
    }
    // Renamed to itself, a key keeps its position.
    if from != to {
        keys.rename(from, to);
    }
    Ok(true)
}
