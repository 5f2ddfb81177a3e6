//! Hashes of the twin.

use super::{Content, Twin, error, one_if};
use syros_commands::families::{
    Draws, FieldPart, HDel, HExists, HGet, HGetAll, HIncrBy, HIncrByFloat, HLen, HMGet, HRandField, HScan,
    HSet, HSetNx, HStrLen, ScanOptions,
};
use syros_commands::{Command, Extended, Reply, glob_matches, parse_integer};
use syros_types::{key_hash, mix};

/// The fields of a hash in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    /// It has once had more or longer fields or values than a small one may.
    is_large: bool,
}

impl Fields {
    pub(super) const fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    pub(super) fn get(&self, field: &[u8]) -> Option<&Vec<u8>> {
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

    pub(super) fn fingerprint(&self) -> u64 {
        let mut hash = mix(if self.is_large { 0x102 } else { 0x101 });
        for (field, value) in &self.pairs {
            hash = mix(hash ^ mix(key_hash(value) ^ mix(key_hash(field))));
        }
        mix(hash ^ self.pairs.len() as u64)
    }
}

/// The key that has to be a hash, or not to exist.
pub(super) const fn key_of_hash<'a>(command: &Command<'a>) -> Option<&'a [u8]> {
    match *command {
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
        | Command::HIncrByFloat(HIncrByFloat { key, .. }) => Some(key),
        _ => None,
    }
}

impl Twin {
    /// Reads of hashes. HRANDFIELD answers how many fields it draws, and a step of HSCAN that need not answer all fields
    /// nil.
    pub(super) fn read_hash(&self, command: &Command<'_>) -> Option<Reply> {
        Some(match *command {
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
                fields.pairs.retain(|(field, _)| names.iter().all(|name| name != field));
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
                self.set_field(key, field, sum.to_string().as_bytes());
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
                self.set_field(key, field, &new);
                self.field(key, field)
            }
            _ => return None,
        })
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
}
