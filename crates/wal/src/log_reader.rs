//! Reading a log that is in use, for those who copy it: piece by piece, while the log's owner appends to it and removes what it does
//! not need.
//!
//! Only records that are known to be durable are read, so their bytes do not change any more. A segment may go meanwhile, or get the
//! name under which it is kept: a reader that comes too late is told that the record is gone, and never gets a later one in its place,
//! because a record's number is part of its checksum.

use crate::disk::{Cause, Disk, DiskError};
use crate::format::{NameKind, RecordNumber, name_kind, segment_name};
use crate::kept::{KeptSegment, connected};
use crate::options::Options;
use crate::recovery::{Damage, header_damage};
use crate::segment::{SegmentItem, SegmentReader};
use std::fmt;

/// Where reading goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// The segment begins with this record.
    segment: RecordNumber,
    /// The next record begins at this byte of it; 0 before the header has been looked at.
    offset: u64,
    /// The next record.
    next: RecordNumber,
}

impl LogPosition {
    /// The first record of the segment that begins with it.
    #[must_use]
    pub const fn beginning_of(segment: RecordNumber) -> Self {
        Self { segment, offset: 0, next: segment }
    }

    /// The next record that is read.
    #[must_use]
    pub const fn next(&self) -> RecordNumber {
        self.next
    }
}

/// What became of reading a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPiece {
    /// There is more to read.
    More,
    /// All was read that was to be.
    End,
}

/// Why a log cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogReadError {
    /// The segment with this record was removed, or never was there.
    Gone(RecordNumber),
    /// It is not what was written.
    Damaged {
        /// The segment.
        file: String,
        /// The place, in bytes from its beginning.
        offset: u64,
        /// What is wrong there.
        reason: Damage,
    },
    /// The disk failed.
    Disk(DiskError),
}

impl fmt::Display for LogReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(record) => write!(f, "the segment with {record} is gone"),
            Self::Damaged { file, offset, reason } => write!(f, "{file} at offset {offset}: {reason}"),
            Self::Disk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LogReadError {}

impl From<DiskError> for LogReadError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// The segments of a log that may be in use, by their first records, ascending: those that it needs, and before them those that are
/// kept beside it. Nothing is missing between them. None if there is no log.
///
/// # Errors
/// What the disk says.
pub fn log_segments<D: Disk>(disk: &mut D) -> Result<Vec<RecordNumber>, DiskError> {
    let (mut segments, mut kept) = (Vec::new(), Vec::new());
    for name in disk.list()? {
        match name_kind(&name) {
            NameKind::Segment(first) => segments.push(first),
            NameKind::Other => kept.extend(KeptSegment::of_name(&name)),
            NameKind::Temporary | NameKind::Foreign => {}
        }
    }
    let Some(first) = segments.first().copied() else { return Ok(Vec::new()) };
    let kept = connected(kept, first);
    Ok(kept.into_iter().map(|segment| segment.first).chain(segments).collect())
}

/// Reads records from `position` on, up to and with `through`, which has to be durable, and moves the position behind them. Ends
/// after about `bytes_max` bytes, at the end of a segment, and when `on_record` returns false. `options` say whose log it is.
///
/// # Errors
/// [`LogReadError`]. The records that `on_record` got are right all the same.
pub fn read_log<D: Disk>(
    disk: &mut D,
    options: &Options,
    position: &mut LogPosition,
    through: RecordNumber,
    bytes_max: u64,
    mut on_record: impl FnMut(RecordNumber, &[u8]) -> bool,
) -> Result<LogPiece, LogReadError> {
    if position.next > through {
        return Ok(LogPiece::End);
    }
    let (name, file) = open_segment(disk, position.segment)?;
    let damaged = |offset, reason| LogReadError::Damaged { file: name.clone(), offset, reason };
    let mut reader = SegmentReader::resume(disk, &file, position.offset)?;
    let header = reader.header()?.map_err(|error| damaged(0, Damage::Header(error)))?;
    if let Some(reason) = header_damage(header, options.header(position.segment)).next() {
        return Err(damaged(0, reason));
    }
    if position.offset > 0 {
        reader.go_to(position.offset);
    }
    let began = reader.offset;
    position.offset = began;
    while position.next <= through {
        let offset = reader.offset;
        if offset - began >= bytes_max {
            return Ok(LogPiece::More);
        }
        let record = position.next;
        let goes_on = match reader.next(record)? {
            SegmentItem::Record(payload) => on_record(record, payload),
            // The rest is in the next one.
            SegmentItem::End => {
                *position = LogPosition::beginning_of(record);
                return Ok(LogPiece::More);
            }
            SegmentItem::Bad(fault) => {
                return Err(damaged(offset, Damage::Record { record, fault, later: None }));
            }
        };
        (position.next, position.offset) = (record.next(), reader.offset);
        if !goes_on {
            return Ok(LogPiece::More);
        }
    }
    Ok(LogPiece::End)
}

/// Opens a segment, under whichever name it has.
fn open_segment<D: Disk>(disk: &mut D, first: RecordNumber) -> Result<(String, D::File), LogReadError> {
    let name = segment_name(first);
    let mut found = open(disk, &name)?.map(|file| (name, file));
    if found.is_none() {
        let names = disk.list()?;
        let kept =
            names.iter().filter_map(|name| KeptSegment::of_name(name)).find(|kept| kept.first == first);
        if let Some(name) = kept.map(KeptSegment::name) {
            found = open(disk, &name)?.map(|file| (name, file));
        }
    }
    found.ok_or(LogReadError::Gone(first))
}

fn open<D: Disk>(disk: &mut D, name: &str) -> Result<Option<D::File>, DiskError> {
    match disk.open(name) {
        Ok(file) => Ok(Some(file)),
        Err(DiskError { cause: Cause::NotFound, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
