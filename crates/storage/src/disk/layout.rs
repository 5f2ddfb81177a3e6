//! How keys, values and expiries lie in a store. Fixed for ever, like a file format.
//!
//! | key | value |
//! |---|---|
//! | `d`, generation, position, key | [mark, entry,] expiry, string; or [mark, entry,] mark, expiry, collection |
//! | `e`, generation, expiry, position, key | |
//! | `D`, slot, generation, position, key | as under `d` |
//! | `E`, slot, generation, expiry, position, key | |
//! | `p`, generation, page set, number | a page of a collection |
//! | `x`, generation, page set, number | height: a page that nobody needs, nor anything below it |
//! | `P`, slot, .. and `X`, slot, .. | as under `p` and `x` |
//! | `m`, name | about the whole state: `state`, `head`, and `versions` if they are recorded, `pages` if there are any |
//!
//! The keys of a database lie in a *slot*, a number below 16: those of slot 0 under `d` and `e`, those of the others under
//! `D` and `E`. At first each database has the slot of its own number; SWAPDB exchanges slots.
//!
//! Generation: 4 bytes, big-endian; FLUSHDB and FLUSHALL begin the next one of a slot. Position: 8 bytes, big-endian: half of the key's
//! hash, so that SCAN's cursors are positions and its order has nothing to do with the keys. Expiry: milliseconds since
//! the Unix epoch, 8 bytes, big-endian, in a key; a varint, 0 for none, in a value.
//!
//! A small collection is one record, with the encoding of `syros-values`, and is written back as a whole when it changes. A
//! large one lies in pages: its record has the roots of its trees, and an update writes the pages on the way to what it
//! changes (`pages`). The *mark* before both, [`COLLECTION`], is no number in its shortest form, with which all records of
//! strings begin. A page set is named by a number, 8 bytes, big-endian, that no other one of the store has; a page of it by
//! another such number.
//!
//! Before all that stands which log entry has changed the key last, if that is known: another mark, [`CHANGED`], and the
//! number, a varint.
//!
//! A key longer than [`NAME_BYTES_MAX`] does not fit into every store's keys: its *name* there is its beginning and a
//! cryptographic hash of all of it, and its record begins with the key itself.
//!
//! A hash of which fields expire has two entries of its own under `e`, or `E`: of the moment at which its first field expires,
//! and of that at which the last one does if all do.
//!
//! Entries under `e` are written when a key gets an expiry and left alone when it loses it: whether one is right, the
//! key's own record says. So setting a key never reads.

use crate::entry::{earlier, moments_under};
use crate::hash::KeyHashBuilder;
use crate::stamp::Stamp;
use crate::store::Change;
use core::num::NonZeroU64;
use indexmap::IndexMap;
use sha2::{Digest as _, Sha256};
use smallvec::SmallVec;
use std::borrow::Cow;
use syros_commands::access::Operand;
use syros_types::limits::KEY_BYTES_MAX;
use syros_types::varint::{put_varint, take_varint};
use syros_types::{Database, key_hash};
use syros_values::{Kind, Moments, PagedHead, Source, Subtree, Value, take_paged};

/// A key of the store: usual ones need no allocation.
pub(super) type StoreKey = SmallVec<[u8; 48]>;

/// What becomes of keys of the store.
pub(super) type Changes = IndexMap<StoreKey, Change, KeyHashBuilder>;

const DATA: u8 = b'd';
const EXPIRIES: u8 = b'e';
const META: u8 = b'm';

const PAGES: u8 = b'p';
const DEAD: u8 = b'x';

/// The same of other slots than the first.
const DATA_ELSEWHERE: u8 = b'D';
const EXPIRIES_ELSEWHERE: u8 = b'E';
const PAGES_ELSEWHERE: u8 = b'P';
const DEAD_ELSEWHERE: u8 = b'X';

/// Where the keys of a database lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Space {
    /// Below [`Database::COUNT`].
    pub(super) slot: u8,
    pub(super) generation: u32,
}

impl Space {
    /// Where the keys of a database lie that has never been swapped or emptied.
    pub(super) const fn of(database: Database) -> Self {
        Self { slot: database.number(), generation: 0 }
    }

    /// The next generation of the slot, in which there are no keys.
    pub(super) const fn next(self) -> Self {
        Self { generation: self.generation + 1, ..self }
    }

    /// Both as one number.
    pub(super) const fn to_bits(self) -> u64 {
        (self.slot as u64) << 32 | self.generation as u64
    }

    /// What [`Space::to_bits`] makes a number of.
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self { slot: (bits >> 32) as u8, generation: bits as u32 }
    }

    /// What its keys of the store begin with that have this tag in the first slot.
    #[inline]
    fn head(self, first: u8, elsewhere: u8) -> StoreKey {
        let mut out = StoreKey::new();
        if self.slot == 0 {
            out.push(first);
        } else {
            out.extend_from_slice(&[elsewhere, self.slot]);
        }
        out.extend_from_slice(&self.generation.to_be_bytes());
        out
    }

    /// True if this key of the store is that of a record in it, of an expiry or of a page.
    pub(super) fn has(self, key: &[u8]) -> bool {
        let tags = [
            (DATA, DATA_ELSEWHERE),
            (EXPIRIES, EXPIRIES_ELSEWHERE),
            (PAGES, PAGES_ELSEWHERE),
            (DEAD, DEAD_ELSEWHERE),
        ];
        tags.iter().any(|(first, elsewhere)| key.starts_with(&self.head(*first, *elsewhere)))
    }
}

/// What the record of a collection begins with.
const COLLECTION: [u8; 2] = [0x80, 0];

/// What a record begins with that says which entry has changed its key last.
const CHANGED: [u8; 2] = [0x81, 0];

/// Most bytes before the key in an expiry's key.
const EXPIRY_HEAD: usize = 2 + 4 + 8 + 8;

/// Longest key that is its own name.
const NAME_BYTES_MAX: usize = 32 * 1024;

// Stores write the length of a key in 16 bits.
const _: () = assert!(EXPIRY_HEAD + NAME_BYTES_MAX + 32 <= u16::MAX as usize && KEY_BYTES_MAX < 1 << 32);

/// True if the key is not its own name.
pub(super) const fn is_long(key: &[u8]) -> bool {
    key.len() > NAME_BYTES_MAX
}

/// What a key is called in the store.
fn name(key: &[u8]) -> Cow<'_, [u8]> {
    if !is_long(key) {
        return Cow::Borrowed(key);
    }
    let mut name = key[..NAME_BYTES_MAX].to_vec();
    name.extend_from_slice(&Sha256::digest(key));
    Cow::Owned(name)
}

/// Where a key is in the order of keys. Less than 2^63.
pub(super) fn position(key: &[u8]) -> u64 {
    key_hash(key) >> 1
}

/// Bits of positions that are in no cursor: clients keep cursors in floating point numbers, which have 53.
const CURSOR_SHIFT: u32 = 10;

/// The cursor of a position, and of those near it.
pub(super) const fn cursor_of(position: u64) -> u64 {
    position >> CURSOR_SHIFT
}

/// The first position of a cursor. That of an older build, whose cursors had 63 bits, is a position.
pub(super) const fn position_of(cursor: u64) -> u64 {
    if cursor < 1 << 53 { cursor << CURSOR_SHIFT } else { cursor }
}

/// The key of a record.
pub(super) fn data_key(space: Space, key: &[u8]) -> StoreKey {
    named_data_key(space, position(key), &name(key))
}

/// The key of the record of a key with this position and name.
pub(super) fn named_data_key(space: Space, position: u64, name: &[u8]) -> StoreKey {
    let mut out = data_from(space, position);
    out.extend_from_slice(name);
    out
}

/// Where the records from a position on begin.
pub(super) fn data_from(space: Space, position: u64) -> StoreKey {
    let mut out = space.head(DATA, DATA_ELSEWHERE);
    out.extend_from_slice(&position.to_be_bytes());
    out
}

/// Where the records of a space begin.
pub(super) fn data_begin(space: Space) -> StoreKey {
    data_from(space, 0)
}

/// Position and name, if this is the key of a record of this space.
pub(super) fn parse_data_key(space: Space, key: &[u8]) -> Option<(u64, &[u8])> {
    let rest = key.strip_prefix(space.head(DATA, DATA_ELSEWHERE).as_slice())?;
    let (position, name) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*position), name))
}

/// The key under which the expiry of a key is found in the order of time.
pub(super) fn expiry_key(space: Space, expiry: NonZeroU64, key: &[u8]) -> StoreKey {
    let mut out = expiries_from(space, expiry.get());
    out.extend_from_slice(&position(key).to_be_bytes());
    out.extend_from_slice(&name(key));
    out
}

/// Where the expiries from a moment on begin.
pub(super) fn expiries_from(space: Space, ms: u64) -> StoreKey {
    let mut out = space.head(EXPIRIES, EXPIRIES_ELSEWHERE);
    out.extend_from_slice(&ms.to_be_bytes());
    out
}

/// Moment, position and name, if this is the key of an expiry of this space.
pub(super) fn parse_expiry_key(space: Space, key: &[u8]) -> Option<(u64, u64, &[u8])> {
    let rest = key.strip_prefix(space.head(EXPIRIES, EXPIRIES_ELSEWHERE).as_slice())?;
    let (ms, rest) = rest.split_first_chunk()?;
    let (position, name) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*ms), u64::from_be_bytes(*position), name))
}

/// The key of a page of a collection.
pub(super) fn page_key(space: Space, page_set: u64, number: u64) -> StoreKey {
    let mut out = pages_begin(space);
    out.extend_from_slice(&page_set.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out
}

/// Where the pages of a space begin.
pub(super) fn pages_begin(space: Space) -> StoreKey {
    space.head(PAGES, PAGES_ELSEWHERE)
}

/// The key under which a page is found that nobody needs.
pub(super) fn dead_key(space: Space, page_set: u64, number: u64) -> StoreKey {
    let mut out = dead_begin(space);
    out.extend_from_slice(&page_set.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    out
}

/// True if this is such a key.
pub(super) fn is_dead_key(key: &[u8]) -> bool {
    matches!(key.first(), Some(&(DEAD | DEAD_ELSEWHERE)))
}

/// Where the keys of pages that nobody needs begin.
pub(super) fn dead_begin(space: Space) -> StoreKey {
    space.head(DEAD, DEAD_ELSEWHERE)
}

/// Incarnation and page, if this is such a key of this space, with its value.
pub(super) fn parse_dead(space: Space, key: &[u8], value: &[u8]) -> Option<(u64, Subtree)> {
    let rest = key.strip_prefix(dead_begin(space).as_slice())?;
    let (page_set, number) = rest.split_first_chunk()?;
    let number = u64::from_be_bytes(number.try_into().ok()?);
    Some((u64::from_be_bytes(*page_set), Subtree { number, height: *value.first()? }))
}

/// The key of something about the whole state.
pub(super) fn meta_key(name: &str) -> StoreKey {
    let mut out = StoreKey::new();
    out.push(META);
    out.extend_from_slice(name.as_bytes());
    out
}

/// The record of a key with a string.
pub(super) fn record(key: &[u8], stamp: Stamp, string: &[u8]) -> Vec<u8> {
    record_of(key, stamp, Stored::String(string))
}

/// The record of a key with a value of any kind.
pub(super) fn value_record(key: &[u8], stamp: Stamp, value: &Value) -> Vec<u8> {
    if let Value::String(string) = value {
        return record(key, stamp, string);
    }
    let mut out = record_head(key, stamp, true, value.memory_bytes());
    value.put(&mut out);
    out
}

/// The record of a key with a collection that lies in pages, of which this is the encoding.
pub(super) fn paged_record(key: &[u8], stamp: Stamp, encoded: &[u8]) -> Vec<u8> {
    record_of(key, stamp, Stored::Collection(encoded))
}

/// The record of a key with a value as it was stored.
pub(super) fn record_of(key: &[u8], stamp: Stamp, value: Stored<'_>) -> Vec<u8> {
    let (bytes, is_collection) = match value {
        Stored::String(bytes) => (bytes, false),
        Stored::Collection(bytes) | Stored::Paged(_, bytes) => (bytes, true),
    };
    let mut out = record_head(key, stamp, is_collection, bytes.len());
    out.extend_from_slice(bytes);
    out
}

/// What stands before a value of about so many bytes.
fn record_head(key: &[u8], stamp: Stamp, is_collection: bool, value_bytes: usize) -> Vec<u8> {
    let Stamp { expiry, entry } = stamp;
    let key = if is_long(key) { key } else { &[] };
    let mark: &[u8] = if is_collection { &COLLECTION } else { &[] };
    let changed = if entry > 0 { CHANGED.len() + varint_bytes(entry) } else { 0 };
    let head = changed + mark.len() + key.len() + if expiry.is_some() { 11 } else { 5 };
    let mut out = Vec::with_capacity(value_bytes + head);
    if entry > 0 {
        out.extend_from_slice(&CHANGED);
        put_varint(&mut out, entry);
    }
    out.extend_from_slice(mark);
    put_varint(&mut out, expiry.map_or(0, NonZeroU64::get));
    if !key.is_empty() {
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        out.extend_from_slice(key);
    }
    out
}

/// Bytes of a number as a varint.
const fn varint_bytes(number: u64) -> usize {
    (u64::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}

/// A value as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored<'a> {
    /// The bytes of a string.
    String(&'a [u8]),
    /// The encoding of a collection.
    Collection(&'a [u8]),
    /// The same of one that lies in pages, and what stands before its trees.
    Paged(PagedHead, &'a [u8]),
}

impl Stored<'_> {
    /// What kind of value it is, without a look at all of it.
    pub(super) fn kind(self) -> Kind {
        match self {
            Self::String(_) => Kind::String,
            Self::Collection(bytes) | Self::Paged(_, bytes) => {
                bytes.first().and_then(|tag| Kind::of_tag(*tag)).unwrap_or(Kind::String)
            }
        }
    }

    /// The value, whose pages these are if it has any. What is none, which checksums would have found, is an empty string.
    pub(super) fn value(self, source: Option<&Source>) -> Value {
        match (self, source) {
            (Self::String(bytes), _) => Value::String(bytes.to_vec()),
            (Self::Collection(mut bytes), _) => Value::take(&mut bytes).unwrap_or_default(),
            (Self::Paged(_, bytes), Some(source)) => take_paged(bytes, source).unwrap_or_default(),
            (Self::Paged(..), None) => Value::default(),
        }
    }

    /// What stands before its trees, if it lies in pages.
    pub(super) const fn pages(self) -> Option<PagedHead> {
        if let Self::Paged(head, _) = self { Some(head) } else { None }
    }

    /// When something of it expires, without a look at its elements.
    pub(super) fn moments(self) -> Moments {
        match self {
            Self::String(_) => Moments::default(),
            Self::Collection(bytes) | Self::Paged(_, bytes) => Moments::of_encoding(bytes),
        }
    }

    /// Its fingerprint at this time, or at 0 with fields that have expired and were not removed.
    pub(super) fn fingerprint_at(self, source: Option<&Source>, now_ms: u64) -> u64 {
        match self {
            Self::String(bytes) => key_hash(bytes),
            Self::Collection(_) | Self::Paged(..) => self.value(source).fingerprint_at(now_ms),
        }
    }
}

/// What a record says. Records are checked by the store's checksums; whatever got past them is an empty value without
/// an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) stamp: Stamp,
    /// Where the value begins.
    pub(super) start: usize,
    /// How long the key before it is; 0 if the key is its own name.
    key_length: usize,
    is_collection: bool,
}

impl Parsed {
    /// The key, whose name is known.
    pub(super) fn key<'a>(&self, record: &'a [u8], name: &'a [u8]) -> &'a [u8] {
        if self.key_length == 0 { name } else { &record[self.start - self.key_length..self.start] }
    }

    /// When it, or a field of it, is gone.
    pub(super) fn moments(&self, record: &[u8]) -> Moments {
        moments_under(self.stamp.expiry, self.value(record).moments())
    }

    /// True if it is gone at this time.
    pub(super) fn is_gone(&self, record: &[u8], now_ms: u64) -> bool {
        self.moments(record).gone.is_some_and(|gone| gone.get() <= now_ms)
    }

    /// The value.
    pub(super) fn value<'a>(&self, record: &'a [u8]) -> Stored<'a> {
        let bytes = &record[self.start..];
        if !self.is_collection {
            return Stored::String(bytes);
        }
        match PagedHead::of_encoding(bytes) {
            Some(head) => Stored::Paged(head, bytes),
            None => Stored::Collection(bytes),
        }
    }
}

/// Parses the record of a key with this name, or this key.
pub(super) fn parse_record(record: &[u8], name_is_long: bool) -> Parsed {
    let nothing =
        Parsed { stamp: Stamp::default(), start: record.len(), key_length: 0, is_collection: false };
    let mut rest = record;
    let mut entry = 0;
    if let Some(mut changed) = record.strip_prefix(&CHANGED) {
        let Ok(number) = take_varint(&mut changed) else { return nothing };
        (entry, rest) = (number, changed);
    }
    let collection = rest.strip_prefix(&COLLECTION);
    rest = collection.unwrap_or(rest);
    let Ok(expiry) = take_varint(&mut rest) else { return nothing };
    let mut key_length = 0;
    if name_is_long {
        let Some((length, after)) = rest.split_first_chunk() else { return nothing };
        key_length = u32::from_le_bytes(*length) as usize;
        let Some(after) = after.get(key_length..) else { return nothing };
        rest = after;
    }
    let is_collection = collection.is_some();
    let stamp = Stamp { expiry: NonZeroU64::new(expiry), entry };
    Parsed { stamp, start: record.len() - rest.len(), key_length, is_collection }
}

const APPEND: u8 = 1;
const ADD: u8 = 2;
const CHANGES: u8 = 3;

/// A merge that happened at this time, in this log entry, for a store that merges.
pub(super) fn encode_operand(now_ms: u64, entry: u64, operand: Operand<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(32);
    put_varint(&mut out, now_ms);
    if entry > 0 {
        out.push(CHANGES);
        put_varint(&mut out, entry);
    }
    match operand {
        Operand::Append(tail) => {
            out.push(APPEND);
            out.extend_from_slice(tail);
        }
        Operand::Add(delta) => {
            out.push(ADD);
            out.extend_from_slice(&delta.to_le_bytes());
        }
    }
    out
}

fn decode_operand(mut bytes: &[u8]) -> Option<(u64, u64, Operand<'_>)> {
    let now_ms = take_varint(&mut bytes).ok()?;
    let mut entry = 0;
    if let [CHANGES, rest @ ..] = bytes {
        bytes = rest;
        entry = take_varint(&mut bytes).ok()?;
    }
    let operand = match bytes.split_first()? {
        (&APPEND, tail) => Operand::Append(tail),
        (&ADD, delta) => Operand::Add(i64::from_le_bytes(delta.try_into().ok()?)),
        _ => return None,
    };
    Some((now_ms, entry, operand))
}

/// The value that a store's key has after merges: what [`Change::Merge`](crate::Change::Merge) does with the old
/// one, if there is one. Not for keys that are not their own names.
#[must_use]
pub fn merged<'a>(old: Option<&[u8]>, operands: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let split = old.map(|old| {
        let parsed = parse_record(old, false);
        match parsed.value(old) {
            Stored::String(string) => (parsed.stamp, Some(string.to_vec())),
            Stored::Collection(_) | Stored::Paged(..) => (parsed.stamp, None),
        }
    });
    // No string, but a stamp: a collection, which the old record has. Its fields may be gone, all of them.
    let collection_gone = old.and_then(|old| parse_record(old, false).value(old).moments().gone);
    let is_gone = |stamp: Stamp, is_collection: bool, now_ms| {
        let gone = if is_collection { earlier(stamp.expiry, collection_gone) } else { stamp.expiry };
        gone.is_some_and(|gone| gone.get() <= now_ms)
    };
    let mut state: Option<(Stamp, Option<Vec<u8>>)> = split;
    for operand in operands {
        let Some((now_ms, entry, operand)) = decode_operand(operand) else { continue };
        match &mut state {
            Some((stamp, string)) if !is_gone(*stamp, string.is_none(), now_ms) => {
                // A blind update that fails changes nothing, and nobody is told; of a collection it fails.
                if let Some(string) = string {
                    let _ = operand.change(string);
                    stamp.entry = entry;
                }
            }
            _ => state = Some((Stamp { expiry: None, entry }, Some(operand.begin().0))),
        }
    }
    match state {
        Some((stamp, Some(string))) => record(&[], stamp, &string),
        Some((_, None)) => old.unwrap_or_default().to_vec(),
        None => record(&[], Stamp::default(), &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_values::Hash;

    const NEVER: Stamp = Stamp { expiry: None, entry: 0 };

    fn until(ms: u64) -> Stamp {
        Stamp { expiry: NonZeroU64::new(ms), entry: 0 }
    }

    #[test]
    fn keys_can_be_read_back_and_keep_their_order() {
        for slot in [0, 3] {
            let (space, next) = (Space { slot, generation: 7 }, Space { slot, generation: 8 });
            let key = data_key(space, b"name");
            assert_eq!(parse_data_key(space, &key), Some((position(b"name"), &b"name"[..])));
            assert_eq!(parse_data_key(next, &key), None);
            assert_eq!(parse_data_key(Space { slot: 4, generation: 7 }, &key), None);
            let expiry = NonZeroU64::new(1234).expect("not 0");
            let key = expiry_key(space, expiry, b"name");
            assert_eq!(parse_expiry_key(space, &key), Some((1234, position(b"name"), &b"name"[..])));
            assert_eq!(parse_expiry_key(space, &data_key(space, b"a name that is long enough")), None);
            assert!(expiries_from(space, 1234) <= key && key < expiries_from(space, 1235));
            assert!(data_from(space, position(b"name")) <= data_key(space, b"name"));
            assert!(data_key(space, b"name") < data_from(space, position(b"name") + 1));
            assert!(data_from(space, u64::MAX) < data_begin(next));
            assert!(space.has(&key) && space.has(&data_key(space, b"")) && !next.has(&key));
            assert_eq!(Space::from_bits(space.to_bits()), space);
        }
    }

    /// Stores on disk have these keys.
    #[test]
    fn keys_have_golden_bytes() {
        let position = position(b"k").to_be_bytes();
        let (first, third) = (Space { slot: 0, generation: 258 }, Space { slot: 3, generation: 258 });
        let expiry = NonZeroU64::new(300).expect("not 0");
        assert_eq!(data_key(first, b"k")[..], [&b"d\0\0\x01\x02"[..], &position, b"k"].concat());
        assert_eq!(data_key(third, b"k")[..], [&b"D\x03\0\0\x01\x02"[..], &position, b"k"].concat());
        let at = 300u64.to_be_bytes();
        let key = expiry_key(first, expiry, b"k");
        assert_eq!(key[..], [&b"e\0\0\x01\x02"[..], &at, &position, b"k"].concat());
        let key = expiry_key(third, expiry, b"k");
        assert_eq!(key[..], [&b"E\x03\0\0\x01\x02"[..], &at, &position, b"k"].concat());
    }

    #[test]
    fn a_long_key_has_a_name_and_is_in_its_record() {
        let mut keys = [vec![b'k'; KEY_BYTES_MAX], vec![b'k'; KEY_BYTES_MAX]];
        keys[1][KEY_BYTES_MAX - 1] = b'l';
        let space = Space { slot: 15, generation: 1 };
        let names = keys.each_ref().map(|key| data_key(space, key));
        let name_of = |key| parse_data_key(space, key).map(|(_, name)| name);
        assert_ne!(name_of(&names[0]), name_of(&names[1]), "two keys, two names");
        for (key, name) in keys.iter().zip(&names) {
            assert!(name.len() < usize::from(u16::MAX));
            let (_, name) = parse_data_key(space, name).expect("a key of a record");
            let record = record(key, until(7), b"value");
            let parsed = parse_record(&record, is_long(name));
            assert_eq!((parsed.stamp, &record[parsed.start..]), (until(7), &b"value"[..]));
            assert_eq!(parsed.key(&record, name), key);
            assert_eq!(&record[parse_record(&record, is_long(key)).start..], b"value");
        }
    }

    /// Stores on disk hold these bytes.
    #[test]
    fn records_have_golden_bytes() {
        let mut hash = Hash::default();
        hash.set(b"f", b"v");
        let hash = Value::Hash(hash);
        let encoded = [1, 1, 1, 1, b'f', 1, b'v'];
        let (none, some) = (NEVER, until(300));
        let changed = |stamp: Stamp| Stamp { entry: 129, ..stamp };
        assert_eq!(record(b"k", none, b"v"), [0, b'v']);
        assert_eq!(record(b"k", some, b"v"), [0xac, 2, b'v']);
        assert_eq!(value_record(b"k", none, &hash), [&[0x80, 0, 0][..], &encoded].concat());
        assert_eq!(value_record(b"k", some, &hash), [&[0x80, 0, 0xac, 2][..], &encoded].concat());
        assert_eq!(value_record(b"k", some, &Value::String(b"v".to_vec())), record(b"k", some, b"v"));
        assert_eq!(record(b"k", changed(none), b"v"), [0x81, 0, 0x81, 1, 0, b'v']);
        let bytes = value_record(b"k", changed(some), &hash);
        assert_eq!(bytes, [&[0x81, 0, 0x81, 1, 0x80, 0, 0xac, 2][..], &encoded].concat());
        for key in [vec![b'k'], vec![b'k'; KEY_BYTES_MAX]] {
            for stamp in [none, some, changed(none), changed(some)] {
                for value in [hash.clone(), Value::String(b"\x80\0".to_vec())] {
                    let bytes = value_record(&key, stamp, &value);
                    let parsed = parse_record(&bytes, is_long(&key));
                    assert_eq!((parsed.stamp, parsed.value(&bytes).kind()), (stamp, value.kind()));
                    assert_eq!(parsed.value(&bytes).fingerprint_at(None, 0), value.fingerprint());
                    assert_eq!(parsed.key(&bytes, &key), key);
                    assert_eq!(record_of(&key, stamp, parsed.value(&bytes)), bytes);
                }
            }
        }
        // What no checksum has found.
        for bytes in [
            &[0x80][..],
            &[0x81, 0],
            &[0x81, 0, 1, 0x80],
            &[0x80, 0],
            &[0x80, 0, 0],
            &[0x80, 0, 0, 9],
            &[0x80, 0, 0, 1, 1, 2],
        ] {
            let parsed = parse_record(bytes, false);
            assert_eq!(parsed.value(bytes).value(None).fingerprint(), key_hash(b""), "{bytes:?}");
        }
    }

    #[test]
    fn merges_leave_collections_alone() {
        let mut hash = Hash::default();
        hash.set(b"f", b"v");
        let old = value_record(b"k", until(100), &hash.into());
        let operands =
            |ms| [encode_operand(ms, 0, Operand::Add(1)), encode_operand(ms, 0, Operand::Append(b"2"))];
        let merged = |ms| merged(Some(&old), operands(ms).iter().map(Vec::as_slice));
        assert_eq!(merged(99), old);
        assert_eq!(merged(100), record(b"k", NEVER, b"12"), "it had expired");
    }

    #[test]
    fn merges_do_what_commands_do() {
        let add = |ms, delta| encode_operand(ms, 0, Operand::Add(delta));
        let append = |ms, tail| encode_operand(ms, 0, Operand::Append(tail));
        let apply = |old: Option<&[u8]>, operands: &[Vec<u8>]| {
            let merged = merged(old, operands.iter().map(Vec::as_slice));
            let parsed = parse_record(&merged, false);
            (parsed.stamp.expiry_ms(), merged[parsed.start..].to_vec())
        };
        let expiring = record(b"k", until(100), b"5");
        assert_eq!(apply(None, &[add(1, 3), append(1, b"0"), add(2, -1)]), (None, b"29".to_vec()));
        assert_eq!(apply(Some(&expiring), &[add(99, 3)]), (Some(100), b"8".to_vec()));
        assert_eq!(
            apply(Some(&expiring), &[add(99, 3), add(100, 1)]),
            (None, b"1".to_vec()),
            "it had expired"
        );
        let changing = [encode_operand(1, 7, Operand::Add(1)), encode_operand(1, 300, Operand::Add(1))];
        let merged = merged(Some(&expiring), changing.iter().map(Vec::as_slice));
        assert_eq!(merged, record(b"k", Stamp { entry: 300, ..until(100) }, b"7"));
        let word = record(b"k", NEVER, b"word");
        assert_eq!(apply(Some(&word), &[add(1, 1), append(1, b"s")]), (None, b"words".to_vec()));
    }
}
