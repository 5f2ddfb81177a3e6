//! What waits until something that is numbered has reached a number.

use std::collections::VecDeque;

/// A queue by number, and then in the order in which it was filled.
#[derive(Debug)]
pub(crate) struct Waiting<N, T>(VecDeque<(N, T)>);

impl<N, T> Default for Waiting<N, T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<N: Copy + Ord, T> Waiting<N, T> {
    pub(crate) fn push(&mut self, after: N, what: T) {
        // Nearly always the largest number so far.
        let place = match self.0.back() {
            Some((last, _)) if *last > after => self.0.partition_point(|(number, _)| *number <= after),
            _ => self.0.len(),
        };
        self.0.insert(place, (after, what));
    }

    /// The next that need not wait any longer.
    pub(crate) fn pop(&mut self, reached: N) -> Option<T> {
        if self.first()? > reached {
            return None;
        }
        self.0.pop_front().map(|(_, what)| what)
    }

    /// What the next waits for.
    pub(crate) fn first(&self) -> Option<N> {
        self.0.front().map(|(after, _)| *after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leaves_when_its_own_number_is_reached() {
        let mut waiting = Waiting::default();
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
