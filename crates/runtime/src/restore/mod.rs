//! The data directory of a node of a new cluster, made from a backup before the node's first start.
//!
//! Every node of the cluster is made from the same backup, so all begin with the same log: one that holds, up to its end,
//! what was committed. docs/PROTOCOL.md says why nothing of it can be lost.

mod replay;

use std::fmt;

use syros_backup::{Backup, BackupError, Item, LastEntry, Manifest, Until};
use syros_node::data::{Owner, ViewFile};
use syros_protocol::message::{LogEntry, Payload};
use syros_protocol::record::{Checkpoint, Record, SnapshotHead};
use syros_protocol::replica::Durability;
use syros_protocol::sessions::Sessions;
use syros_snapshot::{Load as _, SnapshotStore, SnapshotStoreError, StoreLoader};
use syros_storage::{Loader, MemoryEngine};
use syros_types::{ConfigurationEpoch, ConfigurationId, Group, View};
use syros_wal::{FileDisk, FileDiskError, Options, Wal};

use crate::config::{EngineKind, NodeConfig};
use crate::descriptors::{self, Demand};
use crate::directory::{
    BackupId, DirectoryError, Identity, RestoringDirectory, SNAPSHOTS, VIEW, WAL, durability_name,
};
use crate::disk_engine::StoreFiles;
use crate::store::log_options;
use replay::State;

/// Why a data directory cannot be made from a backup. Nothing of it is left then, unless the system refuses to remove it.
#[derive(Debug)]
pub enum RestoreError {
    /// The backup cannot be read, or is damaged.
    Backup(BackupError),
    /// The data directory cannot be made.
    Directory(DirectoryError),
    /// A part of the data directory cannot be made.
    Files(FileDiskError),
    /// The engine of the configuration does not read what the engine of the backup wrote.
    Engine {
        /// The engine of the backup.
        backup: &'static str,
        /// The engine of the configuration.
        configured: EngineKind,
    },
    /// Nodes of this durability keep nothing when they end, so they cannot begin with anything.
    Durability(Durability),
    /// The state cannot be written, or is not what the backup says.
    State(SnapshotStoreError),
    /// The write-ahead log or the view cannot be written.
    Log(String),
}

impl fmt::Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backup(error) => error.fmt(f),
            Self::Directory(error) => error.fmt(f),
            Self::Files(error) => error.fmt(f),
            Self::Engine { backup, configured } => write!(
                f,
                "the backup was made of engine {backup}, and the configuration says engine {configured}, which cannot read \
                 that: set engine = \"{backup}\""
            ),
            Self::Durability(durability) => write!(
                f,
                "the configuration says durability {}: such nodes forget everything when they end, so they cannot begin with a \
                 backup. Set durability = \"fsync\"",
                durability_name(*durability)
            ),
            Self::State(error) => error.fmt(f),
            Self::Log(problem) => f.write_str(problem),
        }
    }
}

impl std::error::Error for RestoreError {}

impl From<BackupError> for RestoreError {
    fn from(error: BackupError) -> Self {
        Self::Backup(error)
    }
}

impl From<DirectoryError> for RestoreError {
    fn from(error: DirectoryError) -> Self {
        Self::Directory(error)
    }
}

impl From<FileDiskError> for RestoreError {
    fn from(error: FileDiskError) -> Self {
        Self::Files(error)
    }
}

impl From<SnapshotStoreError> for RestoreError {
    fn from(error: SnapshotStoreError) -> Self {
        Self::State(error)
    }
}

/// What a node begins with that was made from a backup.
#[derive(Clone, Copy, Debug)]
pub struct Restored {
    /// The node.
    pub identity: Identity,
    /// The last entry in it.
    pub last: LastEntry,
    /// Keys.
    pub keys: u64,
    /// The digest of the state.
    pub digest: u64,
}

/// Makes the data directory of the node that `config` is of from a backup, or from what there is of it `until` a moment. `on_bytes`
/// hears how many bytes of the state have been written. The digest of the state is computed anew from what was restored, and compared with the one that was captured.
///
/// # Errors
/// [`RestoreError`].
pub fn restore(
    config: &NodeConfig,
    backup: &Backup,
    until: Until,
    on_bytes: impl FnMut(u64),
) -> Result<Restored, RestoreError> {
    let manifest = backup.manifest();
    let configured = config.engine.kind;
    let holds_state = manifest.origin.snapshot.is_some();
    let is_readable = !holds_state || configured.is_on_disk() == manifest.is_of_disk_engine;
    if !is_readable || !configured.is_built_in() || matches!(configured, EngineKind::Machine(_)) {
        return Err(RestoreError::Engine { backup: manifest.engine(), configured });
    }
    let durability = config.replica.durability;
    if durability != Durability::Fsync {
        return Err(RestoreError::Durability(durability));
    }
    let last = backup.resolve(until)?;
    let id = backup_id(manifest, &last);
    let identity = Identity {
        cluster: id.cluster(config.cluster),
        replica: config.replica.replica,
        group: config.replica.configuration.group(),
        fast_quorum: config.replica.configuration.mode,
        durability,
        engine: configured,
    };
    let directory = RestoringDirectory::create(&config.directory)?;
    match (Restoration { config, backup, last, identity, directory: &directory }).run(on_bytes) {
        Ok(State { keys, digest }) => {
            directory.finish(identity, id)?;
            Ok(Restored { identity, last, keys, digest })
        }
        Err(error) => {
            directory.give_up();
            Err(error)
        }
    }
}

/// The number by which nodes know that they begin with the same: the backup's, and where it is not all that they begin with, also
/// the last entry's.
fn backup_id(manifest: &Manifest, last: &LastEntry) -> BackupId {
    let (id, end) = (manifest.origin.id, manifest.origin.last);
    BackupId(if *last == end { id } else { syros_types::mix(id ^ syros_types::mix(last.op_number.0)) | 1 })
}

/// What a view of the cluster that the backup is of is in a new one, whose configuration is the first: its number says which
/// came first, whatever configuration it was of.
const fn renewed(view: View) -> View {
    View::of_epoch(ConfigurationEpoch::FIRST, view.number())
}

/// An entry of the log of the cluster that the backup is of, as it stands in the log of a new one, which has other nodes.
fn renewed_entry(entry: LogEntry) -> LogEntry {
    let payload = match entry.payload {
        Payload::Reconfigure(_) => Payload::Tick,
        payload => payload,
    };
    LogEntry { view: renewed(entry.view), payload, ..entry }
}

/// Where the state goes.
enum Target {
    /// Into a snapshot file, for an engine in memory. The engine is made as well, so that its digest is known.
    File(Box<(SnapshotStore<FileDisk>, Loader)>),
    /// Into a store, for an engine on disk.
    Store(Box<StoreLoader<StoreFiles>>),
}

/// The state that entries follow.
enum Predecessor {
    /// Of an engine in memory.
    Memory(Box<Loader>),
    /// Of an engine on disk.
    Store(Box<StoreLoader<StoreFiles>>),
}

/// A directory that is being made.
struct Restoration<'a> {
    config: &'a NodeConfig,
    backup: &'a Backup,
    /// The last entry that is wanted.
    last: LastEntry,
    identity: Identity,
    directory: &'a RestoringDirectory,
}

impl Restoration<'_> {
    /// Writes everything.
    fn run(&self, on_bytes: impl FnMut(u64)) -> Result<State, RestoreError> {
        if self.last == self.backup.manifest().origin.last {
            self.copy(on_bytes)
        } else {
            self.go_on(on_bytes)
        }
    }

    /// Begins with the snapshot, executes what follows, and writes the state after that.
    fn go_on(&self, mut on_bytes: impl FnMut(u64)) -> Result<State, RestoreError> {
        let (mut target, mut bytes) = (None, 0);
        self.backup.read(self.config.replica.describe, |item| -> Result<(), RestoreError> {
            match item {
                Item::Head(_) if self.identity.engine.is_on_disk() => {
                    target = Some(Predecessor::Store(Box::new(self.open_store()?)));
                }
                Item::Head(_) => {
                    let loader = MemoryEngine::loader(self.identity.cluster);
                    target = Some(Predecessor::Memory(Box::new(loader)));
                }
                Item::Block(block) => {
                    bytes += block.len() as u64;
                    on_bytes(bytes);
                    let taken = match target.as_mut().expect("the head comes first") {
                        Predecessor::Memory(loader) => loader.block(block).map_err(SnapshotStoreError::State),
                        Predecessor::Store(loader) => loader.block(block),
                    };
                    taken?;
                }
                Item::Record(_) => {}
            }
            Ok(())
        })?;
        let LastEntry { op_number, view, time } = self.last;
        let view = renewed(view);
        let head = SnapshotHead { op_number, view, time, sessions: Sessions::default(), configuration: None };
        let state = match target {
            Some(Predecessor::Memory(loader)) => {
                let mut engine = loader.finish().map_err(SnapshotStoreError::State)?;
                self.replay_in_memory(&mut engine, &head, &self.last)?
            }
            Some(Predecessor::Store(loader)) => {
                let mut bytes = Vec::new();
                syros_wire::encode_snapshot_head(&head, &mut bytes);
                let (_, mut engine) = loader.finish(&bytes)?;
                self.replay_on_disk(&mut engine, &head, &self.last)?
            }
            None => return Err(RestoreError::Log("the backup has a log and no state before it".to_owned())),
        };
        let mut log = self.open_log()?;
        log.append(&first_record(&head, &self.last))?;
        log.finish()?;
        self.write_view(view)?;
        Ok(state)
    }

    /// Copies the snapshot, and the records behind it.
    fn copy(&self, mut on_bytes: impl FnMut(u64)) -> Result<State, RestoreError> {
        let manifest = self.backup.manifest();
        let origin = &manifest.origin;
        let keeps_sessions = origin.record_bytes > 0;
        let mut log = self.open_log()?;
        let (mut target, mut head, mut bytes) = (None, None, 0);
        if origin.snapshot.is_none() {
            let view = renewed(origin.last.view);
            log.append(&Record::View { view, last_normal: view })?;
        }
        self.backup.read(self.config.replica.describe, |item| -> Result<(), RestoreError> {
            match item {
                Item::Head(found) => {
                    let found = new_head(*found, keeps_sessions);
                    log.append(&first_record(&found, &origin.last))?;
                    target = Some(self.open_target(&found)?);
                    head = Some(found);
                }
                Item::Block(block) => {
                    bytes += block.len() as u64;
                    on_bytes(bytes);
                    take_block(target.as_mut().expect("the head comes first"), block)?;
                }
                Item::Record(record) => log.append(&renewed_record(*record))?,
            }
            Ok(())
        })?;
        if let (Some(target), Some(head)) = (target, &head) {
            finish_target(target, head)?;
        }
        log.finish()?;
        self.write_view(renewed(origin.last.view))?;
        Ok(State { keys: manifest.keys, digest: manifest.digest })
    }

    fn disk(&self, name: &str) -> Result<FileDisk, RestoreError> {
        Ok(FileDisk::open_in(self.directory.open_directory(), name)?)
    }

    fn open_log(&self) -> Result<NewLog, RestoreError> {
        let cluster = self.identity.cluster;
        let store = &self.config.store;
        let options = log_options(&self.config.replica, cluster, store.segment_bytes, store.keep_log_bytes);
        NewLog::create(self.disk(WAL)?, options)
    }

    fn open_target(&self, head: &SnapshotHead) -> Result<Target, RestoreError> {
        if !self.identity.engine.is_on_disk() {
            let mut store = SnapshotStore::open(self.disk(SNAPSHOTS)?, self.identity.cluster)?;
            store.begin(head)?;
            return Ok(Target::File(Box::new((store, MemoryEngine::loader(self.identity.cluster)))));
        }
        Ok(Target::Store(Box::new(self.open_store()?)))
    }

    fn open_store(&self) -> Result<StoreLoader<StoreFiles>, RestoreError> {
        let demand = Demand {
            members: Group::SIZE_MAX,
            has_store: true,
            redis_clients: None,
            peer_clients: None,
            unidentified: 0,
            handshakes: 0,
        };
        let descriptors = descriptors::claim(demand, "open files")
            .map_err(|error| RestoreError::Log(format!("cannot open enough files: {error}")))?;
        let directory = self.directory.open_directory();
        let files = StoreFiles::new(directory, &self.config.engine, descriptors.tables);
        Ok(StoreLoader::create(files).map_err(SnapshotStoreError::Store)?)
    }

    fn write_view(&self, view: View) -> Result<(), RestoreError> {
        let owner = Owner { cluster: self.identity.cluster, replica: self.identity.replica };
        let mut file = ViewFile::open(self.disk(VIEW)?, owner)
            .map_err(|error| RestoreError::Log(format!("cannot read the view: {error}")))?;
        file.record(view).map_err(|error| RestoreError::Log(format!("cannot write the view: {error}")))
    }
}

/// The head of the snapshot in the new cluster. What entries behind it did in their sessions is only known with these; without
/// such entries nobody can ask for an answer again, because clients take the new cluster for another one.
fn new_head(head: SnapshotHead, keeps_sessions: bool) -> SnapshotHead {
    let sessions = if keeps_sessions { head.sessions } else { Sessions::default() };
    SnapshotHead { view: renewed(head.view), sessions, configuration: None, ..head }
}

/// The first record of the log that goes with a snapshot. A replica that begins with it was normal in the view of the last
/// entry, like all others.
fn first_record(head: &SnapshotHead, last: &LastEntry) -> Record {
    let view = renewed(last.view).max(head.view);
    Record::Checkpoint(Box::new(Checkpoint {
        view,
        last_normal: view,
        rule: None,
        base: head.op_number,
        base_view: head.view,
        base_time: head.time,
        commit: head.op_number,
        suffix: Vec::new(),
        dlog: Vec::new(),
        amnesiac: false,
    }))
}

/// A record of a backup as it stands in the log of the new cluster.
fn renewed_record(record: Record) -> Record {
    match record {
        Record::Transfer { base, entries } => {
            Record::Transfer { base, entries: entries.into_iter().map(renewed_entry).collect() }
        }
        // Updates that no entry names have no view.
        record => record,
    }
}

fn take_block(target: &mut Target, block: &[u8]) -> Result<(), SnapshotStoreError> {
    match target {
        Target::File(parts) => {
            let (store, loader) = &mut **parts;
            store.state(block)?;
            loader.block(block).map_err(SnapshotStoreError::State)
        }
        Target::Store(loader) => loader.block(block),
    }
}

/// Makes the state durable, and compares it with its digest.
fn finish_target(target: Target, head: &SnapshotHead) -> Result<(), SnapshotStoreError> {
    match target {
        Target::File(parts) => {
            let (mut store, loader) = *parts;
            store.finish()?;
            loader.finish().map(drop).map_err(SnapshotStoreError::State)
        }
        Target::Store(loader) => {
            let mut bytes = Vec::new();
            syros_wire::encode_snapshot_head(head, &mut bytes);
            loader.finish(&bytes).map(drop)
        }
    }
}

/// A write-ahead log that is written from its beginning.
struct NewLog(Wal<FileDisk>);

impl NewLog {
    fn create(disk: FileDisk, mut options: Options) -> Result<Self, RestoreError> {
        options.may_create = true;
        let opened = Wal::open(disk, options, |_, _| Ok::<(), std::convert::Infallible>(()));
        opened.map(|(wal, _)| Self(wal)).map_err(|error| failed(&error))
    }

    /// Appends a record, and writes it: none waits in memory for long.
    fn append(&mut self, record: &Record) -> Result<(), RestoreError> {
        let appended =
            self.0.append_with(|out| syros_wire::encode_record_of(ConfigurationId::FIRST, record, out));
        appended.map_err(|error| failed(&error))?;
        self.0.flush().map_err(|error| failed(&error))
    }

    fn finish(mut self) -> Result<(), RestoreError> {
        self.0.mark().map_err(|error| failed(&error))
    }
}

fn failed(error: &impl fmt::Display) -> RestoreError {
    RestoreError::Log(format!("cannot write the write-ahead log: {error}"))
}
