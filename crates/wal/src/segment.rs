//! Reading one segment: from memory, for tests and fuzzing, and from a disk.

use crate::disk::{Disk, DiskError};
use crate::format::{
    HEADER_BYTES, HeaderError, Parsed, RECORD_HEADER_BYTES, RecordFault, RecordNumber, SegmentHeader,
    parse_record,
};
use crate::later_record::find_later_record;

/// How a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentTail {
    /// After a record.
    Clean,
    /// With something that a write cut short by a crash can leave.
    Torn(RecordFault),
    /// With a bad record that an intact later one follows.
    Damaged {
        /// What is wrong with the bad record.
        fault: RecordFault,
        /// Where the later record starts, in bytes from the beginning of the segment.
        later_offset: u64,
        /// Its number.
        later: RecordNumber,
    },
}

/// A segment's records and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentContents<'a> {
    /// The header.
    pub header: SegmentHeader,
    /// Payloads, in order; the first has the number that the header says.
    pub records: Vec<&'a [u8]>,
    /// Bytes of the header and those records.
    pub valid_bytes: usize,
    /// What follows them.
    pub tail: SegmentTail,
}

/// Reads a whole segment, as if it were the last of its log. Never panics and never allocates more than
/// a small multiple of the input, whatever the input is.
///
/// A bad record makes the tail [`SegmentTail::Damaged`] if at any later position a valid record of a
/// later number starts. "Valid" takes a length that fits and a checksum that matches a number which the
/// bytes in between leave room for. By accident that happens to 64 numbers ahead with a chance of
/// 2^-26 per position with a fitting length; so a number further ahead counts only if
/// the match ends exactly with the segment or the next record follows it.
///
/// # Errors
/// When the bytes do not begin with a valid header.
pub fn recover_segment(bytes: &[u8]) -> Result<SegmentContents<'_>, HeaderError> {
    let header = SegmentHeader::decode(bytes)?;
    let mut records = Vec::new();
    let mut number = header.first;
    let mut at = HEADER_BYTES;
    let tail = loop {
        let rest = &bytes[at..];
        match parse_record(rest, number) {
            _ if rest.is_empty() => break SegmentTail::Clean,
            Parsed::Record(payload) => {
                records.push(payload);
                number = number.next();
                at += RECORD_HEADER_BYTES + payload.len();
            }
            Parsed::Incomplete(_) => break judge(rest, at as u64, number, RecordFault::Incomplete),
            Parsed::Invalid(fault) => break judge(rest, at as u64, number, fault),
        }
    };
    Ok(SegmentContents { header, records, valid_bytes: at, tail })
}

/// Torn or damaged: what the bad record at the beginning of `tail`, at byte `offset`, means.
pub(crate) fn judge(tail: &[u8], offset: u64, number: RecordNumber, fault: RecordFault) -> SegmentTail {
    match find_later_record(tail, number) {
        Some((at, later)) => SegmentTail::Damaged { fault, later_offset: offset + at as u64, later },
        None => SegmentTail::Torn(fault),
    }
}

/// Bytes read at once: large enough that system calls do not count, small enough not to matter.
const READ_BYTES: usize = 1024 * 1024;

/// Streams the records of one file. Holds one piece of it, or one record where that is longer.
pub(crate) struct SegmentReader<'a, D: Disk> {
    disk: &'a mut D,
    file: &'a D::File,
    /// Bytes in the file.
    pub(crate) length: u64,
    /// Where the next record starts in the file.
    pub(crate) offset: u64,
    /// A piece of the file; its last byte is the one before `read_to`.
    buffer: Vec<u8>,
    /// Where the next record starts in the buffer.
    at: usize,
    /// Bytes of the file that have been read.
    read_to: u64,
}

/// What a [`SegmentReader`] found next.
pub(crate) enum Next<'a> {
    /// A record's payload.
    Record(&'a [u8]),
    /// The end of the file, after a record.
    End,
    /// A bad record, at [`SegmentReader::offset`].
    Bad(RecordFault),
}

impl<'a, D: Disk> SegmentReader<'a, D> {
    /// A reader at the beginning of a file.
    pub(crate) fn new(disk: &'a mut D, file: &'a D::File) -> Result<Self, DiskError> {
        let length = disk.length(file)?;
        Ok(Self { disk, file, length, offset: 0, buffer: Vec::new(), at: 0, read_to: 0 })
    }

    /// Reads the header; to be called first.
    pub(crate) fn header(&mut self) -> Result<Result<SegmentHeader, HeaderError>, DiskError> {
        self.fill(HEADER_BYTES)?;
        let header = SegmentHeader::decode(&self.buffer);
        self.advance(HEADER_BYTES.min(self.buffer.len()));
        Ok(header)
    }

    /// The next record, which should have this number.
    pub(crate) fn next(&mut self, number: RecordNumber) -> Result<Next<'_>, DiskError> {
        let bytes = loop {
            match parse_record(&self.buffer[self.at..], number) {
                Parsed::Record(payload) => break payload.len(),
                Parsed::Invalid(fault) => return Ok(Next::Bad(fault)),
                Parsed::Incomplete(_) if self.offset == self.length => return Ok(Next::End),
                Parsed::Incomplete(needed) if self.length - self.offset < needed as u64 => {
                    return Ok(Next::Bad(RecordFault::Incomplete));
                }
                Parsed::Incomplete(needed) => self.fill(needed)?,
            }
        };
        let payload = self.at + RECORD_HEADER_BYTES;
        self.advance(RECORD_HEADER_BYTES + bytes);
        Ok(Next::Record(&self.buffer[payload..payload + bytes]))
    }

    /// Judges the bad record that [`SegmentReader::next`] found. Reads the rest of the file into
    /// memory; a segment's size bounds that.
    pub(crate) fn judge(
        &mut self,
        number: RecordNumber,
        fault: RecordFault,
    ) -> Result<SegmentTail, DiskError> {
        self.fill(usize::try_from(self.length - self.offset).unwrap_or(usize::MAX))?;
        Ok(judge(&self.buffer[self.at..], self.offset, number, fault))
    }

    /// Goes on at `offset`, which [`SegmentReader::judge`] has found.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        let bytes = (offset - self.offset) as usize;
        debug_assert!(bytes <= self.buffer.len() - self.at, "judging has read the rest of the file");
        self.advance(bytes);
    }

    fn advance(&mut self, bytes: usize) {
        self.at += bytes;
        self.offset += bytes as u64;
    }

    /// Reads on until the buffer holds `needed` bytes from the current position, or the file's rest.
    fn fill(&mut self, needed: usize) -> Result<(), DiskError> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let held = self.buffer.len();
        let wanted = needed.max(READ_BYTES).saturating_sub(held) as u64;
        // No larger than the file's length, and a file that fits the disk but not the address space is
        // no segment of ours: `try_from` cannot fail on 64-bit machines.
        let bytes = usize::try_from(wanted.min(self.length - self.read_to)).unwrap_or(usize::MAX);
        self.buffer.resize(held + bytes, 0);
        self.disk.read(self.file, self.read_to, &mut self.buffer[held..])?;
        self.read_to += bytes as u64;
        Ok(())
    }
}
