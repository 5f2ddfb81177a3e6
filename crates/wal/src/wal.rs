//! The log itself: appending, syncing, segments.

use crate::disk::{Cause, Disk, DiskError};
use crate::format::{Batch, HEADER_BYTES, MARK_BYTES, RECORD_BYTES_MAX, RecordNumber, mark};
use crate::kept::{Kept, KeptSegment};
use crate::options::{Options, RESERVE_BYTES_DEFAULT};
use crate::recovery::{OpenError, Recovered, Recovery, create_segment, record_newest, recover};
use std::collections::VecDeque;
use std::fmt;

/// Room is made ahead when there is none for so many batches like the last. One would do if all were alike; a few
/// let them grow.
const BATCHES_AHEAD: u64 = 4;

/// Why the log writes nothing any more. Final: it never goes away, and whoever opens the log again
/// finds out what is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WalError {
    /// The disk failed.
    Disk(DiskError),
    /// The thread of a [`crate::GroupCommit`] panicked.
    ThreadPanicked,
    /// It was closed to be opened again, and could not be opened.
    Closed,
}

impl fmt::Display for WalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => write!(f, "the write-ahead log has stopped: {error}"),
            Self::ThreadPanicked => f.write_str("the write-ahead log has stopped: its thread panicked"),
            Self::Closed => f.write_str("the write-ahead log was closed, and cannot be opened again"),
        }
    }
}

impl std::error::Error for WalError {}

/// Why a record was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppendError {
    /// It has no bytes.
    Empty,
    /// It is too long.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The most: [`RECORD_BYTES_MAX`].
        limit: usize,
    },
    /// Too much waits for the disk; goes away as the disk catches up.
    Full {
        /// Bytes that wait.
        waiting: usize,
        /// The most: [`Options::waiting_bytes_max`].
        limit: usize,
    },
    /// The log has stopped.
    Failed(WalError),
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a log record cannot be empty"),
            Self::TooLong { bytes, limit } => {
                write!(f, "a log record of {bytes} bytes exceeds the limit of {limit}")
            }
            Self::Full { waiting, limit } => {
                write!(f, "{waiting} bytes wait for the disk, and the limit is {limit}")
            }
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AppendError {}

/// What a log has written since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records.
    pub records: u64,
    /// Bytes of those records, headers included.
    pub bytes: u64,
    /// Write calls for them: one per batch.
    pub writes: u64,
    /// Syncs of segments with records in them.
    pub syncs: u64,
    /// New segments.
    pub segments: u64,
}

/// Encodes a record behind those of `batch`. `waiting` counts the bytes that are not durable yet.
pub(crate) fn append_to(
    batch: &mut Batch,
    number: RecordNumber,
    write: impl FnOnce(&mut Vec<u8>),
    waiting: usize,
    limit: usize,
) -> Result<(), AppendError> {
    if waiting >= limit {
        return Err(AppendError::Full { waiting, limit });
    }
    batch.push(number, write).map_err(|bytes| match bytes {
        0 => AppendError::Empty,
        bytes => AppendError::TooLong { bytes, limit: RECORD_BYTES_MAX },
    })
}

/// Appends the parts of a payload to a buffer.
pub(crate) fn concatenate(parts: &[&[u8]], out: &mut Vec<u8>) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// What the owner of a log does not need any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unneeded {
    /// Records before this one.
    pub before: Option<RecordNumber>,
    /// What is kept beside the log, those records included.
    pub kept: bool,
}

impl Unneeded {
    /// True if all of it is needed.
    #[must_use]
    pub const fn is_nothing(self) -> bool {
        self.before.is_none() && !self.kept
    }
}

/// The write-ahead log, used synchronously: `append` as often as wanted, then `flush`, then `sync`.
///
/// A server hands it to a [`crate::GroupCommit`]; a simulator uses it as it is.
#[derive(Debug)]
pub struct Wal<D: Disk> {
    disk: D,
    pub(crate) options: Options,
    /// The last segment.
    file: D::File,
    /// Bytes of its header, records and marks.
    length: u64,
    /// Bytes of its file; those behind the others are zero.
    reserved: u64,
    /// It is of a format that is not written any more: what comes next goes to a new one.
    is_old: bool,
    /// A mark says that everything up to this record is durable; `None` before the first of this life.
    marked: Option<RecordNumber>,
    /// First records of all segments; never empty.
    segments: VecDeque<RecordNumber>,
    /// What is kept of those that the log needs no more.
    kept: Kept,
    /// Appended and not flushed.
    pub(crate) batch: Batch,
    /// persisted <= written <= appended.
    pub(crate) appended: RecordNumber,
    written: RecordNumber,
    persisted: RecordNumber,
    counters: Counters,
    failed: Option<WalError>,
}

impl<D: Disk> Wal<D> {
    /// Opens the log, or creates it, and hands all its records to `on_record`, in order.
    ///
    /// Everything that `on_record` got is durable when this returns. It holds one piece of a segment,
    /// or one record, in memory at a time; a segment's rest when it has to judge a torn tail.
    ///
    /// # Errors
    /// See [`OpenError`]. What `on_record` got is then not the whole log and must not be used.
    pub fn open<E>(
        mut disk: D,
        options: Options,
        on_record: impl FnMut(RecordNumber, &[u8]) -> Result<(), E>,
    ) -> Result<(Self, Recovery), OpenError<E>> {
        let recovered = recover(&mut disk, &options, on_record)?;
        let Recovered { file, length, reserved, is_old, segments, recovery } = recovered;
        let kept = Kept::open(&mut disk, segments[0], options.keep_bytes)?;
        let last = recovery.last;
        let wal = Self {
            disk,
            options,
            file,
            length,
            reserved,
            is_old,
            marked: None,
            segments,
            kept,
            batch: Batch::default(),
            appended: last,
            written: last,
            persisted: last,
            counters: Counters::default(),
            failed: None,
        };
        Ok((wal, recovery))
    }

    /// Takes a record whose payload is the concatenation of `payload_parts`. Only copies it.
    ///
    /// # Errors
    /// The record has then not been taken, and its number goes to the next.
    pub fn append(&mut self, payload_parts: &[&[u8]]) -> Result<RecordNumber, AppendError> {
        self.append_with(|out| concatenate(payload_parts, out))
    }

    /// Takes a record whose payload `write` appends to the buffer that goes to the disk.
    ///
    /// # Errors
    /// As of [`Self::append`].
    pub fn append_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<RecordNumber, AppendError> {
        self.check().map_err(AppendError::Failed)?;
        let number = self.appended.next();
        let waiting = self.batch.bytes.len();
        append_to(&mut self.batch, number, write, waiting, self.options.waiting_bytes_max)?;
        self.appended = number;
        Ok(number)
    }

    /// Writes what has been appended, with one write call; begins a new segment first if the current
    /// one is full.
    ///
    /// # Errors
    /// Final: see [`WalError`].
    pub fn flush(&mut self) -> Result<(), WalError> {
        let mut batch = std::mem::take(&mut self.batch);
        let result = self.write(&batch);
        batch.clear();
        self.batch = batch;
        result
    }

    /// Makes durable what has been flushed; does nothing if it is already.
    ///
    /// # Errors
    /// Final: see [`WalError`].
    pub fn sync(&mut self) -> Result<RecordNumber, WalError> {
        self.check()?;
        if self.persisted < self.written {
            self.sync_file()?;
            self.counters.syncs += 1;
        }
        Ok(self.persisted)
    }

    /// Removes the segments that hold only records before `record`, or keeps them beside the log; the last segment always stays.
    /// Returns how many the log has lost.
    ///
    /// # Errors
    /// Final: see [`WalError`].
    pub fn remove_before(&mut self, record: RecordNumber) -> Result<usize, WalError> {
        self.check()?;
        let mut removed = 0;
        while self.segments.get(1).is_some_and(|&second| second <= record) {
            // The oldest first, and durably before the next goes: a crash must not leave a gap.
            let segment = KeptSegment { first: self.segments[0], next: self.segments[1] };
            let result = self.kept.add(&mut self.disk, segment, self.options.keep_bytes);
            let result = result.and_then(|()| self.disk.sync_directory());
            self.noted(result)?;
            self.segments.pop_front();
            removed += 1;
        }
        Ok(removed)
    }

    /// Removes what is kept beside the log of segments that it needs no more: their space is needed.
    pub fn drop_kept(&mut self) {
        self.kept.trim(&mut self.disk, 0);
    }

    /// Lets go of what its owner does not need any more.
    ///
    /// # Errors
    /// Final: see [`WalError`].
    pub fn let_go(&mut self, unneeded: Unneeded) -> Result<(), WalError> {
        if let Some(record) = unneeded.before {
            self.remove_before(record)?;
        }
        // Not before: what the log has just lost would be kept, and a disk that is full would stay full.
        if unneeded.kept {
            self.drop_kept();
        }
        Ok(())
    }

    /// The first record that is kept, in the log or beside it.
    #[must_use]
    pub fn first_kept(&self) -> RecordNumber {
        self.kept.first().unwrap_or(self.segments[0])
    }

    /// Bytes of what is kept beside the log.
    #[must_use]
    pub const fn kept_bytes(&self) -> u64 {
        self.kept.bytes()
    }

    /// Number of the last record that was appended.
    #[must_use]
    pub const fn appended(&self) -> RecordNumber {
        self.appended
    }

    /// Number of the last record that is durable.
    #[must_use]
    pub const fn persisted(&self) -> RecordNumber {
        self.persisted
    }

    /// Number of the first record that the log still holds.
    #[must_use]
    pub fn first(&self) -> RecordNumber {
        self.segments[0]
    }

    /// Why the log has stopped, if it has.
    #[must_use]
    pub const fn error(&self) -> Option<&WalError> {
        self.failed.as_ref()
    }

    /// Notes on the disk that everything before is durable, so that rot in the last records, too, is told
    /// from a torn tail later. For a log that is about to be closed; syncs what has been flushed.
    ///
    /// # Errors
    /// Final: see [`WalError`].
    pub fn mark(&mut self) -> Result<(), WalError> {
        self.sync()?;
        if self.is_old || self.marked == Some(self.written) {
            return Ok(());
        }
        self.reserve(MARK_BYTES as u64)?;
        self.fill(&[])?;
        self.sync_file()
    }

    /// What has been written since the log was opened.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The disk, for whoever keeps other files on it.
    pub const fn disk_mut(&mut self) -> &mut D {
        &mut self.disk
    }

    /// Closes the log. What was not flushed is gone, what was not synced may be.
    #[must_use]
    pub fn into_disk(self) -> D {
        self.disk
    }

    /// Writes a batch whose first record is the one after the last written.
    pub(crate) fn write(&mut self, batch: &Batch) -> Result<(), WalError> {
        self.check()?;
        if batch.records == 0 {
            return Ok(());
        }
        let bytes = (MARK_BYTES + batch.bytes.len()) as u64;
        let is_full = self.length > HEADER_BYTES as u64 && self.length + bytes > self.options.segment_bytes;
        if is_full || self.is_old {
            self.begin_segment()?;
        }
        self.reserve(bytes)?;
        self.fill(&batch.bytes)?;
        self.written.0 += batch.records;
        self.appended = self.appended.max(self.written);
        self.counters.records += batch.records;
        self.counters.bytes += batch.bytes.len() as u64;
        self.counters.writes += 1;
        Ok(())
    }

    /// Makes room for some batches like `batch`, unless there is. For the time when nothing else is to be done: a batch
    /// that finds no room waits for it to be made. All that was written must have been synced. If the disk has no room,
    /// the log goes on in what it has.
    pub(crate) fn reserve_ahead(&mut self, batch: &Batch) -> Result<(), WalError> {
        let bytes = BATCHES_AHEAD * (MARK_BYTES + batch.bytes.len()) as u64;
        // No more than one piece: whatever comes meanwhile has to wait for it.
        let bytes = bytes.min(self.options.reserve_bytes);
        let needed = (self.length + bytes).min(self.options.segment_bytes);
        // In an old segment nothing is written any more.
        if self.is_old || needed <= self.reserved {
            return Ok(());
        }
        match self.extend(needed) {
            Ok(()) => self.sync_file(),
            // The batch that needs it will say so.
            Err(_) => Ok(()),
        }
    }

    /// Makes room for so many more bytes in the segment.
    fn reserve(&mut self, bytes: u64) -> Result<(), WalError> {
        let needed = self.length + bytes;
        if needed <= self.reserved {
            return Ok(());
        }
        let result = self.extend(needed);
        self.noted(result)?;
        // Room is of use only when it is on the device.
        self.sync_file()
    }

    /// Has the segment end at `needed` or later. What is added has to be synced; after an error nothing counts as added.
    fn extend(&mut self, needed: u64) -> Result<(), DiskError> {
        match self.extend_once(needed) {
            Err(error) if error.cause == Cause::Full && self.kept.trim(&mut self.disk, 0) => {
                self.extend_once(needed)
            }
            result => result,
        }
    }

    fn extend_once(&mut self, needed: u64) -> Result<(), DiskError> {
        let target = self.options.reserved(needed);
        let zeros = vec![0; (target - self.reserved).min(RESERVE_BYTES_DEFAULT) as usize];
        let mut reserved = self.reserved;
        while reserved < target {
            let bytes = (target - reserved).min(RESERVE_BYTES_DEFAULT);
            if let Err(error) = self.disk.append(&mut self.file, &zeros[..bytes as usize]) {
                if error.cause == Cause::Full && reserved > self.reserved {
                    // The pieces that did fit are of no use, and all that is left of the space may be in them.
                    let _ = self.disk.truncate(&mut self.file, self.reserved);
                }
                return Err(error);
            }
            reserved += bytes;
        }
        self.reserved = reserved;
        Ok(())
    }

    /// Makes durable whatever the last segment holds.
    fn sync_file(&mut self) -> Result<(), WalError> {
        let result = self.disk.sync(&mut self.file);
        self.noted(result)?;
        self.persisted = self.written;
        Ok(())
    }

    /// Writes records behind the others, and a mark before them if it would be true.
    fn fill(&mut self, records: &[u8]) -> Result<(), WalError> {
        let mark = mark(self.written.next());
        let is_marked = self.persisted == self.written;
        let parts = [if is_marked { mark.as_slice() } else { &[] }, records];
        let result = self.disk.fill(&mut self.file, self.length, &parts);
        self.noted(result)?;
        self.length += parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if is_marked {
            self.marked = Some(self.written);
        }
        Ok(())
    }

    fn begin_segment(&mut self) -> Result<(), WalError> {
        // Only the last segment may have a torn tail.
        self.sync()?;
        let first = self.written.next();
        let length = HEADER_BYTES as u64;
        let reserved = self.options.reserved(length);
        let header = self.options.header(first);
        let created = match create_segment(&mut self.disk, header, reserved) {
            Err(error) if error.cause == Cause::Full && self.kept.trim(&mut self.disk, 0) => {
                create_segment(&mut self.disk, header, reserved)
            }
            created => created,
        };
        self.file = self.noted(created)?;
        let result = record_newest(&mut self.disk, first);
        self.noted(result)?;
        (self.length, self.reserved, self.is_old) = (length, reserved, false);
        // An old one without records has just been replaced.
        if self.segments.back() != Some(&first) {
            self.segments.push_back(first);
        }
        self.counters.segments += 1;
        Ok(())
    }

    fn check(&self) -> Result<(), WalError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Remembers a failure for ever.
    fn noted<T>(&mut self, result: Result<T, DiskError>) -> Result<T, WalError> {
        result.map_err(|error| {
            let error = WalError::Disk(error);
            self.failed = Some(error.clone());
            error
        })
    }
}
