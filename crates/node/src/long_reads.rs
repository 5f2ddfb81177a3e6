//! Reads of all keys of an engine in memory, in steps: whoever drives the replica does other things in between.
//!
//! Such a read sees the keys as they are when its first step begins. That is after the replica has decided that the read
//! may be answered, and before its client gets the answer; what the engine has executed by then is committed. So the
//! read is linearizable as one that is executed at once is.

use std::collections::VecDeque;
use std::time::Duration;

use syros_storage::ListedKeys;
use syros_types::{Instant, WallTime};

use crate::in_memory::InMemory;
use crate::read_job::{ReadJob, ReadOutcome};

/// Reads that wait for the one under way, at most; beyond, they are dropped, and their clients ask again.
const WAITING_MAX: usize = 1024;

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

/// The reads of all keys of a node.
#[derive(Debug, Default)]
#[cfg_attr(feature = "model", derive(Clone))]
pub(crate) struct LongReads {
    waiting: VecDeque<ReadJob>,
    under_way: Option<RunningRead>,
}

/// What a read of all keys has found. To put together the answer may take many milliseconds: so may copying it.
#[derive(Debug)]
pub struct LongReply {
    job: ReadJob,
    expiry: Option<WallTime>,
    keys: ListedKeys,
}

impl LongReply {
    /// Puts together the answer, on any thread.
    #[must_use]
    pub fn put_together(self) -> ReadOutcome {
        let mut reply = Vec::new();
        self.keys.put(&mut reply);
        self.job.answer(&reply, self.expiry)
    }
}

impl LongReads {
    /// Takes a read.
    pub(crate) fn add(&mut self, job: ReadJob) {
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(job);
        }
    }

    /// True if there is something to go on with.
    pub(crate) fn has_work(&self) -> bool {
        self.under_way.is_some() || !self.waiting.is_empty()
    }

    /// Another engine has taken the place of the one that was read: the read under way begins again.
    pub(crate) fn begin_again(&mut self) {
        if let Some(RunningRead { job, .. }) = self.under_way.take() {
            self.waiting.push_front(job);
        }
    }

    /// Goes on for a while; what has been found, if a read has ended.
    pub(crate) fn go_on<E: InMemory>(
        &mut self,
        engine: &mut E,
        clock: impl Fn() -> Instant,
    ) -> Option<LongReply> {
        if !self.has_work() {
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
                return Some(LongReply { job, expiry, keys });
            }
            if clock() >= until {
                return None;
            }
        }
    }
}
