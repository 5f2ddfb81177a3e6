//! What executes the log of a replica.

use syros_protocol::replica::Event;
use syros_storage::Store;
use syros_types::OpNumber;

use crate::disk_executor::DiskExecutor;
use crate::in_memory::InMemory;
use crate::memory_executor::MemoryExecutor;
use crate::snapshots::StateOf;

/// An engine on disk.
#[derive(Debug)]
pub struct OnDisk<S: Store> {
    /// Deals out what the engine's threads do.
    pub executor: DiskExecutor<S>,
    /// Number of the store in use.
    pub store: u64,
}

/// What executes the log of a replica.
#[derive(Debug)]
pub enum Execution<M, S: Store> {
    /// An engine in memory, which the thread that drives the replica executes itself.
    InMemory(Box<MemoryExecutor<M>>),
    /// An engine on disk, which has threads of its own.
    OnDisk(Box<OnDisk<S>>),
}

impl<M: InMemory, S: Store> Execution<M, S> {
    /// The last entry that was executed, or dealt out to be.
    #[must_use]
    pub const fn executed(&self) -> OpNumber {
        match self {
            Self::InMemory(memory) => memory.executed(),
            Self::OnDisk(disk) => disk.executor.dispatched(),
        }
    }

    /// What the replica is to be told before which no key expires, if that has changed.
    pub(super) fn expiry_news(&mut self) -> Option<Event> {
        match self {
            Self::InMemory(memory) => memory.expiry_news(),
            Self::OnDisk(disk) => disk.executor.expiry_news(),
        }
    }

    /// What the replica is to be told before which no key expires, whether or not that has changed.
    pub(super) fn expiry(&mut self) -> Event {
        match self {
            Self::InMemory(memory) => memory.expiry(),
            Self::OnDisk(disk) => disk.executor.expiry(),
        }
    }

    /// Where the state of snapshots comes from.
    pub(super) fn snapshot_state(&mut self) -> StateOf<'_> {
        match self {
            Self::InMemory(memory) => memory.engine_mut().snapshot_state(),
            Self::OnDisk(disk) => StateOf::Checkpoints(disk.executor.checkpoints()),
        }
    }

    /// The store in use, of an engine on disk.
    pub(super) const fn store(&self) -> Option<u64> {
        match self {
            Self::InMemory(_) => None,
            Self::OnDisk(disk) => Some(disk.store),
        }
    }

    /// About how many bytes a snapshot takes, as far as that is known.
    pub(super) fn snapshot_bytes(&self) -> Option<u64> {
        match self {
            Self::InMemory(memory) => memory.engine().data_bytes().map(|bytes| bytes as u64),
            Self::OnDisk(_) => None,
        }
    }
}
