//! The threads of an engine that is on disk: lanes that execute, readers, one that makes checkpoints durable, one that
//! compacts and one that counts keys. What they are given, and what follows from what they report, a [`DiskExecutor`]
//! decides; here are channels, and nothing that would be worth simulating. The event loop never waits for the disk.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::Waker;
use syros_node::{DiskExecutor, LaneItem, LaneStep, LaneWorker, ReadWorker, Reading, Report};
use syros_storage::execution::Item;
use syros_storage::{Census, Shared, Store, StoreCause};
use syros_types::OpNumber;

/// Reads that a thread takes at a time: a few, so that one that waits for the disk does not hold up many.
const READS_PER_WAKE: usize = 8;

/// Compaction looks for work this often, if nobody tells it of any.
const COMPACTION_INTERVAL: Duration = Duration::from_millis(200);

/// After an error, compaction waits for so long.
const COMPACTION_PAUSE: Duration = Duration::from_secs(2);

/// Tells the event loop that there is something in the channel, once until it looks.
struct EventLoopNotifier {
    waker: Arc<Waker>,
    is_notified: AtomicBool,
}

impl EventLoopNotifier {
    fn notify(&self) {
        if !self.is_notified.swap(true, Ordering::AcqRel) {
            // Fails only if the loop is gone, and then nobody waits.
            let _ = self.waker.wake();
        }
    }
}

/// The channel to the event loop.
struct Reports<S: Store> {
    sender: Sender<Report<S>>,
    notifier: Arc<EventLoopNotifier>,
}

impl<S: Store> Clone for Reports<S> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), notifier: Arc::clone(&self.notifier) }
    }
}

impl<S: Store> Reports<S> {
    fn send(&self, report: Report<S>) {
        // Fails only if the event loop has ended.
        let _ = self.sender.send(report);
        self.notifier.notify();
    }
}

/// Reads that wait for a thread.
struct ReadQueue<S: Store> {
    state: Mutex<(VecDeque<Reading<S>>, bool)>,
    changed: Condvar,
}

impl<S: Store> ReadQueue<S> {
    const fn new() -> Self {
        Self { state: Mutex::new((VecDeque::new(), false)), changed: Condvar::new() }
    }

    /// Takes what `jobs` has, and wakes as many of `readers` threads as there is work for.
    fn push(&self, jobs: &mut Vec<Reading<S>>, readers: usize) {
        let count = jobs.len();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0.extend(jobs.drain(..));
        // Waking a thread takes longer than a read that needs no disk.
        for _ in 0..count.div_ceil(READS_PER_WAKE).min(readers) {
            self.changed.notify_one();
        }
    }

    /// Moves the next reads to `jobs`; false if there will be none.
    fn pop(&self, jobs: &mut Vec<Reading<S>>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // One of all keys may take long: nobody waits behind it.
            let short = state.0.iter().take(READS_PER_WAKE);
            let count = short.take_while(|reading| !reading.is_long()).count();
            let count = if state.0.is_empty() { 0 } else { count.max(1) };
            if count > 0 {
                jobs.extend(state.0.drain(..count));
                return true;
            }
            if state.1 {
                return false;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = true;
        self.changed.notify_all();
    }
}

/// How many threads do what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadCounts {
    pub(crate) lanes: usize,
    pub(crate) readers: usize,
}

/// The threads of a disk engine. A [`DiskExecutor`] decides for them.
pub(crate) struct DiskThreads<S: Store> {
    lanes: Vec<Sender<LaneItem>>,
    reads: Arc<ReadQueue<S>>,
    readers: usize,
    flusher: Option<Sender<OpNumber>>,
    compactor: Option<Sender<()>>,
    counter: Option<Sender<u64>>,
    reports: Receiver<Report<S>>,
    notifier: Arc<EventLoopNotifier>,
    threads: Vec<JoinHandle<()>>,
}

impl<S: Store> DiskThreads<S> {
    /// Starts the threads of an engine: so many lanes and readers.
    pub(crate) fn start(
        shared: Arc<Shared<S>>,
        threads: ThreadCounts,
        waker: Arc<Waker>,
    ) -> io::Result<Self> {
        let (sender, received) = channel();
        let notifier = Arc::new(EventLoopNotifier { waker, is_notified: AtomicBool::new(false) });
        let reports = Reports { sender, notifier: Arc::clone(&notifier) };
        let (mut lanes, mut handles) = (Vec::new(), Vec::new());
        let spawn =
            |name: String, work: Box<dyn FnOnce() + Send>| thread::Builder::new().name(name).spawn(work);
        let reads = Arc::new(ReadQueue::new());
        for lane in 0..threads.lanes {
            let (items, queue) = channel();
            lanes.push(items);
            let (worker, reports) = (LaneWorker::new(Arc::clone(&shared)), reports.clone());
            let reads = Arc::clone(&reads);
            let work = Box::new(move || execute(worker, &queue, &reads, &reports));
            handles.push(spawn(format!("lane-{lane}"), work)?);
        }
        for reader in 0..threads.readers.max(1) {
            let (worker, reports) = (ReadWorker::new(Arc::clone(&shared)), reports.clone());
            let reads = Arc::clone(&reads);
            let work = Box::new(move || read(worker, &reads, &reports));
            handles.push(spawn(format!("reader-{reader}"), work)?);
        }
        let (flusher, flushes) = channel();
        let (compactor, compactions) = channel();
        let (counter, counts) = channel();
        let (engine, results) = (Arc::clone(&shared), reports.clone());
        handles.push(spawn("count".to_owned(), Box::new(move || count(&engine, &counts, &results)))?);
        let (engine, compaction) = (Arc::clone(&shared), compactor.clone());
        let work = Box::new(move || flush(&engine, &flushes, &reports, &compaction));
        handles.push(spawn("flush".to_owned(), work)?);
        let wakes = Arc::clone(&notifier);
        let work = Box::new(move || compact(&shared, &compactions, &wakes));
        handles.push(spawn("compact".to_owned(), work)?);
        Ok(Self {
            lanes,
            reads,
            readers: threads.readers.max(1),
            flusher: Some(flusher),
            compactor: Some(compactor),
            counter: Some(counter),
            reports: received,
            notifier,
            threads: handles,
        })
    }

    /// Gives the lanes their items.
    pub(crate) fn hand_out(&self, executor: &mut DiskExecutor<S>) {
        while let Some((lane, item)) = executor.next_item() {
            // Fails only if the thread panicked: then nothing is ever executed again, and clients wait.
            let _ = self.lanes[lane].send(item);
        }
    }

    /// Ends a turn of the event loop: gives the reads that have come in it to the threads.
    pub(crate) fn end_turn(&self, executor: &mut DiskExecutor<S>) {
        let readings = executor.readings();
        if !readings.is_empty() {
            self.reads.push(readings, self.readers);
        }
    }

    /// Makes a checkpoint durable.
    pub(crate) fn flush(&self, op_number: OpNumber) {
        if let Some(flusher) = &self.flusher {
            // Fails only if the thread panicked: the checkpoint is then never finished, which loses nothing.
            let _ = flusher.send(op_number);
        }
    }

    /// Has a thread count the keys. Requests are numbered upwards; those that come while a census is being taken share
    /// the next one.
    pub(crate) fn count(&self, request: u64) {
        if let Some(counter) = &self.counter {
            // Fails only if the thread panicked: whoever asked gets an estimate after some time.
            let _ = counter.send(request);
        }
    }

    /// Begins to look for reports: what is reported from now on wakes the event loop.
    pub(crate) fn begin(&self) {
        self.notifier.is_notified.store(false, Ordering::Release);
    }

    /// Has compaction catch up.
    pub(crate) fn compact(&self) {
        if let Some(compactor) = &self.compactor {
            // Fails only if the thread has found damage, which fails the engine, or panicked; clients wait then.
            let _ = compactor.send(());
        }
    }

    /// The next thing that a thread has done.
    pub(crate) fn next_report(&self) -> Option<Report<S>> {
        self.reports.try_recv().ok()
    }
}

impl<S: Store> Drop for DiskThreads<S> {
    /// Ends the threads after what they are doing: nobody else may use the store before.
    fn drop(&mut self) {
        self.lanes.clear();
        self.reads.close();
        self.flusher = None;
        self.compactor = None;
        self.counter = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The thread of a lane.
fn execute<S: Store>(
    mut worker: LaneWorker<S>,
    queue: &Receiver<LaneItem>,
    reads: &ReadQueue<S>,
    reports: &Reports<S>,
) {
    while let Ok(item) = queue.recv() {
        loop {
            match worker.step(&item) {
                LaneStep::Done => {}
                LaneStep::Report(report) => reports.send(report),
                LaneStep::Reading(reading) => reads.push(&mut vec![reading], 1),
                LaneStep::Wait => {
                    if let Item::Barrier(barrier) = &item {
                        barrier.wait();
                    }
                    continue;
                }
            }
            break;
        }
    }
}

/// The thread of a reader.
fn read<S: Store>(mut worker: ReadWorker<S>, reads: &ReadQueue<S>, reports: &Reports<S>) {
    let mut jobs = Vec::new();
    while reads.pop(&mut jobs) {
        for reading in jobs.drain(..) {
            reports.send(worker.perform(reading));
        }
    }
}

/// The thread that makes checkpoints durable.
fn flush<S: Store>(
    shared: &Arc<Shared<S>>,
    flushes: &Receiver<OpNumber>,
    reports: &Reports<S>,
    compactor: &Sender<()>,
) {
    while let Ok(op_number) = flushes.recv() {
        reports.send(Report::Flushed(op_number, shared.flush()));
        // Fails only if the thread has ended.
        let _ = compactor.send(());
    }
}

/// The thread that counts keys.
fn count<S: Store>(shared: &Arc<Shared<S>>, requests: &Receiver<u64>, reports: &Reports<S>) {
    while let Ok(first) = requests.recv() {
        let last = requests.try_iter().last().unwrap_or(first);
        reports.send(Report::Counted(last, Census::take_all(shared, Census::COUNTED_MAX)));
    }
}

/// The thread that compacts.
fn compact<S: Store>(shared: &Arc<Shared<S>>, requests: &Receiver<()>, notifier: &EventLoopNotifier) {
    loop {
        match requests.recv_timeout(COMPACTION_INTERVAL) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        loop {
            match shared.compact() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.cause == StoreCause::Damaged => {
                    tracing::error!(error = %error, "the engine cannot compact its files");
                    // The event loop has to hear of it: there may be nothing to execute that would tell it.
                    notifier.notify();
                    return;
                }
                Err(error) => {
                    tracing::error!(error = %error, "the engine cannot compact its files; it tries again");
                    if !is_wanted_after(requests, COMPACTION_PAUSE) {
                        return;
                    }
                    break;
                }
            }
            // One step may take seconds; a process that ends should not wait for more than one.
            if !is_wanted_after(requests, Duration::ZERO) {
                return;
            }
        }
    }
}

/// Takes all requests of so long a time. False if nobody will ask for anything any more: then it ends at once.
fn is_wanted_after(requests: &Receiver<()>, pause: Duration) -> bool {
    let end = Instant::now() + pause;
    loop {
        match requests.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}
