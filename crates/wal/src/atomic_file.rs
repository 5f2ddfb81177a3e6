//! Small files that are replaced as a whole: after a crash there is the old content or the new.
//!
//! [`replace_file`] does that, and writes the content as it is. [`write_atomically`] puts a header with a checksum before
//! the content, so that [`read_atomic`] recognizes damage:
//!
//! ```text
//!   0  8  magic "SYROSFIL"
//!   8  4  format version
//!  12  4  content length
//!  16  4  CRC-32C of the file's name, a zero byte, bytes 0..16, content
//!  20     content
//! ```

use crate::checksum::{START, extend, finish};
use crate::disk::{Cause, Disk, DiskError};
use crate::format::read_u32;
use std::fmt;

/// The format this build writes, and the only one it reads.
pub const ATOMIC_FILE_VERSION: u32 = 1;

/// Most bytes of content. Such a file is read and written in one piece; it is meant for identities,
/// not for data.
pub const ATOMIC_FILE_BYTES_MAX: usize = 1024 * 1024;

const MAGIC: [u8; 8] = *b"SYROSFIL";
const LENGTH_AT: usize = 12;
const CHECKSUM_AT: usize = 16;
const HEADER_BYTES: usize = 20;

/// Why a file was not written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The content is too long.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The most: [`ATOMIC_FILE_BYTES_MAX`].
        limit: usize,
    },
    /// The disk failed. The file has its old or its new content.
    Disk(DiskError),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes, limit } => {
                write!(f, "a content of {bytes} bytes exceeds the limit of {limit}")
            }
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}

impl From<DiskError> for WriteError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// A format that this build does not read.
    UnsupportedVersion {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The file is not what was written under this name.
    Damaged {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The disk failed.
    Disk(DiskError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnsupportedVersion { file, version } => write!(
                f,
                "unsupported file format version {version} in {file}; this build reads version {ATOMIC_FILE_VERSION}"
            ),
            Self::Damaged { file, reason } => write!(f, "{file} is damaged: {reason}"),
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<DiskError> for ReadError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

fn checksum(name: &str, header: &[u8], content: &[u8]) -> u32 {
    let parts = [name.as_bytes(), &[0], header, content];
    finish(parts.iter().fold(START, |state, part| extend(state, part)))
}

/// Gives the file `name` this header and the content `bytes`, durably, or leaves it as it was: see [`replace_file`].
///
/// # Errors
/// See [`WriteError`]. After a disk error the disk should not be trusted with more.
pub fn write_atomically<D: Disk>(disk: &mut D, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
    let limit = ATOMIC_FILE_BYTES_MAX;
    let length = match u32::try_from(bytes.len()) {
        Ok(length) if bytes.len() <= limit => length,
        _ => return Err(WriteError::TooLong { bytes: bytes.len(), limit }),
    };
    let mut contents = Vec::with_capacity(HEADER_BYTES + bytes.len());
    contents.extend_from_slice(&MAGIC);
    contents.extend_from_slice(&ATOMIC_FILE_VERSION.to_le_bytes());
    contents.extend_from_slice(&length.to_le_bytes());
    let checksum = checksum(name, &contents, bytes);
    contents.extend_from_slice(&checksum.to_le_bytes());
    contents.extend_from_slice(bytes);
    Ok(replace_file(disk, name, &contents)?)
}

/// Gives the file `name` these contents, durably, or leaves it as it was. Uses the name with `.tmp` behind it in between.
///
/// # Errors
/// [`DiskError`]: the file has its old or its new contents. After an error the disk should not be trusted with more.
pub fn replace_file<D: Disk>(disk: &mut D, name: &str, contents: &[u8]) -> Result<(), DiskError> {
    let temporary = format!("{name}.tmp");
    // An attempt that failed has left a part of its content under this name. A crash may keep that file and the renaming
    // below, and forget the file that is made now, unless the directory is known to be without it.
    match disk.remove(&temporary) {
        Ok(()) => disk.sync_directory()?,
        Err(DiskError { cause: Cause::NotFound, .. }) => {}
        Err(error) => return Err(error),
    }
    let mut file = disk.create(&temporary)?;
    disk.append(&mut file, contents)?;
    disk.sync(&mut file)?;
    disk.rename(&temporary, name)?;
    disk.sync_directory()
}

/// The content of the file `name`; `None` when there is no such file.
///
/// # Errors
/// See [`ReadError`]. A crash cannot damage the file, so damage means rot or a stranger's hand.
pub fn read_atomic<D: Disk>(disk: &mut D, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
    let file = match disk.open(name) {
        Err(DiskError { cause: Cause::NotFound, .. }) => return Ok(None),
        opened => opened?,
    };
    let damaged = |reason| Err(ReadError::Damaged { file: name.to_owned(), reason });
    let length = match usize::try_from(disk.length(&file)?) {
        Ok(length) if length < HEADER_BYTES => return damaged("it is shorter than its header"),
        Ok(length) if length <= HEADER_BYTES + ATOMIC_FILE_BYTES_MAX => length,
        _ => return damaged("it is longer than it can be"),
    };
    let mut contents = vec![0; length];
    disk.read(&file, 0, &mut contents)?;
    if !contents.starts_with(&MAGIC) {
        return damaged("it does not begin like a file of this program");
    }
    let version = read_u32(&contents, MAGIC.len());
    if version != ATOMIC_FILE_VERSION {
        contents[MAGIC.len()..LENGTH_AT].copy_from_slice(&ATOMIC_FILE_VERSION.to_le_bytes());
        let as_ours = checksum(name, &contents[..CHECKSUM_AT], &contents[HEADER_BYTES..]);
        if version == 0 || read_u32(&contents, CHECKSUM_AT) == as_ours {
            return damaged("its version is not what was written");
        }
        return Err(ReadError::UnsupportedVersion { file: name.to_owned(), version });
    }
    if read_u32(&contents, LENGTH_AT) as usize != length - HEADER_BYTES {
        return damaged("its length is not what it says");
    }
    let found = checksum(name, &contents[..CHECKSUM_AT], &contents[HEADER_BYTES..]);
    if read_u32(&contents, CHECKSUM_AT) != found {
        return damaged("its checksum does not match");
    }
    contents.drain(..HEADER_BYTES);
    Ok(Some(contents))
}
