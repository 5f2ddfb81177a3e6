//! The way back from a replica's disk to its state: the write-ahead log, and the snapshot that it goes with.

use crate::{SnapshotStore, SnapshotStoreError, States};
use std::error::Error;
use std::fmt;
use syros_protocol::replica::{Config, Durability, InvalidRecord, Restored};
use syros_storage::StoreCause;
use syros_types::OpNumber;
use syros_wal::{
    Disk, OpenError, Options, RecordNumber, Recovery, SnapshotError, Wal, segment_name, snapshot_name,
};

/// Why log and snapshots give no state.
#[derive(Debug)]
pub enum StoredError {
    /// The write-ahead log cannot be read: damaged, gone, or of another format or owner.
    Log(OpenError<Box<dyn Error + Send + Sync>>),
    /// The log is intact and does not make sense without something that is not there.
    Incomplete {
        /// The record that the log begins with.
        first: RecordNumber,
        /// What is missing.
        source: InvalidRecord,
    },
    /// The snapshot that goes with the log cannot be read.
    Snapshot(SnapshotStoreError),
    /// A replica that starts for the first time finds what another, or an earlier life of its own, left.
    NotNew {
        /// Records in the log.
        records: u64,
        /// Snapshots.
        snapshots: usize,
    },
}

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Log(error) => error.fmt(f),
            Self::Incomplete { first, source: InvalidRecord::NoSnapshot { needed: Some(needed) } } => write!(
                f,
                "{} is missing, and what the write-ahead log held before {} with it",
                snapshot_name(*needed),
                segment_name(*first)
            ),
            Self::Incomplete { first, source } => write!(
                f,
                "the write-ahead log is damaged: {} at offset 0: what came before it is missing ({source})",
                segment_name(*first)
            ),
            Self::Snapshot(error) => error.fmt(f),
            Self::NotNew { records, snapshots } => write!(
                f,
                "the directory has no identity, but a write-ahead log with {records} records and {snapshots} \
                 snapshots; a replica that ever ran must not be started as a new one"
            ),
        }
    }
}

impl Error for StoredError {}

impl StoredError {
    /// True if what is on disk is not what was written there, so that it can only be had from others. Not
    /// what another version or program wrote, and not what the system does not let us read.
    #[must_use]
    pub const fn is_damage(&self) -> bool {
        match self {
            Self::Log(OpenError::Disk(_) | OpenError::UnsupportedVersion { .. })
            | Self::Snapshot(
                SnapshotStoreError::File(SnapshotError::Disk(_) | SnapshotError::UnsupportedVersion { .. })
                | SnapshotStoreError::Unreadable { .. },
            )
            | Self::NotNew { .. } => false,
            Self::Snapshot(SnapshotStoreError::Store(error)) => matches!(error.cause, StoreCause::Damaged),
            Self::Log(OpenError::Damaged { .. } | OpenError::Refused { .. } | OpenError::Missing)
            | Self::Incomplete { .. }
            | Self::Snapshot(_) => true,
        }
    }
}

/// What log and snapshots on a disk tell.
pub struct Stored<D: Disk, E> {
    /// What opening the log found.
    pub recovery: Recovery,
    /// The state of the replica.
    pub restored: Restored,
    /// The snapshots; none is left but the one that the log goes with.
    pub snapshot_store: SnapshotStore<D>,
    /// That snapshot and its length in bytes, if the log needs one.
    pub snapshot: Option<(OpNumber, u64)>,
    /// The state of the engine in it.
    pub engine: Option<E>,
}

impl<D: Disk, E> Stored<D, E> {
    /// Opens the log on the disk `log` and reads back what it and the snapshots tell. A log that may be
    /// created is that of a replica that never ran. `on_log` is called when the log has been read, before
    /// anything is expected of it.
    ///
    /// # Errors
    /// [`StoredError`].
    pub fn open(
        config: &Config,
        options: Options,
        snapshots: D,
        log: D,
        states: &mut impl States<D, Engine = E>,
        on_log: impl FnOnce(&Recovery),
    ) -> Result<(Wal<D>, Self), StoredError> {
        let is_new = options.may_create;
        let mut snapshot_store =
            SnapshotStore::open(snapshots, options.cluster).map_err(StoredError::Snapshot)?;
        let listed = states.list(&mut snapshot_store).map_err(StoredError::Snapshot)?;
        let snapshots = listed.len();
        let mut restored = Restored::new(config, listed);
        let (wal, recovery) = Wal::open(log, options, |RecordNumber(number), bytes| {
            let record =
                syros_wire::decode_record_of(config.configuration.id.of_group(), bytes, config.describe)?;
            Ok(restored.replay(number, record)?)
        })
        .map_err(StoredError::Log)?;
        on_log(&recovery);
        let records = (recovery.last.0 + 1).saturating_sub(recovery.first.0);
        if is_new && (records > 0 || snapshots > 0) {
            return Err(StoredError::NotNew { records, snapshots });
        }
        let incomplete = |source| StoredError::Incomplete { first: recovery.first, source };
        restored.check_beginning(recovery.first.0).map_err(incomplete)?;
        // Without fsync only the view counts.
        let needed = match config.durability {
            Durability::Replicated => None,
            Durability::Fsync => restored.needed_snapshot().map_err(incomplete)?,
        };
        let (mut snapshot, mut engine) = (None, None);
        if let Some(op_number) = needed {
            let loaded = states.load(&mut snapshot_store, op_number).map_err(StoredError::Snapshot)?;
            restored.attach(loaded.head, loaded.bytes).map_err(incomplete)?;
            (snapshot, engine) = (Some((op_number, loaded.bytes)), Some(loaded.engine));
        }
        states.keep_only(&mut snapshot_store, needed).map_err(StoredError::Snapshot)?;
        Ok((wal, Self { recovery, restored, snapshot_store, snapshot, engine }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SnapshotFiles;
    use syros_protocol::record::SnapshotHead;
    use syros_protocol::sessions::Sessions;
    use syros_storage::{MemoryEngine, RemovalPace};
    use syros_types::{Configuration, FastQuorum, Group, ReplicaId, SessionId, View, WallTime};
    use syros_wal::Cause;
    use syros_wal::memory_disk::MemoryDisk;

    const CLUSTER: u64 = 7;

    fn open(disk: &MemoryDisk, may_create: bool) -> Result<Stored<MemoryDisk, MemoryEngine>, StoredError> {
        let group = Group::new(3).expect("three members");
        let config = Config::new(
            Configuration::first(group, FastQuorum::Majority),
            ReplicaId(0),
            |_| None,
            |_, _| false,
        );
        let options = Options { may_create, ..Options::new(CLUSTER, ReplicaId(0)) };
        Stored::open(
            &config,
            options,
            disk.clone(),
            disk.clone(),
            &mut SnapshotFiles { hash_seed: 0, pace: RemovalPace::STANDARD },
            |_| (),
        )
        .map(|(_, stored)| stored)
    }

    #[test]
    fn snapshots_without_a_log_are_not_a_new_replica() {
        let disk = MemoryDisk::new();
        let mut snapshot_store = SnapshotStore::open(disk.clone(), CLUSTER).expect("an empty disk");
        let (view, time) = (View(1), WallTime(1));
        snapshot_store
            .begin(&SnapshotHead {
                op_number: OpNumber(9),
                view,
                time,
                sessions: Sessions::default(),
                configuration: None,
            })
            .expect("a disk that works");
        snapshot_store.finish().expect("a disk that works");
        let refused = open(&disk, true).err().expect("something is there");
        assert!(matches!(refused, StoredError::NotNew { records: 0, snapshots: 1 }), "{refused:?}");
        assert!(!refused.is_damage(), "nobody else's state is to take the place of it");
        let unreadable =
            SnapshotStoreError::Unreadable { by: "files".to_owned(), why: "version 2".to_owned() };
        assert!(!StoredError::Snapshot(unreadable).is_damage(), "another program can read it");
        assert_eq!(snapshot_store.list().expect("a disk that works"), [OpNumber(9)], "it is left alone");
    }

    #[test]
    fn a_snapshot_whose_head_finds_no_room_leaves_nothing_behind() {
        let disk = MemoryDisk::new();
        let mut snapshot_store = SnapshotStore::open(disk.clone(), CLUSTER).expect("an empty disk");
        let mut sessions = Sessions::default();
        (1..=20_000).for_each(|number| sessions.register(SessionId(number), number, WallTime(1)));
        let (view, time) = (View(1), WallTime(1));
        disk.fail_next_write(Cause::Full, 1000);
        let (op_number, configuration) = (OpNumber(9), None);
        let begun = snapshot_store.begin(&SnapshotHead { op_number, view, time, sessions, configuration });
        assert!(begun.is_err(), "the head is written when so much of it has gathered");
        snapshot_store.give_up().expect("the disk removes files");
        assert_eq!(disk.clone().list().expect("a disk that works"), Vec::<String>::new());
    }

    #[test]
    fn a_log_that_is_missing_is_damage_unless_the_replica_is_new() {
        let disk = MemoryDisk::new();
        let missing = open(&disk, false).err().expect("there is no log");
        assert!(missing.is_damage(), "{missing:?}");
        assert!(open(&disk, true).expect("a new one").engine.is_none());
        assert!(open(&disk, false).is_ok(), "now there is one");
    }
}
