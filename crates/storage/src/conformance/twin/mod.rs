//! The dumb twin: a second, naive implementation that engines are compared with. It looks up a key
//! several times rather than think, and shares nothing with the engines but the types of operations.

mod hashes;
mod lists;
mod sets;
mod sorted_sets;
mod streams;

mod bitmaps;
mod databases;
mod generic;
mod hyperloglog;
mod lcs;

use crate::Digest;
use hashes::Fields;
use lists::Elements;
use sets::SetMembers;
use sorted_sets::Members;
use std::collections::BTreeMap;
use streams::Stream;
use syros_commands::families::{
    Append, Del, Exists, Expire, ExpireTime, Get, GetDel, GetEx, GetRange, IncrBy, IncrByFloat, Keys, MGet,
    MSet, MSetNx, Persist, Rename, RenameNx, Scan, SetNx, SetParts, SetRange, StrLen, Ttl, Type,
};
use syros_commands::limits::EXPIRY_MS_MAX;
use syros_commands::{
    Command, Condition, Deadline, ExpireCondition, Extended, Lifetime, Operation, Reply, TtlChange, Unit,
    glob_matches, parse_integer,
};
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::{Database, WallTime};

/// A model of an engine. It does not implement SCAN step by step, nor the limits of replies.
#[derive(Clone, Debug, Default)]
pub struct Twin {
    time: WallTime,
    /// Of the first database; while an operation is executed, of the one that it is executed in.
    keys: Contents,
    /// Of other databases.
    others: BTreeMap<Database, Contents>,
    /// Keys at the start of the last operation but for reads: RANDOMKEY may have seen one of them.
    before: Vec<Vec<u8>>,
}

/// The keys of a database, with their values and expiries.
type Contents = BTreeMap<Vec<u8>, (Content, Option<u64>)>;

/// A value.
#[derive(Clone, Debug)]
enum Content {
    String(Vec<u8>),
    Hash(Fields),
    List(Elements),
    Set(SetMembers),
    SortedSet(Members),
    Stream(Stream),
}

impl Content {
    /// What TYPE calls it.
    const fn type_name(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "zset",
            Self::Stream(_) => "stream",
        }
    }

    /// True of a collection without elements, which no key has; never of a stream.
    const fn is_empty(&self) -> bool {
        match self {
            Self::String(_) | Self::Stream(_) => false,
            Self::Hash(fields) => fields.is_empty(),
            Self::List(elements) => elements.is_empty(),
            Self::Set(members) => members.is_empty(),
            Self::SortedSet(members) => members.is_empty(),
        }
    }
}

/// The key that has to be a string, or not to exist.
fn key_of_string<'a>(command: &Command<'a>) -> Option<&'a [u8]> {
    match *command {
        Command::Set(set) if set.parts().get => Some(set.key),
        Command::Get(Get { key })
        | Command::StrLen(StrLen { key })
        | Command::GetRange(GetRange { key, .. })
        | Command::GetDel(GetDel { key })
        | Command::GetEx(GetEx { key, .. })
        | Command::Append(Append { key, .. })
        | Command::SetRange(SetRange { key, .. })
        | Command::IncrBy(IncrBy { key, .. })
        | Command::IncrByFloat(IncrByFloat { key, .. }) => Some(key),
        _ => None,
    }
}

fn error(text: &str) -> Reply {
    Reply::Error(text.as_bytes().to_vec())
}

const fn one_if(condition: bool) -> Reply {
    Reply::Integer(condition as i64)
}

impl Twin {
    /// See [`Engine::advance`](crate::Engine::advance).
    pub fn advance(&mut self, time: WallTime) {
        self.time = self.time.max(time);
        let now = self.time.as_millis();
        for keys in core::iter::once(&mut self.keys).chain(self.others.values_mut()) {
            keys.retain(|_, (content, expiry)| {
                if let Content::Hash(fields) = content {
                    fields.advance(now);
                }
                expiry.is_none_or(|expiry| expiry > now) && !content.is_empty()
            });
        }
    }

    /// Number of keys of all databases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().map(|(_, keys)| keys.len()).sum()
    }

    /// True if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// See [`Engine::next_expiry`](crate::Engine::next_expiry).
    #[must_use]
    pub fn next_expiry(&self) -> Option<WallTime> {
        let values = self.all().flat_map(|(_, keys)| keys.values());
        let field = |content: &Content| {
            if let Content::Hash(fields) = content { fields.next_expiry() } else { None }
        };
        let earliest = values.flat_map(|(content, expiry)| [*expiry, field(content)]).flatten().min();
        earliest.map(|ms| WallTime(ms.saturating_mul(1000)))
    }

    /// See [`Engine::digest`](crate::Engine::digest).
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::new(self.time);
        let all = self.all().flat_map(|(database, keys)| keys.iter().map(move |entry| (database, entry)));
        for (database, (key, (content, expiry))) in all {
            digest.enter(database);
            match content {
                Content::String(value) => digest.add(key, value, *expiry),
                Content::Hash(fields) => digest.add_value(key, fields.fingerprint(), *expiry),
                Content::List(elements) => digest.add_value(key, elements.fingerprint(), *expiry),
                Content::Set(members) => digest.add_value(key, members.fingerprint(), *expiry),
                Content::SortedSet(members) => digest.add_value(key, members.fingerprint(), *expiry),
                Content::Stream(stream) => digest.add_value(key, stream.fingerprint(), *expiry),
            }
        }
        digest.finish()
    }

    pub(super) fn contained_lately(&self, key: &[u8]) -> bool {
        self.before.iter().any(|other| other == key) || self.all().any(|(_, keys)| keys.contains_key(key))
    }

    /// Executes an operation at the twin's log time; `now` is the time that TTL looks at. SCAN answers
    /// all keys if its count exceeds 1000 and its cursor is 0, and nil otherwise; RANDOMKEY always nil.
    #[must_use]
    pub fn execute(&mut self, now: WallTime, operation: &Operation<'_>) -> Reply {
        if !operation.command.is_read() {
            let names: Vec<Vec<u8>> = self.all().flat_map(|(_, keys)| keys.keys().cloned()).collect();
            self.before.extend(names);
            self.before.sort();
            self.before.dedup();
        }
        let reply = self.update_databases(operation).unwrap_or_else(|| {
            self.exchange(operation.database);
            let reply = self.execute_here(now, operation);
            self.exchange(operation.database);
            reply
        });
        // What an update has set to expire in the past is gone.
        self.advance(self.time);
        if operation.blind { Reply::Ok } else { reply }
    }

    /// Executes an operation on `keys` alone.
    fn execute_here(&mut self, now: WallTime, operation: &Operation<'_>) -> Reply {
        let saved = self.keys.clone();
        let reply = if self.has_wrong_type(&operation.command) {
            error("WRONGTYPE Operation against a key holding the wrong kind of value")
        } else if operation.command.is_read() {
            self.read(now, &operation.command)
        } else {
            self.update(&operation.command)
        };
        if matches!(reply, Reply::Error(_)) {
            self.keys = saved;
        }
        self.keys.retain(|_, (content, _)| !content.is_empty());
        reply
    }

    /// True if the command needs a key to be of another type than it is.
    fn has_wrong_type(&self, command: &Command<'_>) -> bool {
        let needs =
            key_of_string(command).or_else(|| bitmaps::string_key(command)).map(|key| (key, "string"));
        let needs = needs.or_else(|| hashes::key_of_hash(command).map(|key| (key, "hash")));
        let needs = needs.or_else(|| lists::key_of_list(command).map(|key| (key, "list")));
        let sets = self.keys_of_sets(command).into_iter().map(|key| (key, "set"));
        let sorted = sorted_sets::keys_of_sorted_sets(command).into_iter().map(|key| (key, "zset"));
        let streams = streams::keys_of_streams(command).into_iter().map(|key| (key, "stream"));
        let takes_sets =
            matches!(command, Command::ZCombine(_) | Command::ZCombineStore(_) | Command::ZInterCard(_));
        let is_other = |(key, name)| {
            let found = self.type_of(key);
            self.keys.contains_key(key) && found != name && !(takes_sets && found == "set")
        };
        needs.into_iter().chain(sets).chain(sorted).chain(streams).any(is_other)
    }

    fn value(&self, key: &[u8]) -> Option<&Vec<u8>> {
        match self.keys.get(key) {
            Some((Content::String(value), _)) => Some(value),
            _ => None,
        }
    }

    fn expiry(&self, key: &[u8]) -> Option<u64> {
        self.keys.get(key).and_then(|(_, expiry)| *expiry)
    }

    fn bulk(&self, key: &[u8]) -> Reply {
        self.value(key).map_or(Reply::Nil, |value| Reply::Bulk(value.clone()))
    }

    fn insert(&mut self, key: &[u8], value: Vec<u8>, expiry: Option<u64>) {
        self.keys.insert(key.to_vec(), (Content::String(value), expiry));
    }

    fn absolute(&self, deadline: Deadline) -> u64 {
        match deadline {
            Deadline::After(ms) => (self.time.as_millis() + ms).min(EXPIRY_MS_MAX),
            Deadline::At(ms) => ms,
        }
    }

    /// True if the key exists and has no string.
    fn is_collection(&self, key: &[u8]) -> bool {
        !matches!(self.type_of(key), "none" | "string")
    }

    fn type_of(&self, key: &[u8]) -> &'static str {
        self.keys.get(key).map_or("none", |(content, _)| content.type_name())
    }

    fn matching(&self, pattern: &[u8], only_type: Option<&[u8]>) -> Reply {
        let has_type = |key: &[u8]| {
            only_type.is_none_or(|name| name.to_ascii_lowercase() == self.type_of(key).as_bytes())
        };
        let keys = self.keys.keys().filter(|key| glob_matches(pattern, key) && has_type(key));
        let mut keys: Vec<Reply> = keys.cloned().map(Reply::Bulk).collect();
        keys.sort_by_key(|key| format!("{key:?}"));
        Reply::Array(keys)
    }

    fn read(&self, now: WallTime, command: &Command<'_>) -> Reply {
        match *command {
            Command::Get(Get { key }) => self.bulk(key),
            Command::MGet(MGet { keys }) => Reply::Array(keys.iter().map(|key| self.bulk(key)).collect()),
            Command::StrLen(StrLen { key }) => {
                Reply::Integer(self.value(key).map_or(0, |value| value.len() as i64))
            }
            Command::GetRange(GetRange { key, start, end }) => {
                let value = self.value(key).cloned().unwrap_or_default();
                let length = value.len() as i128;
                let from = if start < 0 { length + i128::from(start) } else { i128::from(start) };
                let to = if end < 0 { length + i128::from(end) } else { i128::from(end) };
                // Redis moves an end before the first byte up to it, unless the range is upside down.
                let (from, to) = (from.max(0), to.max(0));
                let upside_down = start < 0 && end < 0 && start > end;
                let inside = |index: i128| !upside_down && from <= index && index <= to;
                let kept = value.iter().enumerate().filter(|(index, _)| inside(*index as i128));
                Reply::Bulk(kept.map(|(_, byte)| *byte).collect())
            }
            Command::Lcs(operation) => self.lcs(operation),
            Command::Exists(Exists { keys }) => {
                Reply::Integer(keys.iter().filter(|key| self.keys.contains_key(*key)).count() as i64)
            }
            Command::Type(Type { key }) => Reply::Simple(self.type_of(key).as_bytes().to_vec()),
            Command::Ttl(Ttl { key, unit }) => {
                let now = self.time.max(now).as_millis();
                self.moment(key, unit, |last| last.saturating_sub(now))
            }
            Command::ExpireTime(ExpireTime { key, unit }) => self.moment(key, unit, |last| last),
            Command::Scan(Scan { cursor: 0, pattern, count: 1001.., only_type }) => {
                let keys = self.matching(pattern.unwrap_or(b"*"), only_type);
                Reply::Array(vec![Reply::Bulk(b"0".to_vec()), keys])
            }
            Command::Keys(Keys { pattern }) => self.matching(pattern, None),
            Command::DbSize(_) => Reply::Integer(self.keys.len() as i64),
            _ => self
                .read_hash(now, command)
                .or_else(|| self.read_list(command))
                .or_else(|| self.read_set(command))
                .or_else(|| self.read_sorted_set(command))
                .or_else(|| self.read_bits(command))
                .or_else(|| self.read_sketch(command))
                .or_else(|| self.read_generic(command))
                .or_else(|| self.read_stream(now, command))
                .unwrap_or(Reply::Nil),
        }
    }

    fn moment(&self, key: &[u8], unit: Unit, show: impl Fn(u64) -> u64) -> Reply {
        Reply::Integer(match (self.keys.get(key), self.expiry(key), unit) {
            (None, ..) => -2,
            (_, None, _) => -1,
            (_, Some(gone), Unit::Milliseconds) => show(gone - 1) as i64,
            (_, Some(gone), Unit::Seconds) => ((show(gone - 1) + 500) / 1000) as i64,
        })
    }

    fn update(&mut self, command: &Command<'_>) -> Reply {
        match *command {
            Command::Set(set) => {
                let SetParts { key, value, condition, lifetime, get } = set.parts();
                let old = self.bulk(key);
                let expiry = match lifetime {
                    Lifetime::Forever => None,
                    Lifetime::Keep => self.expiry(key),
                    Lifetime::Until(deadline) => Some(self.absolute(deadline)),
                };
                let allowed = match condition {
                    Condition::Always => true,
                    Condition::IfAbsent => !self.keys.contains_key(key),
                    Condition::IfPresent => self.keys.contains_key(key),
                    Condition::IfEqual(expected) => self.value(key).is_some_and(|value| value == expected),
                };
                if allowed {
                    self.insert(key, value.to_vec(), expiry);
                }
                match (get, allowed) {
                    (true, _) => old,
                    (_, true) => Reply::Ok,
                    _ => Reply::Nil,
                }
            }
            Command::MSet(MSet { pairs }) => {
                pairs.pairs().for_each(|(key, value)| self.insert(key, value.to_vec(), None));
                Reply::Ok
            }
            Command::MSetNx(MSetNx { pairs }) => {
                let taken = pairs.pairs().any(|(key, _)| self.keys.contains_key(key));
                if !taken {
                    pairs.pairs().for_each(|(key, value)| self.insert(key, value.to_vec(), None));
                }
                one_if(!taken)
            }
            Command::SetNx(SetNx { key, value }) => {
                let free = !self.keys.contains_key(key);
                self.keys.entry(key.to_vec()).or_insert_with(|| (Content::String(value.to_vec()), None));
                one_if(free)
            }
            Command::GetDel(GetDel { key }) => {
                let old = self.bulk(key);
                self.keys.remove(key);
                old
            }
            Command::GetEx(GetEx { key, change }) => {
                let exists = self.keys.contains_key(key);
                let new = match change {
                    TtlChange::NotInteger if exists => {
                        return Reply::Error(b"ERR value is not an integer or out of range".to_vec());
                    }
                    TtlChange::Invalid if exists => {
                        return Reply::Error(b"ERR invalid expire time in 'getex' command".to_vec());
                    }
                    TtlChange::Persist | TtlChange::NotInteger | TtlChange::Invalid => None,
                    TtlChange::Until(deadline) => Some(self.absolute(deadline)),
                };
                let old = self.bulk(key);
                if let Some((_, expiry)) = self.keys.get_mut(key) {
                    *expiry = new;
                }
                old
            }
            Command::Del(Del { keys }) => {
                Reply::Integer(keys.iter().filter_map(|key| self.keys.remove(key)).count() as i64)
            }
            Command::Persist(Persist { key }) => {
                one_if(self.keys.get_mut(key).and_then(|(_, expiry)| expiry.take()).is_some())
            }
            Command::FlushDb(_) => {
                self.keys.clear();
                Reply::Ok
            }
            Command::Expire(Expire { key, deadline, condition }) => self.expire(key, deadline, condition),
            _ => self.rewrite(command),
        }
    }

    fn expire(&mut self, key: &[u8], deadline: Deadline, condition: ExpireCondition) -> Reply {
        let new = self.absolute(deadline);
        let Some((_, expiry)) = self.keys.get_mut(key) else { return Reply::Integer(0) };
        // No expiry is the latest of all.
        let old = expiry.unwrap_or(u64::MAX);
        let allowed = match condition {
            ExpireCondition::Always => true,
            ExpireCondition::IfNone => expiry.is_none(),
            ExpireCondition::IfSome => expiry.is_some(),
            ExpireCondition::IfLater => new > old,
            ExpireCondition::IfEarlier => new < old,
            ExpireCondition::IfSomeAndEarlier => expiry.is_some() && new < old,
        };
        if allowed {
            *expiry = Some(new);
        }
        one_if(allowed)
    }

    /// The updates that compute a new value from the old one, or move it.
    fn rewrite(&mut self, command: &Command<'_>) -> Reply {
        match *command {
            Command::Append(Append { key, value }) => {
                let new = [&self.value(key).cloned().unwrap_or_default()[..], value].concat();
                let length = new.len();
                self.insert(key, new, self.expiry(key));
                match length {
                    0..=VALUE_BYTES_MAX => Reply::Integer(length as i64),
                    _ => error("ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
                }
            }
            Command::SetRange(SetRange { key, offset, value }) => {
                let mut new = self.value(key).cloned().unwrap_or_default();
                if !value.is_empty() {
                    for (index, byte) in value.iter().enumerate() {
                        while new.len() <= offset as usize + index {
                            new.push(0);
                        }
                        new[offset as usize + index] = *byte;
                    }
                    self.insert(key, new.clone(), self.expiry(key));
                }
                Reply::Integer(new.len() as i64)
            }
            Command::IncrBy(IncrBy { key, delta }) => {
                let old = self.value(key).cloned().unwrap_or(b"0".to_vec());
                let Some(old) = parse_integer(&old) else {
                    return error("ERR value is not an integer or out of range");
                };
                let sum = i128::from(old) + i128::from(delta);
                let Ok(sum) = i64::try_from(sum) else {
                    return error("ERR increment or decrement would overflow");
                };
                self.insert(key, sum.to_string().into_bytes(), self.expiry(key));
                Reply::Integer(sum)
            }
            Command::IncrByFloat(IncrByFloat { key, delta }) => {
                let old = self.value(key).cloned().unwrap_or(b"0".to_vec());
                let Some(old) = Extended::parse(&old) else { return error("ERR value is not a valid float") };
                let Some(sum) = old.checked_add(delta) else {
                    return error("ERR increment would produce NaN or Infinity");
                };
                let mut new = Vec::new();
                sum.write(&mut new);
                self.insert(key, new, self.expiry(key));
                self.bulk(key)
            }
            Command::Rename(Rename { from, to }) | Command::RenameNx(RenameNx { from, to }) => {
                let only_if_free = matches!(command, Command::RenameNx(_));
                let Some(entry) = self.keys.get(from).cloned() else { return error("ERR no such key") };
                if only_if_free && self.keys.contains_key(to) {
                    return Reply::Integer(0);
                }
                self.keys.remove(from);
                self.keys.insert(to.to_vec(), entry);
                if only_if_free { Reply::Integer(1) } else { Reply::Ok }
            }
            _ => self
                .update_hash(command)
                .or_else(|| self.update_list(command))
                .or_else(|| self.update_set(command))
                .or_else(|| self.update_sorted_set(command))
                .or_else(|| self.update_bits(command))
                .or_else(|| self.update_sketch(command))
                .or_else(|| self.update_generic(command))
                .or_else(|| self.update_stream(command))
                .unwrap_or_else(|| unreachable!("the twin does not know {command:?}")),
        }
    }
}
