//! The owner's side: what is taken, kept and removed, and when.

use super::{Attempt, Blocks, LoadedEngine, SnapshotJob, SnapshotReport, SnapshotSizes};
use crate::checkpoints::Checkpoints;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use syros_protocol::message::{Body, Message, Peer};
use syros_protocol::record::{SnapshotHead, Ticket};
use syros_protocol::replica::Event;
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_snapshot::{Loaded, SnapshotStoreError};
use syros_storage::{Engine, Store};
use syros_types::{Instant, OpNumber};

/// Where the state comes from that goes into snapshots.
pub enum StateOf<'a> {
    /// An engine in memory, which the owner cuts into blocks.
    Memory(&'a mut dyn Engine),
    /// A copy in memory, which the worker cuts into blocks.
    Copy,
    /// An engine on disk, with its checkpoints. The worker cuts the state into blocks, if a file is wanted.
    Checkpoints(&'a mut Checkpoints),
}

/// Something that the owner has to act on.
#[derive(Debug)]
pub enum SnapshotNews {
    /// The core has to hear this.
    Event(Event),
    /// The core has to hear [`Event::SnapshotUnreadable`], and the operator what is wrong; nothing, if the file is only gone.
    Unreadable {
        /// Which snapshot.
        op_number: OpNumber,
        /// What is wrong.
        warning: Option<String>,
    },
    /// The core has to hear [`Event::SnapshotFailed`], and the operator why.
    Failed {
        /// The snapshot.
        op_number: OpNumber,
        /// Why.
        error: SnapshotStoreError,
    },
    /// A member or a client is to be sent this. Nothing of it waits for the disk.
    Send(Peer, Message),
    /// The operator has to hear this. Nothing depends on it.
    Warning(String),
}

/// Who cuts the snapshot that is being taken.
#[derive(Clone, Copy, Debug)]
enum SnapshotCutter {
    /// The owner.
    Here {
        began: Instant,
        next_block_at: Instant,
        /// Bytes that have been cut and not been written yet.
        unwritten: usize,
    },
    /// Nobody any more, or the worker.
    Elsewhere,
}

/// A snapshot that is being taken.
#[derive(Clone, Copy, Debug)]
struct SnapshotInProgress {
    attempt: Attempt,
    op_number: OpNumber,
    cutting: SnapshotCutter,
}

/// A part of a snapshot, by the snapshot and where the part begins.
type Part = (OpNumber, u64);

/// What the worker reads for a member or a client.
#[derive(Clone, Copy, Debug)]
struct SnapshotRead {
    part: Part,
    /// What was asked for since, if that is another part.
    next: Option<Part>,
}

/// What the owner of an engine knows of its snapshots. `M` is what is loaded into memory, `S` the store of one on disk.
///
/// Every call may leave jobs for the worker: [`SnapshotSchedule::next_job`]. There are never more of them than the core has
/// asked for and not heard of, but for blocks, which [`SnapshotSizes::unwritten_max`] limits, and what is thrown away.
#[derive(Debug)]
pub struct SnapshotSchedule<M, S: Store> {
    sizes: SnapshotSizes,
    /// Counts attempts.
    attempts: u64,
    taking: Option<SnapshotInProgress>,
    /// The engine of a snapshot that the core has been told of and that it has not adopted.
    loaded: Option<LoadedEngine<M, S>>,
    /// What may go once this record is on disk: snapshots before this one, and records before this one.
    keep_from: Option<(OpNumber, Ticket)>,
    /// The worker has not reported yet what it removed last.
    is_removing: bool,
    /// One for each member at most, and for each of the few clients that the core lets copy a snapshot: who waits for a part
    /// asks for it again, and copies of what it asks for would keep a busy worker from ever reading what it needs next.
    readings: BTreeMap<Peer, SnapshotRead>,
    jobs: VecDeque<SnapshotJob>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

impl<M: Send + 'static, S: Store> SnapshotSchedule<M, S> {
    /// Of an engine of which no snapshot is being taken.
    #[must_use]
    pub const fn new(sizes: SnapshotSizes) -> Self {
        Self {
            sizes,
            attempts: 0,
            taking: None,
            loaded: None,
            keep_from: None,
            is_removing: false,
            readings: BTreeMap::new(),
            jobs: VecDeque::new(),
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// Makes it wrong in a known way, if the bug is one of this module.
    #[cfg(feature = "planted-bugs")]
    pub const fn plant(&mut self, bug: Option<PlantedBug>) {
        self.planted = bug;
    }

    /// A copy, if there is nothing of a snapshot. Models take none.
    #[cfg(feature = "model")]
    pub(crate) fn idle_copy(&self) -> Option<Self> {
        let Self { taking, loaded, keep_from, is_removing, readings, jobs, .. } = self;
        let has_some = taking.is_some() || loaded.is_some() || keep_from.is_some() || *is_removing;
        if has_some || !readings.is_empty() || !jobs.is_empty() {
            return None;
        }
        let mut copy = Self::new(self.sizes);
        copy.attempts = self.attempts;
        #[cfg(feature = "planted-bugs")]
        copy.plant(self.planted);
        Some(copy)
    }

    /// The next job for the worker.
    pub fn next_job(&mut self) -> Option<SnapshotJob> {
        self.jobs.pop_front()
    }

    /// The job that [`SnapshotSchedule::next_job`] gives next.
    #[must_use]
    pub fn first_job(&self) -> Option<&SnapshotJob> {
        self.jobs.front()
    }

    /// How many jobs of a kind wait for the worker.
    #[cfg(test)]
    pub(super) fn jobs_of(&self, kind: impl Fn(&SnapshotJob) -> bool) -> usize {
        self.jobs.iter().filter(|job| kind(job)).count()
    }

    // ---- SnapshotInProgress.

    /// Begins a snapshot of an engine in memory as it is now, which the owner cuts into blocks.
    pub fn begin(&mut self, head: Box<SnapshotHead>, engine: &mut dyn Engine, now: Instant) {
        engine.begin_snapshot();
        let cutting = SnapshotCutter::Here { began: now, next_block_at: now, unwritten: 0 };
        self.start(head, engine.memory_bytes(), cutting);
    }

    /// Begins a snapshot of this state, which the worker cuts into blocks. It takes at most about so many bytes.
    pub fn begin_cut(&mut self, head: Box<SnapshotHead>, blocks: Box<dyn Blocks>, bytes: usize) {
        let attempt = self.start(head, bytes, SnapshotCutter::Elsewhere);
        self.jobs.push_back(SnapshotJob::Cut { attempt, blocks });
    }

    fn start(&mut self, head: Box<SnapshotHead>, bytes: usize, cutting: SnapshotCutter) -> Attempt {
        self.attempts += 1;
        let attempt = Attempt(self.attempts);
        self.taking = Some(SnapshotInProgress { attempt, op_number: head.op_number, cutting });
        self.jobs.push_back(SnapshotJob::Begin { attempt, head, bytes });
        attempt
    }

    /// When to call [`SnapshotSchedule::cut_next`].
    #[must_use]
    pub fn deadline(&self) -> Instant {
        match self.taking {
            Some(SnapshotInProgress {
                cutting: SnapshotCutter::Here { next_block_at, unwritten, .. },
                ..
            }) if unwritten < self.sizes.unwritten_max => next_block_at,
            _ => Instant::NEVER,
        }
    }

    /// Cuts the next block of an engine in memory, if it is time; `clock` says what that took. When the last block is cut,
    /// the number of the snapshot and how long it took since it was begun.
    pub fn cut_next(
        &mut self,
        engine: &mut dyn Engine,
        now: Instant,
        clock: impl FnOnce() -> Instant,
    ) -> Option<(OpNumber, Duration)> {
        if now < self.deadline() {
            return None;
        }
        let Some(SnapshotInProgress { attempt, op_number, cutting }) = &mut self.taking else { return None };
        let SnapshotCutter::Here { began, next_block_at, unwritten } = cutting else { return None };
        let SnapshotSizes { block_bytes, share, hurry_bytes, .. } = self.sizes;
        let mut block = Vec::with_capacity(block_bytes + block_bytes / 8);
        let more = engine.snapshot_block(block_bytes, &mut block);
        let end = clock();
        *unwritten += block.len();
        let hurry = engine.snapshot_waiting_bytes() > hurry_bytes;
        *next_block_at = if hurry { end } else { end.after(end.since(now) * (share - 1)) };
        let (attempt, op_number, took) = (*attempt, *op_number, end.since(*began));
        self.jobs.push_back(SnapshotJob::Write { attempt, block });
        if more {
            return None;
        }
        *cutting = SnapshotCutter::Elsewhere;
        self.jobs.push_back(SnapshotJob::Finish(attempt));
        Some((op_number, took))
    }

    /// True if so much has been overwritten that the snapshot has yet to take that clients should wait.
    #[must_use]
    pub fn is_behind(&self, engine: &dyn Engine) -> bool {
        self.taking.is_some() && engine.snapshot_waiting_bytes() > self.sizes.behind_bytes
    }

    /// There is no such snapshot, nor a checkpoint that goes with it, and there will be none.
    pub fn failed(&mut self, op_number: OpNumber, state: StateOf<'_>) {
        let is_taken = self.taking.take_if(|taking| taking.op_number == op_number).is_some();
        if is_taken {
            self.jobs.push_back(SnapshotJob::GiveUp);
        }
        end(op_number, is_taken, state);
    }

    /// Gives up the snapshot that is being taken: the engine is about to be replaced.
    fn give_up(&mut self) {
        if self.taking.take().is_some() {
            self.jobs.push_back(SnapshotJob::GiveUp);
        }
    }

    // ---- Sending and receiving.

    /// Has a part of a snapshot read, for a member or a client.
    pub fn read_part(&mut self, to: Peer, op_number: OpNumber, offset: u64) {
        let part = (op_number, offset);
        match self.readings.get_mut(&to) {
            Some(reading) => reading.next = Some(part).filter(|part| *part != reading.part),
            None => {
                self.readings.insert(to, SnapshotRead { part, next: None });
                self.jobs.push_back(SnapshotJob::ReadPart { to, op_number, offset });
            }
        }
    }

    /// The worker has read a part, or cannot. True if the one who asked still waits for that part.
    fn end_reading(&mut self, to: Peer) -> bool {
        let next = self.readings.remove(&to).and_then(|reading| reading.next);
        if let Some((op_number, offset)) = next {
            self.read_part(to, op_number, offset);
        }
        next.is_none()
    }

    /// Has a part of a snapshot written that is being received.
    pub fn write_part(&mut self, op_number: OpNumber, offset: u64, part: Body) {
        self.jobs.push_back(SnapshotJob::WritePart { op_number, offset, part });
    }

    /// Has a snapshot loaded that has been received.
    pub fn load(&mut self, op_number: OpNumber) {
        self.jobs.push_back(SnapshotJob::Load(op_number));
    }

    /// True if an engine is loaded that the core has been told of. Nothing more may be told to the core before it has said
    /// whether it adopts the engine; [`SnapshotSchedule::discard_loaded`] ends that.
    #[must_use]
    pub const fn has_loaded(&self) -> bool {
        self.loaded.is_some()
    }

    /// The engine that was loaded, to take the place of the present one.
    pub fn adopt(&mut self) -> Option<LoadedEngine<M, S>> {
        let loaded = self.loaded.take()?;
        self.give_up();
        Some(loaded)
    }

    /// The core has not adopted the engine that was loaded, if there is one, and does not need it.
    pub fn discard_loaded(&mut self) {
        match self.loaded.take() {
            None => {}
            Some(LoadedEngine::InMemory(engine)) => self.discard(engine),
            Some(LoadedEngine::OnDisk(store, engine)) => {
                self.jobs.push_back(SnapshotJob::Discard { garbage: engine, store: Some(store) });
            }
        }
    }

    /// Has the worker drop something that takes its time.
    pub fn discard(&mut self, garbage: impl Send + 'static) {
        self.jobs.push_back(SnapshotJob::Discard { garbage: Box::new(garbage), store: None });
    }

    // ---- Removing.

    /// Snapshots before this one, and records before this one, may go once this record is on disk.
    pub const fn keep_from(&mut self, op_number: OpNumber, ticket: Ticket) {
        self.keep_from = Some((op_number, ticket));
    }

    /// The record that a removal waits for, if it is not on disk yet.
    #[must_use]
    pub fn awaited(&self, persisted: Ticket) -> Option<Ticket> {
        self.keep_from.map(|(_, ticket)| ticket).filter(|ticket| *ticket > persisted)
    }

    /// Has old snapshots removed, and stores before the one in use, if it is time; then the records before this one may go,
    /// too. One removal at a time: checkpoints may come faster than the worker removes what they replace.
    pub fn remove_if_due(&mut self, persisted: Ticket, store: Option<u64>) -> Option<Ticket> {
        let is_due = self.awaited(persisted).is_none() || self.removes_early();
        let (op_number, ticket) = self.keep_from.take_if(|_| is_due && !self.is_removing)?;
        self.is_removing = true;
        self.jobs.push_back(SnapshotJob::RemoveBefore { op_number, store });
        Some(ticket)
    }

    // ---- Reports.

    /// Takes a report of the worker. The engine or its checkpoints are told what concerns them.
    pub fn on_report(&mut self, report: SnapshotReport<M, S>, state: StateOf<'_>) -> Option<SnapshotNews> {
        match report {
            SnapshotReport::Written { attempt, bytes } => {
                if let Some(SnapshotInProgress {
                    attempt: taking,
                    cutting: SnapshotCutter::Here { unwritten, .. },
                    ..
                }) = &mut self.taking
                    && *taking == attempt
                {
                    *unwritten = unwritten.saturating_sub(bytes);
                }
                None
            }
            SnapshotReport::Taken { attempt, bytes } => {
                let SnapshotInProgress { op_number, .. } =
                    self.taking.take_if(|taking| taking.attempt == attempt)?;
                let bytes = match state {
                    StateOf::Memory(_) | StateOf::Copy => Some(bytes),
                    StateOf::Checkpoints(checkpoints) => checkpoints.written(op_number, bytes),
                };
                bytes.map(|bytes| SnapshotNews::Event(Event::SnapshotTaken { op_number, bytes }))
            }
            SnapshotReport::NotTaken { attempt, error } => {
                let SnapshotInProgress { op_number, .. } =
                    self.taking.take_if(|taking| taking.attempt == attempt)?;
                end(op_number, true, state);
                Some(SnapshotNews::Failed { op_number, error })
            }
            SnapshotReport::PartRead { to, op_number, offset, part } => {
                let message = Message::SnapshotPart { op_number, offset, part: part.into() };
                self.end_reading(to).then_some(SnapshotNews::Send(to, message))
            }
            SnapshotReport::PartNotRead { to, op_number, error } => {
                self.end_reading(to);
                let of = op_number.0;
                let warning =
                    error.map(|error| format!("cannot send a part of the snapshot at entry {of}: {error}"));
                Some(SnapshotNews::Unreadable { op_number, warning })
            }
            SnapshotReport::PartWritten { op_number, received } => {
                Some(SnapshotNews::Event(Event::SnapshotPartWritten { op_number, received }))
            }
            SnapshotReport::Loaded(loaded) => {
                let Loaded { head, engine, bytes } = *loaded;
                self.discard_loaded();
                self.loaded = Some(engine);
                Some(SnapshotNews::Event(Event::SnapshotLoaded { head: Box::new(head), bytes }))
            }
            SnapshotReport::NotReceived { op_number, error } => {
                self.not_received(op_number, state);
                Some(SnapshotNews::Failed { op_number, error })
            }
            SnapshotReport::Removed { snapshots, stores } => {
                self.is_removing = false;
                let snapshots = snapshots.err().map(|error| format!("cannot remove old snapshots: {error}"));
                let stores = stores.err().map(|error| error.to_string());
                let warnings: Vec<String> = snapshots.into_iter().chain(stores).collect();
                (!warnings.is_empty()).then(|| SnapshotNews::Warning(warnings.join("; ")))
            }
        }
    }

    /// A snapshot of another member cannot be received. To the core, one that is being taken of the same number fails with
    /// it; one of another number goes on.
    fn not_received(&mut self, op_number: OpNumber, state: StateOf<'_>) {
        #[cfg(feature = "planted-bugs")]
        if self.planted == Some(PlantedBug::SnapshotCutShort) {
            return end(op_number, true, state);
        }
        self.failed(op_number, state);
    }

    #[cfg(feature = "planted-bugs")]
    fn removes_early(&self) -> bool {
        self.planted == Some(PlantedBug::RemovedBeforeRecord)
    }

    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "same signature as with planted bugs")]
    const fn removes_early(&self) -> bool {
        false
    }
}

/// There will be no such snapshot: the engine keeps nothing for it, and no checkpoint waits for its file.
fn end(op_number: OpNumber, is_taken: bool, state: StateOf<'_>) {
    match state {
        StateOf::Memory(engine) if is_taken => engine.end_snapshot(),
        StateOf::Memory(_) | StateOf::Copy => {}
        StateOf::Checkpoints(checkpoints) => {
            checkpoints.failed(op_number);
        }
    }
}
