//! Snapshots as bytes.
//!
//! A snapshot is a sequence of records, cut into blocks between records. A record is a tag and its
//! fields; numbers are little-endian base-128 varints, byte strings a varint length and the bytes. The
//! header comes first and says how many keys there are and what log time it is; every key has one record,
//! in any order, which names its position; the end comes last and carries the digest of the state. A key with a
//! collection has a record of another kind, with the encoding of `syros-values`; one with a large collection has a record
//! with the head of that, and others with its parts, each of which says how many elements are before it. Before the record
//! of a key stands which log entry has changed it last, if that is known. If versions of keys are recorded, the entry that
//! they are recorded from comes behind the header, and those that have removed keys, by their parts
//! ([`removals`](crate::removals)).
//!
//! What is of another database than the first stands behind the number of that database, up to the end of the block or the
//! next such number. In a snapshot of an engine in memory each database that has anything has a header and an end of its own,
//! and behind the first header stands which others there are. Tags are fixed for ever. A disk engine does not know how many keys it has before it has seen them all: its
//! header leaves the number to the end, and positions count up.

use crate::removals::PLACES;
use crate::stamp::Stamp;
use core::fmt;
use core::num::NonZeroU64;
use syros_commands::access::Expiry;
use syros_commands::limits::EXPIRY_MS_MAX;
use syros_types::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use syros_types::varint::{InvalidVarint, put_varint, take_varint};
use syros_types::{Database, WallTime};
use syros_values::{InvalidValue, Kind, Value, ValueBuilder};

pub(crate) mod tag {
    pub(crate) const HEADER: u8 = 1;
    pub(crate) const KEY: u8 = 2;
    pub(crate) const KEY_WITH_EXPIRY: u8 = 3;
    pub(crate) const END: u8 = 4;
    pub(crate) const OPEN_HEADER: u8 = 5;
    pub(crate) const COUNTED_END: u8 = 6;
    pub(crate) const COLLECTION: u8 = 7;
    pub(crate) const COLLECTION_HEAD: u8 = 8;
    pub(crate) const COLLECTION_PART: u8 = 9;
    pub(crate) const CHANGED: u8 = 10;
    pub(crate) const REMOVAL: u8 = 11;
    pub(crate) const RECORDED: u8 = 12;
    pub(crate) const DATABASE: u8 = 32;
    pub(crate) const OTHER_DATABASES: u8 = 33;
    pub(crate) const PROGRAM: u8 = 20;
}

/// Most bytes of the record of a key with a string besides the key and the string: two tags, and the varints of the entry,
/// position, expiry and both lengths.
pub(crate) const RECORD_OVERHEAD_MAX: usize = 2 + 3 * 10 + 3 + 4;

const _: () = assert!(KEY_BYTES_MAX < 1 << 21 && VALUE_BYTES_MAX < 1 << 28);

/// Why blocks are no snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedSnapshot {
    /// A block ends in the middle of a record.
    Truncated,
    /// No record has this tag.
    Tag(u8),
    /// A number exceeds 64 bits.
    Number,
    /// A key or value is above its limit.
    TooLong {
        /// What was found, in bytes.
        length: u64,
        /// The most that is allowed, in bytes.
        limit: usize,
    },
    /// No key can have this expiry, in milliseconds since the Unix epoch.
    Expiry(u64),
    /// A key expired at this many milliseconds since the Unix epoch, not after the log time.
    Expired(u64),
    /// There is no header.
    NoHeader,
    /// There are two headers.
    SecondHeader,
    /// There is no end.
    NoEnd,
    /// There are two ends.
    SecondEnd,
    /// A key has a position that is not below their number.
    Position {
        /// The position.
        position: u64,
        /// The number of keys.
        count: u64,
    },
    /// No key has this position.
    MissingPosition(u64),
    /// Two keys have this position.
    DuplicatePosition(u64),
    /// The key at this position has an earlier one as well.
    DuplicateKey(u64),
    /// A collection is none.
    Value(InvalidValue),
    /// The collection of the key at this position lacks a part, or its head.
    MissingPart(u64),
    /// The collection of the key at this position has elements twice.
    DuplicatePart(u64),
    /// It is the snapshot of an engine of another type.
    OtherEngine,
    /// There are two entries that versions are recorded from.
    SecondRecorded,
    /// There is no such part of all hashes, no entry has removed a key of it, or it is there twice.
    Removal(u64),
    /// There is no database of this number, or it must not be said here.
    Database(u64),
    /// The databases are not those that belong to the first one.
    OtherDatabases,
    /// What is loaded is described by bytes that are no such description, or twice.
    Program,
    /// There are more keys or fewer than the end says.
    Count {
        /// Number of keys.
        found: u64,
        /// What the end says.
        expected: u64,
    },
    /// The state is not the one that was captured.
    Digest {
        /// Digest of the state that the blocks describe.
        found: u64,
        /// Digest of the state that was captured.
        expected: u64,
    },
}

impl fmt::Display for DamagedSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("a block ends in the middle of a record"),
            Self::Tag(tag) => write!(f, "no record has tag {tag}"),
            Self::Number => f.write_str("a number exceeds 64 bits or is longer than it needs"),
            Self::TooLong { length, limit } => write!(f, "length {length} exceeds the limit of {limit}"),
            Self::Expiry(ms) => write!(f, "no key can expire at {ms} ms"),
            Self::Expired(ms) => write!(f, "a key expired at {ms} ms, not after the log time"),
            Self::NoHeader => f.write_str("the header is missing"),
            Self::SecondHeader => f.write_str("there are two headers"),
            Self::NoEnd => f.write_str("the end is missing"),
            Self::SecondEnd => f.write_str("there are two ends"),
            Self::Position { position, count } => write!(f, "position {position}, but only {count} keys"),
            Self::MissingPosition(position) => write!(f, "no key has position {position}"),
            Self::DuplicatePosition(position) => write!(f, "two keys have position {position}"),
            Self::DuplicateKey(position) => {
                write!(f, "the key at position {position} has an earlier one as well")
            }
            Self::Value(error) => error.fmt(f),
            Self::MissingPart(position) => {
                write!(f, "a part is missing of the collection of the key at position {position}")
            }
            Self::DuplicatePart(position) => {
                write!(f, "elements are twice there of the collection of the key at position {position}")
            }
            Self::OtherEngine => f.write_str("it is the snapshot of another kind of engine"),
            Self::SecondRecorded => f.write_str("two entries begin to record versions"),
            Self::Removal(part) => write!(f, "the entry that removed keys of part {part} is wrong"),
            Self::Database(number) => write!(f, "database {number} is not expected"),
            Self::OtherDatabases => f.write_str("the databases do not belong together"),
            Self::Program => f.write_str("a script or library is described by no such description, or twice"),
            Self::Count { found, expected } => write!(f, "there are {found} keys instead of {expected}"),
            Self::Digest { found, expected } => {
                write!(f, "the digest is {found:016x} instead of {expected:016x}")
            }
        }
    }
}

impl core::error::Error for DamagedSnapshot {}

impl From<InvalidVarint> for DamagedSnapshot {
    fn from(error: InvalidVarint) -> Self {
        match error {
            InvalidVarint::Truncated => Self::Truncated,
            InvalidVarint::TooLong => Self::Number,
        }
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_header(out: &mut Vec<u8>, count: u64, time: WallTime) {
    out.push(tag::HEADER);
    put_varint(out, count);
    put_varint(out, time.0);
}

impl From<InvalidValue> for DamagedSnapshot {
    fn from(error: InvalidValue) -> Self {
        match error {
            InvalidValue::Truncated => Self::Truncated,
            InvalidValue::Number => Self::Number,
            other => Self::Value(other),
        }
    }
}

/// What stands before the record of a key.
fn put_changed(out: &mut Vec<u8>, entry: u64) {
    if entry > 0 {
        out.push(tag::CHANGED);
        put_varint(out, entry);
    }
}

/// The entry that versions are recorded from, if they are: it is not 0 then.
pub(crate) fn put_recorded(out: &mut Vec<u8>, from: u64) {
    if from > 0 {
        out.push(tag::RECORDED);
        put_varint(out, from);
    }
}

/// The last entry, which is not 0, that has removed a key of a part.
pub(crate) fn put_removal(out: &mut Vec<u8>, part: usize, entry: u64) {
    out.push(tag::REMOVAL);
    put_varint(out, part as u64);
    put_varint(out, entry);
}

/// What follows is of this database.
pub(crate) fn put_database(out: &mut Vec<u8>, database: Database) {
    out.push(tag::DATABASE);
    put_varint(out, u64::from(database.number()));
}

/// Which other databases have anything, a bit for each number; nothing if there are none.
pub(crate) fn put_other_databases(out: &mut Vec<u8>, others: u16) {
    if others > 0 {
        out.push(tag::OTHER_DATABASES);
        put_varint(out, u64::from(others));
    }
}

/// What is loaded, by one record of it.
pub(crate) fn put_program(out: &mut Vec<u8>, record: &[u8]) {
    out.push(tag::PROGRAM);
    put_bytes(out, record);
}

/// A key with a string.
pub(crate) fn put_key(out: &mut Vec<u8>, position: u64, key: &[u8], value: &[u8], stamp: Stamp) {
    let Stamp { expiry, entry } = stamp;
    put_changed(out, entry);
    out.push(if expiry.is_some() { tag::KEY_WITH_EXPIRY } else { tag::KEY });
    put_varint(out, position);
    if let Some(expiry) = expiry {
        put_varint(out, expiry.get());
    }
    put_bytes(out, key);
    put_bytes(out, value);
}

/// A key with a value of any kind.
pub(crate) fn put_entry(out: &mut Vec<u8>, position: u64, key: &[u8], value: &Value, stamp: Stamp) {
    if let Value::String(string) = value {
        return put_key(out, position, key, string, stamp);
    }
    put_collection_key(out, tag::COLLECTION, position, key, stamp);
    value.put(out);
}

/// A key with a collection. Behind it must follow the encoding of the collection or, if the tag is that of a head, the head.
pub(crate) fn put_collection_key(out: &mut Vec<u8>, tag: u8, position: u64, key: &[u8], stamp: Stamp) {
    put_changed(out, stamp.entry);
    out.push(tag);
    put_varint(out, position);
    put_varint(out, stamp.expiry.map_or(0, NonZeroU64::get));
    put_bytes(out, key);
}

/// Elements of the collection of the key at this position, which follow on `rank` others.
pub(crate) fn put_collection_part(out: &mut Vec<u8>, position: u64, rank: u64, elements: &[u8]) {
    out.push(tag::COLLECTION_PART);
    put_varint(out, position);
    put_varint(out, rank);
    put_bytes(out, elements);
}

pub(crate) fn put_end(out: &mut Vec<u8>, digest: u64) {
    out.push(tag::END);
    put_varint(out, digest);
}

/// A header without the number of keys.
pub(crate) fn put_open_header(out: &mut Vec<u8>, time: WallTime) {
    out.push(tag::OPEN_HEADER);
    put_varint(out, time.0);
}

/// An end with the number of keys.
pub(crate) fn put_counted_end(out: &mut Vec<u8>, count: u64, digest: u64) {
    out.push(tag::COUNTED_END);
    put_varint(out, count);
    put_varint(out, digest);
}

fn take_u8(input: &mut &[u8]) -> Result<u8, DamagedSnapshot> {
    let (&first, rest) = input.split_first().ok_or(DamagedSnapshot::Truncated)?;
    *input = rest;
    Ok(first)
}

fn take_bytes<'a>(input: &mut &'a [u8], limit: usize) -> Result<&'a [u8], DamagedSnapshot> {
    let length = take_varint(input)?;
    if length > limit as u64 {
        return Err(DamagedSnapshot::TooLong { length, limit });
    }
    let (bytes, rest) = input.split_at_checked(length as usize).ok_or(DamagedSnapshot::Truncated)?;
    *input = rest;
    Ok(bytes)
}

fn take_expiry(input: &mut &[u8]) -> Result<NonZeroU64, DamagedSnapshot> {
    let ms = take_varint(input)?;
    NonZeroU64::new(ms).filter(|_| ms <= EXPIRY_MS_MAX).ok_or(DamagedSnapshot::Expiry(ms))
}

/// As [`take_expiry`], but 0 is none.
fn take_optional_expiry(input: &mut &[u8]) -> Result<Expiry, DamagedSnapshot> {
    if let [0, rest @ ..] = *input {
        *input = rest;
        return Ok(None);
    }
    take_expiry(input).map(Some)
}

/// The number of a log entry.
fn take_entry(input: &mut &[u8]) -> Result<u64, DamagedSnapshot> {
    match take_varint(input)? {
        // What has none is written without one.
        0 => Err(DamagedSnapshot::Number),
        entry => Ok(entry),
    }
}

/// A value that is no string: those have records of their own.
fn take_collection(input: &mut &[u8]) -> Result<Value, DamagedSnapshot> {
    match Value::take(input)? {
        Value::String(_) => Err(InvalidValue::Kind(Kind::String.tag()).into()),
        collection => Ok(collection),
    }
}

/// A part of a snapshot.
pub(crate) enum Record<'a> {
    Header { count: u64, time: WallTime },
    Key { position: u64, key: &'a [u8], value: &'a [u8], stamp: Stamp },
    Collection { position: u64, key: &'a [u8], value: Value, stamp: Stamp },
    CollectionHead { position: u64, key: &'a [u8], builder: ValueBuilder, stamp: Stamp },
    CollectionPart { position: u64, rank: u64, elements: &'a [u8] },
    End { digest: u64 },
    OpenHeader { time: WallTime },
    CountedEnd { count: u64, digest: u64 },
    Removal { part: usize, entry: u64 },
    Recorded { from: u64 },
    Database { database: Database },
    OtherDatabases { others: u16 },
    Program { record: &'a [u8] },
}

impl<'a> Record<'a> {
    /// Takes the first record off `input`.
    pub(crate) fn take(input: &mut &'a [u8]) -> Result<Self, DamagedSnapshot> {
        let (entry, tag) = match take_u8(input)? {
            tag::CHANGED => (take_entry(input)?, take_u8(input)?),
            tag => (0, tag),
        };
        Ok(match tag {
            tag::KEY | tag::KEY_WITH_EXPIRY => Self::Key {
                position: take_varint(input)?,
                stamp: Stamp {
                    expiry: if tag == tag::KEY { None } else { Some(take_expiry(input)?) },
                    entry,
                },
                key: take_bytes(input, KEY_BYTES_MAX)?,
                value: take_bytes(input, VALUE_BYTES_MAX)?,
            },
            tag::COLLECTION => Self::Collection {
                position: take_varint(input)?,
                stamp: Stamp { expiry: take_optional_expiry(input)?, entry },
                key: take_bytes(input, KEY_BYTES_MAX)?,
                value: take_collection(input)?,
            },
            tag::COLLECTION_HEAD => Self::CollectionHead {
                position: take_varint(input)?,
                stamp: Stamp { expiry: take_optional_expiry(input)?, entry },
                key: take_bytes(input, KEY_BYTES_MAX)?,
                builder: ValueBuilder::take_head(input)?,
            },
            // Only keys have been changed by an entry.
            tag if entry > 0 => return Err(DamagedSnapshot::Tag(tag)),
            tag::RECORDED => Self::Recorded { from: take_entry(input)? },
            tag::PROGRAM => Self::Program { record: take_bytes(input, usize::MAX)? },
            tag::REMOVAL => {
                let part = take_varint(input)?;
                let place = usize::try_from(part).ok().filter(|place| *place < PLACES);
                Self::Removal {
                    part: place.ok_or(DamagedSnapshot::Removal(part))?,
                    entry: take_entry(input)?,
                }
            }
            tag::DATABASE => {
                let number = take_varint(input)?;
                let database = u8::try_from(number).ok().and_then(Database::new);
                Self::Database { database: database.ok_or(DamagedSnapshot::Database(number))? }
            }
            tag::OTHER_DATABASES => {
                let others = u16::try_from(take_varint(input)?).ok().filter(|others| others & 1 == 0);
                Self::OtherDatabases {
                    others: others.filter(|others| *others > 0).ok_or(DamagedSnapshot::OtherDatabases)?,
                }
            }
            tag::HEADER => Self::Header { count: take_varint(input)?, time: WallTime(take_varint(input)?) },
            tag::COLLECTION_PART => Self::CollectionPart {
                position: take_varint(input)?,
                rank: take_varint(input)?,
                elements: take_bytes(input, usize::MAX)?,
            },
            tag::END => Self::End { digest: take_varint(input)? },
            tag::OPEN_HEADER => Self::OpenHeader { time: WallTime(take_varint(input)?) },
            tag::COUNTED_END => Self::CountedEnd { count: take_varint(input)?, digest: take_varint(input)? },
            tag => return Err(DamagedSnapshot::Tag(tag)),
        })
    }
}
