//! Operations and replies as bytes.
//!
//! An operation is a tag, the name of a file behind its length (1 byte), and the rest: a record, or numbers of 8 bytes,
//! little-endian. Tags are in logs on disk: they are fixed, and a retired one is never used again.

use std::fmt;

/// Longest name of a file, in bytes: what one byte can say.
pub const NAME_BYTES_MAX: usize = 255;

/// Longest record, in bytes. Ten times as much would keep other clients waiting while it is on its way.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// A read ends with the record that makes it longer than this, in bytes. Whoever wants more asks again.
pub const READ_BYTES_MAX: usize = 1 << 20;

/// Most files that are listed at once.
pub const LISTED_MAX: usize = 1000;

mod tag {
    pub(super) const APPEND: u8 = 1;
    pub(super) const APPEND_AT: u8 = 2;
    pub(super) const REMOVE: u8 = 3;
    pub(super) const LENGTH: u8 = 4;
    pub(super) const READ: u8 = 5;
    pub(super) const LIST: u8 = 6;
}

/// Something to do with a file, or with all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Appends a record, and answers only that it will be there. Without effect if the file is full.
    Append {
        /// The file; it need not exist.
        file: &'a [u8],
        /// The record.
        record: &'a [u8],
    },
    /// Appends a record, and answers which one of the file it is.
    AppendAt {
        /// The file; it need not exist.
        file: &'a [u8],
        /// The record.
        record: &'a [u8],
    },
    /// Removes a file, if there is one.
    Remove {
        /// The file.
        file: &'a [u8],
    },
    /// Answers how many records there are in a file.
    Length {
        /// The file.
        file: &'a [u8],
    },
    /// Answers a range of records.
    Read {
        /// The file.
        file: &'a [u8],
        /// The first record, from 0.
        from: u64,
        /// Most records.
        count: u64,
    },
    /// Answers names and lengths of files, in the order of their names.
    List {
        /// Only those behind this name; all, if it is empty.
        after: &'a [u8],
    },
}

/// Why something is no operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidOperation {
    /// The name of the file has so many bytes.
    Name(usize),
    /// The record has so many bytes.
    Record(usize),
}

impl fmt::Display for InvalidOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(length) => {
                write!(f, "the name of the file has {length} bytes; 1 to {NAME_BYTES_MAX} are allowed")
            }
            Self::Record(length) => {
                write!(f, "the record has {length} bytes; the limit is {RECORD_BYTES_MAX}")
            }
        }
    }
}

impl std::error::Error for InvalidOperation {}

impl<'a> Operation<'a> {
    /// The file that it is about; `None` if it is about all.
    #[must_use]
    pub const fn file(&self) -> Option<&'a [u8]> {
        match self {
            Self::Append { file, .. }
            | Self::AppendAt { file, .. }
            | Self::Remove { file }
            | Self::Length { file }
            | Self::Read { file, .. } => Some(file),
            Self::List { .. } => None,
        }
    }

    /// The operation as bytes.
    ///
    /// # Errors
    /// [`InvalidOperation`]: something is longer than it may be.
    pub fn encode(&self) -> Result<Vec<u8>, InvalidOperation> {
        self.check()?;
        let (tag, name, record) = match *self {
            Self::Append { file, record } => (tag::APPEND, file, record),
            Self::AppendAt { file, record } => (tag::APPEND_AT, file, record),
            Self::Remove { file } => (tag::REMOVE, file, &[][..]),
            Self::Length { file } => (tag::LENGTH, file, &[][..]),
            Self::Read { file, .. } => (tag::READ, file, &[][..]),
            Self::List { after } => (tag::LIST, after, &[][..]),
        };
        let mut bytes = Vec::with_capacity(2 + name.len() + record.len() + 16);
        bytes.extend_from_slice(&[tag, name.len() as u8]);
        bytes.extend_from_slice(name);
        bytes.extend_from_slice(record);
        if let Self::Read { from, count, .. } = self {
            bytes.extend_from_slice(&from.to_le_bytes());
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        Ok(bytes)
    }

    /// The operation that the bytes are; `None` if they are none, or one that is too long.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (&tag, rest) = bytes.split_first()?;
        let (&length, rest) = rest.split_first()?;
        let (file, mut rest) = rest.split_at_checked(usize::from(length))?;
        let operation = match tag {
            tag::APPEND => Self::Append { file, record: rest },
            tag::APPEND_AT => Self::AppendAt { file, record: rest },
            tag::REMOVE if rest.is_empty() => Self::Remove { file },
            tag::LENGTH if rest.is_empty() => Self::Length { file },
            tag::READ => {
                let (from, count) = (take_u64(&mut rest)?, take_u64(&mut rest)?);
                rest.is_empty().then_some(Self::Read { file, from, count })?
            }
            tag::LIST if rest.is_empty() => Self::List { after: file },
            _ => return None,
        };
        operation.check().ok()?;
        Some(operation)
    }

    const fn check(&self) -> Result<(), InvalidOperation> {
        let (name, is_named) = match self {
            Self::List { after } => (after.len(), true),
            Self::Append { file, .. }
            | Self::AppendAt { file, .. }
            | Self::Remove { file }
            | Self::Length { file }
            | Self::Read { file, .. } => (file.len(), !file.is_empty()),
        };
        if !is_named || name > NAME_BYTES_MAX {
            return Err(InvalidOperation::Name(name));
        }
        match self {
            Self::Append { record, .. } | Self::AppendAt { record, .. }
                if record.len() > RECORD_BYTES_MAX =>
            {
                Err(InvalidOperation::Record(record.len()))
            }
            _ => Ok(()),
        }
    }
}

/// Takes a number of 8 bytes from the front.
pub(crate) fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

/// Appends a byte string behind its length of 4 bytes. Nothing here is longer than those can say.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Takes what [`put_bytes`] appended from the front.
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (taken, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_survive_as_bytes() {
        let longest = vec![b'n'; NAME_BYTES_MAX];
        let record = vec![7; RECORD_BYTES_MAX];
        for operation in [
            Operation::Append { file: b"log", record: b"" },
            Operation::Append { file: &longest, record: &record },
            Operation::AppendAt { file: b"log", record: b"one" },
            Operation::Remove { file: b"l" },
            Operation::Length { file: b"log" },
            Operation::Read { file: b"log", from: 3, count: u64::MAX },
            Operation::List { after: b"" },
            Operation::List { after: b"log" },
        ] {
            let bytes = operation.encode().unwrap();
            assert_eq!(Operation::decode(&bytes), Some(operation));
        }
        // Golden: what is in logs on disk.
        assert_eq!(Operation::Append { file: b"f", record: b"r" }.encode().unwrap(), [1, 1, b'f', b'r']);
        let read = Operation::Read { file: b"f", from: 1, count: 2 }.encode().unwrap();
        assert_eq!(read, [5, 1, b'f', 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let long = [b'n'; NAME_BYTES_MAX + 1];
        let error = Operation::Length { file: &long }.encode().unwrap_err();
        assert_eq!(error.to_string(), "the name of the file has 256 bytes; 1 to 255 are allowed");
        assert_eq!(Operation::Remove { file: b"" }.encode(), Err(InvalidOperation::Name(0)));
        let record = vec![0; RECORD_BYTES_MAX + 1];
        let error = Operation::Append { file: b"f", record: &record }.encode().unwrap_err();
        assert_eq!(error.to_string(), "the record has 1048577 bytes; the limit is 1048576");
    }

    #[test]
    fn garbage_is_no_operation() {
        for bytes in
            [&b""[..], b"\x01", b"\x01\x00r", b"\x01\x09f", b"\x00\x01f", b"\x07\x01f", b"\x03\x01fx"]
        {
            assert_eq!(Operation::decode(bytes), None, "{bytes:?}");
        }
        assert_eq!(Operation::decode(b"\x05\x01f12345678"), None);
        let mut bytes = Operation::Append { file: b"f", record: b"" }.encode().unwrap();
        bytes.resize(3 + RECORD_BYTES_MAX + 1, 0);
        assert_eq!(Operation::decode(&bytes), None);
    }
}
