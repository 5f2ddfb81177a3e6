//! What a data directory holds, for people who look at one: nothing is changed, and damage is told
//! instead of stopping at it.

use std::path::Path;
use std::{fs, io};

use syros_protocol::message::Describe;
use syros_protocol::record::Record;
use syros_types::{Class, Description, Footprint, OpNumber, OtherConfiguration, View};
use syros_wal::{FileDiskError, LogInspection, ReadOnlyDisk, RecordNumber, SnapshotsInspection};
use syros_wire::Malformed;

use crate::config::{EngineKind, describe};
use crate::directory::{DAMAGED_PREFIX, DirectoryError, Identity, read_identity};

/// So many records that cannot be decoded are told one by one, and so many of another configuration; all are counted.
const RECORDS_TOLD_MAX: usize = 16;

/// What a data directory holds.
#[derive(Debug)]
pub struct Inspection {
    /// Whose it is; `None` if it says nothing about that.
    pub identity: Result<Option<Identity>, DirectoryError>,
    /// Whether a process uses it.
    pub usage: Usage,
    /// The write-ahead log; `None` if there is no directory for one.
    pub log: Result<Option<LogInspection>, String>,
    /// What the log's intact records say.
    pub records: Records,
    /// The snapshots; `None` if there is no directory for them.
    pub snapshots: Result<Option<SnapshotsInspection>, String>,
    /// Bytes of the stores of an engine on disk, if there are any. They are not looked into.
    pub engine_bytes: Option<u64>,
    /// Stores that were damaged and set aside, oldest first.
    pub damaged: Result<Vec<SetAside>, String>,
}

/// A store that was damaged. Nobody reads it any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// Name of its directory.
    pub name: String,
    /// What its files take, in bytes.
    pub bytes: u64,
}

/// Whether a process uses a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Usage {
    /// None did when looking began.
    Unused,
    /// This process does, as far as it says which it is.
    Used {
        /// Its id.
        process: Option<u32>,
    },
    /// That cannot be known, for this reason.
    Unknown(String),
}

/// What the intact records of a log say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Moves to a view.
    pub view: u64,
    /// Updates that entered the durability log.
    pub accept: u64,
    /// Entries appended to the consensus log, by record.
    pub append: u64,
    /// Entries that came by state transfer, by record.
    pub transfer: u64,
    /// Views entered as normal.
    pub enter_view: u64,
    /// Beginnings of snapshots, or ends of the receipt of one.
    pub checkpoint: u64,
    /// Starts without memory.
    pub forgot: u64,
    /// Intact records of another configuration than the one that this version of Syros acts in: it refuses them.
    pub other_configuration: u64,
    /// Which those are and what they name, of the first few.
    pub other_configuration_told: Vec<(RecordNumber, OtherConfiguration)>,
    /// Records with a right checksum that nobody can read.
    pub malformed: u64,
    /// Which those are and why, of the first few.
    pub malformed_told: Vec<(RecordNumber, String)>,
    /// The newest view that any of them names.
    pub newest_view: Option<View>,
    /// The lowest and the highest op number of all entries.
    pub op_numbers: Option<(OpNumber, OpNumber)>,
}

impl Records {
    fn count(&mut self, number: RecordNumber, payload: &[u8], describe: Describe) {
        let record = match syros_wire::decode_record(payload, describe) {
            Ok(record) => record,
            Err(Malformed::Configuration(other)) => {
                self.other_configuration += 1;
                if self.other_configuration_told.len() < RECORDS_TOLD_MAX {
                    self.other_configuration_told.push((number, other));
                }
                return;
            }
            Err(error) => {
                self.malformed += 1;
                if self.malformed_told.len() < RECORDS_TOLD_MAX {
                    self.malformed_told.push((number, error.to_string()));
                }
                return;
            }
        };
        match record {
            Record::View { view, .. } => {
                self.view += 1;
                self.see_view(view);
            }
            Record::Accept(_) => self.accept += 1,
            Record::Append { first, view, entries, .. } => {
                self.append += 1;
                self.see_view(view);
                self.see_entries(OpNumber(first.0.saturating_sub(1)), entries.len());
            }
            Record::Transfer { base, entries } => {
                self.transfer += 1;
                self.see_entries(base, entries.len());
            }
            Record::EnterView { view, base, suffix, .. } => {
                self.enter_view += 1;
                self.see_view(view);
                self.see_entries(base, suffix.len());
            }
            Record::Checkpoint(checkpoint) => {
                self.checkpoint += 1;
                self.see_view(checkpoint.view);
                self.see_entries(checkpoint.base, checkpoint.suffix.len());
            }
            Record::Forgot { view } => {
                self.forgot += 1;
                self.see_view(view);
            }
        }
    }

    fn see_view(&mut self, view: View) {
        self.newest_view = self.newest_view.max(Some(view));
    }

    /// Takes note of `count` entries that follow `base`.
    fn see_entries(&mut self, base: OpNumber, count: usize) {
        if count == 0 {
            return;
        }
        // A record can say anything, also what no log reaches.
        let (first, last) = (base.0.saturating_add(1), base.0.saturating_add(count as u64));
        let (lowest, highest) = self.op_numbers.map_or((first, last), |(low, high)| (low.0, high.0));
        self.op_numbers = Some((OpNumber(first.min(lowest)), OpNumber(last.max(highest))));
    }
}

/// Looks at the data directory `path`. Reads every record and every snapshot to its end.
#[must_use]
pub fn inspect(path: &Path) -> Inspection {
    // Before the log: a process that begins or ends meanwhile is rather believed to be there.
    let usage = usage(path);
    let identity = read_identity(path);
    let known = identity.as_ref().ok().copied().flatten();
    // What a state machine's operations are, its own program knows.
    let describe: Describe = match known.map(|identity| identity.engine) {
        Some(EngineKind::Machine(_)) => {
            |_| Some(Description { class: Class::Merge, footprint: Footprint::All, growth: 1 })
        }
        _ => describe,
    };
    let mut records = Records::default();
    let log = look_into(&path.join("wal"), |disk| {
        let owner = known.map(|identity| (identity.cluster, identity.replica));
        syros_wal::inspect_log(disk, owner, |number, payload| records.count(number, payload, describe))
    });
    let snapshots = look_into(&path.join("snapshots"), |disk| {
        syros_wal::inspect_snapshots(disk, known.map(|identity| identity.cluster))
    });
    let damaged = set_aside(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    let engine = path.join("engine");
    // While a node writes there, files come and go.
    let engine_bytes = engine.exists().then(|| bytes_in(&engine).unwrap_or(0));
    Inspection { identity, usage, log, records, snapshots, engine_bytes, damaged }
}

/// The stores that were set aside.
fn set_aside(path: &Path) -> io::Result<Vec<SetAside>> {
    if !path.try_exists()? {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // Other names are nobody's business.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let number = name.strip_prefix(DAMAGED_PREFIX).and_then(|number| number.parse::<u64>().ok());
        if let Some(number) = number {
            found.push((number, SetAside { bytes: bytes_in(&entry.path())?, name }));
        }
    }
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, set_aside)| set_aside).collect())
}

/// What the files in a directory take, those in its directories too.
fn bytes_in(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_in(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

fn usage(path: &Path) -> Usage {
    let locks = [syros_wal::check_unlocked(path), syros_wal::check_unlocked(&path.join("wal"))];
    let mut usage = Usage::Unused;
    for lock in locks {
        match lock {
            Err(FileDiskError::Locked { process, .. }) => {
                // Of the locks that older builds take, only the log's says who it is.
                let known = if let Usage::Used { process } = usage { process } else { None };
                usage = Usage::Used { process: process.or(known) };
            }
            Err(error) if usage == Usage::Unused => usage = Usage::Unknown(error.to_string()),
            Ok(()) | Err(_) => {}
        }
    }
    usage
}

fn look_into<T, E: std::fmt::Display>(
    path: &Path,
    look: impl FnOnce(&mut ReadOnlyDisk) -> Result<T, E>,
) -> Result<Option<T>, String> {
    match path.try_exists() {
        Ok(false) => Ok(None),
        Ok(true) => look(&mut ReadOnlyDisk::new(path)).map(Some).map_err(|error| error.to_string()),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_types::{ConfigurationEpoch, ConfigurationId, GroupId};

    #[test]
    fn records_that_say_anything_are_counted() {
        let mut records = Records::default();
        let mut count = |record: &Record| {
            let mut bytes = Vec::new();
            syros_wire::encode_record(record, &mut bytes);
            records.count(RecordNumber(1), &bytes, describe);
        };
        count(&Record::View { view: View(u64::MAX), last_normal: View(0) });
        count(&Record::EnterView {
            rule: None,
            view: View(3),
            base: OpNumber(u64::MAX),
            commit: OpNumber(0),
            suffix: vec![],
        });
        count(&Record::Transfer { base: OpNumber(9), entries: vec![] });
        for number in 0..20 {
            records.count(RecordNumber(number), b"\xffnonsense", describe);
        }
        assert_eq!((records.view, records.enter_view, records.transfer, records.malformed), (1, 1, 1, 20));
        assert_eq!(records.malformed_told.len(), RECORDS_TOLD_MAX);
        assert_eq!((records.newest_view, records.op_numbers), (Some(View(u64::MAX)), None));
        records.see_entries(OpNumber(4), 3);
        records.see_entries(OpNumber(u64::MAX - 1), 3);
        assert_eq!(records.op_numbers, Some((OpNumber(5), OpNumber(u64::MAX))));
    }

    #[test]
    fn records_of_another_configuration_are_not_malformed() {
        let theirs = ConfigurationId { group: GroupId(3), epoch: ConfigurationEpoch(7) };
        let mut bytes = Vec::new();
        let record = Record::View { view: View(5), last_normal: View(0) };
        syros_wire::encode_record_of(theirs, &record, &mut bytes);
        let mut records = Records::default();
        for number in 0..20 {
            records.count(RecordNumber(number), &bytes, describe);
        }
        assert_eq!((records.other_configuration, records.malformed, records.view), (20, 0, 0));
        assert_eq!(records.newest_view, None, "a view of another configuration says nothing of this one's");
        let other = OtherConfiguration { theirs, ours: ConfigurationId::FIRST };
        assert_eq!(records.other_configuration_told[0], (RecordNumber(0), other));
        assert_eq!(records.other_configuration_told.len(), RECORDS_TOLD_MAX);
    }

    #[test]
    fn nothing_is_made() {
        let path = std::env::temp_dir().join(format!("syros-inspection-{}", std::process::id()));
        let found = inspect(&path);
        assert!(found.identity.unwrap().is_none() && found.usage == Usage::Unused);
        assert!(found.log.unwrap().is_none() && found.snapshots.unwrap().is_none());
        assert_eq!(found.damaged, Ok(Vec::new()));
        assert!(!path.exists());
    }
}
