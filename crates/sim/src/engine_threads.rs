//! The threads of an engine on disk, one step at a time and in an order that is drawn. What they are given, what they do
//! and what follows from it is the shipped [`DiskExecutor`]'s and its workers'; here is the schedule, and the record of
//! what each answer may have seen.

use crate::adapter;
use crate::sim_stores::SimStores;
use std::collections::VecDeque;
use std::sync::Arc;
use syros_node::{DiskExecutor, LaneItem, LaneStep, LaneWorker, PressureLimits, ReadWorker, Reading, Report};
use syros_protocol::replica::PlantedBug;
use syros_storage::execution::Item;
use syros_storage::{DiskEngine, Engine as _, MemoryStore, Shared, StoreError};
use syros_types::{Description, Footprint, OpNumber, Prng};

/// An engine, and the number of its store.
pub(crate) type Numbered = (u64, DiskEngine<MemoryStore>);

/// Many worlds write so much between two checkpoints that the engine has one made before the log is long enough, and some so
/// much that clients wait.
const LIMITS: PressureLimits =
    PressureLimits { checkpoint_bytes: 5_000, unflushed_bytes: 20_000, runs: usize::MAX };

/// What a lane has to do next.
#[derive(Debug)]
struct Queued {
    item: LaneItem,
    /// The last entry that had been dealt out.
    through: OpNumber,
    /// For a barrier: one bit for each lane that comes.
    lanes: u64,
}

#[derive(Debug)]
struct LaneState {
    worker: LaneWorker<MemoryStore>,
    queue: VecDeque<Queued>,
    /// The last entry it has executed.
    executed: OpNumber,
    /// Readers see all entries of this lane up to here, and none after it.
    visible: OpNumber,
}

/// The threads of a replica's engine on disk.
#[derive(Debug)]
pub(crate) struct EngineThreads {
    stores: SimStores,
    /// The store in use.
    number: u64,
    engine: DiskEngine<MemoryStore>,
    lanes: Vec<LaneState>,
    /// What readers do sooner or later, whatever the lanes do; with the last entry that had been dealt out before, if it
    /// reads what there was then.
    readings: Vec<(Reading<MemoryStore>, Option<OpNumber>)>,
    /// What the threads have told, and the last entry that it goes by: every one up to there that concerns what was read,
    /// and none after it.
    reports: VecDeque<(Report<MemoryStore>, OpNumber)>,
    /// What becomes of the flush that is under way.
    flushing: Option<(OpNumber, Result<(), StoreError>)>,
    /// Nothing is executed any more.
    pub(crate) has_failed: bool,
}

/// What deals out to the threads of an engine that goes up to `applied`, and has so many lanes.
pub(crate) fn executor(
    engine: &DiskEngine<MemoryStore>,
    applied: OpNumber,
    lanes: usize,
    planted: Option<PlantedBug>,
) -> DiskExecutor<MemoryStore> {
    let mut executor = DiskExecutor::new(Arc::clone(engine.shared()), applied, lanes, LIMITS);
    executor.plant(planted);
    executor
}

impl EngineThreads {
    /// The threads of an engine, which have executed all that `executor` has dealt out.
    pub(crate) fn new(
        stores: SimStores,
        (number, engine): Numbered,
        executor: &DiskExecutor<MemoryStore>,
    ) -> Self {
        let applied = executor.dispatched();
        let lane = |_| LaneState {
            worker: LaneWorker::new(Arc::clone(engine.shared())),
            queue: VecDeque::new(),
            executed: applied,
            visible: applied,
        };
        Self {
            lanes: (0..executor.lanes()).map(lane).collect(),
            stores,
            number,
            engine,
            readings: Vec::new(),
            reports: VecDeque::new(),
            flushing: None,
            has_failed: false,
        }
    }

    fn shared(&self) -> &Arc<Shared<MemoryStore>> {
        self.engine.shared()
    }

    /// Digest of the state, which is that after the last entry dealt out if all of it is executed.
    pub(crate) fn digest(&self) -> u64 {
        self.engine.digest()
    }

    /// See [`Shared::check_pages`].
    pub(crate) fn check_pages(&self) -> Result<(), String> {
        self.engine.shared().check_pages()
    }

    /// Gives the threads what has just been dealt out: of barriers one at most.
    pub(crate) fn hand_out(&mut self, executor: &mut DiskExecutor<MemoryStore>) {
        let through = executor.dispatched();
        let items: Vec<_> = core::iter::from_fn(|| executor.next_item()).collect();
        let meets = items.iter().filter(|(_, item)| matches!(item, Item::Barrier(_)));
        let lanes = meets.fold(0, |lanes, (lane, _)| lanes | 1 << lane);
        for (lane, item) in items {
            self.lanes[lane].queue.push_back(Queued { item, through, lanes });
        }
        self.readings.extend(executor.readings().drain(..).map(|reading| (reading, None)));
    }

    // ---- What the threads do.

    /// True if some thread has something to do.
    pub(crate) fn has_work(&self) -> bool {
        !self.has_failed
            && (!self.readings.is_empty() || self.lanes.iter().any(|lane| !lane.queue.is_empty()))
    }

    /// Lets one thread that is drawn do the next thing it has to do; readers come round once in so many times.
    ///
    /// # Panics
    /// If all lanes wait for each other: a bug of the dispatcher.
    pub(crate) fn step(
        &mut self,
        executor: &DiskExecutor<MemoryStore>,
        prng: &mut Prng,
        readers_one_in: u64,
    ) {
        let busy: Vec<usize> = (0..self.lanes.len()).filter(|at| !self.lanes[*at].queue.is_empty()).collect();
        let passing = u64::from(!self.readings.is_empty() && prng.chance(1, readers_one_in));
        if busy.len() as u64 + passing == 0 {
            return;
        }
        let drawn = prng.below(busy.len() as u64 + passing) as usize;
        if drawn == busy.len() {
            let (reading, seen) = self.readings.swap_remove(prng.below(self.readings.len() as u64) as usize);
            return self.perform(executor, reading, seen);
        }
        // One that waits cannot go on before another has.
        let mut order = busy[drawn..].iter().chain(&busy[..drawn]);
        assert!(order.any(|lane| self.step_lane(*lane)), "all lanes wait for each other");
    }

    /// A lane does its next item; false if it has to wait.
    fn step_lane(&mut self, at: usize) -> bool {
        let lane = &mut self.lanes[at];
        let Some(Queued { item, through, lanes }) = lane.queue.front() else { return false };
        let (through, met) = (*through, *lanes);
        let step = lane.worker.step(item);
        match item {
            _ if matches!(step, LaneStep::Wait) => {
                lane.visible = lane.visible.max(lane.executed);
                return false;
            }
            Item::Run(tasks) => lane.executed = tasks.last().map_or(lane.executed, |task| task.number),
            Item::End(_) => lane.visible = through,
            Item::Barrier(_) => self.on_barrier_passed(met, through),
        }
        match step {
            LaneStep::Done | LaneStep::Wait => {}
            LaneStep::Report(report) => self.reports.push_back((report, through)),
            LaneStep::Reading(reading) => self.readings.push((reading, Some(through))),
        }
        self.lanes[at].queue.pop_front();
        true
    }

    /// What all these lanes got up to an entry is executed and committed.
    fn on_barrier_passed(&mut self, lanes: u64, through: OpNumber) {
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            if lanes >> at & 1 == 1 {
                lane.executed = lane.executed.max(through);
                lane.visible = lane.visible.max(through);
            }
        }
    }

    /// A reader carries out a read: of what its lane shows, or of what there was after entry `seen`.
    fn perform(
        &mut self,
        executor: &DiskExecutor<MemoryStore>,
        reading: Reading<MemoryStore>,
        seen: Option<OpNumber>,
    ) {
        let dispatched = executor.dispatched();
        let seen = seen.unwrap_or_else(|| match reading.body().and_then(|body| adapter::describe(body)) {
            Some(Description { footprint: Footprint::One(hash), .. }) => {
                self.lanes[executor.lane_of(hash)].visible
            }
            _ => dispatched,
        });
        let report = ReadWorker::new(Arc::clone(self.shared())).perform(reading);
        self.reports.push_back((report, seen));
    }

    /// True if the threads have something to tell.
    pub(crate) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// The next thing that a thread tells, and the last entry that it goes by.
    pub(crate) fn next_report(&mut self) -> Option<(Report<MemoryStore>, OpNumber)> {
        self.reports.pop_front()
    }

    // ---- Checkpoints.

    /// Begins to make durable what was sealed; the disk refuses it if it `is_refused`. The store, for
    /// [`Self::end_flush`].
    pub(crate) fn begin_flush(&mut self, op_number: OpNumber, is_refused: bool) -> u64 {
        self.stores.begin_flush(self.number);
        if is_refused {
            self.shared().store().refuse_flushes(1);
        }
        let outcome = self.shared().flush();
        self.flushing = Some((op_number, outcome));
        self.number
    }

    /// The flush of a store has ended; entries up to `dispatched` have been dealt out.
    pub(crate) fn end_flush(&mut self, number: u64, dispatched: OpNumber) {
        self.stores.end_flush(number);
        if number == self.number
            && let Some((op_number, outcome)) = self.flushing.take()
        {
            self.reports.push_back((Report::Flushed(op_number, outcome), dispatched));
        }
    }

    // ---- Snapshots of others.

    /// From now on they are the threads of an engine that was loaded.
    pub(crate) fn begin_again(&mut self, loaded: Numbered, executor: &DiskExecutor<MemoryStore>) {
        let next = Self::new(self.stores.clone(), loaded, executor);
        *self = Self { has_failed: self.has_failed, ..next };
    }
}
