//! Deferred, parallel execution (IONIA 4.1): log entries go to lanes by the hashes of their keys; each lane executes
//! what it gets in log order, and does not know of the others.
//!
//! Where an operation concerns several lanes they *meet*: each comes to the barrier when it has executed, and
//! committed, all that it got before; the last one executes the operation, and the others wait for it. All lanes
//! get barriers in one order, so they never wait for each other in a circle. An entry counts as applied when it and
//! all before it are executed and committed: the *applied index* is the end of the longest executed prefix.
//!
//! Nothing here waits or has threads: a [`Dispatcher`] deals out, a [`Worker`] does one item after the other, and
//! says when it has to wait. A server lets threads drive the workers, the simulator whatever order it draws.

use crate::disk::{Lane, Shared};
use crate::removals::{PART_BITS, part_of_hash};
use crate::store::Store;
use core::fmt;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use syros_commands::access::Announcement;
use syros_commands::{describe, operations};
use syros_types::{Footprint, OpNumber, WallTime};

/// A lane commits when so many bytes are uncommitted, if it is not told to before.
const UNCOMMITTED_MAX: usize = 1 << 20;

/// Most lanes: one bit each.
pub const LANES_MAX: usize = 64;

/// A body to be executed.
#[derive(Clone, Debug)]
pub struct Task<B> {
    /// The log entry.
    pub number: OpNumber,
    /// Log time.
    pub time: WallTime,
    /// The body.
    pub body: B,
    /// Somebody wants to know the answer.
    pub wants_reply: bool,
}

/// What a lane gets.
#[derive(Debug)]
pub enum Item<B, J> {
    /// Execute these, whose keys are the lane's alone.
    Run(Vec<Task<B>>),
    /// Come to a barrier.
    Barrier(Arc<LaneBarrier<B, J>>),
    /// The end of a chunk: commit and tell.
    End(u64),
}

/// What is done at a barrier.
#[derive(Debug)]
enum BarrierTask<B, J> {
    /// Tasks that nobody may see half of.
    Run(Vec<Task<B>>),
    /// Something of the driver's, while nothing is executed.
    Job(J),
}

#[derive(Debug)]
struct BarrierState<B, J> {
    missing: usize,
    is_over: bool,
    task: Option<BarrierTask<B, J>>,
}

/// Where several lanes meet.
#[derive(Debug)]
pub struct LaneBarrier<B, J> {
    state: Mutex<BarrierState<B, J>>,
    over: Condvar,
}

impl<B, J> LaneBarrier<B, J> {
    fn new(lanes: usize, task: BarrierTask<B, J>) -> Self {
        let state = BarrierState { missing: lanes, is_over: false, task: Some(task) };
        Self { state: Mutex::new(state), over: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, BarrierState<B, J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more is there; what is to be done, if it is the last one.
    fn arrive(&self) -> Option<BarrierTask<B, J>> {
        let mut state = self.state();
        state.missing -= 1;
        if state.missing == 0 { state.task.take() } else { None }
    }

    /// True if what was to be done is done.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// What was to be done is done: everybody may go on. To be called by whoever got [`ItemProgress::Job`].
    pub fn close(&self) {
        self.state().is_over = true;
        self.over.notify_all();
    }

    /// Waits until [`LaneBarrier::is_over`].
    pub fn wait(&self) {
        let mut state = self.state();
        while !state.is_over {
            state = self.over.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What an update has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedUpdate {
    /// Its log entry.
    pub number: OpNumber,
    /// The encoded replies of its operations.
    pub reply: Vec<u8>,
    /// See [`Engine::take_effects`](crate::Engine::take_effects).
    pub effects: u64,
}

/// What came of the entries of a chunk that a lane has executed.
#[derive(Debug, Default)]
pub struct ChunkResults {
    /// The answers that somebody wants.
    pub replies: Vec<ExecutedUpdate>,
    /// What clients are told of.
    pub announcements: Vec<Announcement>,
}

/// What has become of an item.
#[derive(Debug)]
pub enum ItemProgress<J> {
    /// It is done.
    Done,
    /// A chunk is done and committed; what came of it.
    Ended(u64, ChunkResults),
    /// The others have to come first, or the last one has to finish: the item is to be tried again then.
    Wait,
    /// All are here: this is to be done, and the barrier to be closed. The item is done.
    Job(J),
}

/// What it takes that a read sees one state, while lanes execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadWay {
    /// Nothing: it looks up one key, once. Any thread may carry it out.
    InPassing,
    /// A barrier of the lanes of these keys.
    AtBarrier(Footprint),
    /// A view of the store that is taken while all lanes meet; the read itself may take long.
    OfReadView,
}

impl ReadWay {
    /// What it takes for this body. It depends on how often keys are looked up and not on how many hashes they have: of
    /// two lookups of one key, or of two keys that share a hash, each would see another moment.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        let mut parts = operations(body);
        let is_single =
            parts.next().is_some_and(|first| first.is_ok_and(|first| first.single_key().is_some()));
        if is_single && parts.next().is_none() {
            return Self::InPassing;
        }
        match describe(body).map(|description| description.footprint) {
            Ok(Footprint::All) => Self::OfReadView,
            Ok(keys) => Self::AtBarrier(keys),
            // It is answered with an error.
            Err(_) => Self::InPassing,
        }
    }
}

/// Executes the items of one lane.
pub struct Worker<S: Store> {
    lane: Lane<S>,
    replies: Vec<ExecutedUpdate>,
    /// It has come to the barrier that is its next item.
    has_arrived: bool,
    scratch: Vec<u8>,
}

impl<S: Store> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("lane", &self.lane).finish_non_exhaustive()
    }
}

impl<S: Store> Worker<S> {
    /// A worker for this engine.
    pub fn new(shared: Arc<Shared<S>>) -> Self {
        Self { lane: Lane::new(shared), replies: Vec::new(), has_arrived: false, scratch: Vec::new() }
    }

    /// Does the next item, or tries again.
    pub fn step<B: AsRef<[u8]>, J>(&mut self, item: &Item<B, J>) -> ItemProgress<J> {
        match item {
            Item::Run(tasks) => self.run(tasks),
            Item::End(chunk) => {
                self.lane.commit();
                let replies = core::mem::take(&mut self.replies);
                let announcements = self.lane.take_announcements();
                return ItemProgress::Ended(*chunk, ChunkResults { replies, announcements });
            }
            Item::Barrier(barrier) if self.has_arrived => {
                if !barrier.is_over() {
                    return ItemProgress::Wait;
                }
                self.has_arrived = false;
            }
            Item::Barrier(barrier) => {
                self.lane.commit();
                match barrier.arrive() {
                    None => {
                        self.has_arrived = true;
                        return ItemProgress::Wait;
                    }
                    Some(BarrierTask::Run(tasks)) => {
                        self.run(&tasks);
                        self.lane.commit();
                        barrier.close();
                    }
                    Some(BarrierTask::Job(job)) => return ItemProgress::Job(job),
                }
            }
        }
        ItemProgress::Done
    }

    fn run<B: AsRef<[u8]>>(&mut self, tasks: &[Task<B>]) {
        for task in tasks {
            self.scratch.clear();
            self.lane.begin_entry(task.number);
            self.lane.execute(task.time, task.body.as_ref(), &mut self.scratch);
            if task.wants_reply {
                let (reply, effects) = (self.scratch.clone(), self.lane.take_effects());
                self.replies.push(ExecutedUpdate { number: task.number, reply, effects });
            }
            if self.lane.uncommitted_bytes() > UNCOMMITTED_MAX {
                self.lane.commit();
            }
        }
    }
}

/// Entries dealt out together.
#[derive(Debug)]
struct Chunk {
    through: OpNumber,
    time: WallTime,
    /// Lanes that have not ended it.
    missing: usize,
    results: ChunkResults,
    bytes: usize,
}

/// A prefix that has been executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Its last entry.
    pub through: OpNumber,
    /// The log time of it: readers may see it now.
    pub time: WallTime,
    /// The answers that somebody wants, in log order.
    pub replies: Vec<ExecutedUpdate>,
    /// What clients are told of, in log order.
    pub announcements: Vec<Announcement>,
}

/// Deals log entries out to lanes, and finds the longest executed prefix.
#[derive(Debug)]
pub struct Dispatcher<B, J> {
    /// What each lane is given next, not yet an item.
    open: Vec<Vec<Task<B>>>,
    /// Items that nobody has fetched, with their lanes.
    items: VecDeque<(usize, Item<B, J>)>,
    /// Lanes that have to end the chunk being dealt out.
    busy: u64,
    /// Bytes of the chunk being dealt out.
    bytes: usize,
    chunks: VecDeque<Chunk>,
    first_chunk: u64,
    /// Bytes of bodies that have been dealt out and not executed, about.
    waiting_bytes: usize,
    time: WallTime,
    /// A known-wrong variant: operations that concern several lanes are executed by one of them, without a barrier.
    #[cfg(feature = "planted-bugs")]
    pub nobody_meets: bool,
}

impl<B: AsRef<[u8]>, J> Dispatcher<B, J> {
    /// Deals out to this many lanes: at least 1, at most [`LANES_MAX`].
    #[must_use]
    pub fn new(lanes: usize) -> Self {
        let lanes = lanes.clamp(1, LANES_MAX);
        Self {
            open: (0..lanes).map(|_| Vec::new()).collect(),
            items: VecDeque::new(),
            busy: 0,
            bytes: 0,
            chunks: VecDeque::new(),
            first_chunk: 0,
            waiting_bytes: 0,
            time: WallTime(0),
            #[cfg(feature = "planted-bugs")]
            nobody_meets: false,
        }
    }

    /// Number of lanes.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.open.len()
    }

    /// The lane that has the keys of this hash.
    #[must_use]
    pub fn lane_of(&self, hash: u64) -> usize {
        // Keys of a lane are neighbours in the store, and so are those of a part of all hashes.
        (part_of_hash(hash) * self.lanes()) >> PART_BITS
    }

    /// One bit for each lane that has one of the keys; of none, the first lane's.
    fn lanes_of(&self, footprint: &Footprint) -> u64 {
        match footprint.keys() {
            Some([]) => 1,
            Some(keys) => keys.iter().fold(0, |lanes, hash| lanes | 1 << self.lane_of(*hash)),
            None => u64::MAX >> (LANES_MAX - self.lanes()),
        }
    }

    /// Deals out one body.
    pub fn task(&mut self, footprint: &Footprint, task: Task<B>) {
        let lanes = self.lanes_of(footprint);
        self.count_task(&task);
        if lanes.is_power_of_two() {
            self.busy |= lanes;
            self.open[lanes.trailing_zeros() as usize].push(task);
        } else {
            self.barrier(lanes, BarrierTask::Run(vec![task]));
        }
    }

    /// Deals out bodies of which nobody may see only some.
    pub fn indivisible<'a>(&mut self, footprints: impl Iterator<Item = &'a Footprint>, tasks: Vec<Task<B>>) {
        let lanes = footprints.fold(0, |lanes, footprint| lanes | self.lanes_of(footprint));
        tasks.iter().for_each(|task| self.count_task(task));
        // Of one lane, too: it may commit whenever it likes.
        self.barrier(lanes.max(1), BarrierTask::Run(tasks));
    }

    fn count_task(&mut self, task: &Task<B>) {
        // What an entry takes besides its body.
        self.bytes += task.body.as_ref().len() + size_of::<Task<B>>();
        self.time = self.time.max(task.time);
    }

    /// Has something done when the lanes of these keys have executed all that was dealt out before, and nothing
    /// else. Belongs to no chunk; but if it concerns all keys, the next chunk is not executed before it is done, so
    /// that it finds the log time of what was dealt out before.
    pub fn job(&mut self, footprint: &Footprint, job: J) {
        let lanes = self.lanes_of(footprint);
        self.barrier(lanes, BarrierTask::Job(job));
        if footprint.keys().is_none() {
            self.busy |= lanes;
        }
    }

    fn barrier(&mut self, lanes: u64, task: BarrierTask<B, J>) {
        #[cfg(feature = "planted-bugs")]
        let lanes = if self.nobody_meets { 1 << lanes.trailing_zeros() } else { lanes };
        if matches!(task, BarrierTask::Run(_)) {
            self.busy |= lanes;
        }
        let barrier = Arc::new(LaneBarrier::new(lanes.count_ones() as usize, task));
        for lane in 0..self.lanes() {
            if lanes >> lane & 1 == 1 {
                self.close_run(lane);
                self.items.push_back((lane, Item::Barrier(Arc::clone(&barrier))));
            }
        }
    }

    fn close_run(&mut self, lane: usize) {
        if !self.open[lane].is_empty() {
            let tasks = core::mem::take(&mut self.open[lane]);
            self.items.push_back((lane, Item::Run(tasks)));
        }
    }

    /// Ends a chunk: all entries up to `through` have been dealt out, the last one with this log time.
    pub fn end_chunk(&mut self, through: OpNumber, time: WallTime) {
        self.time = self.time.max(time);
        let id = self.first_chunk + self.chunks.len() as u64;
        let busy = core::mem::take(&mut self.busy);
        for lane in 0..self.lanes() {
            if busy >> lane & 1 == 1 {
                self.close_run(lane);
                self.items.push_back((lane, Item::End(id)));
            }
        }
        let bytes = core::mem::take(&mut self.bytes);
        self.waiting_bytes += bytes;
        let missing = busy.count_ones() as usize;
        let results = ChunkResults::default();
        self.chunks.push_back(Chunk { through, time: self.time, missing, results, bytes });
    }

    /// The next item to be given to a lane.
    pub fn next_item(&mut self) -> Option<(usize, Item<B, J>)> {
        self.items.pop_front()
    }

    /// A lane has ended a chunk, of which this came: see [`ItemProgress::Ended`].
    pub fn ended(&mut self, chunk: u64, results: ChunkResults) {
        let chunk = usize::try_from(chunk - self.first_chunk).ok().and_then(|at| self.chunks.get_mut(at));
        if let Some(chunk) = chunk {
            chunk.missing -= 1;
            chunk.results.replies.extend(results.replies);
            chunk.results.announcements.extend(results.announcements);
        }
    }

    /// The next chunk that is executed as all before it are.
    pub fn next_executed(&mut self) -> Option<Executed> {
        self.chunks.front().filter(|chunk| chunk.missing == 0)?;
        let Chunk { through, time, results, bytes, .. } = self.chunks.pop_front()?;
        let ChunkResults { mut replies, mut announcements } = results;
        self.first_chunk += 1;
        self.waiting_bytes -= bytes;
        replies.sort_by_key(|update| update.number);
        // One lane has executed all of an entry, and has told of it in its order.
        announcements.sort_by_key(Announcement::entry);
        Some(Executed { through, time, replies, announcements })
    }

    /// Log time of what has been dealt out.
    pub const fn time(&self) -> WallTime {
        self.time
    }

    /// True if all that was dealt out in chunks is executed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Bytes of bodies that have been dealt out and not executed, about.
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }
}
