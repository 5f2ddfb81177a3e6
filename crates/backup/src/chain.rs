//! The log behind a backup's snapshot: all its files, and what of it is wanted.

use crate::error::BackupError;
use crate::log_file::{LINES_BYTES_MAX, LogFile, log_name, log_number};
use crate::manifest::{Hash, LastEntry, Manifest};
use crate::storage::Place;
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
    pub(crate) fn open(place: &Place, manifest: &Manifest) -> Result<Self, BackupError> {
        let damaged = |number: u64, problem: String| BackupError::Damaged {
            place: place.name_of(&log_name(number)),
            offset: 0,
            problem,
        };
        let mut files: Vec<LogFile> = Vec::new();
        let base = manifest.origin.last;
        for (number, start) in (1..).zip(beginnings(place)?) {
            let file = LogFile::open(place, number, &start)?;
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
        Ok(Self { files })
    }

    /// The last entry, if it is behind `base`, that of the snapshot.
    pub(crate) fn end(&self, base: LastEntry) -> LastEntry {
        self.files.last().map(|file| file.last).filter(|last| last.op_number > base.op_number).unwrap_or(base)
    }

    /// Reads the entries behind `base` in those files that are wanted, and checks that `base` is among them if its number is.
    pub(crate) fn read<E: From<BackupError>>(
        &self,
        place: &Place,
        base: LastEntry,
        wants: impl Fn(&LogFile) -> bool,
        describe: Describe,
        mut take: impl FnMut(OpNumber, LogEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        for file in self.files.iter().filter(|file| wants(file)) {
            file.read(place, describe, &mut |number, entry: LogEntry| {
                if number > base.op_number {
                    return take(number, entry);
                }
                if number == base.op_number && (entry.view, entry.time) != (base.view, base.time) {
                    let place = place.name_of(&log_name(file.number));
                    let problem =
                        format!("its entry {} is not the one that the snapshot ends with", number.0);
                    return Err(BackupError::Damaged { place, offset: 0, problem }.into());
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// What each file of the log begins with, in their order. None may be missing between two others.
fn beginnings(place: &Place) -> Result<Vec<Vec<u8>>, BackupError> {
    let mut numbers: Vec<u64> = place
        .storage()
        .list()?
        .iter()
        .filter_map(|name| log_number(name))
        .filter(|number| *number > 0)
        .collect();
    numbers.sort_unstable();
    let missing = |number: u64, later: u64| {
        let problem = format!("it is missing, and {} is there", log_name(later));
        BackupError::Damaged { place: place.name_of(&log_name(number)), offset: 0, problem }
    };
    if let Some((number, later)) = (1..).zip(&numbers).find(|(number, found)| number != *found) {
        return Err(missing(number, *later));
    }
    let names: Vec<String> = numbers.iter().map(|number| log_name(*number)).collect();
    let starts = place.storage().read_starts(&names, LINES_BYTES_MAX)?;
    // One may have gone meanwhile.
    let found = starts
        .into_iter()
        .zip(&numbers)
        .map(|(start, number)| start.ok_or_else(|| missing(*number, *number)));
    found.collect()
}
