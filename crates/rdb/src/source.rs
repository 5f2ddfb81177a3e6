//! Bytes of a file, lengths and strings, as they are read.

use crate::error::RdbError;
use std::io::{ErrorKind, Read};
use syros_commands::rdb::{extended_checksum, string_of};

/// Longest string that is kept: what Syros takes for an element of any value, and what stands around it.
pub const STRING_BYTES_MAX: u64 = syros_types::limits::VALUE_BYTES_MAX as u64;

/// Longest string that a file may have: Redis's own limit is 512 MiB, unless it was raised.
const PASSED_BYTES_MAX: u64 = 1 << 40;

/// So many bytes are read at a time, and no more memory is set aside before they are there.
const STEP_BYTES: usize = 256 << 10;

/// The form of a string that is compressed.
const COMPRESSED: u8 = 3;

/// What stands where a length is expected.
#[derive(Clone, Copy, Debug)]
enum Length {
    Bytes(u64),
    /// A string in one of these forms.
    Form(u8),
}

/// What became of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It was kept; once it is decompressed it has so many bytes.
    Kept(u64),
    /// It has so many bytes, too many, and was passed over.
    TooLong(u64),
}

/// What is read from, how far that is, and the checksum of all of it.
pub(crate) struct Source<R> {
    input: R,
    buffer: Vec<u8>,
    at: usize,
    /// Bytes that were taken.
    offset: u64,
    sum: u64,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), at: 0, offset: 0, sum: 0 }
    }

    /// Bytes that were taken.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The checksum of all that was taken.
    pub(crate) const fn sum(&self) -> u64 {
        self.sum
    }

    pub(crate) fn malformed(&self, problem: impl Into<String>) -> RdbError {
        RdbError::Malformed { offset: self.offset, problem: problem.into() }
    }

    /// At least one byte of what comes next; nothing at the end.
    fn fill(&mut self) -> Result<&[u8], RdbError> {
        if self.at == self.buffer.len() {
            self.buffer.resize(STEP_BYTES, 0);
            self.at = 0;
            let count = loop {
                match self.input.read(&mut self.buffer) {
                    Ok(count) => break count,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => {
                        self.buffer.clear();
                        return Err(RdbError::Io(error));
                    }
                }
            };
            self.buffer.truncate(count);
        }
        Ok(&self.buffer[self.at..])
    }

    /// True if nothing comes any more.
    pub(crate) fn is_at_end(&mut self) -> Result<bool, RdbError> {
        Ok(self.fill()?.is_empty())
    }

    /// Takes so many bytes, in pieces.
    fn each(&mut self, mut count: u64, mut take: impl FnMut(&[u8])) -> Result<(), RdbError> {
        while count > 0 {
            let found = self.fill()?;
            if found.is_empty() {
                return Err(RdbError::Truncated { offset: self.offset });
            }
            let length = found.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            let piece = &found[..length];
            take(piece);
            self.sum = extended_checksum(self.sum, &self.buffer[self.at..self.at + length]);
            self.at += length;
            self.offset += length as u64;
            count -= length as u64;
        }
        Ok(())
    }

    /// Appends so many bytes.
    pub(crate) fn copy(&mut self, count: u64, out: &mut Vec<u8>) -> Result<(), RdbError> {
        self.each(count, |piece| out.extend_from_slice(piece))
    }

    /// Passes over so many bytes.
    pub(crate) fn pass(&mut self, count: u64) -> Result<(), RdbError> {
        self.each(count, |_| ())
    }

    pub(crate) fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], RdbError> {
        let (mut bytes, mut at) = ([0; BYTES], 0);
        self.each(BYTES as u64, |piece| {
            bytes[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        })?;
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, RdbError> {
        self.array().map(|[byte]| byte)
    }

    /// Takes what stands where a length is expected, and appends its bytes.
    fn length_or_form(&mut self, out: &mut Vec<u8>) -> Result<Length, RdbError> {
        let first = self.byte()?;
        out.push(first);
        let low = first & 0x3f;
        Ok(match (first >> 6, low) {
            (0, _) => Length::Bytes(u64::from(low)),
            (1, _) => {
                let second = self.byte()?;
                out.push(second);
                Length::Bytes(u64::from(low) << 8 | u64::from(second))
            }
            (2, 0) => {
                let bytes = self.array::<4>()?;
                out.extend_from_slice(&bytes);
                Length::Bytes(u64::from(u32::from_be_bytes(bytes)))
            }
            (2, 1) => {
                let bytes = self.array::<8>()?;
                out.extend_from_slice(&bytes);
                Length::Bytes(u64::from_be_bytes(bytes))
            }
            (3, form) => Length::Form(form),
            _ => return Err(self.malformed(format!("no length begins with {first:#04x}"))),
        })
    }

    /// A length or a count, whose bytes are appended.
    pub(crate) fn length_into(&mut self, out: &mut Vec<u8>) -> Result<u64, RdbError> {
        match self.length_or_form(out)? {
            Length::Bytes(length) => Ok(length),
            Length::Form(_) => Err(self.malformed("a string stands where a length should")),
        }
    }

    /// A length or a count.
    pub(crate) fn length(&mut self) -> Result<u64, RdbError> {
        self.length_into(&mut Vec::new())
    }

    /// Takes a string, and appends it as it stands in the file; one that is too long is passed over.
    pub(crate) fn string_into(&mut self, out: &mut Vec<u8>) -> Result<Taken, RdbError> {
        let start = out.len();
        let bytes = match self.length_or_form(out)? {
            Length::Bytes(length) => {
                return if length > STRING_BYTES_MAX {
                    out.truncate(start);
                    self.pass_string(length)?;
                    Ok(Taken::TooLong(length))
                } else {
                    self.copy(length, out)?;
                    Ok(Taken::Kept(length))
                };
            }
            Length::Form(form @ 0..COMPRESSED) => 1 << form,
            Length::Form(COMPRESSED) => {
                let compressed = self.length_into(out)?;
                let length = self.length_into(out)?;
                if length > STRING_BYTES_MAX || compressed > STRING_BYTES_MAX {
                    out.truncate(start);
                    self.pass_string(compressed)?;
                    return Ok(Taken::TooLong(length.max(compressed)));
                }
                self.copy(compressed, out)?;
                return Ok(Taken::Kept(length));
            }
            Length::Form(form) => return Err(self.malformed(format!("no string has form {form}"))),
        };
        self.copy(bytes, out)?;
        Ok(Taken::Kept(bytes))
    }

    fn pass_string(&mut self, length: u64) -> Result<(), RdbError> {
        if length > PASSED_BYTES_MAX {
            return Err(self.malformed(format!("a string of {length} bytes")));
        }
        self.pass(length)
    }

    /// A string; one that is longer than `bytes_max` is an error, which calls it `what`.
    pub(crate) fn string(&mut self, what: &str, bytes_max: u64) -> Result<Vec<u8>, RdbError> {
        let mut raw = Vec::new();
        match self.string_into(&mut raw)? {
            Taken::Kept(length) if length <= bytes_max => {
                string_of(&raw).map_err(|_| self.malformed(format!("{what} is no string")))
            }
            Taken::Kept(length) | Taken::TooLong(length) => {
                Err(self.malformed(format!("{what} of {length} bytes exceeds the maximum of {bytes_max}")))
            }
        }
    }

    /// Passes over a string.
    pub(crate) fn pass_over_string(&mut self) -> Result<(), RdbError> {
        self.string_into(&mut Vec::new()).map(drop)
    }
}
