//! What leaves from the thread of the log, as soon as what it promises is durable.
//!
//! An update is answered when its record is durable. The thread of the log knows that first; the thread that drives the
//! replica would have to be woken, and may be busy with what has come meanwhile. So that thread leaves the messages here,
//! from where the thread of the log sends them, and says for which record it is to be woken: the one that the replica
//! itself waits for.

use crate::ticket_queue::TicketQueue;

/// What waits until a record is durable, and for which record somebody is to be woken. `N` numbers records.
#[derive(Debug)]
pub struct DurableQueue<N, T> {
    /// Nearly all of it answers updates whose records wait for the disk, and is shorter than these: the limit of the log's
    /// waiting bytes bounds it as well.
    waiting: TicketQueue<N, T>,
    wake_at: Option<N>,
}

impl<N, T> Default for DurableQueue<N, T> {
    fn default() -> Self {
        Self { waiting: TicketQueue::default(), wake_at: None }
    }
}

impl<N: Copy + Ord, T> DurableQueue<N, T> {
    /// Adds something that leaves when a record is durable.
    pub fn add(&mut self, after: N, what: T) {
        self.waiting.push(after, what);
    }

    /// Says for which record the thread that drives the replica is to be woken next.
    pub const fn wake_at(&mut self, record: Option<N>) {
        self.wake_at = record;
    }

    /// True if nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.first().is_none()
    }

    /// The next thing that leaves now that the records up to `durable` are durable.
    pub fn pop(&mut self, durable: N) -> Option<T> {
        self.waiting.pop(durable)
    }

    /// True if the thread that drives the replica is to be woken now that the records up to `durable` are durable.
    #[must_use]
    pub fn wakes(&self, durable: N) -> bool {
        self.wake_at.is_some_and(|record| record <= durable)
    }
}
