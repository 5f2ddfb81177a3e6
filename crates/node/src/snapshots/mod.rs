//! Snapshots: what the owner of an engine and the worker beside it decide about them.
//!
//! Two state machines share the work. The [`SnapshotSchedule`] belongs to the thread that owns the engine and the core:
//! it knows which snapshot is being taken, when the next block of it is cut, which engine has been loaded, and when old
//! snapshots and records may go. The [`SnapshotWorker`] belongs to a thread that may wait for the disk: it takes one
//! [`SnapshotJob`] after the other, and answers with a [`SnapshotReport`]. Jobs and reports keep their order on the way.

mod schedule;
#[cfg(test)]
mod tests;
mod worker;

pub use schedule::{SnapshotNews, SnapshotSchedule, StateOf};
pub use worker::SnapshotWorker;

use core::fmt;
use syros_protocol::message::{Body, Peer};
use syros_protocol::record::SnapshotHead;
use syros_snapshot::{Load, Loaded, SnapshotFiles, SnapshotStoreError, StoreDirectory, StoreLoader};
use syros_storage::{Cut, DiskEngine, Loader, Store, StoreError};
use syros_types::OpNumber;

/// Sizes and limits of the work on snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotSizes {
    /// About how many bytes of state are cut and written at a time.
    pub block_bytes: usize,
    /// Bytes in a part that is sent.
    pub part_bytes: usize,
    /// The owner cuts blocks only while fewer bytes than this wait for the worker.
    pub unwritten_max: usize,
    /// While the owner cuts a snapshot, it spends one part in so many of its time on that.
    pub share: u32,
    /// When the engine keeps more bytes than this for the snapshot, the owner cuts without pauses.
    pub hurry_bytes: usize,
    /// When the engine keeps more bytes than this for the snapshot, clients have to wait.
    pub behind_bytes: usize,
}

impl SnapshotSizes {
    /// Those of a server.
    pub const SERVER: Self = Self {
        // Takes the event loop a fraction of a millisecond.
        block_bytes: 128 << 10,
        // A few of them keep a fast network busy; the messages of clients wait no longer than one takes.
        part_bytes: 256 << 10,
        unwritten_max: 8 << 20,
        share: 5,
        hurry_bytes: 64 << 20,
        behind_bytes: 256 << 20,
    };
}

/// One attempt to take a snapshot. A report about an earlier attempt than the present one concerns nobody any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt(u64);

/// The state of an engine, which the worker cuts into blocks.
pub trait Blocks: Send {
    /// Appends about `bytes` bytes of the state to `block`; false if nothing is left after them.
    ///
    /// # Errors
    /// What the disk says.
    fn block(&mut self, bytes: usize, block: &mut Vec<u8>) -> Result<bool, StoreError>;
}

impl<S: Store> Blocks for Cut<S> {
    fn block(&mut self, bytes: usize, block: &mut Vec<u8>) -> Result<bool, StoreError> {
        Self::block(self, bytes, block)
    }
}

/// Something that the worker is asked for.
pub enum SnapshotJob {
    /// Begin a snapshot; what was written of an earlier one is removed.
    Begin {
        /// Which attempt it is.
        attempt: Attempt,
        /// What goes into it besides the state.
        head: Box<SnapshotHead>,
        /// It takes at most about so many bytes.
        bytes: usize,
    },
    /// Write a block that the owner has cut.
    Write {
        /// Of this attempt.
        attempt: Attempt,
        /// The block.
        block: Vec<u8>,
    },
    /// Cut all blocks, and write them, whenever there is no other job.
    Cut {
        /// Of this attempt.
        attempt: Attempt,
        /// The state.
        blocks: Box<dyn Blocks>,
    },
    /// The last block has been cut: make the snapshot durable.
    Finish(Attempt),
    /// Remove what has been written of the snapshot under way.
    GiveUp,
    /// Read a part of a snapshot.
    ReadPart {
        /// Who asked for it.
        to: Peer,
        /// The snapshot.
        op_number: OpNumber,
        /// Where the part begins.
        offset: u64,
    },
    /// Write a part of a snapshot that is being received.
    WritePart {
        /// The snapshot.
        op_number: OpNumber,
        /// Where the part begins.
        offset: u64,
        /// The part.
        part: Body,
    },
    /// Check a snapshot that has been received, and load it.
    Load(OpNumber),
    /// Remove snapshots before this one, and stores with smaller numbers than this one.
    RemoveBefore {
        /// The oldest snapshot to keep.
        op_number: OpNumber,
        /// The store in use, if the engine is on disk. A store with a larger number may be about to be adopted.
        store: Option<u64>,
    },
    /// Drop something that takes its time, and then remove its store.
    Discard {
        /// What is dropped.
        garbage: Box<dyn Send>,
        /// Its store.
        store: Option<u64>,
    },
}

impl fmt::Debug for SnapshotJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Begin { .. } => "Begin",
            Self::Write { .. } => "Write",
            Self::Cut { .. } => "Cut",
            Self::Finish(_) => "Finish",
            Self::GiveUp => "GiveUp",
            Self::ReadPart { .. } => "ReadPart",
            Self::WritePart { .. } => "WritePart",
            Self::Load(_) => "Load",
            Self::RemoveBefore { .. } => "RemoveBefore",
            Self::Discard { .. } => "Discard",
        })
    }
}

/// Something that the worker has done.
#[derive(Debug)]
pub enum SnapshotReport<M, S: Store> {
    /// A block that the owner cut is written.
    Written {
        /// Of this attempt.
        attempt: Attempt,
        /// Its length.
        bytes: usize,
    },
    /// A snapshot is durable.
    Taken {
        /// Which attempt it was.
        attempt: Attempt,
        /// Its length.
        bytes: u64,
    },
    /// A snapshot that was being taken failed; what was written of it is removed.
    NotTaken {
        /// Which attempt it was.
        attempt: Attempt,
        /// Why.
        error: SnapshotStoreError,
    },
    /// A part of a snapshot that somebody asked for.
    PartRead {
        /// Who asked for it.
        to: Peer,
        /// The snapshot.
        op_number: OpNumber,
        /// Where the part begins.
        offset: u64,
        /// The part.
        part: Vec<u8>,
    },
    /// A part of a snapshot cannot be read. Who asked for it asks again, or elsewhere.
    PartNotRead {
        /// Who asked for it.
        to: Peer,
        /// The snapshot.
        op_number: OpNumber,
        /// Why, unless there is no such part.
        error: Option<SnapshotStoreError>,
    },
    /// A part of a snapshot that is being received is written.
    PartWritten {
        /// The snapshot.
        op_number: OpNumber,
        /// All bytes before this one are here.
        received: u64,
    },
    /// A snapshot that was received is intact, durable and loaded.
    Loaded(Box<Loaded<LoadedEngine<M, S>>>),
    /// A snapshot cannot be received.
    NotReceived {
        /// The snapshot.
        op_number: OpNumber,
        /// Why.
        error: SnapshotStoreError,
    },
    /// Old snapshots and stores are removed, as far as the disk allows. What it refuses to remove now is removed after
    /// the next checkpoint.
    Removed {
        /// Of snapshots.
        snapshots: Result<(), SnapshotStoreError>,
        /// Of stores.
        stores: Result<(), StoreError>,
    },
}

/// What loads engines in memory.
pub trait MemoryLoaders {
    /// Takes the blocks of a snapshot.
    type Loader: Load;

    /// Begins to load a snapshot.
    fn loader(&self) -> Self::Loader;
}

impl MemoryLoaders for SnapshotFiles {
    type Loader = Loader;

    fn loader(&self) -> Loader {
        Self::loader(self)
    }
}

/// Where the engine of a replica lives, as far as the worker has to know.
#[derive(Clone, Debug)]
pub enum EngineFiles<M, P> {
    /// In memory.
    InMemory(M),
    /// In stores on disk, at this place.
    OnDisk(P),
}

impl<M: MemoryLoaders, P: StoreDirectory + Clone> EngineFiles<M, P> {
    fn loader(&self) -> Result<EngineLoader<M::Loader, P>, SnapshotStoreError> {
        Ok(match self {
            Self::InMemory(loaders) => EngineLoader::InMemory(loaders.loader()),
            Self::OnDisk(place) => EngineLoader::OnDisk(Box::new(StoreLoader::create(place.clone())?)),
        })
    }

    fn remove_before(&mut self, store: Option<u64>) -> Result<(), StoreError> {
        match (self, store) {
            (Self::OnDisk(place), Some(store)) => place.remove_before(store),
            _ => Ok(()),
        }
    }

    fn remove(&mut self, store: Option<u64>) {
        if let (Self::OnDisk(place), Some(store)) = (self, store) {
            // If it fails, the next process removes the store.
            let _ = place.remove(store);
        }
    }
}

/// Loads a snapshot that was received.
enum EngineLoader<L: Load, P: StoreDirectory> {
    InMemory(L),
    OnDisk(Box<StoreLoader<P>>),
}

impl<L: Load, P: StoreDirectory> Load for EngineLoader<L, P> {
    type Engine = LoadedEngine<L::Engine, P::Store>;

    fn block(&mut self, block: &[u8]) -> Result<(), SnapshotStoreError> {
        match self {
            Self::InMemory(loader) => loader.block(block),
            Self::OnDisk(loader) => loader.block(block),
        }
    }

    fn finish(self, head: &[u8]) -> Result<Self::Engine, SnapshotStoreError> {
        Ok(match self {
            Self::InMemory(loader) => LoadedEngine::InMemory(loader.finish(head)?),
            Self::OnDisk(loader) => {
                let (store, engine) = loader.finish(head)?;
                LoadedEngine::OnDisk(store, Box::new(engine))
            }
        })
    }
}

/// An engine that was loaded from a snapshot.
#[derive(Debug)]
pub enum LoadedEngine<M, S: Store> {
    /// In memory.
    InMemory(M),
    /// On disk, in the store with this number.
    OnDisk(u64, Box<DiskEngine<S>>),
}
