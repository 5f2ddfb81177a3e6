//! The one event queue: earliest first, and of two at one time the one scheduled first.

use crate::clock::VirtualTime;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// An event and its place in time.
#[derive(Debug)]
struct Scheduled<E> {
    at: VirtualTime,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Scheduled<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// Events to come, and what time it is.
#[derive(Debug)]
pub struct Scheduler<E> {
    queue: BinaryHeap<Reverse<Scheduled<E>>>,
    sequence: u64,
    now: VirtualTime,
}

impl<E> Default for Scheduler<E> {
    fn default() -> Self {
        Self { queue: BinaryHeap::new(), sequence: 0, now: 0 }
    }
}

impl<E> Scheduler<E> {
    /// The time of the last event taken.
    #[must_use]
    pub const fn now(&self) -> VirtualTime {
        self.now
    }

    /// Schedules `event` at `at`, or now if that has passed.
    pub fn schedule(&mut self, at: VirtualTime, event: E) {
        self.sequence += 1;
        self.queue.push(Reverse(Scheduled { at: at.max(self.now), sequence: self.sequence, event }));
    }

    /// Takes the next event no later than `until`, and moves time to it; moves time to `until` if
    /// there is none.
    pub fn take(&mut self, until: VirtualTime) -> Option<E> {
        if self.queue.peek().is_none_or(|Reverse(next)| next.at > until) {
            self.now = self.now.max(until);
            return None;
        }
        let Reverse(next) = self.queue.pop()?;
        self.now = next.at;
        Some(next.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_time_then_sequence() {
        let mut scheduler = Scheduler::default();
        for (at, event) in [(5, 'b'), (3, 'a'), (5, 'c'), (9, 'd')] {
            scheduler.schedule(at, event);
        }
        assert_eq!(scheduler.take(1), None);
        assert_eq!(scheduler.now(), 1);
        let order: Vec<_> = std::iter::from_fn(|| scheduler.take(8).map(|e| (scheduler.now(), e))).collect();
        assert_eq!(order, [(3, 'a'), (5, 'b'), (5, 'c')]);
        assert_eq!(scheduler.now(), 8);
        scheduler.schedule(2, 'e');
        assert_eq!(scheduler.take(8), Some('e'), "the past is now");
        assert_eq!(scheduler.now(), 8);
    }
}
