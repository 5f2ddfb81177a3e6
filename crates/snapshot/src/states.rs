//! Where the state of an engine is found when a replica starts: in the snapshot files of a memory engine, or in the
//! stores of a disk engine.

use crate::{Load, Loaded, SnapshotStore, SnapshotStoreError};
use syros_storage::{DiskEngine, Loader, MemoryEngine, RemovalPace, Store, StoreError};
use syros_types::OpNumber;
use syros_wal::Disk;

/// The states on disk from which a replica can go on.
pub trait States<D: Disk> {
    /// The engine.
    type Engine;

    /// Up to which entries they go.
    ///
    /// # Errors
    /// What the disk reports.
    fn list(&mut self, snapshot_store: &mut SnapshotStore<D>) -> Result<Vec<OpNumber>, SnapshotStoreError>;

    /// Loads one of them.
    ///
    /// # Errors
    /// What the disk reports, and everything that can be wrong with what is there.
    fn load(
        &mut self,
        snapshot_store: &mut SnapshotStore<D>,
        op_number: OpNumber,
    ) -> Result<Loaded<Self::Engine>, SnapshotStoreError>;

    /// Removes all but this one.
    ///
    /// # Errors
    /// What the disk reports.
    fn keep_only(
        &mut self,
        snapshot_store: &mut SnapshotStore<D>,
        op_number: Option<OpNumber>,
    ) -> Result<(), SnapshotStoreError>;
}

/// Snapshot files, for memory engines.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotFiles {
    /// Seed of the engine's tables.
    pub hash_seed: u64,
    /// At what pace its records of expired keys go.
    pub pace: RemovalPace,
}

impl SnapshotFiles {
    /// Begins to restore an engine from a snapshot.
    #[must_use]
    pub fn loader(&self) -> Loader {
        MemoryEngine::loader_with_pace(self.hash_seed, self.pace)
    }
}

impl<D: Disk> States<D> for SnapshotFiles {
    type Engine = MemoryEngine;

    fn list(&mut self, snapshot_store: &mut SnapshotStore<D>) -> Result<Vec<OpNumber>, SnapshotStoreError> {
        snapshot_store.list()
    }

    fn load(
        &mut self,
        snapshot_store: &mut SnapshotStore<D>,
        op_number: OpNumber,
    ) -> Result<Loaded<MemoryEngine>, SnapshotStoreError> {
        snapshot_store.load(op_number, self.loader())
    }

    fn keep_only(
        &mut self,
        snapshot_store: &mut SnapshotStore<D>,
        op_number: Option<OpNumber>,
    ) -> Result<(), SnapshotStoreError> {
        snapshot_store.keep_only(op_number)
    }
}

/// Where stores lie, by number. What is created stays unseen, even by a process that starts later, until it is
/// complete; it is closed by then, and opened again.
pub trait StoreDirectory {
    /// The stores.
    type Store: Store;

    /// The numbers of the complete ones. What is left of others is removed.
    ///
    /// # Errors
    /// What the disk says.
    fn list(&mut self) -> Result<Vec<u64>, StoreError>;

    /// Opens a complete one.
    ///
    /// # Errors
    /// What the disk says.
    fn open(&mut self, number: u64) -> Result<Self::Store, StoreError>;

    /// Creates an empty one, with a number that no other has.
    ///
    /// # Errors
    /// What the disk says.
    fn create(&mut self) -> Result<(u64, Self::Store), StoreError>;

    /// Makes a store complete.
    ///
    /// # Errors
    /// What the disk says.
    fn complete(&mut self, number: u64) -> Result<(), StoreError>;

    /// Removes all stores but this one; nobody uses the others any more.
    ///
    /// # Errors
    /// What the disk says.
    fn keep_only(&mut self, number: Option<u64>) -> Result<(), StoreError>;

    /// Removes the stores with smaller numbers than this one; nobody uses them any more.
    ///
    /// # Errors
    /// What the disk says.
    fn remove_before(&mut self, number: u64) -> Result<(), StoreError>;

    /// Removes one store, which nobody uses any more.
    ///
    /// # Errors
    /// What the disk says.
    fn remove(&mut self, number: u64) -> Result<(), StoreError>;
}

/// The stores of a disk engine. There is one but for the time in which a snapshot from another replica takes its
/// place.
pub struct Stores<P: StoreDirectory> {
    directory: P,
    found: Vec<OpenedStore<P::Store>>,
    /// The one whose engine was loaded.
    number: Option<u64>,
}

struct OpenedStore<S: Store> {
    number: u64,
    /// What its last checkpoint holds; the beginning, if it never had one.
    op_number: OpNumber,
    engine: DiskEngine<S>,
    head: Vec<u8>,
}

impl<P: StoreDirectory> Stores<P> {
    /// The stores at a place.
    pub const fn new(directory: P) -> Self {
        Self { directory, found: Vec::new(), number: None }
    }

    /// The place, and the number of the store that the loaded engine has; one is created if none was loaded.
    ///
    /// # Errors
    /// What the disk says.
    pub fn into_engine(
        mut self,
        loaded: Option<DiskEngine<P::Store>>,
    ) -> Result<(P, u64, DiskEngine<P::Store>), StoreError> {
        if let (Some(number), Some(engine)) = (self.number, loaded) {
            return Ok((self.directory, number, engine));
        }
        let (number, store) = self.directory.create()?;
        drop(store);
        let engine = complete(&mut self.directory, number)?;
        Ok((self.directory, number, engine))
    }
}

/// Makes a store complete that has been closed, and opens it.
fn complete<P: StoreDirectory>(directory: &mut P, number: u64) -> Result<DiskEngine<P::Store>, StoreError> {
    directory.complete(number)?;
    Ok(DiskEngine::open(directory.open(number)?)?.0)
}

impl<P: StoreDirectory, D: Disk> States<D> for Stores<P> {
    type Engine = DiskEngine<P::Store>;

    fn list(&mut self, _: &mut SnapshotStore<D>) -> Result<Vec<OpNumber>, SnapshotStoreError> {
        for number in self.directory.list()? {
            let (engine, head) = DiskEngine::open(self.directory.open(number)?)?;
            // A store without a checkpoint is empty: the log has everything.
            let Some(head) = head else { continue };
            let op_number =
                syros_wire::decode_snapshot_head(&head).map_err(SnapshotStoreError::Head)?.op_number;
            self.found.push(OpenedStore { number, op_number, engine, head });
        }
        Ok(self.found.iter().map(|found| found.op_number).collect())
    }

    fn load(
        &mut self,
        _: &mut SnapshotStore<D>,
        op_number: OpNumber,
    ) -> Result<Loaded<DiskEngine<P::Store>>, SnapshotStoreError> {
        // If two go that far, what they hold is the same.
        let at = self.found.iter().position(|found| found.op_number == op_number);
        let OpenedStore { number, engine, head, .. } =
            self.found.swap_remove(at.ok_or(SnapshotStoreError::Part)?);
        self.number = Some(number);
        let head = syros_wire::decode_snapshot_head(&head).map_err(SnapshotStoreError::Head)?;
        let bytes = engine.shared().store().disk_bytes();
        Ok(Loaded { head, engine, bytes })
    }

    fn keep_only(
        &mut self,
        snapshot_store: &mut SnapshotStore<D>,
        op_number: Option<OpNumber>,
    ) -> Result<(), SnapshotStoreError> {
        // Their files are closed.
        self.found.clear();
        self.directory.keep_only(self.number.filter(|_| op_number.is_some()))?;
        // Files are for other members, who have to ask again.
        snapshot_store.keep_only(None)
    }
}

/// Loads a snapshot that was received into a new store.
pub struct StoreLoader<P: StoreDirectory> {
    directory: P,
    number: u64,
    loader: syros_storage::DiskLoader<P::Store>,
}

impl<P: StoreDirectory> StoreLoader<P> {
    /// Creates the store.
    ///
    /// # Errors
    /// What the disk says.
    pub fn create(mut directory: P) -> Result<Self, StoreError> {
        let (number, store) = directory.create()?;
        Ok(Self { directory, number, loader: DiskEngine::loader(store) })
    }
}

impl<P: StoreDirectory> Load for StoreLoader<P> {
    /// The engine, and the number of its store.
    type Engine = (u64, DiskEngine<P::Store>);

    fn block(&mut self, block: &[u8]) -> Result<(), SnapshotStoreError> {
        Ok(self.loader.block(block)?)
    }

    fn finish(mut self, head: &[u8]) -> Result<Self::Engine, SnapshotStoreError> {
        let engine = self.loader.finish()?;
        engine.shared().seal(head)?;
        engine.shared().flush()?;
        drop(engine);
        Ok((self.number, complete(&mut self.directory, self.number)?))
    }
}
