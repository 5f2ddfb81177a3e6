//! Execution by an engine in memory, which takes less than to tell another thread: the thread that drives the replica
//! executes the log itself, in pieces that keep nobody else waiting for long.

#[cfg(feature = "planted-bugs")]
mod planted;

use std::time::Duration;

use syros_commands::limits::UPDATE_WORK_MAX;
use syros_commands::{may_be_heavy, operations, put_error};
use syros_protocol::message::{Body, LogEntry, Message, Payload};
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_protocol::replica::{Event, Replica, Returned};
use syros_storage::{LongRead, MemoryEngine};
use syros_types::{Class, Instant, OpNumber, WallTime};

use crate::in_memory::InMemory;
use crate::long_reads::{LongReads, LongReply};
use crate::read_job::{ReadJob, ReadOutcome};

/// Entries that are executed without a pause, about: a few milliseconds' worth.
pub const ENTRIES_PER_TURN: u64 = 16_384;

/// The entries executed in one turn end when they have returned so many bytes, and are one at least: what an entry returns
/// is charged to its client's connection before the next turn.
const RETURNED_PER_TURN: usize = 4 << 20;

/// The entries executed in one turn end when they have taken so long, and are one at least: leases and heartbeats are far
/// longer. The clock is looked at after each of them, which takes far less than to execute one: a body of a few bytes may go
/// through collections of millions of elements.
const EXECUTION_TIME: Duration = Duration::from_millis(5);

/// The number of entries that share one fetch of what they need from memory.
const FETCHED_AT_ONCE: u64 = MemoryEngine::TOUCHED_AT_ONCE as u64;

/// So many nodes of large values that nobody needs any more go in one turn, as long as there are some: a fraction of a
/// millisecond's.
const NODES_PER_TURN: usize = 512;

/// Less garbage than this is not worth a turn: updates give it back.
const GARBAGE_BYTES_MIN: u64 = 64 << 10;

/// Looks on while entries are executed.
pub trait Observer<E> {
    /// The engine has executed this entry, and all before it.
    fn on_executed(&mut self, number: OpNumber, entry: &LogEntry, engine: &E);
}

/// Nobody looks on.
impl<E> Observer<E> for () {
    fn on_executed(&mut self, _: OpNumber, _: &LogEntry, _: &E) {}
}

/// Executes the log with an engine in memory.
#[derive(Debug)]
#[cfg_attr(feature = "model", derive(Clone))]
pub struct MemoryExecutor<E> {
    engine: E,
    /// The last entry that was executed.
    executed: OpNumber,
    /// Entries that may still be executed, about, before [`Self::pause`].
    allowance: u64,
    /// To be executed when it may.
    apply_later: Option<OpNumber>,
    /// How long it has executed entries since [`Self::forget_executing`].
    executing: Duration,
    /// What the replica has been told that no key expires before.
    next_expiry: Option<WallTime>,
    /// Since [`Self::resume`] it has been found out what an update returns that may take long.
    has_evaluated_long: bool,
    long_reads: LongReads,
    reply: Vec<u8>,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

impl<E: InMemory> MemoryExecutor<E> {
    /// For an engine that has executed all up to this entry.
    #[must_use]
    pub fn new(engine: E, executed: OpNumber) -> Self {
        Self {
            engine,
            executed,
            allowance: 0,
            apply_later: None,
            executing: Duration::ZERO,
            next_expiry: None,
            has_evaluated_long: false,
            long_reads: LongReads::default(),
            reply: Vec::new(),
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// What a model checker sees. No read of a model takes long.
    #[cfg(feature = "model")]
    pub(crate) fn fingerprint(&self, hasher: &mut impl core::hash::Hasher)
    where
        E: core::hash::Hash,
    {
        use core::hash::Hash;
        (&self.engine, self.executed, self.allowance, self.apply_later, self.next_expiry).hash(hasher);
        self.has_evaluated_long.hash(hasher);
    }

    /// The engine.
    #[must_use]
    pub const fn engine(&self) -> &E {
        &self.engine
    }

    /// The engine, for its snapshots.
    pub const fn engine_mut(&mut self) -> &mut E {
        &mut self.engine
    }

    /// The last entry that was executed.
    #[must_use]
    pub const fn executed(&self) -> OpNumber {
        self.executed
    }

    /// Another engine takes the place of this one, which is returned: the state after this entry.
    pub fn adopt(&mut self, engine: E, executed: OpNumber) -> E {
        (self.executed, self.apply_later) = (executed, None);
        self.long_reads.begin_again();
        std::mem::replace(&mut self.engine, engine)
    }

    /// What the replica is to be told before which no key expires, if that has changed.
    pub fn expiry_news(&mut self) -> Option<Event> {
        let before = self.next_expiry;
        let event = self.expiry();
        (self.next_expiry != before).then_some(event)
    }

    /// What the replica is to be told before which no key expires, whether or not that has changed.
    pub fn expiry(&mut self) -> Event {
        self.next_expiry = self.engine.next_expiry();
        Event::NextExpiry(self.next_expiry)
    }

    // ---- Updates.

    /// From now on [`Self::apply`] executes this many entries, about. What was left by then is to be executed with it first:
    /// the last of those entries.
    pub const fn resume(&mut self, allowance: u64) -> Option<OpNumber> {
        self.allowance = allowance;
        self.has_evaluated_long = false;
        self.apply_later.take()
    }

    /// From now on [`Self::apply`] takes note of what is to be executed, and does not.
    pub const fn pause(&mut self) {
        self.allowance = 0;
    }

    /// How long it has executed entries since [`Self::forget_executing`]: about as long as executing them again takes.
    #[must_use]
    pub const fn executing(&self) -> Duration {
        self.executing
    }

    /// Begins to count that time again.
    pub const fn forget_executing(&mut self) {
        self.executing = Duration::ZERO;
    }

    /// True if something is to be gone on with after [`Self::resume`].
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.apply_later.is_some() || self.long_reads.has_work() || self.has_garbage()
    }

    /// True if enough memory waits to be given back.
    fn has_garbage(&self) -> bool {
        self.engine.garbage_bytes() >= GARBAGE_BYTES_MIN
    }

    /// Executes the log of a replica up to `through`, or as far as it may now: what the replica is to hear of it
    /// ([`Event::Applied`]). `clock` tells how long that takes.
    pub fn apply(
        &mut self,
        replica: &Replica,
        through: OpNumber,
        clock: impl Fn() -> Instant,
        observer: &mut impl Observer<E>,
    ) -> Option<Event> {
        // After a restart there may be millions to execute. Heartbeats must not wait for that.
        if self.allowance == 0 {
            self.apply_later = Some(through);
            return None;
        }
        let mut replies = Vec::new();
        let mut returned_bytes = 0;
        let began = clock();
        let deadline = began.after(EXECUTION_TIME);
        let mut ended = began;
        let before = self.executed.0;
        let last_allowed = through.0.min(before.saturating_add(self.allowance));
        let mut fetched = before;
        for number in before + 1..=last_allowed {
            if number > fetched {
                fetched = last_allowed.min(number + FETCHED_AT_ONCE - 1);
                // One alone gains nothing by it.
                if number < fetched {
                    let entries = (number..=fetched).map(|number| replica.entry(OpNumber(number)));
                    let updates = entries.flat_map(LogEntry::updates);
                    self.engine.touch(updates.map(|update| &*update.request.body));
                }
            }
            let number = OpNumber(number);
            let entry = replica.entry(number);
            self.engine.begin_entry(number);
            for update in entry.updates() {
                let body: &[u8] = &update.request.body;
                #[cfg(feature = "planted-bugs")]
                if self.is_lost(number, update.class) {
                    self.engine.advance(entry.time);
                    continue;
                }
                #[cfg(feature = "planted-bugs")]
                let mutilated = self.mutilated(number, update.class, body);
                #[cfg(feature = "planted-bugs")]
                let body = mutilated.as_deref().unwrap_or(body);
                self.reply.clear();
                self.engine.apply(entry.time, body, &mut self.reply);
                #[cfg(feature = "planted-bugs")]
                self.redo_undone(entry.time, body);
                if update.class == Class::Update {
                    returned_bytes += self.reply.len();
                    let (reply, effects) =
                        (Body::from(self.reply.as_slice()), self.engine.take_effects(&self.reply));
                    replies.push(Returned { number, reply, effects });
                }
            }
            if matches!(
                entry.payload,
                Payload::Register { .. } | Payload::Expire(_) | Payload::Tick | Payload::Reconfigure(_)
            ) {
                self.engine.advance(entry.time);
            }
            self.executed = number;
            observer.on_executed(number, entry, &self.engine);
            ended = clock();
            if returned_bytes >= RETURNED_PER_TURN || ended >= deadline {
                break;
            }
        }
        self.executing += ended.since(began);
        self.allowance = self.allowance.saturating_sub(self.executed.0 - before);
        if self.executed < through {
            // The rest is for the next turn.
            self.allowance = 0;
            self.apply_later = Some(through);
        }
        Some(Event::Applied { through: self.executed, replies })
    }

    /// What an update returns; `None` if that cannot be known before it is executed, or would keep others waiting: of those
    /// that may take long, one is evaluated between two calls of [`Self::resume`]. The others are executed in pieces.
    pub fn evaluate(&mut self, body: &[u8]) -> Option<Body> {
        if self.engine.takes_long(body) && std::mem::replace(&mut self.has_evaluated_long, true) {
            return None;
        }
        #[cfg(feature = "planted-bugs")]
        if let Some(evaluated) = self.evaluate_wrongly(body) {
            return evaluated;
        }
        self.reply.clear();
        self.engine.evaluate(body, &mut self.reply).then(|| Body::from(self.reply.as_slice()))
    }

    /// What an update answers if it changes nothing. `None` also if that is not known at once, or if a key of it has expired at
    /// `time`, or before.
    pub fn answer_no_op(&mut self, time: WallTime, body: &[u8]) -> Option<Body> {
        if self.engine.takes_long(body) || self.expired(Some(time), body).is_some() {
            return None;
        }
        self.reply.clear();
        self.engine.answer_no_op(time, body, &mut self.reply).then(|| Body::from(self.reply.as_slice()))
    }

    /// The work of a body of updates, if that is more than a replica may be kept from everything else by it.
    #[must_use]
    pub fn too_much(&self, body: &[u8]) -> Option<usize> {
        let is_too_much = |work: &usize| *work > UPDATE_WORK_MAX;
        may_be_heavy(body).then(|| self.engine.work_from_log(body)).filter(is_too_much)
    }

    // ---- Reads.

    /// The first expiry of the keys of a read, if that is at `time` or before: then the read must not be answered.
    #[must_use]
    pub fn expired(&self, time: Option<WallTime>, body: &[u8]) -> Option<WallTime> {
        // Hardly ever is anything due, and then no key has to be looked up.
        let time = time.filter(|time| self.next_expiry.is_some_and(|next| next <= *time))?;
        self.engine.first_expiry(body).filter(|expiry| *expiry <= time)
    }

    /// Executes a read. `None` if it takes long: [`Self::go_on`] goes on with it.
    pub fn read(&mut self, job: ReadJob) -> Option<ReadOutcome> {
        if let (Some(expiry), Some(time)) = (self.expired(job.time, &job.body), job.time) {
            let ReadJob { to, number, body, .. } = job;
            return Some(ReadOutcome::NotRead(Event::NotRead { to, number, body, time, expiry }));
        }
        match self.engine.long_read(&job.body) {
            None => {}
            Some(LongRead::InSteps) => {
                self.long_reads.add_in_steps(job);
                return None;
            }
            Some(LongRead::Detached { work }) => {
                self.long_reads.add_detached(job, work);
                return None;
            }
            Some(LongRead::TooLong { work }) => {
                let mut reply = Vec::new();
                operations(&job.body).for_each(|_| put_error(&mut reply, too_long(work).as_bytes()));
                return Some(job.answer(&reply, None));
            }
        }
        let ReadJob { to, view, number, body, freshness, applied, now, .. } = job;
        self.reply.clear();
        self.engine.read(now, &body, &mut self.reply);
        let reply = Body::from(self.reply.as_slice());
        let message = match freshness {
            None => Message::ReadReply { view, number, reply },
            Some(freshness) => {
                let expiry = self.engine.first_expiry(&body).unwrap_or_default();
                Message::MemberReply { view, number, applied, freshness, expiry, reply }
            }
        };
        Some(ReadOutcome::Answer(to, message))
    }

    /// Gives back some memory that nobody needs, and goes on with reads that take long, for a while: one of them, if its
    /// answer is to be put together. Then [`Self::on_put_together`] is to follow.
    pub fn go_on(&mut self, clock: impl Fn() -> Instant) -> Option<LongReply> {
        if self.has_garbage() {
            self.engine.give_back(NODES_PER_TURN);
        }
        self.long_reads.go_on(&mut self.engine, clock)
    }

    /// An answer has been put together, or it will never be.
    pub const fn on_put_together(&mut self) {
        self.long_reads.on_put_together();
    }
}

/// What a client is told of a read that is not executed.
fn too_long(work: usize) -> String {
    let mebibytes = |bytes: usize| bytes >> 20;
    format!(
        "ERR this read would go through {} MiB of collections, one after the other; a read, and the reads of a transaction \
         together, may go through {} MiB",
        mebibytes(work),
        mebibytes(MemoryEngine::READ_WORK_MAX)
    )
}

#[cfg(test)]
mod tests;
