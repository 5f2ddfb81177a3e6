//! What can be had back when a group has lost its majority for good: from the directories that are left, a backup, of which a new
//! cluster is made like of any other.
//!
//! The log is the longest of those that are left of the newest view in which any of their nodes was normal. To it come the updates of the durability
//! logs of that view: whichever of them was acknowledged, a client may have been told so. docs/PROTOCOL.md says what is certain
//! and what is not.

mod survivor;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use syros_backup::{BackupError, BackupWriter, LastEntry, Manifest, Origin, Place, put_record};
use syros_protocol::message::{LogEntry, Request};
use syros_protocol::record::Record;
use syros_protocol::replica::Remains;
use syros_types::{OpNumber, OperationId, ReplicaId, WallTime};

pub use survivor::Survivor;

/// About so many bytes of entries go into one record.
const RECORD_BYTES: usize = 1 << 20;

/// Why nothing can be recovered. What was there is as it was.
#[derive(Debug)]
pub enum RecoverError {
    /// A directory cannot be used.
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Two directories are not of one cluster.
    OtherCluster {
        /// The directory.
        path: PathBuf,
        /// Its cluster.
        found: u64,
        /// That of the first directory.
        expected: u64,
    },
    /// A directory is of another group that has the same number: it knows none of the nodes that the others know.
    OtherGroup {
        /// The directory.
        path: PathBuf,
        /// The number.
        cluster: u64,
    },
    /// Two directories are of one replica.
    Twice {
        /// The directory.
        path: PathBuf,
        /// The replica.
        replica: ReplicaId,
    },
    /// The directories are those of a majority: nothing is lost.
    Majority {
        /// How many there are that have not lost their memory.
        survivors: usize,
        /// How many members the group has.
        replicas: usize,
    },
    /// No directory holds anything.
    Nothing,
    /// The backup cannot be written.
    Backup(BackupError),
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { path, problem } => {
                write!(f, "data directory {} cannot be used: {problem}", path.display())
            }
            Self::OtherCluster { path, found, expected } => write!(
                f,
                "data directory {} is of cluster {found:016x}, the first one of cluster {expected:016x}",
                path.display()
            ),
            Self::OtherGroup { path, cluster } => write!(
                f,
                "data directory {} is of another cluster with the number {cluster:016x} than the others: it knows none of their \
                 nodes. It may be of an earlier one, or made from the same backup",
                path.display()
            ),
            Self::Twice { path, replica } => {
                write!(f, "data directory {} is of {replica}, and so is another one", path.display())
            }
            Self::Majority { survivors, replicas } => write!(
                f,
                "these are {survivors} of {replicas} members, a majority: nothing is lost. Start them, and replace the others \
                 with --replace"
            ),
            Self::Nothing => {
                f.write_str("the nodes of these directories had lost their memory, or were replaced or removed: nothing is left in them")
            }
            Self::Backup(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecoverError {}

/// What can be recovered.
#[derive(Debug)]
pub struct RecoveryPlan {
    /// Those that are left.
    pub survivors: Vec<Survivor>,
    /// Nodes that were replaced or removed: the group has gone on without them.
    pub left_out: Vec<Survivor>,
    /// Members of the group of which there is no directory.
    pub lost: Vec<ReplicaId>,
    /// Which of the survivors has the log that is taken.
    pub chosen: usize,
    /// Everything up to this entry is certain to be what the cluster had agreed on.
    pub certain: OpNumber,
    /// The log time of that entry.
    pub certain_time: WallTime,
    /// The last entry of the log.
    pub last: LastEntry,
    /// Updates that come to it from durability logs.
    pub kept: Vec<Request>,
    /// Updates in durability logs of earlier views, which later views have dealt with.
    pub obsolete: usize,
}

impl RecoveryPlan {
    /// Looks at the directories that are left.
    ///
    /// # Errors
    /// [`RecoverError`].
    pub fn make(paths: &[PathBuf]) -> Result<Self, RecoverError> {
        let survivors: Vec<Survivor> =
            paths.iter().map(|path| Survivor::look(path)).collect::<Result<_, _>>()?;
        let first = survivors.first().ok_or(RecoverError::Nothing)?.identity;
        let newest = survivors.iter().max_by_key(|found| found.configuration.epoch);
        let newest = newest.ok_or(RecoverError::Nothing)?.configuration;
        for found in &survivors {
            let (path, cluster) = (found.path.clone(), found.identity.cluster);
            if cluster != first.cluster {
                return Err(RecoverError::OtherCluster { path, found: cluster, expected: first.cluster });
            }
            if !found.is_of_group(&newest) {
                return Err(RecoverError::OtherGroup { path, cluster });
            }
        }
        let is_member = |found: &Survivor| {
            let replica = found.identity.replica;
            newest.roster.group().has(replica) && newest.roster.node(replica) == found.node()
        };
        let (survivors, left_out): (Vec<Survivor>, Vec<Survivor>) =
            survivors.into_iter().partition(is_member);
        let mut present = BTreeSet::new();
        for Survivor { path, identity, .. } in &survivors {
            if !present.insert(identity.replica) {
                return Err(RecoverError::Twice { path: path.clone(), replica: identity.replica });
            }
        }
        let with_memory: Vec<(usize, &Remains)> = survivors
            .iter()
            .enumerate()
            .filter_map(|(at, found)| Some((at, found.remains.as_ref()?)))
            .collect();
        let replicas = newest.roster.group().size();
        if with_memory.len() > replicas / 2 {
            return Err(RecoverError::Majority { survivors: with_memory.len(), replicas });
        }
        let &(chosen, log) = with_memory
            .iter()
            .max_by_key(|(_, remains)| (remains.last_normal, remains.op_number()))
            .ok_or(RecoverError::Nothing)?;
        let certain = with_memory.iter().map(|(_, remains)| remains.commit).max().unwrap_or_default();
        let (current, earlier): (Vec<&Remains>, Vec<&Remains>) = with_memory
            .iter()
            .map(|(_, remains)| *remains)
            .partition(|remains| remains.last_normal == log.last_normal);
        let op_number = log.op_number();
        let last = LastEntry { op_number, view: log.last_normal, time: log.time_at(op_number) };
        let certain = certain.min(op_number);
        let (certain_time, kept) = (log.time_at(certain), union_of_dlogs(log, &current));
        let obsolete = earlier.iter().map(|remains| remains.dlog.len()).sum();
        let lost = newest.roster.group().members().filter(|member| !present.contains(member)).collect();
        Ok(Self { survivors, left_out, lost, chosen, certain, certain_time, last, kept, obsolete })
    }

    /// Writes the backup that new nodes are made from.
    ///
    /// # Errors
    /// [`RecoverError`]; then there is no backup.
    pub fn write(&self, target: &Place, stamp: Stamp) -> Result<Manifest, RecoverError> {
        let writer = BackupWriter::create(target).map_err(RecoverError::Backup)?;
        self.write_all(writer, stamp).inspect_err(|_| {
            // What says why is the error.
            let _ = syros_backup::remove_unfinished(target);
        })
    }

    fn write_all(&self, writer: BackupWriter, stamp: Stamp) -> Result<Manifest, RecoverError> {
        let survivor = &self.survivors[self.chosen];
        let remains = survivor.remains.as_ref().ok_or(RecoverError::Nothing)?;
        let (mut writer, snapshot) = match remains.base {
            OpNumber(0) => (writer, None),
            base => {
                let (writer, bytes) = survivor.write_snapshot(base, writer)?;
                (writer, Some((base, bytes)))
            }
        };
        let mut record_bytes = 0;
        let mut write = |record: &Record| {
            let mut bytes = Vec::new();
            put_record(record, &mut bytes);
            record_bytes += bytes.len() as u64;
            writer.write(&bytes, &mut || {}).map_err(RecoverError::Backup)
        };
        for_each_transfer(remains, &mut write)?;
        self.kept.iter().try_for_each(|request| write(&Record::Accept(request.clone())))?;
        let Stamp { id, product, created } = stamp;
        let origin = Origin {
            id,
            cluster: survivor.identity.cluster,
            product,
            created,
            snapshot,
            last: self.last,
            record_bytes,
        };
        writer.finish(origin, || {}).map_err(RecoverError::Backup)
    }
}

/// What a backup is marked with.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// A random number, not 0.
    pub id: u64,
    /// The version of the program.
    pub product: String,
    /// The time of now.
    pub created: WallTime,
}

/// The updates that durability logs of one view hold and that `log` does not, each once. A new cluster orders them by their
/// timestamps, as any view change does.
fn union_of_dlogs(log: &Remains, of_its_view: &[&Remains]) -> Vec<Request> {
    let mut known: BTreeSet<OperationId> =
        log.entries.iter().flat_map(LogEntry::updates).map(|update| update.request.id).collect();
    let all = of_its_view.iter().flat_map(|remains| &remains.dlog);
    all.filter(|request| known.insert(request.id)).cloned().collect()
}

/// The entries of a log as records.
fn for_each_transfer<E>(remains: &Remains, mut write: impl FnMut(&Record) -> Result<(), E>) -> Result<(), E> {
    let mut base = remains.base;
    let mut rest = &remains.entries[..];
    while !rest.is_empty() {
        let mut bytes = 0;
        let more = rest.iter().take_while(|entry| {
            let fits = bytes < RECORD_BYTES;
            bytes += entry.memory_bytes();
            fits
        });
        let (entries, later) = rest.split_at(more.count());
        write(&Record::Transfer { base, entries: entries.to_vec() })?;
        base = OpNumber(base.0 + entries.len() as u64);
        rest = later;
    }
    Ok(())
}
