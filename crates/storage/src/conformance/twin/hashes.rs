//! Hashes of the twin.

use super::{Content, Twin, error, one_if};
use std::collections::BTreeMap;
use syros_commands::families::{
    Draws, FieldCondition, FieldPart, FieldTime, FieldTtl, HDel, HExists, HExpireParts, HGet, HGetAll,
    HGetDel, HGetExParts, HIncrBy, HIncrByFloat, HLen, HMGet, HPersist, HRandField, HScan, HSet, HSetExParts,
    HSetNx, HStrLen, HTtl, ScanOptions,
};
use syros_commands::{Command, Deadline, ExpireCondition, Extended, Reply, glob_matches, parse_integer};
use syros_types::{WallTime, key_hash, mix};

/// The fields of a hash in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The fields that expire, with the first millisecond in which each is gone.
    expiries: BTreeMap<Vec<u8>, u64>,
    /// It has once had more or longer fields or values than a small one may, or one that expires.
    is_large: bool,
}

impl Fields {
    pub(super) const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn get(&self, field: &[u8]) -> Option<&Vec<u8>> {
        self.pairs.iter().find(|(other, _)| other == field).map(|(_, value)| value)
    }

    /// Drops the fields that are gone.
    pub(super) fn advance(&mut self, now: u64) {
        let expiries = &self.expiries;
        self.pairs.retain(|(field, _)| expiries.get(field).is_none_or(|expiry| *expiry > now));
        self.expiries.retain(|_, expiry| *expiry > now);
    }

    /// When the first field is gone.
    pub(super) fn next_expiry(&self) -> Option<u64> {
        self.expiries.values().copied().min()
    }

    fn remove(&mut self, field: &[u8]) {
        self.pairs.retain(|(other, _)| other != field);
        self.expiries.remove(field);
    }

    fn expire(&mut self, field: &[u8], expiry: u64) {
        self.is_large = true;
        self.pairs.sort_by_key(|(field, _)| (key_hash(field), field.clone()));
        self.expiries.insert(field.to_vec(), expiry);
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

    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = mix(if self.is_large { 0x102 } else { 0x101 });
        for (field, value) in &self.pairs {
            let pair = mix(key_hash(value) ^ mix(key_hash(field)));
            let expiry = self.expiries.get(field);
            hash = mix(hash ^ expiry.map_or(pair, |expiry| mix(key_hash(&expiry.to_le_bytes()) ^ pair)));
        }
        mix(hash ^ self.pairs.len() as u64)
    }
}

/// The key that has to be a hash, or not to exist.
pub(super) fn key_of_hash<'a>(command: &Command<'a>) -> Option<&'a [u8]> {
    match *command {
        Command::HExpire(command) => Some(command.get().key),
        Command::HGetEx(command) => Some(command.get().key),
        Command::HSetEx(command) => Some(command.get().key),
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
        | Command::HTtl(HTtl { key, .. })
        | Command::HPersist(HPersist { key, .. })
        | Command::HGetDel(HGetDel { key, .. })
        | Command::HDel(HDel { key, .. })
        | Command::HIncrBy(HIncrBy { key, .. })
        | Command::HIncrByFloat(HIncrByFloat { key, .. }) => Some(key),
        _ => None,
    }
}

impl Twin {
    /// Reads of hashes. HRANDFIELD answers how many fields it draws, and a step of HSCAN that need not answer all fields
    /// nil.
    pub(super) fn read_hash(&self, now: WallTime, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::HTtl(HTtl { key, time, fields }) => {
                let hash = self.fields(key);
                let now = self.time.max(now).as_millis();
                let of = |field: &[u8]| {
                    let Some(expiry) = hash.expiries.get(field) else {
                        return if hash.get(field).is_none() { -2 } else { -1 };
                    };
                    let (last, left) = (expiry - 1, (expiry - 1).saturating_sub(now));
                    let shown = match time {
                        FieldTime::SecondsLeft => left.div_ceil(1000),
                        FieldTime::MillisecondsLeft => left,
                        FieldTime::Second => last.div_ceil(1000),
                        FieldTime::Millisecond => last,
                    };
                    shown as i64
                };
                Reply::Array(fields.iter().map(|field| Reply::Integer(of(field))).collect())
            }
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
                    ScanOptions::Syntax => return Some(error("ERR syntax error")),
                    ScanOptions::NotInteger => {
                        return Some(error("ERR value is not an integer or out of range"));
                    }
                    ScanOptions::Valid { count, .. } if fields.is_large && (cursor > 0 || count <= 1000) => {
                        return Some(Reply::Nil);
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
            _ => return None,
        })
    }

    /// Updates of hashes.
    pub(super) fn update_hash(&mut self, command: &Command<'_>) -> Option<Reply> {
        self.update_expiring_hash(command).or_else(|| self.update_plain_hash(command))
    }

    /// Updates of hashes whose fields may expire.
    fn update_expiring_hash(&mut self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
            Command::HExpire(command) => self.expire_fields(command.get()),
            Command::HPersist(HPersist { key, fields: names }) => {
                let mut fields = self.fields(key);
                let mut answers = Vec::new();
                for name in names {
                    answers.push(Reply::Integer(
                        match (fields.get(name).is_some(), fields.expiries.remove(name)) {
                            (false, _) => -2,
                            (true, None) => -1,
                            (true, Some(_)) => 1,
                        },
                    ));
                }
                self.insert_fields(key, fields);
                Reply::Array(answers)
            }
            Command::HGetDel(HGetDel { key, fields: names }) => {
                let mut fields = self.fields(key);
                let values = names.iter().map(|name| self.field(key, name)).collect();
                names.iter().for_each(|name| fields.remove(name));
                self.insert_fields(key, fields);
                Reply::Array(values)
            }
            Command::HGetEx(command) => {
                let HGetExParts { key, ttl, fields: names } = command.get();
                let mut fields = self.fields(key);
                let values = names.iter().map(|name| self.field(key, name)).collect();
                for name in names {
                    if fields.get(name).is_some() {
                        self.change_ttl(&mut fields, name, ttl);
                    }
                }
                self.insert_fields(key, fields);
                Reply::Array(values)
            }
            Command::HSetEx(command) => {
                let HSetExParts { key, condition, ttl, pairs } = command.get();
                let mut fields = self.fields(key);
                let there = pairs.pairs().filter(|(name, _)| fields.get(name).is_some()).count();
                let allowed = match condition {
                    FieldCondition::Always => true,
                    FieldCondition::IfNone => there == 0,
                    FieldCondition::IfAll => there == pairs.pairs().count(),
                };
                if allowed {
                    for (name, value) in pairs.pairs() {
                        let is_past =
                            matches!(ttl, FieldTtl::Until(deadline) if self.moment_of(deadline).is_none());
                        if is_past {
                            fields.remove(name);
                        } else {
                            fields.set(name, value);
                            self.change_ttl(&mut fields, name, ttl);
                        }
                    }
                    self.insert_fields(key, fields);
                }
                one_if(allowed)
            }
            _ => return None,
        })
    }

    /// The other updates of hashes.
    fn update_plain_hash(&mut self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
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
                names.iter().for_each(|name| fields.remove(name));
                let removed = before - fields.pairs.len();
                self.insert_fields(key, fields);
                Reply::Integer(removed as i64)
            }
            Command::HIncrBy(HIncrBy { key, field, delta }) => {
                let old = self.fields(key).get(field).cloned().unwrap_or(b"0".to_vec());
                let Some(old) = parse_integer(&old) else {
                    return Some(error("ERR hash value is not an integer"));
                };
                let Ok(sum) = i64::try_from(i128::from(old) + i128::from(delta)) else {
                    return Some(error("ERR increment or decrement would overflow"));
                };
                self.replace_field(key, field, sum.to_string().as_bytes());
                Reply::Integer(sum)
            }
            Command::HIncrByFloat(HIncrByFloat { key, field, delta }) => {
                let old = self.fields(key).get(field).cloned().unwrap_or(b"0".to_vec());
                let Some(old) = Extended::parse_argument(&old) else {
                    return Some(error("ERR hash value is not a float"));
                };
                let Some(sum) = old.checked_add(delta) else {
                    return Some(error("ERR increment would produce NaN or Infinity"));
                };
                let mut new = Vec::new();
                sum.write(&mut new);
                self.replace_field(key, field, &new);
                self.field(key, field)
            }
            _ => return None,
        })
    }

    /// When a field is gone that has this deadline, unless it is gone at once.
    fn moment_of(&self, deadline: Deadline) -> Option<u64> {
        let moment = self.absolute(deadline).min(1 << 46);
        (moment > self.time.as_millis()).then_some(moment)
    }

    fn change_ttl(&self, fields: &mut Fields, name: &[u8], ttl: FieldTtl) {
        match ttl {
            FieldTtl::Stay => drop(fields.expiries.remove(name)),
            FieldTtl::Keep => {}
            FieldTtl::Until(deadline) => match self.moment_of(deadline) {
                Some(moment) => fields.expire(name, moment),
                None => fields.remove(name),
            },
        }
    }

    fn expire_fields(
        &mut self,
        HExpireParts { key, deadline, condition, fields: names }: HExpireParts<'_>,
    ) -> Reply {
        let mut fields = self.fields(key);
        let new = self.absolute(deadline).min(1 << 46);
        let mut answers = Vec::new();
        for name in names {
            // No expiry is the latest of all.
            let old = fields.expiries.get(name).copied();
            let allowed = match condition {
                ExpireCondition::Always => true,
                ExpireCondition::IfNone => old.is_none(),
                ExpireCondition::IfSome => old.is_some(),
                ExpireCondition::IfLater => new > old.unwrap_or(u64::MAX),
                ExpireCondition::IfEarlier => new < old.unwrap_or(u64::MAX),
                ExpireCondition::IfSomeAndEarlier => old.is_some_and(|old| new < old),
            };
            answers.push(Reply::Integer(if fields.get(name).is_none() {
                -2
            } else if !allowed {
                0
            } else if self.moment_of(deadline).is_none() {
                fields.remove(name);
                2
            } else {
                fields.expire(name, new);
                1
            }));
        }
        self.insert_fields(key, fields);
        Reply::Array(answers)
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

    /// Gives a field a value. Its expiry stays.
    fn replace_field(&mut self, key: &[u8], field: &[u8], value: &[u8]) {
        let mut fields = self.fields(key);
        fields.set(field, value);
        self.insert_fields(key, fields);
    }

    /// Gives a field a value, and no expiry.
    fn set_field(&mut self, key: &[u8], field: &[u8], value: &[u8]) -> bool {
        let mut fields = self.fields(key);
        let is_new = fields.set(field, value);
        fields.expiries.remove(field);
        self.insert_fields(key, fields);
        is_new
    }
}
