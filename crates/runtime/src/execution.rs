//! What executes a node's log: an engine in memory (the store of keys, or a state machine of somebody's own), which the
//! event loop runs itself, or one on disk with threads of its own.

use std::sync::Arc;

use mio::Waker;
use syros_node::MemoryExecutor;
use syros_node::snapshots::{EngineFiles, StateOf};
use syros_protocol::replica::{Config, Event, Restored};
use syros_snapshot::{Stored, Stores};
use syros_storage::Census;
use syros_types::OpNumber;
use syros_wal::{FileDisk, Recovery, Wal};

use crate::directory::DataDirectory;
use crate::disk_space::Reserve;
use crate::local::LogError;
use crate::long_replies::LongReplies;
use crate::machine_memory::machine_memory;
use crate::on_disk::{OnDisk, Settings};
use crate::resident::{Resident, ResidentFiles};
use crate::snapshots::SnapshotThread;
use crate::store::{Store, ViewFile};

/// An engine in memory, executed by the event loop itself: that takes less than to tell another thread.
pub(crate) struct InMemory {
    pub(crate) executor: MemoryExecutor<Resident>,
    pub(crate) long_replies: LongReplies,
}

/// What executes the log.
pub(crate) enum Execution {
    InMemory(Box<InMemory>),
    OnDisk(Box<OnDisk>),
}

impl Execution {
    /// What the replica is to be told before which no key expires, if that has changed.
    pub(crate) fn expiry_news(&mut self) -> Option<Event> {
        match self {
            Self::InMemory(memory) => memory.executor.expiry_news(),
            Self::OnDisk(disk) => disk.threads.executor_mut().expiry_news(),
        }
    }

    /// What the replica is to be told before which no key expires, whether or not that has changed.
    pub(crate) fn expiry(&mut self) -> Event {
        match self {
            Self::InMemory(memory) => memory.executor.expiry(),
            Self::OnDisk(disk) => disk.threads.executor_mut().expiry(),
        }
    }

    /// How many keys there are, and how many of these have an expiry; of an engine on disk, when they were counted last.
    pub(crate) fn census(&self) -> Census {
        match self {
            Self::InMemory(memory) => memory.executor.engine().census(),
            Self::OnDisk(disk) => disk.census(),
        }
    }

    /// True if keys have to be counted before it is known how many there are.
    pub(crate) fn has_to_count_keys(&self) -> bool {
        matches!(self, Self::OnDisk(disk) if disk.threads.shared().failure().is_none())
    }

    /// Has an engine on disk count its keys.
    pub(crate) fn count_keys(&self, request: u64) {
        if let Self::OnDisk(disk) = self {
            disk.threads.count(request);
        }
    }

    /// How many keys have expired.
    pub(crate) fn expired(&self) -> u64 {
        match self {
            Self::InMemory(memory) => memory.executor.engine().expired(),
            Self::OnDisk(disk) => disk.threads.shared().expired(),
        }
    }

    /// Bytes of memory that the data takes, of an engine that keeps it in memory.
    pub(crate) fn data_bytes(&self) -> Option<usize> {
        match self {
            Self::InMemory(memory) => memory.executor.engine().data_bytes(),
            Self::OnDisk(_) => None,
        }
    }

    /// Where the state of snapshots comes from.
    pub(crate) fn snapshot_state(&mut self) -> StateOf<'_> {
        match self {
            Self::InMemory(memory) => match memory.executor.engine_mut() {
                Resident::Keys(keys) => StateOf::Memory(keys),
                Resident::Machine(_) => StateOf::Copy,
            },
            Self::OnDisk(disk) => StateOf::Checkpoints(disk.threads.executor_mut().checkpoints()),
        }
    }

    /// The store in use, of an engine on disk.
    pub(crate) const fn store(&self) -> Option<u64> {
        match self {
            Self::InMemory(_) => None,
            Self::OnDisk(disk) => Some(disk.number),
        }
    }
}

/// Where a node's things are.
pub(crate) struct Place<'a> {
    pub(crate) cluster: u64,
    pub(crate) directory: &'a DataDirectory,
    /// Length of a segment of the write-ahead log.
    pub(crate) segment_bytes: u64,
    /// Space on the disk for when it is full.
    pub(crate) reserve: &'a Arc<Reserve>,
    pub(crate) waker: &'a Arc<Waker>,
}

/// What a node has on disk, opened.
pub(crate) struct Opened {
    pub(crate) wal: Wal<FileDisk>,
    pub(crate) view: ViewFile,
    pub(crate) recovery: Recovery,
    pub(crate) restored: Restored,
    pub(crate) snapshots: SnapshotThread,
    pub(crate) execution: Execution,
}

/// Opens what is on disk, for an engine in memory.
pub(crate) fn open_in_memory(
    config: &Config,
    place: &Place<'_>,
    files: ResidentFiles,
) -> Result<Opened, LogError> {
    let Place { cluster, directory, segment_bytes, reserve, waker } = *place;
    fits_into_memory(directory)?;
    let (store, _) =
        Store::open(config, cluster, directory, segment_bytes, reserve, || files).map_err(LogError::Store)?;
    let Store { wal, stored, view } = store;
    let Stored { recovery, restored, depot, engine, snapshot } = stored;
    let snapshots =
        SnapshotThread::start(depot, directory.snapshots(), EngineFiles::InMemory(files), Arc::clone(waker))
            .map_err(LogError::Thread)?;
    let engine = engine.unwrap_or_else(|| Resident::empty(&files));
    let applied = snapshot.map_or(OpNumber(0), |(op_number, _)| op_number);
    let memory = InMemory {
        executor: MemoryExecutor::new(engine, applied),
        long_replies: LongReplies::new(Arc::clone(waker)),
    };
    let execution = Execution::InMemory(Box::new(memory));
    Ok(Opened { wal, view, recovery, restored, snapshots, execution })
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
    place: &Place<'_>,
    settings: Settings,
) -> Result<Opened, LogError> {
    let Place { cluster, directory, segment_bytes, reserve, waker } = *place;
    let stores = || Stores::new(settings.files.clone());
    let (store, stores) =
        Store::open(config, cluster, directory, segment_bytes, reserve, stores).map_err(LogError::Store)?;
    let Store { wal, stored, view } = store;
    let Stored { recovery, restored, depot, engine, snapshot } = stored;
    let (_, number, engine) = stores.into_engine(engine).map_err(LogError::Engine)?;
    let files = EngineFiles::OnDisk(settings.files.clone());
    let snapshots = SnapshotThread::start(depot, directory.snapshots(), files, Arc::clone(waker))
        .map_err(LogError::Thread)?;
    let applied = snapshot.map_or(OpNumber(0), |(op_number, _)| op_number);
    let disk =
        OnDisk::start((number, engine), applied, settings, Arc::clone(waker)).map_err(LogError::Thread)?;
    let execution = Execution::OnDisk(Box::new(disk));
    Ok(Opened { wal, view, recovery, restored, snapshots, execution })
}
