//! What executes a node's log: an engine in memory (the store of keys, or a state machine of somebody's own), which the
//! event loop runs itself, or one on disk with threads of its own.

use std::sync::Arc;

use mio::Waker;
use syros_lsm::DiskStore;
use syros_node::data::{Data, ViewFile};
use syros_node::snapshots::EngineFiles;
use syros_node::{Execution, MemoryExecutor};
use syros_protocol::replica::{Config, Restored};
use syros_snapshot::{Stored, Stores};
use syros_types::OpNumber;
use syros_wal::{FileDisk, Recovery, Wal};

use crate::directory::DataDirectory;
use crate::disk_engine::{DiskEngineHandle, DiskEngineSettings};
use crate::long_replies::LongReplies;
use crate::machine_memory::machine_memory;
use crate::memory_engine::{AnyMemoryEngine, MemoryEngineFiles};
use crate::reserve::Reserve;
use crate::snapshots::SnapshotThread;
use crate::start_error::LogError;
use crate::store;

/// The threads that a process has beside the [`Execution`] of its log.
pub(crate) enum EngineThreads {
    /// Of an engine in memory: threads that put long replies together.
    InMemory(LongReplies),
    /// Of an engine on disk: its own threads.
    OnDisk(Box<DiskEngineHandle>),
}

/// Where a node's things are.
pub(crate) struct NodeFiles<'a> {
    pub(crate) cluster: u64,
    pub(crate) directory: &'a DataDirectory,
    /// Length of a segment of the write-ahead log.
    pub(crate) segment_bytes: u64,
    /// Bytes of it that are kept for those who copy it, when it needs them no more.
    pub(crate) keep_bytes: u64,
    /// Space on the disk for when it is full.
    pub(crate) reserve: &'a Arc<Reserve>,
    pub(crate) waker: &'a Arc<Waker>,
}

/// What a node has on disk, opened.
pub(crate) struct Opened {
    pub(crate) wal: Wal<FileDisk>,
    pub(crate) view: ViewFile<FileDisk>,
    pub(crate) recovery: Recovery,
    pub(crate) restored: Restored,
    pub(crate) snapshots: SnapshotThread,
    pub(crate) execution: Execution<AnyMemoryEngine, DiskStore>,
    pub(crate) engine_threads: EngineThreads,
}

/// Opens what is on disk, for an engine in memory.
pub(crate) fn open_in_memory(
    config: &Config,
    node: &NodeFiles<'_>,
    files: MemoryEngineFiles,
) -> Result<Opened, LogError> {
    let NodeFiles { cluster, directory, segment_bytes, keep_bytes, reserve, waker } = *node;
    let options = store::log_options(config, cluster, segment_bytes, keep_bytes);
    fits_into_memory(directory)?;
    let (data, _) = store::open(config, &options, directory, reserve, || files).map_err(LogError::Store)?;
    let Data { wal, stored, view } = data;
    let Stored { recovery, restored, snapshot_store, engine, snapshot } = stored;
    let snapshots = SnapshotThread::start(
        snapshot_store,
        directory.snapshots(),
        EngineFiles::InMemory(files),
        Arc::clone(waker),
    )
    .map_err(LogError::Thread)?;
    let engine = engine.unwrap_or_else(|| AnyMemoryEngine::empty(&files));
    let applied = snapshot.map_or(OpNumber(0), |(op_number, _)| op_number);
    let execution = Execution::InMemory(Box::new(MemoryExecutor::new(engine, applied)));
    let engine_threads = EngineThreads::InMemory(LongReplies::new(Arc::clone(waker)));
    Ok(Opened { wal, view, recovery, restored, snapshots, execution, engine_threads })
}

/// Refuses to load a snapshot that is longer than the memory that this process may take: else the system would end it
/// without a word.
fn fits_into_memory(directory: &DataDirectory) -> Result<(), LogError> {
    let files = std::fs::read_dir(directory.snapshots()).into_iter().flatten().flatten();
    let bytes = files.filter_map(|file| Some(file.metadata().ok()?.len())).max().unwrap_or(0);
    let memory = machine_memory();
    if bytes > memory { Err(LogError::TooLargeForMemory { bytes, memory }) } else { Ok(()) }
}

/// Opens what is on disk, for an engine that is there, too.
pub(crate) fn open_on_disk(
    config: &Config,
    node: &NodeFiles<'_>,
    settings: DiskEngineSettings,
) -> Result<Opened, LogError> {
    let NodeFiles { cluster, directory, segment_bytes, keep_bytes, reserve, waker } = *node;
    let options = store::log_options(config, cluster, segment_bytes, keep_bytes);
    let stores = || Stores::new(settings.files.clone());
    let (data, stores) =
        store::open(config, &options, directory, reserve, stores).map_err(LogError::Store)?;
    let Data { wal, stored, view } = data;
    let Stored { recovery, restored, snapshot_store, engine, snapshot } = stored;
    let (_, number, engine) = stores.into_engine(engine).map_err(LogError::Engine)?;
    let files = EngineFiles::OnDisk(settings.files.clone());
    let snapshots = SnapshotThread::start(snapshot_store, directory.snapshots(), files, Arc::clone(waker))
        .map_err(LogError::Thread)?;
    let applied = snapshot.map_or(OpNumber(0), |(op_number, _)| op_number);
    let (disk, executor) =
        DiskEngineHandle::start(engine, applied, settings, Arc::clone(waker)).map_err(LogError::Thread)?;
    let execution = Execution::OnDisk(Box::new(syros_node::OnDisk { executor, store: number }));
    let engine_threads = EngineThreads::OnDisk(Box::new(disk));
    Ok(Opened { wal, view, recovery, restored, snapshots, execution, engine_threads })
}
