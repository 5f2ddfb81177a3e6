//! The I/O thread behind a [`Client`](crate::Client).

use crate::driver::Driver;
use crate::error::{ConnectError, Error};
use crate::pending::Slot;
use mio::Waker;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use syros_protocol::client::{Busy, Outcome};
use syros_protocol::message::Body;
use syros_types::{Class, Footprint, ReadPolicy};

/// Where the result of an operation goes.
pub(crate) type ResultSlot = Arc<Slot<Result<Body, Error>>>;
/// Where the end of the first attempts to connect is told.
pub(crate) type ConnectedSlot = Arc<Slot<Result<(), ConnectError>>>;

/// An operation on its way to the I/O thread.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) body: Body,
    pub(crate) class: Class,
    pub(crate) footprint: Footprint,
    pub(crate) read_policy: Option<ReadPolicy>,
    pub(crate) slot: ResultSlot,
}

/// What the handles and the I/O thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    queue: Mutex<Queue>,
    waker: Waker,
    in_flight_max: usize,
}

#[derive(Debug)]
struct Queue {
    submissions: Vec<Submission>,
    /// No handle is left, so there will be no more submissions.
    is_abandoned: bool,
    /// The I/O thread has ended.
    is_closed: bool,
}

impl Shared {
    pub(crate) const fn new(waker: Waker, in_flight_max: usize) -> Self {
        let queue = Queue { submissions: Vec::new(), is_abandoned: false, is_closed: false };
        Self { queue: Mutex::new(queue), waker, in_flight_max }
    }

    /// Every change of the queue is complete before anything in it can panic.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn submit(&self, submission: Submission) -> Result<(), Error> {
        let mut queue = self.queue();
        if queue.is_closed {
            return Err(Error::Closed);
        }
        // What waits here is in flight, too: the queue is bounded like everything else.
        if queue.submissions.len() >= self.in_flight_max {
            return Err(Error::Busy(Busy { in_flight_max: self.in_flight_max }));
        }
        let was_empty = queue.submissions.is_empty();
        queue.submissions.push(submission);
        drop(queue);
        if was_empty {
            self.wake();
        }
        Ok(())
    }

    /// No handle is left.
    pub(crate) fn abandon(&self) {
        self.queue().is_abandoned = true;
        self.wake();
    }

    fn wake(&self) {
        // Fails only if the event queue is gone, and with it the thread: `is_closed` says so.
        let _ = self.waker.wake();
    }
}

/// The state of the I/O thread. However the thread ends, every operation ends with it.
pub(crate) struct IoThread {
    driver: Driver,
    shared: Arc<Shared>,
    /// Operations in flight by their name, an index into it.
    slots: Vec<Option<ResultSlot>>,
    free: Vec<usize>,
    connecting: Option<(ConnectedSlot, Instant)>,
}

impl IoThread {
    pub(crate) const fn new(
        driver: Driver,
        shared: Arc<Shared>,
        connected: ConnectedSlot,
        connect_until: Instant,
    ) -> Self {
        let connecting = Some((connected, connect_until));
        Self { driver, shared, slots: Vec::new(), free: Vec::new(), connecting }
    }

    /// Runs until no handle is left and every operation has ended.
    pub(crate) fn run(mut self) {
        let (mut completions, mut submissions) = (Vec::new(), Vec::new());
        loop {
            let is_abandoned = {
                let mut queue = self.shared.queue();
                core::mem::swap(&mut queue.submissions, &mut submissions);
                queue.is_abandoned
            };
            for submission in submissions.drain(..) {
                self.submit(submission);
            }
            if is_abandoned && self.driver.in_flight() == 0 {
                return;
            }
            let until = self.connecting.as_ref().map(|(_, until)| *until);
            let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
            if self.driver.run_once(timeout, &mut completions).is_err() {
                return;
            }
            for completion in completions.drain(..) {
                self.end(completion.user_token, completion.outcome);
            }
            self.report_connection();
        }
    }

    fn submit(&mut self, submission: Submission) {
        let Submission { body, class, footprint, read_policy, slot } = submission;
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        match self.driver.submit_with(body, class, &footprint, index as u64, read_policy) {
            Ok(()) => self.slots[index] = Some(slot),
            Err(busy) => {
                self.free.push(index);
                slot.end(Err(Error::Busy(busy)));
            }
        }
    }

    fn end(&mut self, user_token: u64, outcome: Outcome) {
        let index = user_token as usize;
        let Some(slot) = self.slots.get_mut(index).and_then(Option::take) else { return };
        self.free.push(index);
        slot.end(match outcome {
            Outcome::Done => Ok(Body::default()),
            Outcome::Reply(body) => Ok(body),
            Outcome::Refused(refusal) => Err(Error::Refused(refusal)),
            Outcome::Unknown => Err(Error::Unknown),
            Outcome::TimedOut if self.driver.links().all(|link| !link.is_connected) => {
                Err(Error::Disconnected)
            }
            // Of a quorum this client knows only what it is answered.
            Outcome::TimedOut | Outcome::NoQuorum => Err(Error::TimedOut),
        });
    }

    /// Tells who waits for the connection when there is one, or has not been one for too long.
    fn report_connection(&mut self) {
        let Some((slot, until)) = &self.connecting else { return };
        if self.driver.links().any(|link| link.is_connected) {
            slot.end(Ok(()));
        } else if Instant::now() >= *until {
            let errors = self.driver.links().map(|link| (link.address, link.last_error)).collect();
            slot.end(Err(ConnectError::NoReplica(errors)));
        } else {
            return;
        }
        self.connecting = None;
    }
}

impl Drop for IoThread {
    fn drop(&mut self) {
        let submissions = {
            let mut queue = self.shared.queue();
            queue.is_closed = true;
            core::mem::take(&mut queue.submissions)
        };
        for submission in submissions {
            submission.slot.end(Err(Error::Closed));
        }
        for slot in self.slots.drain(..).flatten() {
            slot.end(Err(Error::Closed));
        }
        if let Some((slot, _)) = self.connecting.take() {
            slot.end(Err(ConnectError::Closed));
        }
    }
}
