//! Reads of an engine in memory that take long: whoever drives the replica does other things in between.
//!
//! A read of all keys goes on in steps, and sees the keys as they are when its first step begins. A read of a few keys with
//! large values takes clones of them, which cost nothing to speak of, and a thread executes it on these. Both moments are
//! after the replica has decided that the read may be answered, and before its client gets the answer; what the engine has
//! executed by then is committed. So such a read is linearizable as one that is executed at once is.

use std::collections::VecDeque;
use std::time::Duration;

use syros_storage::{DetachedRead, ListedKeys};
use syros_types::{Instant, WallTime};

use crate::in_memory::InMemory;
use crate::read_job::{ReadJob, ReadOutcome};

/// Reads that wait, at most, of each kind; beyond, they are dropped, and their clients ask again.
const WAITING_MAX: usize = 1024;

/// The work of those that wait to be executed apart, but for the first one: what is done before clients lose patience. Beyond, they
/// are dropped as well. It would all be done for nobody, and the reads that come later would be late, too.
const WAITING_WORK_MAX: usize = 4 << 30;

/// Answers that are put together at a time, but for those to reads of all keys: each takes a processor, and as much memory
/// as it is long, which nobody has counted before.
const PUT_TOGETHER_MAX: u32 = 2;

/// How long one turn goes on with a read.
const TURN: Duration = Duration::from_millis(1);

/// A read that has begun.
#[derive(Debug)]
#[cfg_attr(feature = "model", derive(Clone))]
struct RunningRead {
    job: ReadJob,
    /// The log time at which the first of the keys that it sees expires.
    expiry: Option<WallTime>,
}

/// The reads of a node that take long.
#[derive(Debug, Default)]
#[cfg_attr(feature = "model", derive(Clone))]
pub(crate) struct LongReads {
    /// Reads of all keys that wait for the one under way.
    waiting: VecDeque<ReadJob>,
    under_way: Option<RunningRead>,
    /// Reads that are to be executed apart, with their work, and all of that together.
    to_detach: VecDeque<(ReadJob, usize)>,
    waiting_work: usize,
    /// How many answers are being put together.
    put_together: u32,
}

/// What a read that takes long has found. To put together the answer may take many milliseconds: so may copying it.
#[derive(Debug)]
pub struct LongReply {
    job: ReadJob,
    expiry: Option<WallTime>,
    found: Found,
}

#[derive(Debug)]
enum Found {
    Keys(ListedKeys),
    Values(DetachedRead),
}

impl LongReply {
    /// Puts together the answer, on any thread.
    #[must_use]
    pub fn put_together(self) -> ReadOutcome {
        let mut reply = Vec::new();
        match self.found {
            Found::Keys(keys) => keys.put(&mut reply),
            Found::Values(read) => read.put(&mut reply),
        }
        self.job.answer(&reply, self.expiry)
    }
}

/// True if a client that has waited for long asks again for what it has asked for already.
fn is_same(one: &ReadJob, other: &ReadJob) -> bool {
    (one.to, one.number) == (other.to, other.number)
}

impl LongReads {
    /// Takes a read of all keys.
    pub(crate) fn add_in_steps(&mut self, job: ReadJob) {
        if self.waiting.len() < WAITING_MAX && !self.waiting.iter().any(|other| is_same(other, &job)) {
            self.waiting.push_back(job);
        }
    }

    /// Takes a read of so much work that is to be executed apart.
    pub(crate) fn add_detached(&mut self, job: ReadJob, work: usize) {
        let is_too_much = self.waiting_work > 0 && self.waiting_work.saturating_add(work) > WAITING_WORK_MAX;
        let has_room = self.to_detach.len() < WAITING_MAX && !is_too_much;
        if has_room && !self.to_detach.iter().any(|(other, _)| is_same(other, &job)) {
            self.waiting_work += work;
            self.to_detach.push_back((job, work));
        }
    }

    /// True if there is something to go on with.
    pub(crate) fn has_work(&self) -> bool {
        self.under_way.is_some() || !self.waiting.is_empty() || self.may_detach()
    }

    /// True if there is a read to be executed apart, and a thread for it.
    fn may_detach(&self) -> bool {
        !self.to_detach.is_empty() && self.put_together < PUT_TOGETHER_MAX
    }

    /// An answer has been put together, or it will never be.
    pub(crate) const fn on_put_together(&mut self) {
        self.put_together = self.put_together.saturating_sub(1);
    }

    /// Another engine has taken the place of the one that was read: the read under way begins again.
    pub(crate) fn begin_again(&mut self) {
        if let Some(RunningRead { job, .. }) = self.under_way.take() {
            self.waiting.push_front(job);
        }
    }

    /// Goes on for a while; what has been found, if a read has ended or is to be executed apart.
    pub(crate) fn go_on<E: InMemory>(
        &mut self,
        engine: &mut E,
        clock: impl Fn() -> Instant,
    ) -> Option<LongReply> {
        let reply = if self.may_detach() { self.detach(engine) } else { self.list(engine, clock) };
        self.put_together += u32::from(reply.is_some());
        reply
    }

    /// Takes the values that the next read to be executed apart needs.
    fn detach<E: InMemory>(&mut self, engine: &E) -> Option<LongReply> {
        let (job, work) = self.to_detach.pop_front()?;
        self.waiting_work -= work;
        let expiry = engine.first_expiry(&job.body);
        let found = Found::Values(engine.detach(job.now, &job.body));
        Some(LongReply { job, expiry, found })
    }

    /// Goes on with a read of all keys.
    fn list<E: InMemory>(&mut self, engine: &mut E, clock: impl Fn() -> Instant) -> Option<LongReply> {
        if self.under_way.is_none() && self.waiting.is_empty() {
            return None;
        }
        let until = clock().after(TURN);
        loop {
            if self.under_way.is_none() {
                let job = self.waiting.pop_front()?;
                engine.begin_keys(&job.body);
                self.under_way = Some(RunningRead { job, expiry: engine.next_expiry() });
            }
            if let Some(keys) = engine.go_on_keys() {
                let RunningRead { job, expiry } = self.under_way.take()?;
                return Some(LongReply { job, expiry, found: Found::Keys(keys) });
            }
            if clock() >= until {
                return None;
            }
        }
    }
}
