//! Reads of all keys of an engine in memory, in steps: the event loop goes on in between.
//!
//! Such a read sees the keys as they are when its first step begins. That is after the replica has decided that the read
//! may be answered, and before its client gets the answer; what the engine has executed by then is committed. So the
//! read is linearizable as one that is executed at once is.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use mio::Waker;
use syros_node::{ReadJob, ReadOutcome};
use syros_storage::ListedKeys;
use syros_types::{Instant, WallTime};

use crate::resident::Resident;

/// Reads that wait for the one under way, at most; beyond, they are dropped, and their clients ask again.
const WAITING_MAX: usize = 1024;

/// How long one turn of the event loop goes on with a read.
const TURN: Duration = Duration::from_millis(1);

/// The reads of all keys of a node.
pub(crate) struct LongReads {
    waiting: VecDeque<ReadJob>,
    under_way: Option<Begun>,
    finished: Receiver<ReadOutcome>,
    sender: Sender<ReadOutcome>,
    waker: Arc<Waker>,
}

/// A read that has begun.
struct Begun {
    job: ReadJob,
    /// The log time at which the first of the keys that it sees expires.
    expiry: Option<WallTime>,
}

impl LongReads {
    pub(crate) fn new(waker: Arc<Waker>) -> Self {
        let (sender, finished) = channel();
        Self { waiting: VecDeque::new(), under_way: None, finished, sender, waker }
    }

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
        if let Some(Begun { job, .. }) = self.under_way.take() {
            self.waiting.push_front(job);
        }
    }

    /// Goes on for a while.
    pub(crate) fn go_on(&mut self, engine: &mut Resident, clock: impl Fn() -> Instant) {
        if !self.has_work() {
            return;
        }
        let until = clock().after(TURN);
        while clock() < until {
            let begun = match &self.under_way {
                Some(_) => None,
                None => self.waiting.pop_front(),
            };
            if let Some(job) = begun {
                engine.begin_keys(&job.body);
                self.under_way = Some(Begun { job, expiry: engine.next_expiry() });
            }
            if self.under_way.is_none() {
                return;
            }
            let Some(keys) = engine.go_on_keys() else { continue };
            if let Some(Begun { job, expiry }) = self.under_way.take()
                && let Err(error) = self.finish(job, expiry, keys)
            {
                log::warn!("cannot start a thread for the reply to KEYS: {error}");
            }
        }
    }

    /// Has a thread put together the answer: it may be so long that copying it takes many milliseconds.
    fn finish(&self, job: ReadJob, expiry: Option<WallTime>, keys: ListedKeys) -> io::Result<()> {
        let (sender, waker) = (self.sender.clone(), Arc::clone(&self.waker));
        let work = move || {
            let mut reply = Vec::new();
            keys.put(&mut reply);
            // Both fail only if the event loop has ended.
            let _ = sender.send(job.answer(&reply, expiry));
            let _ = waker.wake();
        };
        std::thread::Builder::new().name("keys".to_owned()).spawn(work).map(drop)
    }

    /// The next read that has ended.
    pub(crate) fn next_finished(&self) -> Option<ReadOutcome> {
        self.finished.try_recv().ok()
    }
}
