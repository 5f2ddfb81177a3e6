//! How a stream keeps its consumer groups: as records, which are keys with values in the order of the keys' bytes.
//!
//! | key | value |
//! |---|---|
//! | 0, name of a group | [`Group`] |
//! | number of a group, 1, name of a consumer | [`Consumer`] |
//! | number of a group, 2, id of an entry | [`Pending`] |
//!
//! Numbers are short, and names are not: so what refers to a group or a consumer has its number. What is found by the
//! number of a consumer is an index of these records, and never written:
//!
//! | key | value |
//! |---|---|
//! | number of a group, 1, number of a consumer, id of an entry that is pending there | |
//! | number of a group, 2, number of a consumer | its name |
//!
//! The number of a group or a consumer is one more than the last that the stream has given, and is never used again. In a key
//! it is how many bytes it has and these bytes, the highest first, which is the order of numbers; none is 0.

use super::StreamId;
use crate::primitive::InvalidValue;
use syros_types::varint::{put_varint, take_varint};

/// A consumer group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub(super) number: u64,
    /// The last entry that was delivered.
    pub last: StreamId,
    /// How many entries of all that have ever been in the stream are not behind that, if this is known.
    pub entries_read: Option<u64>,
}

/// A consumer of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consumer {
    pub(super) number: u64,
    /// When it has asked for something last, in milliseconds since the Unix epoch.
    pub seen_ms: u64,
    /// When it has got something last, if ever.
    pub active_ms: Option<u64>,
}

/// An entry that was delivered to a consumer, and was not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    pub(super) consumer: u64,
    /// When it was delivered last, in milliseconds since the Unix epoch.
    pub delivered_ms: u64,
    /// How often it was delivered.
    pub deliveries: u64,
}

impl Consumer {
    /// True if an entry is pending at this consumer.
    #[must_use]
    pub const fn owns(&self, pending: &Pending) -> bool {
        self.number == pending.consumer
    }
}

/// What comes behind the number of a group in the key of a record.
pub(super) const CONSUMER: u8 = 1;
pub(super) const PENDING: u8 = 2;

/// What comes behind the number of a group in a key of the index.
const OWNED: u8 = 1;
const NAME: u8 = 2;

/// Appends a number so that keys with it are in the order of numbers.
fn put_number(key: &mut Vec<u8>, number: u64) {
    let skipped = number.leading_zeros() as usize / 8;
    key.push((size_of::<u64>() - skipped) as u8);
    key.extend_from_slice(&number.to_be_bytes()[skipped..]);
}

/// Takes such a number, in its shortest form, off the front of a key.
fn take_number(key: &mut &[u8]) -> Option<u64> {
    let (&length, rest) = key.split_first()?;
    let (bytes, rest) = rest.split_at_checked(usize::from(length))?;
    if length > size_of::<u64>() as u8 || *bytes.first()? == 0 {
        return None;
    }
    *key = rest;
    Some(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// The key of a group.
pub(super) fn group_key(name: &[u8]) -> Vec<u8> {
    [&[0], name].concat()
}

/// What the keys of the records of this sort of a group begin with.
pub(super) fn prefix(group: u64, sort: u8) -> Vec<u8> {
    let mut key = Vec::with_capacity(32);
    put_number(&mut key, group);
    key.push(sort);
    key
}

/// The key of a consumer.
pub(super) fn consumer_key(group: u64, name: &[u8]) -> Vec<u8> {
    let mut key = prefix(group, CONSUMER);
    key.extend_from_slice(name);
    key
}

/// The key of a pending entry.
pub(super) fn pending_key(group: u64, id: StreamId) -> Vec<u8> {
    let mut key = prefix(group, PENDING);
    key.extend_from_slice(&id.to_bytes());
    key
}

/// What the keys in the index of all entries that are pending at a consumer begin with.
pub(super) fn owned_prefix(group: u64, consumer: u64) -> Vec<u8> {
    let mut key = prefix(group, OWNED);
    put_number(&mut key, consumer);
    key
}

/// The key in the index of an entry that is pending at a consumer.
pub(super) fn owned_key(group: u64, consumer: u64, id: StreamId) -> Vec<u8> {
    let mut key = owned_prefix(group, consumer);
    key.extend_from_slice(&id.to_bytes());
    key
}

/// The key in the index of the name of a consumer.
pub(super) fn name_key(group: u64, consumer: u64) -> Vec<u8> {
    let mut key = prefix(group, NAME);
    put_number(&mut key, consumer);
    key
}

/// The id that a key ends with.
pub(super) fn id_of(key: &[u8]) -> Option<StreamId> {
    key.last_chunk().map(|bytes| StreamId::from_bytes(*bytes))
}

/// What the key of a record says.
pub(super) enum RecordKey<'a> {
    Group,
    Consumer { group: u64, name: &'a [u8] },
    Pending { group: u64, id: StreamId },
}

impl<'a> RecordKey<'a> {
    /// Reads a key that may be none.
    pub(super) fn parse(mut key: &'a [u8]) -> Option<Self> {
        if *key.first()? == 0 {
            return Some(Self::Group);
        }
        let group = take_number(&mut key)?;
        match key.split_first()? {
            (&CONSUMER, name) => Some(Self::Consumer { group, name }),
            (&PENDING, id) => Some(Self::Pending { group, id: StreamId::from_bytes(id.try_into().ok()?) }),
            _ => None,
        }
    }
}

/// A value of a record.
pub(super) trait Record: Sized {
    /// Appends its only encoding.
    fn put(&self, out: &mut Vec<u8>);

    /// Takes it off the front of `input`.
    fn take(input: &mut &[u8]) -> Result<Self, InvalidValue>;

    /// Its encoding.
    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        self.put(&mut out);
        out
    }

    /// The value that these bytes are.
    fn parse(mut bytes: &[u8]) -> Result<Self, InvalidValue> {
        let value = Self::take(&mut bytes)?;
        if bytes.is_empty() { Ok(value) } else { Err(InvalidValue::Record) }
    }

    /// The value that these bytes of a stream are.
    fn trusted(bytes: &[u8]) -> Self {
        Self::parse(bytes).expect("a stream has the bytes of its records")
    }
}

/// Appends a number that may be none: one more than it is, or 0.
fn put_optional(out: &mut Vec<u8>, number: Option<u64>) {
    put_varint(out, number.map_or(0, |number| number.saturating_add(1)));
}

fn take_optional(input: &mut &[u8]) -> Result<Option<u64>, InvalidValue> {
    Ok(take_varint(input)?.checked_sub(1))
}

/// Takes the number of a group or a consumer.
fn take_own_number(input: &mut &[u8]) -> Result<u64, InvalidValue> {
    match take_varint(input)? {
        0 => Err(InvalidValue::Record),
        number => Ok(number),
    }
}

/// Takes an id.
pub(super) fn take_id(input: &mut &[u8]) -> Result<StreamId, InvalidValue> {
    let (bytes, rest) = input.split_first_chunk().ok_or(InvalidValue::Truncated)?;
    *input = rest;
    Ok(StreamId::from_bytes(*bytes))
}

impl Record for Group {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.number);
        out.extend_from_slice(&self.last.to_bytes());
        put_optional(out, self.entries_read);
    }

    fn take(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        let (number, last) = (take_own_number(input)?, take_id(input)?);
        Ok(Self { number, last, entries_read: take_optional(input)? })
    }
}

impl Record for Consumer {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.number);
        put_varint(out, self.seen_ms);
        put_optional(out, self.active_ms);
    }

    fn take(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        let (number, seen_ms) = (take_own_number(input)?, take_varint(input)?);
        Ok(Self { number, seen_ms, active_ms: take_optional(input)? })
    }
}

impl Record for Pending {
    fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.consumer);
        put_varint(out, self.delivered_ms);
        put_varint(out, self.deliveries);
    }

    fn take(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        let (consumer, delivered_ms) = (take_own_number(input)?, take_varint(input)?);
        Ok(Self { consumer, delivered_ms, deliveries: take_varint(input)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_keys_are_in_their_order() {
        let numbers = [1, 2, 255, 256, 65_535, 65_536, u64::MAX - 1, u64::MAX];
        let keys = numbers.map(|number| prefix(number, PENDING));
        assert!(keys.is_sorted_by(|left, right| left < right));
        for (number, key) in numbers.iter().zip(&keys) {
            assert_eq!(take_number(&mut &key[..]), Some(*number));
        }
        for wrong in [&[][..], &[0], &[1], &[1, 0], &[2, 0, 1], &[9, 1, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(take_number(&mut &*wrong), None, "{wrong:?}");
        }
    }
}
