//! The engine of a replica that is on disk: what a server does on threads of its own, one step at a time and in an
//! order that is drawn. The lanes, the meetings and the engine are the real ones.

use crate::adapter;
use crate::shelf::Shelf;
use std::collections::VecDeque;
use std::sync::Arc;
use syros_protocol::message::{Body, LogEntry, Message, Peer};
use syros_protocol::record::{SnapshotHead, Ticket};
use syros_protocol::replica::{Event, PlantedBug};
use syros_snapshot::{
    Checkpoints, DepotError, EvaluateJob, ReadJob, ReadOutcome, StoreLoader, deal_out, seal,
};
use syros_storage::execution::{Dispatcher, Executed, Item, ReadWay, Step, Worker};
use syros_storage::{Cut, DiskEngine, Engine as _, MemoryStore, Reader, Shared, StoreError};
use syros_types::{Description, Footprint, OpNumber, OperationId, Prng, View, WallTime};

/// An engine, and the number of its store.
pub(crate) type Numbered = (u64, DiskEngine<MemoryStore>);

/// Something that is done by a thread: a reader's, or that of a lane while others wait.
#[derive(Debug)]
enum Job {
    /// A read; of several keys at a meeting, with the log time of it.
    Read(ReadJob, Option<WallTime>),
    /// What an update returns.
    Evaluate(EvaluateJob),
    /// End a checkpoint; for a file, keep the state as it is now.
    Seal { head: Box<SnapshotHead>, is_file: bool },
    /// Remove what has expired.
    Purge,
}

/// The answer to a read.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) to: Peer,
    pub(crate) message: Message,
    /// It has seen every entry up to here that concerns what it read, and none after it.
    pub(crate) seen: OpNumber,
}

/// What the threads have done.
#[derive(Debug)]
enum Report {
    Ended(u64, Vec<(OpNumber, Vec<u8>)>),
    Answer(Answer),
    NotRead(Event),
    NotEvaluated(Peer, OperationId),
    Sealed(Box<SnapshotHead>, Result<Option<Cut<MemoryStore>>, StoreError>),
    Flushed(OpNumber, Result<(), StoreError>),
    Purged,
}

/// Something that the process has to act on.
#[derive(Debug)]
pub(crate) enum News {
    /// A prefix of the log is executed.
    Executed(Executed),
    /// A read is answered, or what an update returns is known.
    Answer(Answer),
    /// A read is not answered.
    NotRead(Event),
    /// What an update returns cannot be known before it is executed.
    NotEvaluated(Peer, OperationId),
    /// A checkpoint is sealed; with the state as it was, if a file was asked for.
    Sealed(Box<SnapshotHead>, Option<Cut<MemoryStore>>),
    /// A checkpoint is durable.
    Flushed(OpNumber),
    /// A checkpoint failed.
    Failed(OpNumber),
}

/// What a lane has to do next.
#[derive(Debug)]
struct Queued {
    item: Item<Body, Job>,
    /// The last entry that had been dealt out.
    through: OpNumber,
    /// For a meeting: one bit for each lane that comes.
    lanes: u64,
}

#[derive(Debug)]
struct LaneState {
    worker: Worker<MemoryStore>,
    queue: VecDeque<Queued>,
    /// The last entry it has executed.
    executed: OpNumber,
    /// Readers see all entries of this lane up to here, and none after it.
    visible: OpNumber,
}

/// The engine of a replica, on disk.
#[derive(Debug)]
pub(crate) struct OnDisk {
    shelf: Shelf,
    /// The store in use.
    number: u64,
    engine: DiskEngine<MemoryStore>,
    dispatcher: Dispatcher<Body, Job>,
    /// The last entry that was dealt out.
    dispatched: OpNumber,
    lanes: Vec<LaneState>,
    /// What is done sooner or later, whatever the lanes do.
    in_passing: Vec<Job>,
    reports: VecDeque<Report>,
    pub(crate) checkpoints: Checkpoints,
    /// What becomes of the flush that is under way.
    flushing: Option<(OpNumber, Result<(), StoreError>)>,
    /// The engine of a snapshot that the core is about to be told of.
    loaded: Option<Numbered>,
    is_purging: bool,
    /// Nothing is executed any more.
    pub(crate) has_failed: bool,
    planted: Option<PlantedBug>,
}

impl OnDisk {
    /// An engine that goes up to `applied`, and so many lanes for it.
    pub(crate) fn new(
        shelf: Shelf,
        (number, engine): Numbered,
        applied: OpNumber,
        lanes: usize,
        planted: Option<PlantedBug>,
    ) -> Self {
        let mut dispatcher = Dispatcher::new(lanes);
        dispatcher.nobody_meets = planted == Some(PlantedBug::NobodyMeets);
        let lane = |_| LaneState {
            worker: Worker::new(Arc::clone(engine.shared())),
            queue: VecDeque::new(),
            executed: applied,
            visible: applied,
        };
        let lanes = (0..lanes).map(lane).collect();
        Self {
            shelf,
            number,
            engine,
            dispatcher,
            dispatched: applied,
            lanes,
            in_passing: Vec::new(),
            reports: VecDeque::new(),
            checkpoints: Checkpoints::default(),
            flushing: None,
            loaded: None,
            is_purging: false,
            has_failed: false,
            planted,
        }
    }

    fn shared(&self) -> &Arc<Shared<MemoryStore>> {
        self.engine.shared()
    }

    /// The earliest expiry of a key.
    pub(crate) fn next_expiry(&self) -> Option<WallTime> {
        self.shared().next_expiry()
    }

    /// The last entry that was dealt out.
    pub(crate) const fn dispatched(&self) -> OpNumber {
        self.dispatched
    }

    /// Digest of the state, which is that after the last entry dealt out if [`Self::is_idle`].
    pub(crate) fn digest(&self) -> u64 {
        self.engine.digest()
    }

    /// True if all that was dealt out is executed, and has been told.
    pub(crate) fn is_idle(&self) -> bool {
        self.dispatcher.is_idle()
    }

    // ---- Dealing out.

    /// Deals out one log entry, the one after the last.
    pub(crate) fn entry(&mut self, number: OpNumber, entry: &LogEntry) {
        self.dispatched = number;
        deal_out(&mut self.dispatcher, number, entry);
        self.hand_out();
    }

    /// The end of what is dealt out at a time; `time` is the log time of the last entry.
    pub(crate) fn end_chunk(&mut self, time: WallTime) {
        self.dispatcher.end_chunk(self.dispatched, time);
        self.hand_out();
    }

    /// Gives the lanes what has just been dealt out: of meetings one at most.
    fn hand_out(&mut self) {
        let through = self.dispatched;
        let items: Vec<_> = core::iter::from_fn(|| self.dispatcher.next_item()).collect();
        let meets = items.iter().filter(|(_, item)| matches!(item, Item::Meet(_)));
        let lanes = meets.fold(0, |lanes, (lane, _)| lanes | 1 << lane);
        for (lane, item) in items {
            self.lanes[lane].queue.push_back(Queued { item, through, lanes });
        }
    }

    fn meet(&mut self, footprint: &Footprint, job: Job) {
        self.dispatcher.job(footprint, job);
        self.hand_out();
    }

    /// Has a read answered.
    pub(crate) fn read(&mut self, job: ReadJob) {
        let footprint = match ReadWay::of(&job.body) {
            ReadWay::AtMeeting(keys) => Some(keys),
            ReadWay::OfMoment => Some(Footprint::All),
            ReadWay::InPassing => None,
        };
        let is_hasty = match self.planted {
            Some(PlantedBug::ReadOfSeveralInPassing) => true,
            // Members are asked for several keys by stale reads only.
            Some(PlantedBug::StaleOfSeveralInPassing) => job.standing.is_some(),
            _ => false,
        };
        match footprint.filter(|_| !is_hasty) {
            Some(keys) => {
                let time = self.dispatcher.time();
                self.meet(&keys, Job::Read(job, Some(time)));
            }
            None => self.in_passing.push(Job::Read(job, None)),
        }
    }

    /// Has it found out what an update returns, before anything is executed that is dealt out later.
    pub(crate) fn evaluate(&mut self, to: Peer, view: View, id: OperationId, body: Body) {
        let Some(Description { footprint, .. }) = adapter::describe(&body) else { return };
        let job = Job::Evaluate(EvaluateJob { to, view, id, body, time: self.dispatcher.time() });
        if self.planted == Some(PlantedBug::EvaluatedInPassing) {
            return self.in_passing.push(job);
        }
        self.meet(&footprint, job);
    }

    fn purge_if_due(&mut self) {
        if !self.is_purging && self.shared().has_expired() {
            self.is_purging = true;
            self.meet(&Footprint::All, Job::Purge);
        }
    }

    // ---- What the threads do.

    /// True if some thread has something to do.
    pub(crate) fn has_work(&self) -> bool {
        !self.has_failed
            && (!self.in_passing.is_empty() || self.lanes.iter().any(|lane| !lane.queue.is_empty()))
    }

    /// Lets one thread that is drawn do the next thing it has to do; readers come round once in so many times.
    ///
    /// # Panics
    /// If all lanes wait for each other: a bug of the dispatcher.
    pub(crate) fn step(&mut self, prng: &mut Prng, readers_one_in: u64) {
        let busy: Vec<usize> = (0..self.lanes.len()).filter(|at| !self.lanes[*at].queue.is_empty()).collect();
        let passing = u64::from(!self.in_passing.is_empty() && prng.chance(1, readers_one_in));
        if busy.len() as u64 + passing == 0 {
            return;
        }
        let drawn = prng.below(busy.len() as u64 + passing) as usize;
        if drawn == busy.len() {
            let job = self.in_passing.swap_remove(prng.below(self.in_passing.len() as u64) as usize);
            return self.perform(job, self.dispatched);
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
        match lane.worker.step(item) {
            Step::Wait => {
                lane.visible = lane.visible.max(lane.executed);
                return false;
            }
            Step::Done => match item {
                Item::Run(tasks) => {
                    lane.executed = tasks.last().map_or(lane.executed, |task| task.number);
                }
                Item::Meet(_) => self.note_met(met, through),
                Item::End(_) => {}
            },
            Step::Ended(chunk, replies) => {
                lane.visible = through;
                self.reports.push_back(Report::Ended(chunk, replies));
            }
            Step::Job(job) => {
                self.note_met(met, through);
                self.perform(job, through);
                if let Some(Queued { item: Item::Meet(meeting), .. }) = self.lanes[at].queue.front() {
                    meeting.close();
                }
            }
        }
        self.lanes[at].queue.pop_front();
        true
    }

    /// What all these lanes got up to an entry is executed and committed.
    fn note_met(&mut self, lanes: u64, through: OpNumber) {
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            if lanes >> at & 1 == 1 {
                lane.executed = lane.executed.max(through);
                lane.visible = lane.visible.max(through);
            }
        }
    }

    /// Does a job; `through` is the last entry that had been dealt out before it.
    fn perform(&mut self, job: Job, through: OpNumber) {
        let report = match job {
            Job::Read(job, time) => self.answer(job, time, through),
            Job::Evaluate(job) => match job.perform(self.shared()) {
                Some(message) => Report::Answer(Answer { to: job.to, message, seen: through }),
                None => Report::NotEvaluated(job.to, job.id),
            },
            Job::Seal { head, is_file } => {
                let sealed = seal(self.shared(), &head, is_file);
                Report::Sealed(head, sealed)
            }
            Job::Purge => {
                self.shared().purge();
                Report::Purged
            }
        };
        self.reports.push_back(report);
    }

    fn answer(&self, job: ReadJob, time: Option<WallTime>, through: OpNumber) -> Report {
        let mut reader = Reader::new(Arc::clone(self.shared()));
        let mut reply = Vec::new();
        match time {
            Some(time) => reader.read_at(time, job.now, &job.body, &mut reply),
            None => reader.read(job.now, &job.body, &mut reply),
        }
        let seen = match adapter::describe(&job.body) {
            Some(Description { footprint: Footprint::One(hash), .. }) => {
                self.lanes[self.dispatcher.lane_of(hash)].visible
            }
            _ => through,
        };
        match job.answer(&reply, reader.first_expiry()) {
            ReadOutcome::Answer(to, message) => Report::Answer(Answer { to, message, seen }),
            ReadOutcome::NotRead(event) => Report::NotRead(event),
        }
    }

    /// True if the threads have something to tell.
    pub(crate) fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// The next thing that has happened. What was executed is visible to readers when this returns it.
    pub(crate) fn next_news(&mut self) -> Option<News> {
        if self.has_failed {
            return None;
        }
        loop {
            if let Some(executed) = self.dispatcher.next_executed() {
                self.shared().advance(executed.time);
                self.purge_if_due();
                return Some(News::Executed(executed));
            }
            match self.reports.pop_front()? {
                Report::Ended(chunk, replies) => self.dispatcher.ended(chunk, replies),
                Report::Answer(answer) => return Some(News::Answer(answer)),
                Report::NotRead(event) => return Some(News::NotRead(event)),
                Report::NotEvaluated(to, id) => return Some(News::NotEvaluated(to, id)),
                Report::Sealed(head, Ok(cut)) => return Some(News::Sealed(head, cut)),
                Report::Sealed(head, Err(_)) => return Some(News::Failed(head.op_number)),
                Report::Flushed(op_number, Ok(())) => return Some(News::Flushed(op_number)),
                Report::Flushed(op_number, Err(_)) => return Some(News::Failed(op_number)),
                Report::Purged => {
                    self.is_purging = false;
                    self.purge_if_due();
                }
            }
        }
    }

    // ---- Checkpoints.

    /// Begins a checkpoint of what has been executed, and a file of it if one is wanted.
    pub(crate) fn take_snapshot(&mut self, head: Box<SnapshotHead>, ticket: Ticket, is_file: bool) {
        self.checkpoints.begin(head.op_number, ticket, is_file);
        let job = Job::Seal { head, is_file };
        if self.planted == Some(PlantedBug::CheckpointInPassing) {
            self.in_passing.push(job);
        } else {
            self.meet(&Footprint::All, job);
        }
    }

    /// Looks whether a checkpoint is to be made durable, which [`Self::begin_flush`] does: it must be time.
    pub(crate) fn flush_is_due(&mut self, persisted: Ticket) -> bool {
        let early = self.planted == Some(PlantedBug::CheckpointBeforeRecord);
        self.checkpoints.flush_if_due(if early { Ticket(u64::MAX) } else { persisted }).is_some()
    }

    /// Begins to make durable what was sealed; the disk refuses it if it `is_refused`. The store, for
    /// [`Self::end_flush`], unless the checkpoint has been given up.
    pub(crate) fn begin_flush(&mut self, is_refused: bool) -> Option<u64> {
        let op_number = self.checkpoints.flushing()?;
        self.shelf.begin_flush(self.number);
        if is_refused {
            self.shared().store().refuse_flushes(1);
        }
        let outcome = self.shared().flush();
        self.flushing = Some((op_number, outcome));
        Some(self.number)
    }

    /// The flush of a store has ended.
    pub(crate) fn end_flush(&mut self, number: u64) {
        self.shelf.end_flush(number);
        if number == self.number
            && let Some((op_number, outcome)) = self.flushing.take()
        {
            self.reports.push_back(Report::Flushed(op_number, outcome));
        }
    }

    // ---- Snapshots of others.

    /// What loads a snapshot that was received.
    pub(crate) fn loader(&self) -> Result<StoreLoader<Shelf>, DepotError> {
        Ok(StoreLoader::create(self.shelf.clone())?)
    }

    /// Keeps the engine of a snapshot until it is adopted, or not.
    pub(crate) fn keep_loaded(&mut self, loaded: Numbered) {
        self.loaded = Some(loaded);
    }

    /// Whatever was loaded and not adopted is not needed.
    pub(crate) fn discard_loaded(&mut self) {
        if let Some((number, _)) = self.loaded.take() {
            self.shelf.remove(number);
        }
    }

    /// Has the engine that was loaded take the place of the present one.
    ///
    /// # Panics
    /// If nothing was loaded.
    pub(crate) fn adopt(&mut self, op_number: OpNumber) {
        let loaded = self.loaded.take().expect("a snapshot is adopted when it has been loaded");
        let next = Self::new(self.shelf.clone(), loaded, op_number, self.lanes.len(), self.planted);
        let has_failed = self.has_failed;
        *self = Self { has_failed, ..next };
    }

    /// The store in use.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Removes the stores before this one, which was in use when that was asked for.
    pub(crate) fn remove_before(&self, number: u64) {
        self.shelf.remove_before(number);
    }
}
