//! Looking at a log and at snapshots without changing anything, and without stopping at the first damage.
//!
//! Opening a log cuts, removes and syncs, and ends at whatever it cannot explain. Here nothing is
//! written, and what is wrong is told in full: for people who want to know what is left of a directory.

use crate::disk::{Cause, Disk, DiskError, DiskOperation};
use crate::format::{
    HeaderError, NameKind, RecordFault, RecordNumber, SegmentHeader, name_kind, segment_name,
};
use crate::recovery::{Damage, header_damage, recorded_newest};
use crate::segment::{SegmentItem, SegmentReader, SegmentTail};
use crate::snapshot::{
    self, SnapshotDamage, SnapshotError, SnapshotHeader, SnapshotName, SnapshotReader, open_file,
    snapshot_name,
};
use std::fmt;
use syros_types::{OpNumber, ReplicaId};

/// After so many bad records, the rest of a segment is given up. Each takes a search of the whole rest,
/// and where there are that many, what lies between them helps nobody.
const BAD_RECORDS_MAX: usize = 64;

/// More bytes than this behind a bad record are not searched for intact ones, because that takes as much
/// memory. No segment is that long unless its options were far from the defaults.
const SEARCH_BYTES_MAX: u64 = 1 << 30;

/// What a directory holds of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogInspection {
    /// The segments, by their names in order. One that went away in the meantime is left out.
    pub segments: Vec<SegmentInspection>,
    /// Files that look like segments by their names, and are none. The log refuses to open beside them.
    pub foreign: Vec<String>,
    /// Segments whose creation was not finished. The next start removes them.
    pub unfinished: Vec<String>,
}

/// What a segment holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentInspection {
    /// Its name.
    pub file: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many of them, at its end, are room for records to come.
    pub room: u64,
    /// Its header, if it is valid.
    pub header: Option<SegmentHeader>,
    /// How many intact records it has.
    pub records: u64,
    /// The first and the last of them.
    pub range: Option<(RecordNumber, RecordNumber)>,
    /// What is wrong with it, in the order of the file. After many bad records the rest
    /// is not read.
    pub faults: Vec<SegmentFault>,
    /// What follows the records of the last segment.
    pub torn: Option<TornTail>,
    /// Why reading it ended early.
    pub failure: Option<DiskError>,
}

/// Damage of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFault {
    /// The place, in bytes from the beginning of the segment.
    pub offset: u64,
    /// What is wrong there.
    pub reason: Damage,
}

/// The end of a log that a write leaves which a crash cuts short, or which is going on. See the crate's
/// page for what else it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Where it begins, in bytes from the beginning of the segment.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// Number of the record it begins with.
    pub record: RecordNumber,
    /// What is wrong with that record.
    pub fault: RecordFault,
}

impl fmt::Display for TornTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, bytes, record, fault } = self;
        write!(f, "the last {bytes} bytes, from offset {offset} on, are torn: {record} is bad ({fault})")
    }
}

/// Walks the log of `owner` (cluster and replica; if unknown, of whoever owns the first segment with a
/// valid header) and hands every intact record to `on_record`: also those behind damage, whose numbers
/// then do not follow each other.
///
/// # Errors
/// When the directory cannot be listed. What happens at a segment is told there.
pub fn inspect_log<D: Disk>(
    disk: &mut D,
    mut owner: Option<(u64, ReplicaId)>,
    mut on_record: impl FnMut(RecordNumber, &[u8]),
) -> Result<LogInspection, DiskError> {
    let mut found = LogInspection::default();
    let mut names = Vec::new();
    // Before the list, which may otherwise be the older of the two.
    let noted = recorded_newest(disk)?;
    for name in disk.list()? {
        match name_kind(&name) {
            NameKind::Segment(first) => names.push(first),
            NameKind::Temporary => found.unfinished.push(name),
            NameKind::Foreign => found.foreign.push(name),
            NameKind::Other => {}
        }
    }
    let last = names.last().copied();
    let mut expected = None;
    for first in names {
        let context = SegmentContext { first, expected, owner, is_last: Some(first) == last };
        let file = match disk.open(&segment_name(first)) {
            // The log removed it meanwhile, because it no longer needs it.
            Err(DiskError { cause: Cause::NotFound, .. }) => {
                expected = None;
                continue;
            }
            opened => opened,
        };
        let mut segment = SegmentInspection::new(first);
        let walked = file.and_then(|file| walk(disk, &file, context, &mut segment, &mut on_record));
        expected = walked.unwrap_or_else(|error| {
            segment.failure = Some(error);
            None
        });
        owner = owner.or(segment.header.map(|header| (header.cluster, header.replica)));
        found.segments.push(segment);
    }
    if let Some(noted) = noted.filter(|noted| last.is_some_and(|last| last < *noted)) {
        let mut missing = SegmentInspection::new(noted);
        missing.fault(0, Damage::LastMissing);
        found.segments.push(missing);
    }
    Ok(found)
}

/// What a segment should be.
#[derive(Clone, Copy)]
struct SegmentContext {
    /// The record its name says it begins with.
    first: RecordNumber,
    /// Where the segment before it ends, if that is known.
    expected: Option<Expected>,
    owner: Option<(u64, ReplicaId)>,
    is_last: bool,
}

/// The number that the next segment should begin with.
#[derive(Clone, Copy)]
struct Expected {
    next: RecordNumber,
    /// Whether it may also be a later one, because records are missing before it anyway.
    or_later: bool,
}

impl SegmentInspection {
    fn new(first: RecordNumber) -> Self {
        Self {
            file: segment_name(first),
            bytes: 0,
            room: 0,
            header: None,
            records: 0,
            range: None,
            faults: Vec::new(),
            torn: None,
            failure: None,
        }
    }

    fn fault(&mut self, offset: u64, reason: Damage) {
        self.faults.push(SegmentFault { offset, reason });
    }

    fn count(&mut self, number: RecordNumber) {
        let first = self.range.map_or(number, |(first, _)| first);
        self.range = Some((first, number));
        self.records += 1;
    }

    /// Checks the header; false if the records are none of this log's.
    fn check_header(&mut self, header: Result<SegmentHeader, HeaderError>, context: SegmentContext) -> bool {
        let header = match header {
            Ok(header) => header,
            Err(error) => {
                self.fault(0, Damage::Header(error));
                return false;
            }
        };
        self.header = Some(header);
        let before = self.faults.len();
        let (cluster, replica) = context.owner.unwrap_or((header.cluster, header.replica));
        let expected = SegmentHeader { version: header.version, cluster, replica, first: context.first };
        header_damage(header, expected).for_each(|reason| self.fault(0, reason));
        self.faults.len() == before
    }
}

/// Reads one segment. Returns what the next one should begin with, if that can be known.
fn walk<D: Disk>(
    disk: &mut D,
    file: &D::File,
    context: SegmentContext,
    segment: &mut SegmentInspection,
    on_record: &mut impl FnMut(RecordNumber, &[u8]),
) -> Result<Option<Expected>, DiskError> {
    if let Some(Expected { next, or_later }) = context.expected
        && (context.first < next || (context.first > next && !or_later))
    {
        segment.fault(0, Damage::Gap { expected: next });
    }
    let mut reader = SegmentReader::new(disk, file)?;
    segment.bytes = reader.length;
    let header = reader.header()?;
    if !segment.check_header(header, context) {
        return Ok(None);
    }
    let mut next = context.first;
    let mut bad_records = 0;
    loop {
        let fault = match reader.next(next)? {
            SegmentItem::Record(payload) => {
                segment.count(next);
                on_record(next, payload);
                next = next.next();
                continue;
            }
            SegmentItem::End => {
                segment.room = reader.length - reader.offset;
                return Ok(Some(Expected { next, or_later: false }));
            }
            SegmentItem::Bad(fault) => fault,
        };
        let (offset, rest) = (reader.offset, reader.length - reader.offset);
        bad_records += 1;
        if rest > SEARCH_BYTES_MAX {
            let reason = format!(
                "{next} is bad ({fault}) and {rest} bytes from offset {offset} on are too many to search"
            );
            let file = segment.file.clone();
            return Err(DiskError { operation: DiskOperation::Read, file, cause: Cause::Other(reason) });
        }
        match reader.classify_tail(next, fault)? {
            SegmentTail::Damaged { later, later_offset, .. } => {
                segment.fault(offset, Damage::Record { record: next, fault, later: Some(later) });
                if bad_records == BAD_RECORDS_MAX {
                    return Ok(Some(Expected { next: later, or_later: true }));
                }
                reader.skip_to(later_offset);
                next = later;
            }
            SegmentTail::Torn(_) | SegmentTail::Clean if context.is_last => {
                segment.torn = Some(TornTail { offset, bytes: rest, record: next, fault });
                return Ok(None);
            }
            SegmentTail::Torn(_) | SegmentTail::Clean => {
                segment.fault(offset, Damage::Record { record: next, fault, later: None });
                return Ok(Some(Expected { next, or_later: true }));
            }
        }
    }
}

/// What a directory holds of snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotsInspection {
    /// The finished ones, ascending. One that went away in the meantime is left out.
    pub snapshots: Vec<SnapshotInspection>,
    /// Files that were being written or received.
    pub unfinished: Vec<String>,
    /// Files with other names. Nobody reads them.
    pub foreign: Vec<String>,
}

/// What a snapshot holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInspection {
    /// Its name.
    pub file: String,
    /// What its name says.
    pub op_number: OpNumber,
    /// Its length in bytes; 0 if that could not be read.
    pub bytes: u64,
    /// Its header, if it is valid and what it should be.
    pub header: Option<SnapshotHeader>,
    /// How many intact blocks it has before its end or the first damage.
    pub blocks: u64,
    /// What is wrong with it.
    pub problem: Option<SnapshotError>,
}

/// Reads all snapshots to their ends; of any cluster if `cluster` is `None`.
///
/// # Errors
/// When the directory cannot be listed. What happens at a snapshot is told there.
pub fn inspect_snapshots<D: Disk>(
    disk: &mut D,
    cluster: Option<u64>,
) -> Result<SnapshotsInspection, DiskError> {
    let mut found = SnapshotsInspection::default();
    for name in disk.list()? {
        match snapshot::parse_name(&name) {
            Some(SnapshotName::Finished(op_number)) => {
                let file = snapshot_name(op_number);
                let mut snapshot =
                    SnapshotInspection { file, op_number, bytes: 0, header: None, blocks: 0, problem: None };
                match snapshot.read(disk, cluster) {
                    // It was removed meanwhile, because there is a newer one.
                    Err(SnapshotError::Missing { .. }) => continue,
                    read => snapshot.problem = read.err(),
                }
                found.snapshots.push(snapshot);
            }
            Some(SnapshotName::Unfinished) => found.unfinished.push(name),
            None => found.foreign.push(name),
        }
    }
    Ok(found)
}

impl SnapshotInspection {
    /// Where it is damaged, in bytes from the beginning, and what is wrong there, if it is damage.
    #[must_use]
    pub fn damage(&self) -> Option<(u64, SnapshotDamage)> {
        match &self.problem {
            Some(SnapshotError::Damaged { offset, reason, .. }) => Some((*offset, *reason)),
            _ => None,
        }
    }

    fn read<D: Disk>(&mut self, disk: &mut D, cluster: Option<u64>) -> Result<(), SnapshotError> {
        let file = open_file(disk, &self.file)?;
        self.bytes = disk.length(&file)?;
        let (header, mut reader) =
            SnapshotReader::from_file(disk, file, self.file.clone(), self.op_number, cluster)?;
        self.header = Some(header);
        while reader.next(disk)?.is_some() {
            self.blocks += 1;
        }
        Ok(())
    }
}
