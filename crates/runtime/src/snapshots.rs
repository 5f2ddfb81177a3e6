//! The thread that writes, reads, receives, loads and removes snapshots, so that the event loop never waits for them. What
//! both do about them [`syros_node::snapshots`] decides.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

use mio::Waker;
use syros_lsm::DiskStore;
use syros_node::snapshots::{
    EngineFiles, MemoryLoaders, SnapshotJob, SnapshotReport, SnapshotSizes, SnapshotWorker,
};
use syros_snapshot::{SnapshotStore, SnapshotStoreError};
use syros_wal::{Cause, DiskError, DiskOperation, FileDisk};

use crate::disk_engine::StoreFiles;
use crate::memory_engine::{AnyMemoryEngine, MemoryEngineFiles, MemoryEngineLoader};

/// Bytes of the disk that a snapshot leaves free: as many as it takes itself, but no more than a segment of the log has.
/// A small one may be all that a full disk needs, to let the log go.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// Bytes of the disk that the smallest snapshot leaves free.
const FREE_BYTES_LEAST: u64 = 64 << 10;

/// What the thread has done.
type Report = SnapshotReport<AnyMemoryEngine, DiskStore>;

impl MemoryLoaders for MemoryEngineFiles {
    type Loader = MemoryEngineLoader;

    fn loader(&self) -> MemoryEngineLoader {
        Self::loader(self)
    }
}

/// The thread that works on the snapshots of a replica.
pub(crate) struct SnapshotThread {
    jobs: Option<Sender<SnapshotJob>>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
}

impl SnapshotThread {
    /// Starts the thread, whose snapshots are in the directory `path`. It uses `waker` when it has done something.
    pub(crate) fn start(
        snapshot_store: SnapshotStore<FileDisk>,
        path: PathBuf,
        files: EngineFiles<MemoryEngineFiles, StoreFiles>,
        waker: Arc<Waker>,
    ) -> io::Result<Self> {
        let (jobs, received) = channel();
        let (reporter, reports) = channel();
        let worker = SnapshotWorker::new(snapshot_store, files, SnapshotSizes::SERVER);
        let thread = thread::Builder::new()
            .name("snapshots".to_owned())
            .spawn(move || work(worker, &path, &received, &reporter, &waker))?;
        Ok(Self { jobs: Some(jobs), reports, thread: Some(thread) })
    }

    /// Gives the thread a job.
    pub(crate) fn work(&self, job: SnapshotJob) {
        // Fails only if the thread panicked; a snapshot is then never finished, which loses nothing.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// The next thing that the thread has done.
    pub(crate) fn next_report(&self) -> Option<Report> {
        self.reports.try_recv().ok()
    }
}

impl Drop for SnapshotThread {
    /// Ends the thread after what it is doing: nobody else may use the directory before.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Fails if a snapshot would take the last space of the disk, which the log needs.
fn room_for(path: &Path, bytes: usize) -> Result<(), SnapshotStoreError> {
    let free = match rustix::fs::statvfs(path) {
        Ok(system) => system.f_bavail.saturating_mul(system.f_frsize),
        // Then writing will tell.
        Err(_) => return Ok(()),
    };
    let bytes = bytes as u64;
    let needed = bytes.saturating_add(bytes.clamp(FREE_BYTES_LEAST, FREE_BYTES_MIN));
    if free >= needed {
        return Ok(());
    }
    let cause = Cause::Other(format!("it may need {needed} bytes, and {free} are free"));
    Err(DiskError { operation: DiskOperation::Create, file: "a snapshot".to_owned(), cause }.into())
}

/// The thread.
fn work(
    mut worker: SnapshotWorker<FileDisk, MemoryEngineFiles, StoreFiles>,
    path: &Path,
    jobs: &Receiver<SnapshotJob>,
    reporter: &Sender<Report>,
    waker: &Waker,
) {
    loop {
        let job = if worker.is_cutting() {
            jobs.try_recv()
        } else {
            jobs.recv().map_err(|_| TryRecvError::Disconnected)
        };
        let report = match job {
            Ok(job) => worker.work(job, |bytes| room_for(path, bytes)),
            Err(TryRecvError::Empty) => worker.cut_next(),
            Err(TryRecvError::Disconnected) => return,
        };
        if let Some(report) = report {
            if reporter.send(report).is_err() {
                return;
            }
            // Fails only if the loop is gone, and then nobody waits.
            let _ = waker.wake();
        }
    }
}
