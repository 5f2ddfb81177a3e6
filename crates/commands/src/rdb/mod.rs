//! Values in Redis's format for files and for DUMP and RESTORE (RDB).
//!
//! A *payload* is a type's number, a value of that type, the version of the format and a checksum. Payloads of Redis 2.8 to
//! 8 and of Valkey 8 are read, in all encodings that these have; what is written, Redis 7.0 reads, but for hashes of which
//! fields expire, which need Redis 7.4, and streams with consumers that have asked in vain, which need 7.2. Payloads come from
//! clients: whatever their bytes are, memory stays in proportion to them, and what is read is checked as a whole: lengths,
//! counts, the order of what has one, and that nothing is there twice.

mod checksum;
mod containers;
mod input;
mod libraries;
mod listpack;
mod lzf;
mod output;
mod streams;
mod value;
mod write;
mod ziplist;

pub use checksum::extended as extended_checksum;
pub use libraries::{LIBRARY, dump_libraries, restore_libraries};

use checksum::checksum;
use input::Input;
use syros_values::Value;

/// The version that is written: Redis 7.0's.
const VERSION: u16 = 10;

/// The version of streams that know when a consumer last got something: Redis 7.2's.
const VERSION_OF_ACTIVITY: u16 = 11;

/// The version of what has fields that expire: Redis 7.4's.
const VERSION_OF_FIELD_EXPIRY: u16 = 12;

/// The newest version that is read: that of Redis 7.4 and of Redis 8.
pub const VERSION_MAX: u16 = 12;

/// Bytes of version and checksum.
const FOOTER_BYTES: usize = 10;

/// Why a payload cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidPayload {
    /// It was written by a newer version, or its bytes are not those that were written.
    VersionOrChecksum,
    /// It is no value.
    Format,
}

/// What a file is to be read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Redis 7.0, and all versions of Valkey: when a consumer of a stream last got something is not said.
    Redis70,
    /// Redis 7.2, and Valkey from 8 on.
    Redis72,
    /// Redis 7.4: fields of hashes may expire.
    Redis74,
}

impl Format {
    /// The version that the file says.
    #[must_use]
    pub const fn version(self) -> u16 {
        match self {
            Self::Redis70 => VERSION,
            Self::Redis72 => VERSION_OF_ACTIVITY,
            Self::Redis74 => VERSION_OF_FIELD_EXPIRY,
        }
    }
}

/// The numbers of types and of their encodings. Fixed by Redis.
#[allow(missing_docs, reason = "their names say what they are")]
pub mod type_number {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const SORTED_SET: u8 = 3;
    pub const HASH: u8 = 4;
    pub const SORTED_SET_BINARY: u8 = 5;
    /// A value of a module that nobody but the module can read, as Redis 4 wrote it.
    pub const MODULE: u8 = 6;
    /// A value of a module, in pieces that everybody can pass over.
    pub const MODULE_2: u8 = 7;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const SORTED_SET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_QUICKLIST: u8 = 14;
    /// A stream as Redis 5 and 6 write it.
    pub const STREAM: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const SORTED_SET_LISTPACK: u8 = 17;
    pub const LIST_QUICKLIST_2: u8 = 18;
    /// As Redis 7.0 writes it: how many entries were added, and read.
    pub const STREAM_WITH_COUNTERS: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    /// As Redis 7.2 writes it: when each consumer last got something, too.
    pub const STREAM_WITH_ACTIVITY: u8 = 21;
    pub const EXPIRING_HASH: u8 = 24;
    pub const EXPIRING_HASH_LISTPACK: u8 = 25;
}

/// The payload of a value; `None` if it would be longer than `bytes_max`. Equal values have equal payloads.
#[must_use]
pub fn dump(value: &Value, bytes_max: usize) -> Option<Vec<u8>> {
    let typed = write::value(value, bytes_max)?;
    let version = match typed.first() {
        Some(&type_number::EXPIRING_HASH) => VERSION_OF_FIELD_EXPIRY,
        Some(&type_number::STREAM_WITH_ACTIVITY) => VERSION_OF_ACTIVITY,
        _ => VERSION,
    };
    Some(closed(typed, version))
}

/// A type's number and the value, as they stand in a file of this format; `None` if the format has no way to say that fields of
/// a hash expire.
#[must_use]
pub fn typed(value: &Value, format: Format) -> Option<Vec<u8>> {
    write::value_in(value, format)
}

/// The payload of a type's number and a value, as they stand in a file.
#[must_use]
pub fn payload(typed: Vec<u8>) -> Vec<u8> {
    closed(typed, VERSION_MAX)
}

/// The value of a type's number and a value, as they stand in a file. What is compressed or repeated may become `expansion_max`
/// bytes.
///
/// # Errors
/// [`InvalidPayload::Format`]
pub fn value_of(typed: &[u8], expansion_max: usize) -> Result<Value, InvalidPayload> {
    let mut input = Input::expanding(typed, expansion_max);
    let value = value::take(&mut input)?;
    if input.is_empty() { Ok(value) } else { Err(InvalidPayload::Format) }
}

/// The string that is all of these bytes.
///
/// # Errors
/// [`InvalidPayload::Format`]
pub fn string_of(bytes: &[u8]) -> Result<Vec<u8>, InvalidPayload> {
    let mut input = Input::new(bytes);
    let string = input.take_string()?;
    if input.is_empty() { Ok(string.into_owned()) } else { Err(InvalidPayload::Format) }
}

/// How many bytes a value has in an RDB file, without its type; `None` if it would be longer than `bytes_max`.
pub(crate) fn value_bytes(value: &Value, bytes_max: usize) -> Option<usize> {
    write::value(value, bytes_max).map(|typed| typed.len() - 1)
}

/// True if this may be the payload of a stream, by its first byte.
pub(crate) fn is_of_stream(payload: &[u8]) -> bool {
    use type_number::{STREAM, STREAM_WITH_ACTIVITY, STREAM_WITH_COUNTERS};
    payload
        .first()
        .is_some_and(|first| matches!(*first, STREAM | STREAM_WITH_COUNTERS | STREAM_WITH_ACTIVITY))
}

/// The payload that begins so: with version and checksum.
fn closed(mut payload: Vec<u8>, version: u16) -> Vec<u8> {
    payload.extend_from_slice(&version.to_le_bytes());
    let checksum = checksum(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// A payload without version and checksum, which are right.
fn checked(payload: &[u8]) -> Result<&[u8], InvalidPayload> {
    let (checked, sum) = payload.split_last_chunk::<8>().ok_or(InvalidPayload::VersionOrChecksum)?;
    let (typed, version) = checked.split_last_chunk::<2>().ok_or(InvalidPayload::VersionOrChecksum)?;
    // No checksum is a checksum, as in Redis.
    let sum = u64::from_le_bytes(*sum);
    if u16::from_le_bytes(*version) > VERSION_MAX || (sum != 0 && sum != checksum(checked)) {
        return Err(InvalidPayload::VersionOrChecksum);
    }
    Ok(typed)
}

/// The value of a payload.
///
/// # Errors
/// [`InvalidPayload`]
pub fn restore(payload: &[u8]) -> Result<Value, InvalidPayload> {
    checked(payload)?;
    restore_checked(payload)
}

/// The value of a payload whose version and checksum have been checked.
///
/// # Errors
/// [`InvalidPayload`]
pub fn restore_checked(payload: &[u8]) -> Result<Value, InvalidPayload> {
    let (typed, _) = payload.split_last_chunk::<FOOTER_BYTES>().ok_or(InvalidPayload::VersionOrChecksum)?;
    let mut input = Input::new(typed);
    let value = value::take(&mut input)?;
    if input.is_empty() { Ok(value) } else { Err(InvalidPayload::Format) }
}

#[cfg(test)]
mod tests;
