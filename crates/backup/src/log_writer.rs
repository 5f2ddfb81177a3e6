//! Writing the log behind a backup's snapshot, file by file: a crash leaves the files that are whole, and nothing else counts.

use crate::error::BackupError;
use crate::log_file::{LOG_BYTES, LogFile, PendingLog, log_name};
use crate::manifest::{Hash, LastEntry};
use crate::reader::Backup;
use crate::records::put_record;
use crate::storage::Place;
use std::fs::File;
use syros_protocol::message::LogEntry;
use syros_protocol::record::Record;
use syros_types::{OpNumber, View, WallTime};

/// Ends of the log of a backup that is being written or continued.
#[derive(Debug)]
pub struct LogWriter {
    place: Place,
    backup: u64,
    number: u64,
    previous: Hash,
    end: LastEntry,
    /// The last entry that is on disk.
    durable: OpNumber,
    pending: PendingLog,
    /// Held as long as somebody continues the backup.
    lock: Option<File>,
}

impl LogWriter {
    /// The log of a backup that is being made in this place, with this number: its first entry is behind `after`.
    #[must_use]
    pub fn begin(place: &Place, backup: u64, after: OpNumber) -> Self {
        let end = LastEntry { op_number: after, view: View(0), time: WallTime(0) };
        let (durable, pending, previous) = (after, PendingLog::default(), Hash::default());
        Self { place: place.clone(), backup, number: 1, previous, end, durable, pending, lock: None }
    }

    /// Goes on where a finished backup ends. Nobody else may do so at the same time.
    ///
    /// # Errors
    /// [`BackupError::InUse`], [`BackupError::HasRecords`] if it is not the backup of a cluster, and what the system says.
    pub fn resume(place: &Place) -> Result<(Self, Backup), BackupError> {
        let lock = place.storage().hold()?;
        let backup = Backup::open(place)?;
        let origin = &backup.manifest().origin;
        if origin.record_bytes > 0 {
            return Err(BackupError::HasRecords { place: place.to_string() });
        }
        let end = backup.end();
        let files = &backup.chain().files;
        let previous = files.last().map_or(Hash::default(), |file: &LogFile| file.hash);
        let writer = Self {
            place: place.clone(),
            backup: origin.id,
            number: files.len() as u64 + 1,
            previous,
            end,
            durable: end.op_number,
            pending: PendingLog::default(),
            lock,
        };
        Ok((writer, backup))
    }

    /// Keeps others from continuing the backup, once it is finished.
    ///
    /// # Errors
    /// [`BackupError::InUse`], and what the system says.
    pub fn hold(&mut self) -> Result<(), BackupError> {
        if self.lock.is_none() {
            self.lock = self.place.storage().hold()?;
        }
        Ok(())
    }

    /// The last entry that was taken, on disk or not.
    #[must_use]
    pub const fn end(&self) -> LastEntry {
        self.end
    }

    /// The last entry that is on disk.
    #[must_use]
    pub const fn durable(&self) -> OpNumber {
        self.durable
    }

    /// Entries have been taken that are not on disk.
    #[must_use]
    pub const fn has_pending(&self) -> bool {
        self.pending.first.is_some()
    }

    /// Takes the entries that follow, and writes a file if they are many.
    ///
    /// # Errors
    /// As [`Self::finish_file`].
    pub fn push(&mut self, entries: Vec<LogEntry>, meanwhile: &mut dyn FnMut()) -> Result<(), BackupError> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        let base = self.end.op_number;
        self.pending.first.get_or_insert((base.next(), first.time));
        let op_number = OpNumber(base.0 + entries.len() as u64);
        self.end = LastEntry { op_number, view: last.view, time: last.time };
        put_record(&Record::Transfer { base, entries }, &mut self.pending.records);
        if self.pending.records.len() >= LOG_BYTES { self.finish_file(meanwhile) } else { Ok(()) }
    }

    /// Writes what was taken, durably: a crash leaves all of the file or nothing that counts. `meanwhile` is called again and again
    /// while a store takes long.
    ///
    /// # Errors
    /// [`BackupError::InUse`] if somebody else has written the next file; what the system or the store says. Nothing that was taken
    /// is lost then, and the call can be made again.
    pub fn finish_file(&mut self, meanwhile: &mut dyn FnMut()) -> Result<(), BackupError> {
        let encoded = self.pending.encode(self.backup, self.number, self.end, self.previous);
        let Some((file, bytes)) = encoded else { return Ok(()) };
        self.place.storage().publish(&log_name(self.number), bytes, meanwhile)?;
        self.number += 1;
        self.durable = self.end.op_number;
        self.previous = file.hash;
        self.pending = PendingLog::default();
        Ok(())
    }
}
