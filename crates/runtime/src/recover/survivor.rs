//! What is left in the data directory of a node whose group has lost its majority. Only looks, but for the stores of an engine on
//! disk, which are opened as the node would open them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syros_backup::{BackupWriter, SnapshotSink};
use syros_protocol::record::SnapshotHead;
use syros_protocol::replica::{Config, Durability, Remains, Restored};
use syros_snapshot::{SnapshotStore, StoreDirectory as _};
use syros_storage::{Cut, DiskEngine};
use syros_types::{Configuration, NodeId, OpNumber, Reconfiguration};
use syros_wal::{OpenDirectory, ReadOnlyDisk, SnapshotBytes, check_unlocked, inspect_log, list_snapshots};

use super::RecoverError;
use crate::config::{EngineConfig, describe, replica_config};
use crate::directory::{ENGINE, Identity, SNAPSHOTS, WAL, read_membership};
use crate::disk_engine::StoreFiles;

/// Bytes of a snapshot that are read, or of a state that are cut, at a time.
const PIECE_BYTES: usize = 256 << 10;

/// Tables of a store that are kept open.
const TABLES: usize = 64;

/// A node that is left.
#[derive(Debug)]
pub struct Survivor {
    /// Its data directory.
    pub path: PathBuf,
    /// Whose that is.
    pub identity: Identity,
    /// The members of its group, as far as it knows.
    pub configuration: Reconfiguration,
    /// What its disk tells; `None` if the node had lost its memory, and knows nothing.
    pub remains: Option<Remains>,
}

impl Survivor {
    /// The id of its node; `None` if its group has never known any.
    pub(super) fn node(&self) -> Option<NodeId> {
        let Self { identity, configuration, .. } = self;
        let then = configuration.before.and_then(|before| before.node(identity.replica));
        configuration.roster.node(identity.replica).or(then)
    }

    /// True if it is of the group that has had this configuration: it knows one of its nodes.
    pub(super) fn is_of_group(&self, newest: &Reconfiguration) -> bool {
        let nodes_of = |known: &Reconfiguration| {
            let before = known.before.into_iter().flat_map(|before| before.nodes().to_vec());
            known.roster.nodes().iter().copied().chain(before).flatten().collect::<BTreeSet<NodeId>>()
        };
        let (ours, theirs) = (nodes_of(&self.configuration), nodes_of(newest));
        ours.is_empty() || theirs.is_empty() || !ours.is_disjoint(&theirs)
    }

    /// Looks at a data directory that no process uses.
    pub(super) fn look(path: &Path) -> Result<Self, RecoverError> {
        let failed = |problem: String| RecoverError::Directory { path: path.to_owned(), problem };
        for place in [path.to_owned(), path.join(WAL)] {
            check_unlocked(&place).map_err(|error| failed(error.to_string()))?;
        }
        let membership = read_membership(path).map_err(|error| failed(error.to_string()))?;
        let (identity, configuration) =
            membership.ok_or_else(|| failed("it holds no replica of a cluster".to_owned()))?;
        if identity.durability != Durability::Fsync {
            return Err(failed("its cluster kept nothing on disk (durability replicated)".to_owned()));
        }
        let mut config: Config = replica_config(identity.group, identity.replica);
        config.configuration =
            Configuration::first(identity.group, identity.fast_quorum).after(configuration);
        let snapshots = op_numbers(path, identity).map_err(failed)?;
        let mut restored = Restored::new(&config, snapshots);
        let mut problem = None;
        let owner = Some((identity.cluster, identity.replica));
        let group = config.configuration.id.of_group();
        let log = inspect_log(&mut ReadOnlyDisk::new(&path.join(WAL)), owner, |number, bytes| {
            let decoded = syros_wire::decode_record_of(group, bytes, describe);
            let replayed = decoded
                .map_err(|error| error.to_string())
                .and_then(|record| restored.replay(number.0, record).map_err(|error| error.to_string()));
            if let Err(error) = replayed {
                problem.get_or_insert(format!("record {} of its log cannot be read: {error}", number.0));
            }
        })
        .map_err(|error| failed(error.to_string()))?;
        for segment in &log.segments {
            let fault =
                segment.faults.first().map(|fault| format!("{} at offset {}", fault.reason, fault.offset));
            let failure = segment.failure.as_ref().map(ToString::to_string);
            if let Some(fault) = fault.or(failure) {
                return Err(failed(format!("its log is damaged: {}: {fault}", segment.file)));
            }
        }
        if let Some(problem) = problem {
            return Err(failed(problem));
        }
        // Fails if the snapshot is missing that the log goes with.
        restored.needed_snapshot().map_err(|error| failed(error.to_string()))?;
        let knows = !restored.is_amnesiac() && !restored.is_empty();
        let remains = knows.then(|| restored.into_remains());
        Ok(Self { path: path.to_owned(), identity, configuration, remains })
    }

    /// Writes its snapshot of this entry; how many bytes that was.
    pub(super) fn write_snapshot(
        &self,
        op_number: OpNumber,
        writer: BackupWriter,
    ) -> Result<(BackupWriter, u64), RecoverError> {
        let failed = |problem: String| RecoverError::Directory { path: self.path.clone(), problem };
        if self.identity.engine.is_on_disk() {
            return self.cut(op_number, writer).map_err(failed);
        }
        self.copy(op_number, writer)
    }

    /// Copies the snapshot file of an engine in memory.
    fn copy(
        &self,
        op_number: OpNumber,
        mut writer: BackupWriter,
    ) -> Result<(BackupWriter, u64), RecoverError> {
        let failed = |problem: String| RecoverError::Directory { path: self.path.clone(), problem };
        let mut disk = ReadOnlyDisk::new(&self.path.join(SNAPSHOTS));
        let bytes = SnapshotBytes::open(&mut disk, op_number).map_err(|error| failed(error.to_string()))?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut offset = 0;
        while offset < bytes.length() {
            let count = bytes.read(&mut disk, offset, &mut piece);
            let count = count.map_err(|error| failed(error.to_string()))?;
            writer.write(&piece[..count], &mut || {}).map_err(RecoverError::Backup)?;
            offset += count as u64;
        }
        Ok((writer, offset))
    }

    /// Writes the state of an engine on disk as a snapshot file.
    fn cut(&self, op_number: OpNumber, writer: BackupWriter) -> Result<(BackupWriter, u64), String> {
        let (engine, head) = stores(&self.path, self.identity)?
            .into_iter()
            .find(|(_, head)| head.op_number == op_number)
            .ok_or_else(|| format!("it has no store of entry {}", op_number.0))?;
        let sink = SnapshotSink::new(writer);
        let mut store =
            SnapshotStore::open(sink.clone(), self.identity.cluster).map_err(|error| error.to_string())?;
        store.begin(&head).map_err(|error| error.to_string())?;
        let mut cut = Cut::new(engine.shared());
        let mut more = true;
        while more {
            let mut block = Vec::with_capacity(PIECE_BYTES);
            more = cut.block(PIECE_BYTES, &mut block).map_err(|error| error.to_string())?;
            store.state(&block).map_err(|error| error.to_string())?;
        }
        let bytes = store.finish().map_err(|error| error.to_string())?;
        drop(store);
        Ok((sink.into_writer(), bytes))
    }
}

/// The entries of which there are snapshots, or stores.
fn op_numbers(path: &Path, identity: Identity) -> Result<Vec<OpNumber>, String> {
    if identity.engine.is_on_disk() {
        return Ok(stores(path, identity)?.into_iter().map(|(_, head)| head.op_number).collect());
    }
    list_snapshots(&mut ReadOnlyDisk::new(&path.join(SNAPSHOTS))).map_err(|error| error.to_string())
}

/// The stores of an engine on disk that have a checkpoint.
fn stores(
    path: &Path,
    identity: Identity,
) -> Result<Vec<(DiskEngine<syros_lsm::DiskStore>, SnapshotHead)>, String> {
    let directory = OpenDirectory::open(path).map_err(|error| error.to_string())?;
    if !path.join(ENGINE).exists() {
        return Ok(Vec::new());
    }
    let config = EngineConfig { kind: identity.engine, ..EngineConfig::default() };
    let mut files = StoreFiles::new(&directory, &config, TABLES);
    let mut found = Vec::new();
    for number in files.list().map_err(|error| error.to_string())? {
        let store = files.open(number).map_err(|error| error.to_string())?;
        let (engine, head) = DiskEngine::open(store).map_err(|error| error.to_string())?;
        let Some(head) = head else { continue };
        let head = syros_wire::decode_snapshot_head(&head).map_err(|error| error.to_string())?;
        found.push((engine, head));
    }
    Ok(found)
}
