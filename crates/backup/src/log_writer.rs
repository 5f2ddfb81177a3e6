//! Writing the log behind a backup's snapshot, file by file: a crash leaves the files that are whole, and nothing else counts.

use crate::error::BackupError;
use crate::layout::MANIFEST;
use crate::log_file::{LOG_BYTES, LogFile, PendingLog, log_name};
use crate::manifest::{Hash, LastEntry};
use crate::reader::Backup;
use crate::records::put_record;
use crate::writer::sync_directory;
use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use syros_protocol::message::LogEntry;
use syros_protocol::record::Record;
use syros_types::{OpNumber, View, WallTime};

/// Ends of the log of a backup that is being written or continued.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
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

/// Locks the backup in a directory; `None` if there is none.
fn lock(path: &Path) -> Result<Option<File>, BackupError> {
    let manifest = path.join(MANIFEST);
    let Ok(file) = File::open(&manifest) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(BackupError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(BackupError::io("lock", &manifest)(error)),
    }
}

impl LogWriter {
    /// The log of a backup that is being made in this directory, with this number: its first entry is behind `after`.
    #[must_use]
    pub fn begin(path: &Path, backup: u64, after: OpNumber) -> Self {
        let end = LastEntry { op_number: after, view: View(0), time: WallTime(0) };
        let (durable, pending, previous) = (after, PendingLog::default(), Hash::default());
        Self { path: path.to_owned(), backup, number: 1, previous, end, durable, pending, lock: None }
    }

    /// Goes on where a finished backup ends. Nobody else may do so at the same time.
    ///
    /// # Errors
    /// [`BackupError::InUse`], [`BackupError::HasRecords`] if it is not the backup of a cluster, and what the system says.
    pub fn resume(path: &Path) -> Result<(Self, Backup), BackupError> {
        let lock = lock(path)?;
        let backup = Backup::open(path)?;
        let origin = &backup.manifest().origin;
        if origin.record_bytes > 0 {
            return Err(BackupError::HasRecords { path: path.to_owned() });
        }
        let end = backup.end();
        let files = &backup.chain().files;
        let previous = files.last().map_or(Hash::default(), |file: &LogFile| file.hash);
        let writer = Self {
            path: path.to_owned(),
            backup: origin.id,
            number: files.len() as u64 + 1,
            previous,
            end,
            durable: end.op_number,
            pending: PendingLog::default(),
            lock,
        };
        // The end of a file that a crash interrupted.
        let _ = fs::remove_file(writer.temporary());
        Ok((writer, backup))
    }

    /// Keeps others from continuing the backup, once it is finished.
    ///
    /// # Errors
    /// [`BackupError::InUse`], and what the system says.
    pub fn hold(&mut self) -> Result<(), BackupError> {
        if self.lock.is_none() {
            self.lock = lock(&self.path)?;
        }
        Ok(())
    }

    fn temporary(&self) -> PathBuf {
        self.path.join(format!("{}.tmp", log_name(self.number)))
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
    /// What the system says.
    pub fn push(&mut self, entries: Vec<LogEntry>) -> Result<(), BackupError> {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else { return Ok(()) };
        let base = self.end.op_number;
        self.pending.first.get_or_insert((base.next(), first.time));
        let op_number = OpNumber(base.0 + entries.len() as u64);
        self.end = LastEntry { op_number, view: last.view, time: last.time };
        put_record(&Record::Transfer { base, entries }, &mut self.pending.records);
        if self.pending.records.len() >= LOG_BYTES { self.finish_file() } else { Ok(()) }
    }

    /// Writes what was taken, durably: a crash leaves all of the file or nothing that counts.
    ///
    /// # Errors
    /// What the system says. Nothing that was taken is lost then, and the call can be made again.
    pub fn finish_file(&mut self) -> Result<(), BackupError> {
        let encoded = self.pending.encode(self.backup, self.number, self.end, self.previous);
        let Some((file, bytes)) = encoded else { return Ok(()) };
        let (path, temporary) = (self.path.join(log_name(self.number)), self.temporary());
        if path.exists() {
            // Somebody has continued the backup before this process held it.
            return Err(BackupError::InUse { path: self.path.clone() });
        }
        let written =
            File::create(&temporary).map_err(BackupError::io("create", &temporary)).and_then(|mut file| {
                file.write_all(&bytes).map_err(BackupError::io("write", &temporary))?;
                file.sync_all().map_err(BackupError::io("sync", &temporary))?;
                fs::rename(&temporary, &path).map_err(BackupError::io("rename", &temporary))
            });
        if let Err(error) = written {
            // A disk that is full is not to stay so.
            let _ = fs::remove_file(&temporary);
            return Err(error);
        }
        sync_directory(&self.path)?;
        self.number += 1;
        self.durable = self.end.op_number;
        self.previous = file.hash;
        self.pending = PendingLog::default();
        Ok(())
    }
}
