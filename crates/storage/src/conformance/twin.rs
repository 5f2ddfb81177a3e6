//! The dumb twin: a second, naive implementation that engines are compared with. It looks up a key
//! several times rather than think, and shares nothing with the engines but the types of operations.

use crate::Digest;
use std::collections::BTreeMap;
use syros_commands::families::{
    Append, Del, Draws, Exists, Expire, ExpireTime, FieldPart, Get, GetDel, GetEx, GetRange, HDel, HExists,
    HGet, HGetAll, HIncrBy, HIncrByFloat, HLen, HMGet, HRandField, HScan, HSet, HSetNx, HStrLen, IncrBy,
    IncrByFloat, Keys, MGet, MSet, MSetNx, Persist, Rename, RenameNx, Scan, ScanOptions, Set, SetNx,
    SetRange, StrLen, Ttl, Type,
};
use syros_commands::limits::EXPIRY_MS_MAX;
use syros_commands::{
    Command, Condition, Deadline, ExpireCondition, Extended, Lifetime, Operation, Reply, TtlChange, Unit,
    glob_matches, parse_integer,
};
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::{WallTime, key_hash, mix};

/// A model of an engine. It does not implement SCAN step by step, nor the limits of replies.
#[derive(Clone, Debug, Default)]
pub struct Twin {
    time: WallTime,
    keys: BTreeMap<Vec<u8>, (Content, Option<u64>)>,
    /// Keys at the start of the last operation but for reads: RANDOMKEY may have seen one of them.
    before: Vec<Vec<u8>>,
}

/// A value.
#[derive(Clone, Debug)]
enum Content {
    String(Vec<u8>),
    Hash(Fields),
}

/// The fields of a hash in their order.
#[derive(Clone, Debug, Default)]
struct Fields {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    /// It has once had more or longer fields or values than a small one may.
    is_large: bool,
}

impl Fields {
    fn get(&self, field: &[u8]) -> Option<&Vec<u8>> {
        self.pairs.iter().find(|(other, _)| other == field).map(|(_, value)| value)
    }

    fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        let old = self.pairs.iter_mut().find(|(other, _)| other == field);
        let is_new = old.is_none();
        match old {
            Some((_, old)) => *old = value.to_vec(),
            None => self.pairs.push((field.to_vec(), value.to_vec())),
        }
        self.is_large |= self.pairs.len() > 128 || field.len() > 64 || value.len() > 64;
        if self.is_large {
            self.pairs.sort_by_key(|(field, _)| (key_hash(field), field.clone()));
        }
        is_new
    }

    fn fingerprint(&self) -> u64 {
        let mut hash = mix(if self.is_large { 0x102 } else { 0x101 });
        for (field, value) in &self.pairs {
            hash = mix(hash ^ mix(key_hash(value) ^ mix(key_hash(field))));
        }
        mix(hash ^ self.pairs.len() as u64)
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
        self.keys.retain(|_, (_, expiry)| expiry.is_none_or(|expiry| expiry > now));
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// True if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// See [`Engine::next_expiry`](crate::Engine::next_expiry).
    #[must_use]
    pub fn next_expiry(&self) -> Option<WallTime> {
        let earliest = self.keys.values().filter_map(|(_, expiry)| *expiry).min();
        earliest.map(|ms| WallTime(ms.saturating_mul(1000)))
    }

    /// See [`Engine::digest`](crate::Engine::digest).
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = Digest::new(self.time);
        for (key, (content, expiry)) in self.keys.iter().rev() {
            match content {
                Content::String(value) => digest.add(key, value, *expiry),
                Content::Hash(fields) => digest.add_value(key, fields.fingerprint(), *expiry),
            }
        }
        digest.finish()
    }

    pub(super) fn contained_lately(&self, key: &[u8]) -> bool {
        self.before.iter().any(|other| other == key) || self.keys.contains_key(key)
    }

    /// Executes an operation at the twin's log time; `now` is the time that TTL looks at. SCAN answers
    /// all keys if its count exceeds 1000 and its cursor is 0, and nil otherwise; RANDOMKEY always nil.
    #[must_use]
    pub fn execute(&mut self, now: WallTime, operation: &Operation<'_>) -> Reply {
        if !operation.command.is_read() {
            self.before.extend(self.keys.keys().cloned());
            self.before.sort();
            self.before.dedup();
        }
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
        self.keys
            .retain(|_, (content, _)| !matches!(content, Content::Hash(fields) if fields.pairs.is_empty()));
        // What an update has set to expire in the past is gone.
        self.advance(self.time);
        if operation.blind { Reply::Ok } else { reply }
    }

    /// True if the command needs a key to be of another type than it is.
    fn has_wrong_type(&self, command: &Command<'_>) -> bool {
        let (key, needs_hash) = match *command {
            Command::Get(Get { key })
            | Command::StrLen(StrLen { key })
            | Command::GetRange(GetRange { key, .. })
            | Command::Set(Set { key, get: true, .. })
            | Command::GetDel(GetDel { key })
            | Command::GetEx(GetEx { key, .. })
            | Command::Append(Append { key, .. })
            | Command::SetRange(SetRange { key, .. })
            | Command::IncrBy(IncrBy { key, .. })
            | Command::IncrByFloat(IncrByFloat { key, .. }) => (key, false),
            Command::HGet(HGet { key, .. })
            | Command::HMGet(HMGet { key, .. })
            | Command::HGetAll(HGetAll { key, .. })
            | Command::HLen(HLen { key })
            | Command::HExists(HExists { key, .. })
            | Command::HStrLen(HStrLen { key, .. })
            | Command::HRandField(HRandField { key, .. })
            | Command::HScan(HScan { key, .. })
            | Command::HSet(HSet { key, .. })
            | Command::HSetNx(HSetNx { key, .. })
            | Command::HDel(HDel { key, .. })
            | Command::HIncrBy(HIncrBy { key, .. })
            | Command::HIncrByFloat(HIncrByFloat { key, .. }) => (key, true),
            _ => return false,
        };
        self.keys.get(key).is_some_and(|(content, _)| needs_hash != matches!(content, Content::Hash(_)))
    }

    fn value(&self, key: &[u8]) -> Option<&Vec<u8>> {
        match self.keys.get(key) {
            Some((Content::String(value), _)) => Some(value),
            _ => None,
        }
    }

    fn fields(&self, key: &[u8]) -> Fields {
        match self.keys.get(key) {
            Some((Content::Hash(fields), _)) => fields.clone(),
            _ => Fields::default(),
        }
    }

    fn field(&self, key: &[u8], field: &[u8]) -> Reply {
        self.fields(key).get(field).cloned().map_or(Reply::Nil, Reply::Bulk)
    }

    fn insert_fields(&mut self, key: &[u8], fields: Fields) {
        let expiry = self.expiry(key);
        self.keys.insert(key.to_vec(), (Content::Hash(fields), expiry));
    }

    fn set_field(&mut self, key: &[u8], field: &[u8], value: &[u8]) -> bool {
        let mut fields = self.fields(key);
        let is_new = fields.set(field, value);
        self.insert_fields(key, fields);
        is_new
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

    fn type_of(&self, key: &[u8]) -> &'static str {
        match self.keys.get(key) {
            None => "none",
            Some((Content::String(_), _)) => "string",
            Some((Content::Hash(_), _)) => "hash",
        }
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
            _ => self.read_fields(command),
        }
    }

    /// Reads of hashes. HRANDFIELD answers how many fields it draws, and a step of HSCAN that need not answer all fields
    /// nil.
    fn read_fields(&self, command: &Command<'_>) -> Reply {
        match *command {
            Command::HGet(HGet { key, field }) => self.field(key, field),
            Command::HMGet(HMGet { key, fields }) => {
                Reply::Array(fields.iter().map(|field| self.field(key, field)).collect())
            }
            Command::HLen(HLen { key }) => Reply::Integer(self.fields(key).pairs.len() as i64),
            Command::HExists(HExists { key, field }) => one_if(self.fields(key).get(field).is_some()),
            Command::HStrLen(HStrLen { key, field }) => {
                Reply::Integer(self.fields(key).get(field).map_or(0, Vec::len) as i64)
            }
            Command::HGetAll(HGetAll { key, part }) => {
                let pairs = self.fields(key).pairs.into_iter();
                match part {
                    FieldPart::Both => Reply::Map(
                        pairs.map(|(field, value)| (Reply::Bulk(field), Reply::Bulk(value))).collect(),
                    ),
                    FieldPart::Name => Reply::Array(pairs.map(|(field, _)| Reply::Bulk(field)).collect()),
                    FieldPart::Value => Reply::Array(pairs.map(|(_, value)| Reply::Bulk(value)).collect()),
                }
            }
            Command::HRandField(HRandField { key, draws }) => {
                let length = self.fields(key).pairs.len() as i64;
                match draws {
                    Draws::One if length == 0 => Reply::Nil,
                    Draws::One => Reply::Integer(1),
                    Draws::Many { .. } if length == 0 => Reply::Integer(0),
                    Draws::Many { count, .. } => {
                        Reply::Integer(if count < 0 { -count } else { count.min(length) })
                    }
                }
            }
            Command::HScan(HScan { key, cursor, options }) => {
                let fields = self.fields(key);
                match options {
                    _ if fields.pairs.is_empty() => {}
                    ScanOptions::Syntax => return error("ERR syntax error"),
                    ScanOptions::NotInteger => return error("ERR value is not an integer or out of range"),
                    ScanOptions::Valid { count, .. } if fields.is_large && (cursor > 0 || count <= 1000) => {
                        return Reply::Nil;
                    }
                    ScanOptions::Valid { .. } => {}
                }
                let pattern = match options {
                    ScanOptions::Valid { pattern: Some(pattern), .. } => pattern,
                    _ => b"*",
                };
                let matching = fields.pairs.into_iter().filter(|(field, _)| glob_matches(pattern, field));
                let found = matching.flat_map(|(field, value)| [Reply::Bulk(field), Reply::Bulk(value)]);
                Reply::Array(vec![Reply::Bulk(b"0".to_vec()), Reply::Array(found.collect())])
            }
            _ => Reply::Nil,
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
            Command::Set(Set { key, value, condition, lifetime, get }) => {
                let old = self.bulk(key);
                let expiry = match lifetime {
                    Lifetime::Forever => None,
                    Lifetime::Keep => self.expiry(key),
                    Lifetime::Until(deadline) => Some(self.absolute(deadline)),
                };
                let allowed = condition == Condition::Always
                    || (condition == Condition::IfPresent) == self.keys.contains_key(key);
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
            Command::FlushAll(_) => {
                self.keys.clear();
                Reply::Ok
            }
            Command::Expire(Expire { key, deadline, condition }) => self.expire(key, deadline, condition),
            _ => self.rewrite(command),
        }
    }

    fn update_fields(&mut self, command: &Command<'_>) -> Reply {
        match *command {
            Command::HSet(HSet { key, pairs, says_ok }) => {
                let mut new = 0;
                for (field, value) in pairs.pairs() {
                    new += i64::from(self.set_field(key, field, value));
                }
                if says_ok { Reply::Ok } else { Reply::Integer(new) }
            }
            Command::HSetNx(HSetNx { key, field, value }) => {
                let free = self.fields(key).get(field).is_none();
                if free {
                    self.set_field(key, field, value);
                }
                one_if(free)
            }
            Command::HDel(HDel { key, fields: names }) => {
                let mut fields = self.fields(key);
                let before = fields.pairs.len();
                fields.pairs.retain(|(field, _)| names.iter().all(|name| name != field));
                let removed = before - fields.pairs.len();
                self.insert_fields(key, fields);
                Reply::Integer(removed as i64)
            }
            Command::HIncrBy(HIncrBy { key, field, delta }) => {
                let old = self.fields(key).get(field).cloned().unwrap_or(b"0".to_vec());
                let Some(old) = parse_integer(&old) else { return error("ERR hash value is not an integer") };
                let Ok(sum) = i64::try_from(i128::from(old) + i128::from(delta)) else {
                    return error("ERR increment or decrement would overflow");
                };
                self.set_field(key, field, sum.to_string().as_bytes());
                Reply::Integer(sum)
            }
            Command::HIncrByFloat(HIncrByFloat { key, field, delta }) => {
                let old = self.fields(key).get(field).cloned().unwrap_or(b"0".to_vec());
                let Some(old) = Extended::parse_argument(&old) else {
                    return error("ERR hash value is not a float");
                };
                let Some(sum) = old.checked_add(delta) else {
                    return error("ERR increment would produce NaN or Infinity");
                };
                let mut new = Vec::new();
                sum.write(&mut new);
                self.set_field(key, field, &new);
                self.field(key, field)
            }
            _ => unreachable!("{command:?} is handled elsewhere"),
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
            _ => self.update_fields(command),
        }
    }
}
