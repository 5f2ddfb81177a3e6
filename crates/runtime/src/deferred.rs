//! Execution on threads of its own, for an engine that is on disk: lanes that execute, readers, one thread that makes
//! checkpoints durable and one that compacts. The event loop deals out and collects; it never waits for the disk.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::Waker;
use syros_protocol::message::{Body, LogEntry, Message, Peer};
use syros_protocol::record::SnapshotHead;
use syros_snapshot::{EvaluateJob, ReadJob, ReadOutcome, deal_out, seal};
use syros_storage::execution::{Dispatcher, Executed, Item, ReadWay, Step, Worker};
use syros_storage::{Census, Cut, DiskEngine, Moment, Pressure, Reader, Shared, Store, StoreError};
use syros_types::{Description, Footprint, Instant, Now, OpNumber, OperationId, View, WallTime};

use crate::node::describe;

/// Reads that a thread takes at a time: a few, so that one that waits for the disk does not hold up many.
const READS_PER_WAKE: usize = 8;

/// Reads that have not been answered at most; beyond, clients have to wait.
const READS_WAITING_MAX: usize = 16_384;

/// Bytes of updates that wait for a lane at most; beyond, clients have to wait.
const EXECUTION_WAITING_MAX: usize = 32 << 20;

/// How often it is looked how much the engine owes to the disk.
const PRESSURE_INTERVAL: Duration = Duration::from_millis(5);

/// Compaction looks for work this often, if nobody tells it of any.
const TIDY_INTERVAL: Duration = Duration::from_millis(200);

/// After an error, compaction waits for so long.
const TIDY_PAUSE: Duration = Duration::from_secs(2);

/// What makes clients wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PressureLimits {
    /// Bytes in memory that are not on disk yet.
    pub(crate) unflushed_bytes: u64,
    /// Runs that wait to be merged.
    pub(crate) runs: usize,
}

/// A read for a thread: of what there is, or of what there was at a moment.
enum Reading<S: Store> {
    Now(ReadJob),
    Then(ReadJob, Moment<S>),
}

/// What is done while lanes wait.
enum Job {
    /// A read that looks up more than once, and has to see what there was at one moment.
    Read(ReadJob, WallTime),
    /// A read that concerns all keys: only the moment is taken while the lanes wait.
    ReadAll(ReadJob, WallTime),
    /// Find out what an update returns.
    Evaluate(EvaluateJob),
    /// End a checkpoint; for a file, keep the state as it is now.
    Seal { head: Box<SnapshotHead>, is_file: bool },
    /// Remove what has expired.
    Purge,
}

/// What the threads have done.
enum Report<S: Store> {
    Ended(u64, Vec<(OpNumber, Vec<u8>)>),
    Read(ReadOutcome),
    Evaluated(EvaluateJob, Option<Message>),
    Sealed(Box<SnapshotHead>, Result<Option<Cut<S>>, StoreError>),
    Flushed(OpNumber, Result<(), StoreError>),
    Purged,
    Counted(u64, Result<Census, StoreError>),
}

/// Something the event loop has to act on.
pub(crate) enum News<S: Store> {
    /// A prefix of the log is executed.
    Executed(Executed),
    /// A read is answered, or is not.
    Read(ReadOutcome),
    /// What an update returns; `None` if that cannot be known before it is executed.
    Evaluated(EvaluateJob, Option<Message>),
    /// A checkpoint is sealed; with the state as it was, if a file was asked for.
    Sealed(Box<SnapshotHead>, Option<Cut<S>>),
    /// A checkpoint is durable.
    Flushed(OpNumber),
    /// A checkpoint failed.
    Failed(OpNumber, StoreError),
    /// A census that began after the request with this number.
    Counted(u64, Census),
}

/// Tells the event loop that there is something in the channel, once until it looks.
struct Bell {
    waker: Arc<Waker>,
    is_rung: AtomicBool,
}

impl Bell {
    fn ring(&self) {
        if !self.is_rung.swap(true, Ordering::AcqRel) {
            // Fails only if the loop is gone, and then nobody waits.
            let _ = self.waker.wake();
        }
    }
}

/// The channel to the event loop.
struct Reports<S: Store> {
    sender: Sender<Report<S>>,
    bell: Arc<Bell>,
}

impl<S: Store> Clone for Reports<S> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<S: Store> Reports<S> {
    fn send(&self, report: Report<S>) {
        // Fails only if the event loop has ended.
        let _ = self.sender.send(report);
        self.bell.ring();
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
            let count = short.take_while(|reading| matches!(reading, Reading::Now(_))).count();
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
pub(crate) struct Threads {
    pub(crate) lanes: usize,
    pub(crate) readers: usize,
}

/// A disk engine and its threads.
pub(crate) struct Deferred<S: Store> {
    shared: Arc<Shared<S>>,
    dispatcher: Dispatcher<Body, Job>,
    /// The last entry that was dealt out.
    dispatched: OpNumber,
    lanes: Vec<Sender<Item<Body, Job>>>,
    reads: Arc<ReadQueue<S>>,
    readers: usize,
    /// Reads of this turn of the event loop.
    new_reads: Vec<Reading<S>>,
    flusher: Option<Sender<OpNumber>>,
    tidier: Option<Sender<()>>,
    counter: Option<Sender<u64>>,
    reports: Receiver<Report<S>>,
    bell: Arc<Bell>,
    threads: Vec<JoinHandle<()>>,
    limits: PressureLimits,
    pressure: Pressure,
    pressure_at: Instant,
    is_purging: bool,
    /// Reads that have not been answered.
    unanswered: usize,
}

impl<S: Store> Deferred<S> {
    /// Starts the threads of an engine whose last checkpoint holds all up to `applied`.
    pub(crate) fn start(
        engine: DiskEngine<S>,
        applied: OpNumber,
        threads: Threads,
        limits: PressureLimits,
        waker: Arc<Waker>,
    ) -> io::Result<Self> {
        let shared = engine.into_shared();
        let (sender, received) = channel();
        let bell = Arc::new(Bell { waker, is_rung: AtomicBool::new(false) });
        let reports = Reports { sender, bell: Arc::clone(&bell) };
        let dispatcher = Dispatcher::new(threads.lanes);
        let (mut lanes, mut handles) = (Vec::new(), Vec::new());
        let spawn =
            |name: String, work: Box<dyn FnOnce() + Send>| thread::Builder::new().name(name).spawn(work);
        let reads = Arc::new(ReadQueue::new());
        for lane in 0..dispatcher.lanes() {
            let (items, queue) = channel();
            lanes.push(items);
            let (shared, reports, reads) = (Arc::clone(&shared), reports.clone(), Arc::clone(&reads));
            handles.push(spawn(
                format!("lane-{lane}"),
                Box::new(move || execute(&shared, &queue, &reads, &reports)),
            )?);
        }
        for reader in 0..threads.readers.max(1) {
            let (shared, reports, reads) = (Arc::clone(&shared), reports.clone(), Arc::clone(&reads));
            handles
                .push(spawn(format!("reader-{reader}"), Box::new(move || read(&shared, &reads, &reports)))?);
        }
        let (flusher, flushes) = channel();
        let (tidier, wishes) = channel();
        let (counter, requests) = channel();
        let (engine, results) = (Arc::clone(&shared), reports.clone());
        handles.push(spawn("count".to_owned(), Box::new(move || count(&engine, &requests, &results)))?);
        let (engine, wish) = (Arc::clone(&shared), tidier.clone());
        let work = Box::new(move || flush(&engine, &flushes, &reports, &wish));
        handles.push(spawn("flush".to_owned(), work)?);
        let engine = Arc::clone(&shared);
        handles.push(spawn("compact".to_owned(), Box::new(move || tidy(&engine, &wishes)))?);
        Ok(Self {
            shared,
            dispatcher,
            dispatched: applied,
            lanes,
            reads,
            readers: threads.readers.max(1),
            new_reads: Vec::new(),
            flusher: Some(flusher),
            tidier: Some(tidier),
            counter: Some(counter),
            reports: received,
            bell,
            threads: handles,
            limits,
            pressure: Pressure::default(),
            pressure_at: Instant(0),
            is_purging: false,
            unanswered: 0,
        })
    }

    /// The engine.
    pub(crate) const fn shared(&self) -> &Arc<Shared<S>> {
        &self.shared
    }

    /// The last entry that was dealt out.
    pub(crate) const fn dispatched(&self) -> OpNumber {
        self.dispatched
    }

    /// Deals out one log entry, the one after the last.
    pub(crate) fn entry(&mut self, number: OpNumber, entry: &LogEntry) {
        self.dispatched = number;
        deal_out(&mut self.dispatcher, number, entry);
    }

    /// The end of what is dealt out at a time; `time` is the log time of the last entry.
    pub(crate) fn end_chunk(&mut self, time: WallTime) {
        self.dispatcher.end_chunk(self.dispatched, time);
        self.hand_out();
    }

    fn hand_out(&mut self) {
        while let Some((lane, item)) = self.dispatcher.next_item() {
            // Fails only if the thread panicked: then nothing is ever executed again, and clients wait.
            let _ = self.lanes[lane].send(item);
        }
    }

    /// Has a read answered.
    pub(crate) fn read(&mut self, job: ReadJob) {
        self.unanswered += 1;
        let time = self.dispatcher.time();
        match ReadWay::of(&job.body) {
            ReadWay::InPassing => return self.new_reads.push(Reading::Now(job)),
            ReadWay::OfMoment => self.dispatcher.job(&Footprint::All, Job::ReadAll(job, time)),
            ReadWay::AtMeeting(keys) => self.dispatcher.job(&keys, Job::Read(job, time)),
        }
        self.hand_out();
    }

    /// Has it found out what an update returns, before anything is executed that is dealt out later.
    pub(crate) fn evaluate(&mut self, to: Peer, view: View, id: OperationId, body: Body) {
        let Some(Description { footprint, .. }) = describe(&body) else { return };
        let job = EvaluateJob { to, view, id, body, time: self.dispatcher.time() };
        self.dispatcher.job(&footprint, Job::Evaluate(job));
        self.hand_out();
    }

    /// Ends a turn of the event loop: gives the reads that have come in it to the threads.
    pub(crate) fn end_turn(&mut self) {
        if !self.new_reads.is_empty() {
            self.reads.push(&mut self.new_reads, self.readers);
        }
    }

    /// Ends a checkpoint after what has been dealt out.
    pub(crate) fn seal(&mut self, head: Box<SnapshotHead>, is_file: bool) {
        self.dispatcher.job(&Footprint::All, Job::Seal { head, is_file });
        self.hand_out();
    }

    /// Makes durable what was sealed.
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

    /// Begins to look for news: what is reported from now on wakes the event loop.
    pub(crate) fn begin(&mut self, now: Now) {
        self.bell.is_rung.store(false, Ordering::Release);
        if now.instant >= self.pressure_at {
            self.pressure_at = now.instant.after(PRESSURE_INTERVAL);
            self.pressure = self.shared.store().pressure();
            if self.is_compaction_behind()
                && let Some(tidier) = &self.tidier
            {
                // Fails only if the thread panicked; clients wait then.
                let _ = tidier.send(());
            }
        }
    }

    /// When it is looked next how much the engine owes.
    pub(crate) const fn pressure_at(&self) -> Instant {
        self.pressure_at
    }

    /// The next thing that has happened. What was executed is visible to readers when this returns it.
    pub(crate) fn next_news(&mut self) -> Option<News<S>> {
        if self.shared.failure().is_some() {
            // Nothing that was executed since counts.
            return None;
        }
        loop {
            if let Some(executed) = self.dispatcher.next_executed() {
                self.shared.advance(executed.time);
                self.purge_if_due();
                return Some(News::Executed(executed));
            }
            let report = self.reports.try_recv().ok()?;
            if self.shared.failure().is_some() {
                return None;
            }
            match report {
                Report::Ended(chunk, replies) => self.dispatcher.ended(chunk, replies),
                Report::Read(outcome) => {
                    self.unanswered -= 1;
                    return Some(News::Read(outcome));
                }
                Report::Evaluated(job, message) => return Some(News::Evaluated(job, message)),
                Report::Sealed(head, Ok(cut)) => return Some(News::Sealed(head, cut)),
                Report::Sealed(head, Err(error)) => return Some(News::Failed(head.op_number, error)),
                Report::Flushed(op_number, Ok(())) => return Some(News::Flushed(op_number)),
                Report::Flushed(op_number, Err(error)) => return Some(News::Failed(op_number, error)),
                Report::Counted(request, Ok(census)) => return Some(News::Counted(request, census)),
                // The commands that need this part of the store find out.
                Report::Counted(_, Err(error)) => log::warn!("{error}; keys were not counted"),
                Report::Purged => {
                    self.is_purging = false;
                    self.purge_if_due();
                }
            }
        }
    }

    fn purge_if_due(&mut self) {
        if !self.is_purging && self.shared.has_expired() {
            self.is_purging = true;
            self.dispatcher.job(&Footprint::All, Job::Purge);
            self.hand_out();
        }
    }

    fn is_compaction_behind(&self) -> bool {
        self.pressure.runs > self.limits.runs
    }

    /// True if clients should wait until the engine has caught up.
    pub(crate) fn is_behind(&self) -> bool {
        self.pressure.unflushed_bytes > self.limits.unflushed_bytes
            || self.is_compaction_behind()
            || self.dispatcher.waiting_bytes() > EXECUTION_WAITING_MAX
            || self.unanswered > READS_WAITING_MAX
    }
}

impl<S: Store> Drop for Deferred<S> {
    /// Ends the threads after what they are doing: nobody else may use the store before.
    fn drop(&mut self) {
        self.lanes.clear();
        self.reads.close();
        self.flusher = None;
        self.tidier = None;
        self.counter = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The thread of a lane.
fn execute<S: Store>(
    shared: &Arc<Shared<S>>,
    queue: &Receiver<Item<Body, Job>>,
    reads: &ReadQueue<S>,
    reports: &Reports<S>,
) {
    let mut worker = Worker::new(Arc::clone(shared));
    while let Ok(item) = queue.recv() {
        loop {
            match worker.step(&item) {
                Step::Done => {}
                Step::Ended(chunk, replies) => reports.send(Report::Ended(chunk, replies)),
                Step::Wait => {
                    if let Item::Meet(meeting) = &item {
                        meeting.wait();
                    }
                    continue;
                }
                Step::Job(job) => {
                    match job {
                        Job::ReadAll(job, time) => {
                            let reading = Reading::Then(job, Moment::new(shared, time));
                            reads.push(&mut vec![reading], 1);
                        }
                        Job::Evaluate(job) => {
                            let message = job.perform(shared);
                            reports.send(Report::Evaluated(job, message));
                        }
                        Job::Read(job, time) => reports.send(read_several(shared, job, time)),
                        Job::Seal { head, is_file } => {
                            let sealed = seal(shared, &head, is_file);
                            reports.send(Report::Sealed(head, sealed));
                        }
                        Job::Purge => {
                            shared.purge();
                            reports.send(Report::Purged);
                        }
                    }
                    if let Item::Meet(meeting) = &item {
                        meeting.close();
                    }
                }
            }
            break;
        }
    }
}

/// Answers a read of several keys, whose lanes have met.
fn read_several<S: Store>(shared: &Arc<Shared<S>>, job: ReadJob, time: WallTime) -> Report<S> {
    let mut reader = Reader::new(Arc::clone(shared));
    let mut reply = Vec::new();
    reader.read_at(time, job.now, &job.body, &mut reply);
    Report::Read(job.answer(&reply, reader.first_expiry()))
}

/// The thread of a reader.
fn read<S: Store>(shared: &Arc<Shared<S>>, reads: &ReadQueue<S>, reports: &Reports<S>) {
    let mut reader = Reader::new(Arc::clone(shared));
    let (mut jobs, mut reply) = (Vec::new(), Vec::new());
    while reads.pop(&mut jobs) {
        for reading in jobs.drain(..) {
            reply.clear();
            let (job, expiry) = match reading {
                Reading::Now(job) => {
                    reader.read(job.now, &job.body, &mut reply);
                    (job, reader.first_expiry())
                }
                Reading::Then(job, moment) => {
                    let expiry = moment.read(shared, job.now, &job.body, &mut reply);
                    (job, expiry)
                }
            };
            reports.send(Report::Read(job.answer(&reply, expiry)));
        }
    }
}

/// The thread that makes checkpoints durable.
fn flush<S: Store>(
    shared: &Arc<Shared<S>>,
    flushes: &Receiver<OpNumber>,
    reports: &Reports<S>,
    tidier: &Sender<()>,
) {
    while let Ok(op_number) = flushes.recv() {
        reports.send(Report::Flushed(op_number, shared.flush()));
        // Fails only if the thread has ended.
        let _ = tidier.send(());
    }
}

/// The thread that counts keys.
fn count<S: Store>(shared: &Arc<Shared<S>>, requests: &Receiver<u64>, reports: &Reports<S>) {
    while let Ok(first) = requests.recv() {
        let last = requests.try_iter().last().unwrap_or(first);
        reports.send(Report::Counted(last, Census::take(shared, Census::COUNTED_MAX)));
    }
}

/// The thread that compacts.
fn tidy<S: Store>(shared: &Arc<Shared<S>>, wishes: &Receiver<()>) {
    loop {
        match wishes.recv_timeout(TIDY_INTERVAL) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        loop {
            match shared.tidy() {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    log::error!("{error}; it is tried again");
                    thread::sleep(TIDY_PAUSE);
                    break;
                }
            }
            // One step may take seconds; a process that ends should not wait for more than one.
            while wishes.try_recv().is_ok() {}
            if let Err(std::sync::mpsc::TryRecvError::Disconnected) = wishes.try_recv() {
                return;
            }
        }
    }
}
