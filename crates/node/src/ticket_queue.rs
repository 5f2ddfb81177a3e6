//! What waits until a record is durable.

use std::collections::VecDeque;

/// A queue by ticket, and for one ticket in the order in which it was filled. Tickets are those of a replica, or the numbers
/// of its records.
#[derive(Debug)]
#[cfg_attr(feature = "model", derive(Clone))]
pub struct TicketQueue<N, T>(VecDeque<(N, T)>);

impl<N, T> Default for TicketQueue<N, T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<N: Copy + Ord, T> TicketQueue<N, T> {
    /// Adds something that may leave when `after` is durable.
    pub fn push(&mut self, after: N, what: T) {
        // Nearly always the largest number so far.
        let place = match self.0.back() {
            Some((last, _)) if *last > after => self.0.partition_point(|(number, _)| *number <= after),
            _ => self.0.len(),
        };
        self.0.insert(place, (after, what));
    }

    /// The next that need not wait any longer.
    pub fn pop(&mut self, reached: N) -> Option<T> {
        if self.first()? > reached {
            return None;
        }
        self.0.pop_front().map(|(_, what)| what)
    }

    /// What the next waits for.
    #[must_use]
    pub fn first(&self) -> Option<N> {
        self.0.front().map(|(after, _)| *after)
    }

    /// All that wait, for a model checker.
    #[cfg(feature = "model")]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(N, T)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leaves_when_its_own_number_is_reached() {
        let mut waiting = TicketQueue::default();
        for (after, view) in [(3, 1), (5, 2), (4, 3), (3, 4), (5, 5)] {
            waiting.push(after, view);
        }
        assert_eq!(waiting.first(), Some(3));
        let mut released = |reached| std::iter::from_fn(|| waiting.pop(reached)).collect::<Vec<_>>();
        assert_eq!(released(2), []);
        assert_eq!(released(3), [1, 4]);
        assert_eq!(released(9), [3, 2, 5]);
    }
}
