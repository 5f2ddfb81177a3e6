//! The thread that writes, reads, receives and loads snapshots, so that the event loop never waits for
//! them. Only cutting the state of an engine in memory into blocks is the event loop's: the engine is its own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};

use mio::Waker;
use syros_protocol::message::Body;
use syros_protocol::record::SnapshotHead;
use syros_snapshot::{Depot, DepotError, Load, Loaded};
use syros_storage::{Cut, Engine as _, Store, StoreError};
use syros_types::{Instant, Now, OpNumber, ReplicaId};
use syros_wal::{Cause, DiskError, DiskOperation, FileDisk};

use crate::resident::{PieceCutter, Resident};

/// State cut at a time, in bytes: takes the event loop a fraction of a millisecond.
const BLOCK_BYTES: usize = 128 << 10;

/// A part of a snapshot that is sent. A few of them keep a fast network busy; the messages of clients
/// wait no longer than one takes.
pub(crate) const PART_BYTES: usize = 256 << 10;

/// Blocks are cut only while fewer bytes than this wait to be written.
const UNWRITTEN_MAX: usize = 8 << 20;

/// While a snapshot is taken, the event loop spends one part in so many of its time on it.
const SHARE: u32 = 5;

/// When more bytes than this are kept because the snapshot has yet to take them, it is taken as fast as
/// it goes.
const HURRY_BYTES: usize = 64 << 20;

/// Bytes of the disk that a snapshot leaves free: a segment of the log.
const FREE_BYTES_MIN: u64 = 64 << 20;

/// When more than this are kept, clients have to wait.
const BEHIND_BYTES: usize = 256 << 20;

/// What the thread is asked for.
enum Job {
    Begin {
        head: Box<SnapshotHead>,
        /// At least as many as it will take.
        bytes: usize,
    },
    State(Vec<u8>),
    /// Cut the whole state into blocks, and write them, between other jobs.
    Cut(OpNumber, Box<dyn Blocks>),
    Finish(OpNumber),
    GiveUp,
    ReadPart {
        to: ReplicaId,
        op_number: OpNumber,
        offset: u64,
    },
    WritePart {
        op_number: OpNumber,
        offset: u64,
        part: Body,
    },
    Load(OpNumber),
    /// Remove snapshots before this one, and do what else there is to remove.
    RemoveBefore(OpNumber, Box<dyn FnOnce() + Send>),
    /// Something else that takes its time, like giving a large engine's memory back.
    Do(Box<dyn FnOnce() + Send>),
}

/// The state of an engine, to be cut by another thread.
pub(crate) trait Blocks: Send {
    /// Appends about `bytes` bytes of it to `block`; false if nothing is left after them.
    fn block(&mut self, bytes: usize, block: &mut Vec<u8>) -> Result<bool, StoreError>;
}

impl<S: Store> Blocks for Cut<S> {
    fn block(&mut self, bytes: usize, block: &mut Vec<u8>) -> Result<bool, StoreError> {
        Self::block(self, bytes, block)
    }
}

/// What the thread has done.
pub(crate) enum Done<E> {
    /// A snapshot that was received is loaded.
    Loaded(Box<Loaded<E>>),
    /// Something that has nothing to do with the kind of engine.
    Common(Common),
}

/// What the thread has done, whatever the engine.
pub(crate) enum Common {
    /// So many bytes of state are written.
    State(usize),
    Taken {
        op_number: OpNumber,
        bytes: u64,
    },
    PartRead {
        to: ReplicaId,
        op_number: OpNumber,
        offset: u64,
        part: Vec<u8>,
    },
    PartWritten {
        op_number: OpNumber,
        received: u64,
    },
    /// What was to be removed is removed, as far as the disk allows it.
    Removed,
    /// Work on this snapshot has failed.
    Failed {
        op_number: OpNumber,
        error: DepotError,
    },
}

/// A snapshot being cut.
#[derive(Debug)]
struct Taking {
    op_number: OpNumber,
    unwritten: usize,
    next_block_at: Instant,
    began: Instant,
}

/// The event loop's side of the thread.
pub(crate) struct Snapshots<E> {
    jobs: Option<Sender<Job>>,
    done: Receiver<Done<E>>,
    thread: Option<JoinHandle<()>>,
    taking: Option<Taking>,
    /// The thread has yet to remove something.
    removing: bool,
}

impl<E: Send + 'static> Snapshots<E> {
    /// Starts the thread, whose snapshots are in the directory `path`. It uses `waker` when it has done something,
    /// and `loader` for engines that it loads.
    pub(crate) fn start<L: Load<Engine = E>>(
        depot: Depot<FileDisk>,
        path: PathBuf,
        loader: impl Fn() -> Result<L, DepotError> + Send + 'static,
        waker: Arc<Waker>,
    ) -> io::Result<Self> {
        let (jobs, received) = channel();
        let (report, done) = channel();
        let thread = thread::Builder::new().name("snapshots".to_owned()).spawn(move || {
            work(depot, &path, loader, &received, &report, &waker);
        })?;
        Ok(Self { jobs: Some(jobs), done, thread: Some(thread), taking: None, removing: false })
    }

    fn ask(&self, job: Job) {
        // Fails only if the thread panicked; a snapshot is then never finished, which loses nothing.
        if let Some(jobs) = &self.jobs {
            let _ = jobs.send(job);
        }
    }

    /// The next thing that the thread has done.
    pub(crate) fn next_done(&mut self) -> Option<Done<E>> {
        let done = self.done.try_recv().ok()?;
        match &done {
            Done::Common(Common::State(bytes)) => {
                if let Some(taking) = &mut self.taking {
                    taking.unwritten = taking.unwritten.saturating_sub(*bytes);
                }
            }
            Done::Common(Common::Removed) => self.removing = false,
            Done::Common(Common::Failed { op_number, .. }) => {
                self.taking.take_if(|taking| taking.op_number == *op_number);
            }
            _ => {}
        }
        Some(done)
    }

    /// Begins a snapshot of this state, which may take as many bytes.
    pub(crate) fn begin_cut(&mut self, head: Box<SnapshotHead>, cut: impl Blocks + 'static, bytes: usize) {
        let op_number = head.op_number;
        self.ask(Job::Begin { head, bytes });
        self.ask(Job::Cut(op_number, Box::new(cut)));
    }

    /// Gives up the snapshot being taken: the engine is about to be replaced.
    pub(crate) fn give_up(&mut self) {
        self.taking = None;
        self.ask(Job::GiveUp);
    }

    pub(crate) fn read_part(&self, to: ReplicaId, op_number: OpNumber, offset: u64) {
        self.ask(Job::ReadPart { to, op_number, offset });
    }

    pub(crate) fn write_part(&self, op_number: OpNumber, offset: u64, part: Body) {
        self.ask(Job::WritePart { op_number, offset, part });
    }

    pub(crate) fn load(&self, op_number: OpNumber) {
        self.ask(Job::Load(op_number));
    }

    /// True if the thread has yet to remove something. Nobody asks it for another removal meanwhile: checkpoints may come
    /// faster than the thread removes what they replace, and its queue would grow without limit.
    pub(crate) const fn is_removing(&self) -> bool {
        self.removing
    }

    /// Removes the snapshots before this one, and then whatever `others` removes.
    pub(crate) fn remove_before(&mut self, op_number: OpNumber, others: impl FnOnce() + Send + 'static) {
        self.removing = true;
        self.ask(Job::RemoveBefore(op_number, Box::new(others)));
    }

    /// Has something done after what was asked for.
    pub(crate) fn then(&self, work: impl FnOnce() + Send + 'static) {
        self.ask(Job::Do(Box::new(work)));
    }

    /// Drops something that takes its time.
    pub(crate) fn discard(&self, engine: impl Send + 'static) {
        self.then(move || drop(engine));
    }
}

impl Snapshots<Resident> {
    /// Begins a snapshot of the engine as it is now.
    pub(crate) fn begin(&mut self, engine: &mut Resident, head: Box<SnapshotHead>, now: Now) {
        let engine = match engine {
            Resident::Keys(keys) => keys,
            Resident::Machine(machine) => {
                let bytes = machine.snapshot_bytes();
                return self.begin_cut(head, PieceCutter::new(machine.snapshot()), bytes);
            }
        };
        engine.begin_snapshot();
        let (op_number, began) = (head.op_number, now.instant);
        self.taking = Some(Taking { op_number, unwritten: 0, next_block_at: began, began });
        self.ask(Job::Begin { head, bytes: engine.memory_bytes() });
    }

    /// When to call [`Snapshots::go_on`].
    pub(crate) fn deadline(&self) -> Instant {
        match &self.taking {
            Some(taking) if taking.unwritten < UNWRITTEN_MAX => taking.next_block_at,
            _ => Instant::NEVER,
        }
    }

    /// True if so much has been overwritten that the snapshot has yet to take that clients should wait.
    pub(crate) fn is_behind(&self, engine: &Resident) -> bool {
        match engine {
            Resident::Keys(keys) => self.taking.is_some() && keys.snapshot_waiting_bytes() > BEHIND_BYTES,
            Resident::Machine(_) => false,
        }
    }

    /// Cuts the next block, if it is time. `clock` tells what that took.
    pub(crate) fn go_on(&mut self, engine: &mut Resident, clock: impl Fn() -> Instant) {
        let (Some(taking), Resident::Keys(engine)) = (&mut self.taking, engine) else { return };
        let start = clock();
        if taking.unwritten >= UNWRITTEN_MAX || start < taking.next_block_at {
            return;
        }
        let mut block = Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 8);
        let more = engine.snapshot_block(BLOCK_BYTES, &mut block);
        let end = clock();
        taking.unwritten += block.len();
        let hurry = engine.snapshot_waiting_bytes() > HURRY_BYTES;
        taking.next_block_at = if hurry { end } else { end.after(end.since(start) * (SHARE - 1)) };
        let op_number = taking.op_number;
        self.ask(Job::State(block));
        if !more {
            self.ask(Job::Finish(op_number));
        }
        if !more && let Some(taking) = self.taking.take() {
            log::debug!("snapshot at entry {} cut in {:?}", op_number.0, end.since(taking.began));
        }
    }
}

impl<E> Drop for Snapshots<E> {
    /// Ends the thread after what it is doing: nobody else may use the directory before.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Fails if a snapshot would take the last space of the disk, which the log needs.
fn room_for(path: &Path, bytes: usize) -> Result<(), DepotError> {
    let free = match rustix::fs::statvfs(path) {
        Ok(system) => system.f_bavail.saturating_mul(system.f_frsize),
        // Then writing will tell.
        Err(_) => return Ok(()),
    };
    let needed = (bytes as u64).saturating_add(FREE_BYTES_MIN);
    if free >= needed {
        return Ok(());
    }
    let cause = Cause::Other(format!("it may need {needed} bytes, and {free} are free"));
    Err(DiskError { operation: DiskOperation::Create, file: "a snapshot".to_owned(), cause }.into())
}

/// Cuts the next block and writes it; what has become of the snapshot, if that was the last.
fn cut_next(depot: &mut Depot<FileDisk>, op_number: OpNumber, cut: &mut dyn Blocks) -> Option<Common> {
    let mut block = Vec::with_capacity(BLOCK_BYTES + BLOCK_BYTES / 8);
    let more = cut.block(BLOCK_BYTES, &mut block).map_err(DepotError::from);
    let done = match more.and_then(|more| depot.state(&block).map(|()| more)) {
        Ok(true) => return None,
        Ok(false) => depot.finish().map(|bytes| Common::Taken { op_number, bytes }),
        Err(error) => Err(error),
    };
    Some(done.unwrap_or_else(|error| {
        // If this fails too, the next process removes it.
        let _ = depot.give_up();
        Common::Failed { op_number, error }
    }))
}

/// Removes old snapshots. What the disk refuses to remove now, it is asked for again after the next checkpoint.
fn remove_before(depot: &mut Depot<FileDisk>, op_number: OpNumber) {
    if let Err(error) = depot.remove_before(op_number) {
        log::warn!("cannot remove old snapshots: {error}");
    }
}

/// The thread.
fn work<L: Load>(
    mut depot: Depot<FileDisk>,
    path: &Path,
    loader: impl Fn() -> Result<L, DepotError>,
    jobs: &Receiver<Job>,
    report: &Sender<Done<L::Engine>>,
    waker: &Waker,
) {
    // The snapshot being written; what comes for one that has failed is left out.
    let mut writing: Option<OpNumber> = None;
    // What is cut when there is nothing else to do.
    let mut cutting: Option<(OpNumber, Box<dyn Blocks>)> = None;
    loop {
        let job = match &mut cutting {
            None => jobs.recv().map_err(|_| TryRecvError::Disconnected),
            Some(_) => jobs.try_recv(),
        };
        let job = match job {
            Ok(job) => job,
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) => {
                let Some((op_number, cut)) = &mut cutting else { continue };
                if let Some(done) = cut_next(&mut depot, *op_number, &mut **cut) {
                    (cutting, writing) = (None, None);
                    if report.send(Done::Common(done)).is_err() {
                        return;
                    }
                    // Fails only if the loop is gone, and then nobody waits.
                    let _ = waker.wake();
                }
                continue;
            }
        };
        let (concerns, done) = match job {
            Job::Cut(op_number, cut) => {
                cutting = (writing == Some(op_number)).then_some((op_number, cut));
                continue;
            }
            Job::Begin { head, bytes } => {
                (writing, cutting) = (Some(head.op_number), None);
                (head.op_number, room_for(path, bytes).and_then(|()| depot.begin(&head)).map(|()| None))
            }
            Job::State(block) => match writing {
                Some(op_number) => {
                    let length = block.len();
                    (op_number, depot.state(&block).map(|()| Some(Common::State(length))))
                }
                None => continue,
            },
            Job::Finish(op_number) if writing == Some(op_number) => {
                writing = None;
                (op_number, depot.finish().map(|bytes| Some(Common::Taken { op_number, bytes })))
            }
            Job::Finish(_) => continue,
            Job::GiveUp => {
                cutting = None;
                let Some(op_number) = writing.take() else { continue };
                (op_number, depot.give_up().map(|()| None))
            }
            Job::ReadPart { to, op_number, offset } => match depot.read_part(op_number, offset, PART_BYTES) {
                Ok(part) => {
                    (op_number, Ok(part.map(|part| Common::PartRead { to, op_number, offset, part })))
                }
                Err(error) => {
                    // Whoever asked asks again, or elsewhere.
                    log::warn!("cannot send a part of the snapshot at entry {}: {error}", op_number.0);
                    continue;
                }
            },
            Job::WritePart { op_number, offset, part } => {
                let written = depot.write_part(op_number, offset, &part);
                (op_number, written.map(|received| Some(Common::PartWritten { op_number, received })))
            }
            Job::Load(op_number) => {
                match loader().and_then(|loader| depot.receive(op_number, loader)) {
                    Ok(loaded) => {
                        if report.send(Done::Loaded(Box::new(loaded))).is_err() {
                            return;
                        }
                        // Fails only if the loop is gone, and then nobody waits.
                        let _ = waker.wake();
                        continue;
                    }
                    Err(error) => (op_number, Err(error)),
                }
            }
            Job::RemoveBefore(op_number, others) => {
                remove_before(&mut depot, op_number);
                others();
                (op_number, Ok(Some(Common::Removed)))
            }
            Job::Do(work) => {
                work();
                continue;
            }
        };
        let done = match done {
            Ok(None) => continue,
            Ok(Some(done)) => done,
            Err(error) => {
                if writing == Some(concerns) {
                    writing = None;
                    // If this fails too, the next process removes it.
                    let _ = depot.give_up();
                }
                Common::Failed { op_number: concerns, error }
            }
        };
        if report.send(Done::Common(done)).is_err() {
            return;
        }
        // Fails only if the loop is gone, and then nobody waits.
        let _ = waker.wake();
    }
}
