//! From files back to records.

use crate::atomic_file::{ReadError, WriteError, read_atomic, write_atomically};
use crate::disk::{Cause, Disk, DiskError};
use crate::format::{
    FORMAT_VERSION, HEADER_BYTES, HeaderError, NEWEST_SEGMENT_FILE, NameKind, RecordFault, RecordNumber,
    SegmentHeader, name_kind, segment_name, temporary_name,
};
use crate::options::Options;
use crate::segment::{SegmentItem, SegmentReader, SegmentTail};
use std::collections::VecDeque;
use std::fmt;
use syros_types::ReplicaId;

/// What [`crate::Wal::open`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Number of the first record the log still holds, or will hold when it has none. Above 1 when
    /// older segments were removed; the caller knows which records it can do without.
    pub first: RecordNumber,
    /// Number of the last record; one less than `first` when there is none.
    pub last: RecordNumber,
    /// Number of segments.
    pub segments: usize,
    /// Bytes of all segments, after the cut and without the room behind their records.
    pub bytes: u64,
    /// What was cut off the end, if anything. See the crate's page for what that can mean.
    pub cut: Option<CutTail>,
}

/// A torn tail that was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutTail {
    /// The segment.
    pub file: String,
    /// Its length now.
    pub offset: u64,
    /// How many bytes went. Rot in the last record shows here as its whole length; a crash in the
    /// middle of a large batch can show as anything up to the batch.
    pub bytes: u64,
    /// Number of the record that was cut, the first that is not recovered.
    pub record: RecordNumber,
    /// What was wrong with it.
    pub fault: RecordFault,
}

impl fmt::Display for CutTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, offset, bytes, record, fault } = self;
        write!(f, "cut {bytes} bytes at offset {offset} of {file}: {record} is torn ({fault})")
    }
}

/// Why a log cannot be opened. Nothing has been changed on the disk, except by
/// [`OpenError::Disk`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenError<E> {
    /// There is no log and [`Options::may_create`] is not set.
    Missing,
    /// A segment has a format that this build does not read.
    UnsupportedVersion {
        /// The segment.
        file: String,
        /// Its version.
        version: u32,
    },
    /// The files are not what a crash can leave. The records that the callback got so far are genuine,
    /// but the log may have held more.
    Damaged {
        /// The file.
        file: String,
        /// The place, in bytes from its beginning.
        offset: u64,
        /// What is wrong there.
        reason: Damage,
    },
    /// The disk failed.
    Disk(DiskError),
    /// The callback refused a record.
    Refused {
        /// The segment.
        file: String,
        /// Where the record begins, in bytes from the beginning of the segment.
        offset: u64,
        /// The record.
        record: RecordNumber,
        /// What the callback said.
        error: E,
    },
}

/// What is wrong with the files of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Damage {
    /// The name looks like a segment's, but the log gives no file such a name.
    ForeignFile,
    /// The segment header is not valid.
    Header(HeaderError),
    /// The segment belongs to another cluster.
    OtherCluster {
        /// The one asked for.
        expected: u64,
        /// The one in the file.
        found: u64,
    },
    /// The segment belongs to another replica.
    OtherReplica {
        /// The one asked for.
        expected: ReplicaId,
        /// The one in the file.
        found: ReplicaId,
    },
    /// The header says that the segment begins with another record than its name says.
    Renamed {
        /// What the header says.
        header: RecordNumber,
    },
    /// The segment does not begin where the one before it ends: one is missing, or not ours.
    Gap {
        /// The record after the last one of the segment before.
        expected: RecordNumber,
    },
    /// The segment was the last one, and is not there.
    LastMissing,
    /// A record is not valid, and something that was written later exists.
    Record {
        /// Its number.
        record: RecordNumber,
        /// What is wrong with it.
        fault: RecordFault,
        /// The next intact record in the same segment; `None` if it is a later segment that proves
        /// that this is not a torn tail.
        later: Option<RecordNumber>,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForeignFile => f.write_str("not a file of this log"),
            Self::Header(error) => error.fmt(f),
            Self::OtherCluster { expected, found } => {
                write!(f, "it belongs to cluster {found:016x}, not {expected:016x}")
            }
            Self::OtherReplica { expected, found } => write!(f, "it belongs to {found}, not {expected}"),
            Self::Renamed { header } => write!(f, "its header says that it begins with {header}"),
            Self::Gap { expected } => write!(f, "a segment that begins with {expected} is missing"),
            Self::LastMissing => f.write_str("it was the last segment, and is missing"),
            Self::Record { record, fault, later: Some(later) } => {
                write!(f, "{record} is bad ({fault}) and {later} after it is intact")
            }
            Self::Record { record, fault, later: None } => {
                write!(f, "{record} is bad ({fault}) and this is not the last segment")
            }
        }
    }
}

impl<E: fmt::Display> fmt::Display for OpenError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no write-ahead log"),
            Self::UnsupportedVersion { file, version } => write!(
                f,
                "unsupported WAL format version {version} in {file}; this build reads up to {FORMAT_VERSION}"
            ),
            Self::Damaged { file, offset, reason } => {
                write!(f, "the write-ahead log is damaged: {file} at offset {offset}: {reason}")
            }
            Self::Disk(error) => error.fmt(f),
            Self::Refused { file, offset, record, error } => write!(
                f,
                "the write-ahead log is damaged: {file} at offset {offset}: {record} is intact and makes no \
                 sense: {error}"
            ),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for OpenError<E> {}

impl<E> From<DiskError> for OpenError<E> {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// A recovered log, ready to be appended to.
pub(crate) struct Recovered<F> {
    /// The last segment.
    pub(crate) file: F,
    /// Bytes of its header, records and marks.
    pub(crate) length: u64,
    /// Bytes of its file; those behind the others are zero.
    pub(crate) reserved: u64,
    /// It is of a format that is not written any more.
    pub(crate) is_old: bool,
    /// First records of all segments.
    pub(crate) segments: VecDeque<RecordNumber>,
    /// What the caller gets to know.
    pub(crate) recovery: Recovery,
}

/// Creates a segment of so many bytes, room included, such that its name never appears before its header is
/// durable.
pub(crate) fn create_segment<D: Disk>(
    disk: &mut D,
    header: SegmentHeader,
    reserved: u64,
) -> Result<D::File, DiskError> {
    let (temporary, name) = (temporary_name(header.first), segment_name(header.first));
    let mut file = disk.create(&temporary)?;
    let mut bytes = header.encode().to_vec();
    bytes.resize(reserved as usize, 0);
    if let Err(error) = disk.append(&mut file, &bytes) {
        if error.cause == Cause::Full {
            // It would keep space that others need.
            let _ = disk.remove(&temporary);
        }
        return Err(error);
    }
    disk.sync(&mut file)?;
    disk.rename(&temporary, &name)?;
    disk.sync_directory()?;
    // By its name now, which is the one that errors should say.
    disk.open(&name)
}

/// Notes durably that this segment exists, so that it is missed when it is gone. Nobody may write records
/// to it before.
pub(crate) fn record_newest<D: Disk>(disk: &mut D, first: RecordNumber) -> Result<(), DiskError> {
    match write_atomically(disk, NEWEST_SEGMENT_FILE, &first.0.to_le_bytes()) {
        Ok(()) => Ok(()),
        Err(WriteError::Disk(error)) => Err(error),
        Err(WriteError::TooLong { .. }) => unreachable!("eight bytes are not too many"),
    }
}

/// The last segment as [`record_newest`] noted it. `None` if there never was a second one, if a version
/// wrote the log that noted nothing, or if the note is damaged: the log does not depend on it.
pub(crate) fn recorded_newest<D: Disk>(disk: &mut D) -> Result<Option<RecordNumber>, DiskError> {
    match read_atomic(disk, NEWEST_SEGMENT_FILE) {
        Ok(bytes) => {
            let number = bytes.and_then(|bytes| <[u8; 8]>::try_from(bytes.as_slice()).ok());
            Ok(number.map(|bytes| RecordNumber(u64::from_le_bytes(bytes))))
        }
        Err(ReadError::Disk(error)) => Err(error),
        Err(ReadError::Damaged { .. } | ReadError::UnsupportedVersion { .. }) => Ok(None),
    }
}

/// Streams all records into `on_record` and cuts a torn tail.
pub(crate) fn recover<D: Disk, E>(
    disk: &mut D,
    options: &Options,
    mut on_record: impl FnMut(RecordNumber, &[u8]) -> Result<(), E>,
) -> Result<Recovered<D::File>, OpenError<E>> {
    let mut segments = VecDeque::new();
    let mut temporaries = Vec::new();
    for name in disk.list()? {
        match name_kind(&name) {
            NameKind::Segment(first) => segments.push_back(first),
            NameKind::Temporary => temporaries.push(name),
            NameKind::Foreign => return Err(damaged(name, 0, Damage::ForeignFile)),
            NameKind::Other => {}
        }
    }
    let Some((&first, &last)) = segments.front().zip(segments.back()) else {
        return create(disk, options, &temporaries);
    };
    let noted = recorded_newest(disk)?;
    let mut next = first;
    let mut bytes = 0;
    for &segment in segments.iter().take(segments.len() - 1) {
        let read = read_segment(disk, options, segment, next, false, &mut on_record)?;
        next = read.next;
        bytes += read.length;
    }
    let ReadSegment { mut file, version, length, mut reserved, next, torn } =
        read_segment(disk, options, last, next, true, &mut on_record)?;
    if let Some(noted) = noted.filter(|noted| *noted > last) {
        return Err(damaged(segment_name(noted), 0, Damage::LastMissing));
    }
    let cut = match torn {
        None => None,
        Some((bytes, fault)) => {
            disk.truncate(&mut file, length)?;
            disk.sync(&mut file)?;
            reserved = length;
            Some(CutTail { file: segment_name(last), offset: length, bytes, record: next, fault })
        }
    };
    remove_temporaries(disk, &temporaries)?;
    if last > RecordNumber(1) && noted != Some(last) {
        record_newest(disk, last)?;
    }
    let recovery = Recovery {
        first,
        last: RecordNumber(next.0 - 1),
        segments: segments.len(),
        bytes: bytes + length,
        cut,
    };
    let is_old = version != FORMAT_VERSION;
    Ok(Recovered { file, length, reserved, is_old, segments, recovery })
}

/// A log's first segment.
fn create<D: Disk, E>(
    disk: &mut D,
    options: &Options,
    temporaries: &[String],
) -> Result<Recovered<D::File>, OpenError<E>> {
    if !options.may_create {
        return Err(OpenError::Missing);
    }
    remove_temporaries(disk, temporaries)?;
    let first = RecordNumber(1);
    let length = HEADER_BYTES as u64;
    let reserved = options.reserved(length);
    let file = create_segment(disk, options.header(first), reserved)?;
    let recovery = Recovery { first, last: RecordNumber(0), segments: 1, bytes: length, cut: None };
    Ok(Recovered { file, length, reserved, is_old: false, segments: VecDeque::from([first]), recovery })
}

/// Removes left-overs, and makes durable whatever an earlier process did to the directory.
fn remove_temporaries<D: Disk>(disk: &mut D, temporaries: &[String]) -> Result<(), DiskError> {
    for name in temporaries {
        disk.remove(name)?;
    }
    disk.sync_directory()
}

fn damaged<E>(file: String, offset: u64, reason: Damage) -> OpenError<E> {
    OpenError::Damaged { file, offset, reason }
}

/// A segment that was read to its end.
struct ReadSegment<F> {
    file: F,
    /// The version of its format.
    version: u32,
    /// Bytes of it that are valid.
    length: u64,
    /// Bytes of its file.
    reserved: u64,
    /// Number of the record that would come next.
    next: RecordNumber,
    /// Bytes after those, and what is wrong with them.
    torn: Option<(u64, RecordFault)>,
}

fn read_segment<D: Disk, E>(
    disk: &mut D,
    options: &Options,
    segment: RecordNumber,
    expected: RecordNumber,
    is_last: bool,
    on_record: &mut impl FnMut(RecordNumber, &[u8]) -> Result<(), E>,
) -> Result<ReadSegment<D::File>, OpenError<E>> {
    let name = segment_name(segment);
    if segment != expected {
        return Err(damaged(name, 0, Damage::Gap { expected }));
    }
    let mut file = disk.open(&name)?;
    if is_last {
        // Its end may have been written and not synced. What is recovered must be durable, and must be
        // read from where it is durable. Every other segment was synced before its successor existed.
        disk.sync_and_evict(&mut file)?;
    }
    let mut reader = SegmentReader::new(disk, &file)?;
    let SegmentHeader { version, .. } = match reader.header()? {
        Ok(header) => match header_damage(header, options.header(segment)).next() {
            Some(reason) => return Err(damaged(name, 0, reason)),
            None => header,
        },
        Err(HeaderError::Version(version)) => {
            return Err(OpenError::UnsupportedVersion { file: name, version });
        }
        Err(error) => return Err(damaged(name, 0, Damage::Header(error))),
    };
    let reserved = reader.length;
    let mut next = segment;
    loop {
        let offset = reader.offset;
        match reader.next(next)? {
            SegmentItem::Record(payload) => {
                let refused = |error| OpenError::Refused { file: name.clone(), offset, record: next, error };
                on_record(next, payload).map_err(refused)?;
                next = next.next();
            }
            SegmentItem::End => {
                let length = reader.offset;
                return Ok(ReadSegment { file, version, length, reserved, next, torn: None });
            }
            SegmentItem::Bad(fault) => {
                let (offset, rest) = (reader.offset, reader.length - reader.offset);
                let later = match is_last {
                    true => match reader.classify_tail(next, fault)? {
                        SegmentTail::Damaged { later, .. } => Some(later),
                        SegmentTail::Torn(_) | SegmentTail::Clean => {
                            let (length, torn) = (offset, Some((rest, fault)));
                            return Ok(ReadSegment { file, version, length, reserved, next, torn });
                        }
                    },
                    false => None,
                };
                return Err(damaged(name, offset, Damage::Record { record: next, fault, later }));
            }
        }
    }
}

/// In what a segment's header differs from what it should be.
pub(crate) fn header_damage(header: SegmentHeader, expected: SegmentHeader) -> impl Iterator<Item = Damage> {
    let SegmentHeader { version: _, cluster, replica, first } = expected;
    let differences = [
        (header.cluster != cluster)
            .then_some(Damage::OtherCluster { expected: cluster, found: header.cluster }),
        (header.replica != replica)
            .then_some(Damage::OtherReplica { expected: replica, found: header.replica }),
        (header.first != first).then_some(Damage::Renamed { header: header.first }),
    ];
    differences.into_iter().flatten()
}
