//! The one event queue: earliest first, and of two at one time the one scheduled first.

use crate::clock::VirtualTime;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Events to come, and what time it is.
#[derive(Debug)]
pub struct Scheduler<E> {
    /// When each is, which of all it is, and where: events are large, and the queue moves what it holds.
    queue: BinaryHeap<Reverse<(VirtualTime, u64, usize)>>,
    events: Vec<Option<E>>,
    /// Places that are free.
    free: Vec<usize>,
    sequence: u64,
    now: VirtualTime,
}

impl<E> Default for Scheduler<E> {
    fn default() -> Self {
        Self { queue: BinaryHeap::new(), events: Vec::new(), free: Vec::new(), sequence: 0, now: 0 }
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
        let place = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            self.events.len() - 1
        });
        self.events[place] = Some(event);
        self.queue.push(Reverse((at.max(self.now), self.sequence, place)));
    }

    /// Takes the next event no later than `until`, and moves time to it; moves time to `until` if
    /// there is none.
    pub fn take(&mut self, until: VirtualTime) -> Option<E> {
        if self.queue.peek().is_none_or(|Reverse((at, ..))| *at > until) {
            self.now = self.now.max(until);
            return None;
        }
        let Reverse((at, _, place)) = self.queue.pop()?;
        self.now = at;
        self.free.push(place);
        self.events[place].take()
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
