//! An emulated storage that answers only so many random reads a second, so that what reading from several replicas
//! is worth can be measured where the processor is not the limit. The reads themselves are as fast as ever: their
//! answers are held back, one after the other.

use core::time::Duration;
use std::collections::VecDeque;
use syros_protocol::message::{Message, Peer};
use syros_types::Instant;

/// Answers held back at most, so that memory stays bounded; beyond, they are not held back.
const HELD_MAX: usize = 1 << 20;

/// Answers that wait for the storage.
pub(crate) struct SlowReads {
    /// What one read takes.
    each: Duration,
    /// When the storage has done what has been asked of it.
    free_at: Instant,
    held: VecDeque<(Instant, Peer, Message)>,
}

impl SlowReads {
    /// A storage that answers so many reads a second.
    pub(crate) fn new(per_second: u32) -> Self {
        let each = Duration::from_secs(1) / per_second.max(1);
        Self { each, free_at: Instant(0), held: VecDeque::new() }
    }

    /// Takes the answer to a read that was asked for `now`.
    pub(crate) fn hold(&mut self, now: Instant, to: Peer, answer: Message) {
        self.free_at = self.free_at.max(now).after(self.each);
        if self.held.len() >= HELD_MAX {
            self.free_at = now;
        }
        self.held.push_back((self.free_at, to, answer));
    }

    /// The next answer whose time has come.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Peer, Message)> {
        let (at, ..) = self.held.front()?;
        if *at > now {
            return None;
        }
        self.held.pop_front().map(|(_, to, answer)| (to, answer))
    }

    /// When the next answer's time has come.
    pub(crate) fn deadline(&self) -> Instant {
        self.held.front().map_or(Instant::NEVER, |(at, ..)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_types::View;

    #[test]
    fn answers_come_at_the_rate_of_the_storage() {
        let mut reads = SlowReads::new(1_000);
        let answer = || Message::WrongView { view: View(1) };
        assert_eq!(reads.deadline(), Instant::NEVER);
        for _ in 0..3 {
            reads.hold(Instant(5_000_000), Peer::Client(1), answer());
        }
        let mut count = |until: u64| {
            let mut count = 0;
            while reads.pop(Instant(until)).is_some() {
                count += 1;
            }
            count
        };
        assert_eq!([5_999_999, 6_000_000, 6_900_000, 8_000_000].map(&mut count), [0, 1, 0, 2]);
        // It does not save up what it did not use.
        reads.hold(Instant(50_000_000), Peer::Client(1), answer());
        assert_eq!(reads.deadline(), Instant(51_000_000));
    }
}
