//! The thread that reads the log on disk for those who copy it, so that the event loop never waits for it. What is read, and how much
//! at a time, [`syros_node::EntriesReader`] decides.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::Waker;
use syros_node::{EntriesJob, EntriesReader, EntriesReport};
use syros_types::OpNumber;
use syros_wal::{ReadOnlyDisk, RecordNumber};

/// How often it is looked with which entry the log on disk begins.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Stands for an entry that is not known.
const UNKNOWN: u64 = u64::MAX;

/// What the thread and the event loop tell each other beside jobs and reports.
#[derive(Debug)]
struct Shared {
    /// The last durable record.
    durable: AtomicU64,
    /// The log on disk has all behind this entry.
    oldest: AtomicU64,
}

/// The event loop's side of the thread.
pub(crate) struct EntriesThread {
    jobs: Option<Sender<EntriesJob>>,
    reports: Receiver<EntriesReport>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl EntriesThread {
    /// Starts the thread, for a log whose records up to `durable` are. It uses `waker` when it has found something.
    pub(crate) fn start(
        reader: EntriesReader<ReadOnlyDisk>,
        durable: RecordNumber,
        waker: Arc<Waker>,
    ) -> io::Result<Self> {
        // The core bounds both: one job for each of the few clients that it lets in.
        let (jobs, received) = channel();
        let (reporter, reports) = channel();
        let shared = Arc::new(Shared { durable: AtomicU64::new(durable.0), oldest: AtomicU64::new(UNKNOWN) });
        let theirs = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("log-copies".to_owned())
            .spawn(move || work(reader, &theirs, &received, &reporter, &waker))?;
        Ok(Self { jobs: Some(jobs), reports, shared, thread: Some(thread) })
    }

    /// Gives the thread a job.
    pub(crate) fn read(&self, job: EntriesJob) {
        // Fails only if the thread panicked; a client then gets no answer, and asks another member.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// The next thing that the thread has found.
    pub(crate) fn next_report(&self) -> Option<EntriesReport> {
        self.reports.try_recv().ok()
    }

    /// All records up to this one are durable.
    pub(crate) fn set_durable(&self, durable: RecordNumber) {
        self.shared.durable.store(durable.0, Ordering::Relaxed);
    }

    /// The entry behind which the log on disk had all at the last look, if that is known.
    pub(crate) fn oldest(&self) -> Option<OpNumber> {
        let oldest = self.shared.oldest.load(Ordering::Relaxed);
        (oldest != UNKNOWN).then_some(OpNumber(oldest))
    }
}

impl Drop for EntriesThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread.
fn work(
    mut reader: EntriesReader<ReadOnlyDisk>,
    shared: &Shared,
    jobs: &Receiver<EntriesJob>,
    reporter: &Sender<EntriesReport>,
    waker: &Waker,
) {
    look(&mut reader, shared);
    loop {
        let job = if reader.has_work() {
            jobs.try_recv().map_err(|error| match error {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            })
        } else {
            jobs.recv_timeout(LOOK_INTERVAL)
        };
        match job {
            Ok(job) => reader.begin(job),
            Err(RecvTimeoutError::Timeout) if reader.has_work() => {}
            Err(RecvTimeoutError::Timeout) => look(&mut reader, shared),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if let Some(report) = reader.step() {
            if reporter.send(report).is_err() {
                return;
            }
            // Fails only if the loop is gone, and then nobody waits.
            let _ = waker.wake();
        }
    }
}

/// Looks with which entry the log on disk begins.
fn look(reader: &mut EntriesReader<ReadOnlyDisk>, shared: &Shared) {
    let durable = RecordNumber(shared.durable.load(Ordering::Relaxed));
    // A segment may go meanwhile; then there is another look.
    if let Ok(oldest) = reader.oldest(durable) {
        shared.oldest.store(oldest.map_or(UNKNOWN, |OpNumber(entry)| entry), Ordering::Relaxed);
    }
}
