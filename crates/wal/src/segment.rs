//! Reading one segment: from memory, for tests and fuzzing, and from a disk.

use crate::disk::{Disk, DiskError};
use crate::format::{
    FORMAT_VERSION_UNMARKED, HEADER_BYTES, HeaderError, MARK_BYTES, MARK_LENGTH, Parsed, RECORD_HEADER_BYTES,
    RecordFault, RecordNumber, SegmentHeader, parse_record,
};
use crate::resync_scan::{find_later_mark, find_later_record};

/// What a disk writes whole or not at all, in bytes. Larger sectors are multiples of it.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// How a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentTail {
    /// After a record, with nothing but room behind it.
    Clean,
    /// With something that a write cut short by a crash can leave.
    Torn(RecordFault),
    /// With a bad record that an intact later one follows, and which no crash leaves.
    Damaged {
        /// What is wrong with the bad record.
        fault: RecordFault,
        /// Where the later record starts, or the mark before it, in bytes from the beginning of the segment.
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
    /// Bytes of the header, those records and the marks among them.
    pub valid_bytes: usize,
    /// Of those, the bytes before the last mark: they were durable when it was written.
    pub marked_bytes: usize,
    /// What follows the valid bytes.
    pub tail: SegmentTail,
}

/// Reads a whole segment, as if it were the last of its log. Never panics and never allocates more than
/// a small multiple of the input, whatever the input is.
///
/// A bad record makes the tail [`SegmentTail::Damaged`] if at any later position a mark of a later number
/// stands: what is before a mark had been synced when it was written. A valid record of a later number also
/// proves damage unless what is before it can be a sector that a crash kept from being written with the rest
/// of its batch: a whole one of zeros. (In version 1, which has no marks, it always does.)
///
/// A record is "valid" if its length fits and its checksum matches a number which the
/// bytes in between leave room for. By accident that happens to 64 numbers ahead with a chance of
/// 2^-26 per position with a fitting length; so a number further ahead counts only if
/// the match ends exactly with the segment or the next record follows it.
///
/// # Errors
/// When the bytes do not begin with a valid header.
pub fn recover_segment(bytes: &[u8]) -> Result<SegmentContents<'_>, HeaderError> {
    let header = SegmentHeader::decode(bytes)?;
    let mut records = Vec::new();
    let rules = Rules::of(header);
    let mut number = header.first;
    let mut at = HEADER_BYTES;
    let mut marked_bytes = at;
    let tail = loop {
        let rest = &bytes[at..];
        let fault = match rules.parse(rest, number) {
            _ if rules.is_room(rest) => break SegmentTail::Clean,
            Parsed::Record(payload) => {
                records.push(payload);
                number = number.next();
                at += RECORD_HEADER_BYTES + payload.len();
                continue;
            }
            Parsed::Mark => {
                marked_bytes = at;
                at += MARK_BYTES;
                continue;
            }
            Parsed::Incomplete(_) => RecordFault::Incomplete,
            Parsed::Invalid(fault) => fault,
        };
        break rules.classify_tail(rest, at as u64, number, fault);
    };
    Ok(SegmentContents { header, records, valid_bytes: at, marked_bytes, tail })
}

/// What the bytes of a segment mean, by its version.
#[derive(Clone, Copy)]
struct Rules {
    /// There are marks, and room behind the last record.
    marked: bool,
}

impl Rules {
    const fn of(header: SegmentHeader) -> Self {
        Self { marked: header.version != FORMAT_VERSION_UNMARKED }
    }

    fn parse(self, bytes: &[u8], number: RecordNumber) -> Parsed<'_> {
        match parse_record(bytes, number) {
            Parsed::Mark if !self.marked => Parsed::Invalid(RecordFault::Length(MARK_LENGTH)),
            parsed => parsed,
        }
    }

    /// Whether the rest of a segment holds nothing and never held anything.
    fn is_room(self, rest: &[u8]) -> bool {
        rest.is_empty() || (self.marked && is_zero(rest))
    }

    /// Torn or damaged: what the bad record at the beginning of `tail`, at byte `offset`, means.
    fn classify_tail(
        self,
        tail: &[u8],
        offset: u64,
        number: RecordNumber,
        fault: RecordFault,
    ) -> SegmentTail {
        let record = find_later_record(tail, number);
        let mark = if self.marked { find_later_mark(tail, number) } else { None };
        let proof = match (record, mark) {
            (record, Some(mark)) => Some(record.map_or(mark, |record| record.min(mark))),
            (Some((at, _)), None) if self.marked && has_hole(&tail[..at], offset) => None,
            (record, None) => record,
        };
        match proof {
            Some((at, later)) => SegmentTail::Damaged { fault, later_offset: offset + at as u64, later },
            None => SegmentTail::Torn(fault),
        }
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Whether a sector may be missing among `bytes`, which stand at byte `offset` of a file that was zero before
/// they were written. Of the first sector only the part that begins with `bytes` was written with them.
fn has_hole(bytes: &[u8], offset: u64) -> bool {
    let first = (SECTOR_BYTES - offset % SECTOR_BYTES) as usize;
    let Some((first, rest)) = bytes.split_at_checked(first) else { return false };
    is_zero(first) || rest.chunks_exact(SECTOR_BYTES as usize).any(is_zero)
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
    /// What the header says.
    rules: Rules,
    /// Bytes read at once.
    piece: usize,
}

/// What a [`SegmentReader`] found next.
pub(crate) enum SegmentItem<'a> {
    /// A record's payload.
    Record(&'a [u8]),
    /// The end of the records: of the file, or nothing but room behind [`SegmentReader::offset`].
    End,
    /// A bad record, at [`SegmentReader::offset`].
    Bad(RecordFault),
}

impl<'a, D: Disk> SegmentReader<'a, D> {
    /// A reader at the beginning of a file.
    pub(crate) fn new(disk: &'a mut D, file: &'a D::File) -> Result<Self, DiskError> {
        let length = disk.length(file)?;
        let rules = Rules { marked: false };
        let buffer = Vec::new();
        Ok(Self { disk, file, length, offset: 0, buffer, at: 0, read_to: 0, rules, piece: READ_BYTES })
    }

    /// A reader that goes on at `offset` when it has read the header: see [`SegmentReader::go_to`].
    pub(crate) fn resume(disk: &'a mut D, file: &'a D::File, offset: u64) -> Result<Self, DiskError> {
        let mut reader = Self::new(disk, file)?;
        if offset > 0 {
            // What follows the header is not of interest.
            reader.piece = HEADER_BYTES;
        }
        Ok(reader)
    }

    /// Goes on at this place, where a record begins.
    pub(crate) fn go_to(&mut self, offset: u64) {
        self.buffer.clear();
        (self.at, self.offset, self.piece) = (0, offset, READ_BYTES);
        self.read_to = offset.min(self.length);
    }

    /// Reads the header; to be called first.
    pub(crate) fn header(&mut self) -> Result<Result<SegmentHeader, HeaderError>, DiskError> {
        self.fill(HEADER_BYTES)?;
        let header = SegmentHeader::decode(&self.buffer);
        if let Ok(header) = header {
            self.rules = Rules::of(header);
        }
        self.advance(HEADER_BYTES.min(self.buffer.len()));
        Ok(header)
    }

    /// The next record, which should have this number.
    pub(crate) fn next(&mut self, number: RecordNumber) -> Result<SegmentItem<'_>, DiskError> {
        let bytes = loop {
            let fault = match self.rules.parse(&self.buffer[self.at..], number) {
                Parsed::Record(payload) => break payload.len(),
                Parsed::Mark => {
                    self.advance(MARK_BYTES);
                    continue;
                }
                Parsed::Incomplete(needed) if self.length - self.offset >= needed as u64 => {
                    self.fill(needed)?;
                    continue;
                }
                Parsed::Incomplete(_) => RecordFault::Incomplete,
                Parsed::Invalid(fault) => fault,
            };
            return if self.is_at_room()? { Ok(SegmentItem::End) } else { Ok(SegmentItem::Bad(fault)) };
        };
        let payload = self.at + RECORD_HEADER_BYTES;
        self.advance(RECORD_HEADER_BYTES + bytes);
        Ok(SegmentItem::Record(&self.buffer[payload..payload + bytes]))
    }

    /// Judges the bad record that [`SegmentReader::next`] found. Reads the rest of the file into
    /// memory; a segment's size bounds that.
    pub(crate) fn classify_tail(
        &mut self,
        number: RecordNumber,
        fault: RecordFault,
    ) -> Result<SegmentTail, DiskError> {
        self.fill(usize::try_from(self.length - self.offset).unwrap_or(usize::MAX))?;
        Ok(self.rules.classify_tail(&self.buffer[self.at..], self.offset, number, fault))
    }

    /// Whether nothing but room follows. Reads on only as far as there are zeros, and keeps none of them.
    fn is_at_room(&mut self) -> Result<bool, DiskError> {
        let mut from = self.read_to;
        let mut piece = Vec::new();
        let mut is_room = self.rules.is_room(&self.buffer[self.at..]);
        while is_room && from < self.length {
            piece.resize(usize::try_from(self.length - from).unwrap_or(usize::MAX).min(READ_BYTES), 0);
            self.disk.read(self.file, from, &mut piece)?;
            from += piece.len() as u64;
            is_room = self.rules.is_room(&piece);
        }
        Ok(is_room)
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
        let wanted = needed.max(self.piece).saturating_sub(held) as u64;
        // No larger than the file's length, and a file that fits the disk but not the address space is
        // no segment of ours: `try_from` cannot fail on 64-bit machines.
        let bytes = usize::try_from(wanted.min(self.length - self.read_to)).unwrap_or(usize::MAX);
        self.buffer.resize(held + bytes, 0);
        self.disk.read(self.file, self.read_to, &mut self.buffer[held..])?;
        self.read_to += bytes as u64;
        Ok(())
    }
}
