//! Reading what nobody reads while a replica runs, to find rot while others can still repair it.

use crate::disk::{Cause, Disk, DiskError};
use crate::format::{NameKind, RecordNumber, name_kind, segment_name};
use crate::options::Options;
use crate::recovery::{Damage, header_damage, recorded_newest};
use crate::segment::{SegmentItem, SegmentReader};
use crate::snapshot::{
    SNAPSHOT_BLOCK_HEADER_BYTES, SnapshotError, SnapshotReader, list_snapshots, open_file, snapshot_name,
};
use std::fmt;
use syros_types::{OpNumber, ReplicaId};

/// So many bytes are read between two calls of `pace`, or one record or block where that is longer.
const PACE_BYTES: u64 = 1024 * 1024;

/// The first thing that is wrong with files that should not change any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The file.
    pub file: String,
    /// The place, in bytes from its beginning.
    pub offset: u64,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at offset {}: {}", self.file, self.offset, self.reason)
    }
}

impl Flaw {
    fn of_log(file: String, offset: u64, reason: Damage) -> Self {
        Self { file, offset, reason: reason.to_string() }
    }
}

/// Why reading ends early.
enum Stop {
    /// `pace` said so.
    Told,
    Disk(DiskError),
}

impl From<DiskError> for Stop {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}

/// What was found until reading ended.
fn ended(result: Result<Option<Flaw>, Stop>) -> Result<Option<Flaw>, DiskError> {
    match result {
        Ok(flaw) => Ok(flaw),
        Err(Stop::Told) => Ok(None),
        Err(Stop::Disk(error)) => Err(error),
    }
}

/// Calls `pace` with the bytes read since the last time, when those are many.
struct Pacer<P> {
    pace: P,
    untold: u64,
}

impl<P: FnMut(u64) -> bool> Pacer<P> {
    const fn new(pace: P) -> Self {
        Self { pace, untold: 0 }
    }

    /// So many bytes more have been read.
    fn read(&mut self, bytes: u64) -> Result<(), Stop> {
        self.untold += bytes;
        if self.untold >= PACE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Stop> {
        let bytes = std::mem::take(&mut self.untold);
        if (self.pace)(bytes) { Ok(()) } else { Err(Stop::Told) }
    }
}

/// Reads the finished segments of the log of this replica of this cluster, which may be in use: all but
/// the last, of which only the header is read. Drops each from the system's caches first, so that what is
/// on the device is read, as far as the disk can do that. Calls `pace` every now and then with the number
/// of bytes read since; it may take its time, and ends everything by returning false.
///
/// A segment that goes meanwhile was removed because nobody needs it any more, and is no flaw.
///
/// # Errors
/// When the disk fails; that says nothing about what is on it.
pub fn scrub_log<D: Disk>(
    disk: &mut D,
    cluster: u64,
    replica: ReplicaId,
    pace: impl FnMut(u64) -> bool,
) -> Result<Option<Flaw>, DiskError> {
    ended(read_log(disk, &Options::new(cluster, replica), &mut Pacer::new(pace)))
}

fn read_log<D: Disk>(
    disk: &mut D,
    options: &Options,
    pacer: &mut Pacer<impl FnMut(u64) -> bool>,
) -> Result<Option<Flaw>, Stop> {
    // Before the list, which may otherwise be the older of the two.
    let noted = recorded_newest(disk)?;
    let mut segments = Vec::new();
    for name in disk.list()? {
        match name_kind(&name) {
            NameKind::Segment(first) => segments.push(first),
            NameKind::Foreign => return Ok(Some(Flaw::of_log(name, 0, Damage::ForeignFile))),
            NameKind::Temporary | NameKind::Other => {}
        }
    }
    let Some(last) = segments.pop() else { return Ok(None) };
    if let Some(noted) = noted.filter(|noted| *noted > last) {
        return Ok(Some(Flaw::of_log(segment_name(noted), 0, Damage::LastMissing)));
    }
    // Its header first: if it is none of ours, the one before it may be in use and not finished.
    if let Some(flaw) = read_segment(disk, options, last, None, pacer)?.err() {
        return Ok(Some(flaw));
    }
    let mut expected = None;
    for &first in &segments {
        if let Some(flaw) = gap(disk, first, expected)? {
            return Ok(Some(flaw));
        }
        match read_segment(disk, options, first, Some(&mut expected), pacer)? {
            Ok(()) => {}
            Err(flaw) => return Ok(Some(flaw)),
        }
    }
    pacer.flush()?;
    Ok(gap(disk, last, expected)?)
}

/// The segment that begins with `first` should begin with `expected`, if that is known and it is there.
fn gap<D: Disk>(
    disk: &mut D,
    first: RecordNumber,
    expected: Option<RecordNumber>,
) -> Result<Option<Flaw>, DiskError> {
    match expected {
        Some(expected) if expected != first => flaw(disk, segment_name(first), 0, Damage::Gap { expected }),
        _ => Ok(None),
    }
}

/// The flaw of a file, unless it was removed meanwhile.
fn flaw<D: Disk>(disk: &mut D, file: String, offset: u64, reason: Damage) -> Result<Option<Flaw>, DiskError> {
    Ok(exists(disk, &file)?.then(|| Flaw::of_log(file, offset, reason)))
}

fn exists<D: Disk>(disk: &mut D, file: &str) -> Result<bool, DiskError> {
    match disk.open(file) {
        Ok(_) => Ok(true),
        Err(DiskError { cause: Cause::NotFound, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads a segment: to its end if it is finished, and then says what the next one should begin with, if
/// that is known.
fn read_segment<D: Disk>(
    disk: &mut D,
    options: &Options,
    first: RecordNumber,
    next_expected: Option<&mut Option<RecordNumber>>,
    pacer: &mut Pacer<impl FnMut(u64) -> bool>,
) -> Result<Result<(), Flaw>, Stop> {
    let name = segment_name(first);
    let mut next = None;
    let damage = match disk.open(&name) {
        Err(DiskError { cause: Cause::NotFound, .. }) => None,
        Err(error) => return Err(error.into()),
        Ok(mut file) => {
            if next_expected.is_some() {
                disk.sync_and_evict(&mut file)?;
            }
            read_file(disk, &file, options, first, next_expected.is_some().then_some(&mut next), pacer)?
        }
    };
    if let Some(expected) = next_expected {
        *expected = next;
    }
    match damage {
        None => Ok(Ok(())),
        Some((offset, reason)) => Ok(flaw(disk, name, offset, reason)?.map_or(Ok(()), Err)),
    }
}

/// Reads the header, and all records if `end` is there, which is then set to the record after them.
fn read_file<D: Disk>(
    disk: &mut D,
    file: &D::File,
    options: &Options,
    first: RecordNumber,
    end: Option<&mut Option<RecordNumber>>,
    pacer: &mut Pacer<impl FnMut(u64) -> bool>,
) -> Result<Option<(u64, Damage)>, Stop> {
    let mut reader = SegmentReader::new(disk, file)?;
    let header = match reader.header()? {
        Ok(header) => header,
        Err(error) => return Ok(Some((0, Damage::Header(error)))),
    };
    if let Some(damage) = header_damage(header, options.header(first)).next() {
        return Ok(Some((0, damage)));
    }
    let Some(end) = end else { return Ok(None) };
    let mut next = first;
    loop {
        let offset = reader.offset;
        match reader.next(next)? {
            SegmentItem::Record(_) => next = next.next(),
            SegmentItem::End => {
                *end = Some(next);
                return Ok(None);
            }
            SegmentItem::Bad(fault) => {
                return Ok(Some((offset, Damage::Record { record: next, fault, later: None })));
            }
        }
        pacer.read(reader.offset - offset)?;
    }
}

/// Reads the finished snapshots of a replica of this cluster, which may be in use, like [`scrub_log`]. Only
/// their blocks are looked at, not what is in them.
///
/// # Errors
/// When the disk fails; that says nothing about what is on it.
pub fn scrub_snapshots<D: Disk>(
    disk: &mut D,
    cluster: u64,
    pace: impl FnMut(u64) -> bool,
) -> Result<Option<Flaw>, DiskError> {
    ended(read_snapshots(disk, cluster, &mut Pacer::new(pace)))
}

fn read_snapshots<D: Disk>(
    disk: &mut D,
    cluster: u64,
    pacer: &mut Pacer<impl FnMut(u64) -> bool>,
) -> Result<Option<Flaw>, Stop> {
    for op_number in list_snapshots(disk)? {
        let file = snapshot_name(op_number);
        let flaw = match read_snapshot(disk, &file, op_number, cluster, pacer)? {
            Ok(()) | Err(SnapshotError::Missing { .. }) => continue,
            Err(SnapshotError::Disk(error)) => return Err(error.into()),
            Err(SnapshotError::Damaged { file, offset, reason }) => {
                Flaw { file, offset, reason: reason.to_string() }
            }
            Err(error @ SnapshotError::UnsupportedVersion { .. }) => {
                Flaw { file: file.clone(), offset: 0, reason: error.to_string() }
            }
        };
        if exists(disk, &file)? {
            return Ok(Some(flaw));
        }
    }
    pacer.flush()?;
    Ok(None)
}

fn read_snapshot<D: Disk>(
    disk: &mut D,
    name: &str,
    op_number: OpNumber,
    cluster: u64,
    pacer: &mut Pacer<impl FnMut(u64) -> bool>,
) -> Result<Result<(), SnapshotError>, Stop> {
    let read = |disk: &mut D| {
        let mut file = open_file(disk, name)?;
        disk.sync_and_evict(&mut file)?;
        SnapshotReader::from_file(disk, file, name.to_owned(), op_number, Some(cluster))
    };
    let mut reader = match read(disk) {
        Ok((_, reader)) => reader,
        Err(error) => return Ok(Err(error)),
    };
    loop {
        match reader.next(disk) {
            Ok(None) => return Ok(Ok(())),
            Ok(Some((_, block))) => pacer.read((SNAPSHOT_BLOCK_HEADER_BYTES + block.len()) as u64)?,
            Err(error) => return Ok(Err(error)),
        }
    }
}
