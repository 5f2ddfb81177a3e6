//! The worker's side: one job at a time, each of which may wait for the disk.

use super::{
    Attempt, Blocks, EngineFiles, LoadedEngine, MemoryLoaders, SnapshotJob, SnapshotReport, SnapshotSizes,
};
use core::fmt;
use syros_protocol::record::SnapshotHead;
use syros_snapshot::{Load, Loaded, SnapshotStore, SnapshotStoreError, StoreDirectory};
use syros_types::OpNumber;
use syros_wal::Disk;

/// The engine in memory that the loaders `M` make.
type Memory<M> = <<M as MemoryLoaders>::Loader as Load>::Engine;

/// What the worker loads.
type LoadedSnapshot<M, P> = Loaded<LoadedEngine<Memory<M>, <P as StoreDirectory>::Store>>;

/// What the worker reports.
type Report<M, P> = SnapshotReport<Memory<M>, <P as StoreDirectory>::Store>;

/// Writes, reads, receives, loads and removes snapshots. Whoever drives it gives it the jobs in the order in which they
/// were asked for ([`SnapshotWorker::work`]), and lets it cut ([`SnapshotWorker::cut_next`]) while there is no job.
pub struct SnapshotWorker<D: Disk, M, P> {
    snapshot_store: SnapshotStore<D>,
    files: EngineFiles<M, P>,
    sizes: SnapshotSizes,
    /// The snapshot being written. Jobs for one that has failed are left out.
    writing: Option<Attempt>,
    /// Its state, if the worker cuts it.
    cutting: Option<Box<dyn Blocks>>,
}

impl<D: Disk, M, P> fmt::Debug for SnapshotWorker<D, M, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotWorker").field("writing", &self.writing).finish_non_exhaustive()
    }
}

impl<D: Disk, M: MemoryLoaders, P: StoreDirectory + Clone> SnapshotWorker<D, M, P> {
    /// A worker on these snapshots, for such engines.
    pub const fn new(
        snapshot_store: SnapshotStore<D>,
        files: EngineFiles<M, P>,
        sizes: SnapshotSizes,
    ) -> Self {
        Self { snapshot_store, files, sizes, writing: None, cutting: None }
    }

    /// True if [`SnapshotWorker::cut_next`] has something to do.
    pub const fn is_cutting(&self) -> bool {
        self.cutting.is_some()
    }

    /// Does one job; what the owner has to know of it. `room` says whether the disk has room for so many bytes.
    pub fn work(
        &mut self,
        job: SnapshotJob,
        room: impl FnOnce(usize) -> Result<(), SnapshotStoreError>,
    ) -> Option<Report<M, P>> {
        match job {
            SnapshotJob::Begin { attempt, head, bytes } => {
                let begun = room(bytes).and_then(|()| self.begin(attempt, &head));
                begun.err().map(|error| self.fail(attempt, error))
            }
            SnapshotJob::Write { attempt, block } => {
                self.writing.filter(|writing| *writing == attempt)?;
                let bytes = block.len();
                Some(match self.snapshot_store.state(&block) {
                    Ok(()) => SnapshotReport::Written { attempt, bytes },
                    Err(error) => self.fail(attempt, error),
                })
            }
            SnapshotJob::Cut { attempt, blocks } => {
                self.cutting = (self.writing == Some(attempt)).then_some(blocks);
                None
            }
            SnapshotJob::Finish(attempt) => {
                self.writing.filter(|writing| *writing == attempt)?;
                Some(self.finish(attempt))
            }
            SnapshotJob::GiveUp => {
                self.give_up();
                None
            }
            SnapshotJob::ReadPart { to, op_number, offset } => {
                Some(match self.snapshot_store.read_part(op_number, offset, self.sizes.part_bytes) {
                    Ok(Some(part)) => SnapshotReport::PartRead { to, op_number, offset, part },
                    Ok(None) => SnapshotReport::PartNotRead { to, op_number, error: None },
                    Err(error) => SnapshotReport::PartNotRead { to, op_number, error: Some(error) },
                })
            }
            SnapshotJob::WritePart { op_number, offset, part } => {
                Some(match self.snapshot_store.write_part(op_number, offset, &part) {
                    Ok(received) => SnapshotReport::PartWritten { op_number, received },
                    Err(error) => SnapshotReport::NotReceived { op_number, error },
                })
            }
            SnapshotJob::Load(op_number) => Some(match self.receive(op_number) {
                Ok(loaded) => SnapshotReport::Loaded(Box::new(loaded)),
                Err(error) => SnapshotReport::NotReceived { op_number, error },
            }),
            SnapshotJob::RemoveBefore { op_number, store } => Some(SnapshotReport::Removed {
                snapshots: self.snapshot_store.remove_before(op_number),
                stores: self.files.remove_before(store),
            }),
            SnapshotJob::Discard { garbage, store } => {
                drop(garbage);
                self.files.remove(store);
                None
            }
        }
    }

    /// Cuts the next block and writes it; what has become of the snapshot, if that was the last.
    pub fn cut_next(&mut self) -> Option<Report<M, P>> {
        let (attempt, blocks) = (self.writing?, self.cutting.as_mut()?);
        let mut block = Vec::with_capacity(self.sizes.block_bytes + self.sizes.block_bytes / 8);
        let more = blocks.block(self.sizes.block_bytes, &mut block).map_err(SnapshotStoreError::from);
        match more.and_then(|more| self.snapshot_store.state(&block).map(|()| more)) {
            Ok(true) => None,
            Ok(false) => Some(self.finish(attempt)),
            Err(error) => Some(self.fail(attempt, error)),
        }
    }

    fn begin(&mut self, attempt: Attempt, head: &SnapshotHead) -> Result<(), SnapshotStoreError> {
        (self.writing, self.cutting) = (None, None);
        self.snapshot_store.begin(head)?;
        self.writing = Some(attempt);
        Ok(())
    }

    fn finish(&mut self, attempt: Attempt) -> Report<M, P> {
        match self.snapshot_store.finish() {
            Ok(bytes) => {
                (self.writing, self.cutting) = (None, None);
                SnapshotReport::Taken { attempt, bytes }
            }
            Err(error) => self.fail(attempt, error),
        }
    }

    fn fail(&mut self, attempt: Attempt, error: SnapshotStoreError) -> Report<M, P> {
        self.give_up();
        SnapshotReport::NotTaken { attempt, error }
    }

    fn give_up(&mut self) {
        (self.writing, self.cutting) = (None, None);
        // If it fails, the next process removes what was written.
        let _ = self.snapshot_store.give_up();
    }

    fn receive(&mut self, op_number: OpNumber) -> Result<LoadedSnapshot<M, P>, SnapshotStoreError> {
        let loader = self.files.loader()?;
        self.snapshot_store.receive(op_number, loader)
    }
}
