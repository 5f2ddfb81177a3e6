//! Files from their beginning to their end.

use crate::error::RdbError;
use crate::module;
use crate::source::Source;
use crate::values::{self, End, Piece};
use std::io::Read;
use syros_commands::rdb::{LIBRARY, VERSION_MAX, payload as payload_of};
use syros_types::limits::{BODY_BYTES_MAX, KEY_BYTES_MAX};

/// What a file begins with; four digits follow.
const MAGIC: &[u8; 5] = b"REDIS";

/// What a file of Valkey 9 begins with; three digits follow.
const VALKEY_MAGIC: &[u8; 6] = b"VALKEY";

/// The version of Valkey 9.
const VALKEY_VERSION: u16 = 80;

/// Files from this version on have a checksum.
const VERSION_OF_CHECKSUM: u16 = 5;

/// Longest key of a file that can be read: keys that are longer than Syros's limit are named.
const NAMED_KEY_BYTES_MAX: u64 = crate::source::STRING_BYTES_MAX;

/// What stands in front of what is no key. Fixed by Redis.
mod mark {
    pub(super) const SLOT_INFO: u8 = 244;
    pub(super) const OLD_FUNCTION: u8 = 246;
    pub(super) const MODULE: u8 = 247;
    pub(super) const IDLE: u8 = 248;
    pub(super) const FREQUENCY: u8 = 249;
    pub(super) const AUXILIARY: u8 = 250;
    pub(super) const SIZES: u8 = 251;
    pub(super) const EXPIRY_MS: u8 = 252;
    pub(super) const EXPIRY_S: u8 = 253;
    pub(super) const DATABASE: u8 = 254;
    pub(super) const END: u8 = 255;
}

/// A key, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of its database.
    pub database: u64,
    /// Its name.
    pub key: Vec<u8>,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expiry_ms: Option<u64>,
}

/// Something that a file has.
#[derive(Debug)]
pub enum Item<'a> {
    /// The text of a library of functions.
    Library(Vec<u8>),
    /// Some of the value of a key, or all of it.
    Piece(&'a Place, Piece),
    /// A key whose value Syros cannot hold, and why. Pieces of it may have come before.
    Refused(&'a Place, String),
    /// What a module of this name has written that belongs to no key.
    OfModule(String),
}

/// What is known of a file once all of it has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSummary {
    /// The version of its format.
    pub version: u16,
    /// The version of the server that wrote it, if it says so.
    pub server: Option<String>,
    /// Its length in bytes.
    pub bytes: u64,
    /// It has a checksum, which is right. A server may have been told to write none.
    pub is_checked: bool,
}

/// Reads a file from its beginning to its end, and hands on what is in it.
///
/// # Errors
/// What `take` says, and [`RdbError`]: what has been handed on counts for nothing then.
pub fn read_file<E: From<RdbError>>(
    input: impl Read,
    mut take: impl FnMut(Item<'_>) -> Result<(), E>,
) -> Result<FileSummary, E> {
    let mut source = Source::new(input);
    let mut summary = FileSummary { version: version(&mut source)?, ..FileSummary::default() };
    let mut place = Place::default();
    loop {
        match source.byte()? {
            mark::END => break,
            mark::DATABASE => place.database = source.length()?,
            mark::EXPIRY_S => {
                let seconds = i32::from_le_bytes(source.array()?);
                place.expiry_ms = Some(u64::try_from(seconds).unwrap_or_default() * 1000);
            }
            mark::EXPIRY_MS => {
                let ms = i64::from_le_bytes(source.array()?);
                place.expiry_ms = Some(u64::try_from(ms).unwrap_or_default());
            }
            mark::SIZES => (0..2).try_for_each(|_| source.length().map(drop))?,
            mark::SLOT_INFO => (0..3).try_for_each(|_| source.length().map(drop))?,
            mark::IDLE => drop(source.length()?),
            mark::FREQUENCY => drop(source.byte()?),
            mark::AUXILIARY => {
                let name = source.string("a name", BODY_BYTES_MAX as u64)?;
                let value = source.string("what the file says of itself", BODY_BYTES_MAX as u64)?;
                if matches!(&name[..], b"redis-ver" | b"valkey-ver") {
                    summary.server = Some(value.escape_ascii().to_string());
                }
            }
            mark::MODULE => take(Item::OfModule(of_module(&mut source)?))?,
            LIBRARY => take(Item::Library(source.string("a library of functions", BODY_BYTES_MAX as u64)?))?,
            mark::OLD_FUNCTION => {
                return Err(source.malformed("a function as a test version of Redis 7 wrote it").into());
            }
            number => {
                take_key(&mut source, number, &mut place, &mut take)?;
                place.expiry_ms = None;
            }
        }
    }
    finish(source, summary).map_err(E::from)
}

fn version<R: Read>(source: &mut Source<R>) -> Result<u16, RdbError> {
    let begin: [u8; 9] = source.array().map_err(|error| match error {
        RdbError::Truncated { .. } => RdbError::NoRdb,
        error => error,
    })?;
    let digits = begin.strip_prefix(MAGIC).or_else(|| begin.strip_prefix(VALKEY_MAGIC));
    let digits = digits.and_then(|digits| str::from_utf8(digits).ok()).ok_or(RdbError::NoRdb)?;
    let number = digits.parse().map_err(|_| RdbError::NoRdb)?;
    if is_read(number) { Ok(number) } else { Err(RdbError::Version(number.to_string())) }
}

/// True for versions that this build reads.
fn is_read(version: u16) -> bool {
    (1..=VERSION_MAX).contains(&version) || version == VALKEY_VERSION
}

/// A payload of DUMP, or of FUNCTION DUMP, that Syros takes as it is. What Valkey 9 answers says its own version, and gets one that
/// Redis has; it must not be a hash of which fields expire. `None` if there is no such version.
#[must_use]
pub fn with_known_version(mut payload: Vec<u8>) -> Option<Vec<u8>> {
    match version_of(&payload)? {
        VALKEY_VERSION => {
            payload.truncate(payload.len() - FOOTER_BYTES);
            Some(payload_of(payload))
        }
        version if is_read(version) => Some(payload),
        _ => None,
    }
}

/// True for a payload that says Redis's own versions.
#[must_use]
pub fn has_known_version(payload: &[u8]) -> bool {
    version_of(payload).is_some_and(|version| version <= VERSION_MAX)
}

/// Bytes of version and checksum.
const FOOTER_BYTES: usize = 10;

fn version_of(payload: &[u8]) -> Option<u16> {
    let (_, footer) = payload.split_last_chunk::<FOOTER_BYTES>()?;
    Some(u16::from_le_bytes([footer[0], footer[1]]))
}

fn of_module<R: Read>(source: &mut Source<R>) -> Result<String, RdbError> {
    let name = module::name(source)?;
    // When it is to be loaded: a number, in front of which its kind stands.
    source.length()?;
    source.length()?;
    module::pass_over(source)?;
    Ok(name)
}

fn take_key<R: Read, E: From<RdbError>>(
    source: &mut Source<R>,
    number: u8,
    place: &mut Place,
    take: &mut impl FnMut(Item<'_>) -> Result<(), E>,
) -> Result<(), E> {
    place.key = source.string("a key", NAMED_KEY_BYTES_MAX)?;
    let is_short = place.key.len() <= KEY_BYTES_MAX;
    let end = values::take(source, number, &mut |piece| {
        if is_short { take(Item::Piece(place, piece)) } else { Ok(()) }
    })?;
    let problem = match end {
        _ if !is_short => {
            format!("its name has {} bytes, and the maximum is {KEY_BYTES_MAX}", place.key.len())
        }
        End::Whole => return Ok(()),
        End::Refused(problem) => problem,
    };
    take(Item::Refused(place, problem))
}

/// Checks what can be checked at the end.
fn finish<R: Read>(mut source: Source<R>, mut summary: FileSummary) -> Result<FileSummary, RdbError> {
    if summary.version >= VERSION_OF_CHECKSUM {
        let found = source.sum();
        let expected = u64::from_le_bytes(source.array()?);
        if expected != 0 && found != expected {
            return Err(RdbError::Checksum { found, expected });
        }
        summary.is_checked = expected != 0;
    }
    summary.bytes = source.offset();
    if source.is_at_end()? { Ok(summary) } else { Err(RdbError::Trailing { offset: summary.bytes }) }
}

/// Reads a payload of DUMP, and hands on its value in pieces, as it comes. `Some` says why Syros cannot hold it.
///
/// # Errors
/// What `take` says, and [`RdbError`]: what has been handed on counts for nothing then.
pub fn read_value<E: From<RdbError>>(
    input: impl Read,
    mut take: impl FnMut(Piece) -> Result<(), E>,
) -> Result<Option<String>, E> {
    let mut source = Source::new(input);
    let number = source.byte()?;
    let end = values::take(&mut source, number, &mut take)?;
    let version = u16::from_le_bytes(source.array()?);
    if !is_read(version) {
        return Err(RdbError::Version(version.to_string()).into());
    }
    finish(source, FileSummary { version: VERSION_OF_CHECKSUM, ..FileSummary::default() })?;
    Ok(if let End::Refused(problem) = end { Some(problem) } else { None })
}
