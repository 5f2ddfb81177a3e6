//! The log behind a backup's snapshot: all its files, and what of it is wanted.

use crate::error::BackupError;
use crate::log_file::{LogFile, log_name, log_number};
use crate::manifest::{Hash, LastEntry, Manifest};
use std::fs;
use std::path::{Path, PathBuf};
use syros_protocol::message::{Describe, LogEntry};
use syros_types::{OpNumber, WallTime};

/// Up to where a backup is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// All of it.
    #[default]
    End,
    /// Up to this entry, it included.
    Entry(OpNumber),
    /// Up to the last entry whose log time is not after this.
    Time(WallTime),
}

/// The files of the log, in their order, without a gap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chain {
    pub(crate) files: Vec<LogFile>,
}

impl Chain {
    /// Reads what the files of the log say of themselves, and checks that they belong together.
    pub(crate) fn open(directory: &Path, manifest: &Manifest) -> Result<Self, BackupError> {
        let damaged = |number: u64, problem: String| BackupError::Damaged {
            path: directory.join(log_name(number)),
            offset: 0,
            problem,
        };
        let mut files: Vec<LogFile> = Vec::new();
        let base = manifest.origin.last;
        for number in 1.. {
            let Some(file) = LogFile::open(directory, number)? else { break };
            let previous = files.last().map_or(Hash::default(), |file: &LogFile| file.hash);
            if file.backup != manifest.origin.id {
                return Err(damaged(number, "it belongs to another backup".to_owned()));
            }
            if file.previous != previous {
                return Err(damaged(
                    number,
                    "it does not follow the file before it: it is of another log".to_owned(),
                ));
            }
            // What the snapshot holds may be missing, or be there twice: the copy of the log begins before the snapshot is taken, and
            // a crash may have ended it before it had come so far.
            let before = files.last().map(|file: &LogFile| file.last);
            let reached = before.map_or(base.op_number, |last| last.op_number.max(base.op_number));
            let follows = file.first <= reached.next()
                && before.is_none_or(|last| {
                    last.op_number < file.first && last.view <= file.last.view && last.time <= file.first_time
                });
            if !follows {
                let problem = format!(
                    "it begins with entry {}, and what is before it ends with {}",
                    file.first.0, reached.0
                );
                return Err(damaged(number, problem));
            }
            files.push(file);
        }
        let count = files.len() as u64;
        let entries = fs::read_dir(directory).map_err(BackupError::io("read directory", directory))?;
        for entry in entries {
            let entry = entry.map_err(BackupError::io("read directory", directory))?;
            let number = entry.file_name().to_str().and_then(log_number);
            if let Some(later) = number.filter(|number| *number > count) {
                let problem = format!("it is missing, and {} is there", log_name(later));
                return Err(damaged(count + 1, problem));
            }
        }
        Ok(Self { files })
    }

    /// The last entry, if it is behind `base`, that of the snapshot.
    pub(crate) fn end(&self, base: LastEntry) -> LastEntry {
        self.files.last().map(|file| file.last).filter(|last| last.op_number > base.op_number).unwrap_or(base)
    }

    /// Reads the entries behind `base` in those files that are wanted, and checks that `base` is among them if its number is.
    pub(crate) fn read<E: From<BackupError>>(
        &self,
        directory: &Path,
        base: LastEntry,
        wants: impl Fn(&LogFile) -> bool,
        describe: Describe,
        mut take: impl FnMut(OpNumber, LogEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        for file in self.files.iter().filter(|file| wants(file)) {
            file.read(directory, describe, &mut |number, entry: LogEntry| {
                if number > base.op_number {
                    return take(number, entry);
                }
                if number == base.op_number && (entry.view, entry.time) != (base.view, base.time) {
                    let path: PathBuf = directory.join(log_name(file.number));
                    let problem =
                        format!("its entry {} is not the one that the snapshot ends with", number.0);
                    return Err(BackupError::Damaged { path, offset: 0, problem }.into());
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
