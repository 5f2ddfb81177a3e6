//! What a session remembers of its operations that were executed: memory in proportion to their number, however far
//! their sequence numbers are apart.

use crate::message::Body;
use alloc::collections::{BTreeMap, VecDeque};
use core::hash::{Hash, Hasher};

/// What a reply costs besides its bytes: the reference counts of its allocation.
pub(super) const REPLY_OVERHEAD: usize = 16;

/// A run of so many places is not made smaller.
const SMALL_RUN: usize = 64;

/// What is remembered of one operation of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Completion {
    /// A nilext update was executed.
    Nilext,
    /// An update was executed and returned this.
    Reply(Body),
    /// An update was executed and returned something that is not kept.
    Dropped,
}

impl Completion {
    /// What the completion counts for in the bytes of replies that the table holds.
    pub(super) fn reply_bytes(&self) -> usize {
        match self {
            Self::Nilext | Self::Dropped => 0,
            Self::Reply(reply) => reply.len() + REPLY_OVERHEAD,
        }
    }
}

/// Completions by sequence number. A client numbers its updates one after the other, so nearly all stand in one run without
/// gaps, where they are found and forgotten without a search. The others stand apart, in a tree: a client chooses its
/// sequence numbers, and must not choose how much memory a gap takes.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    /// Sequence number of the first of the run.
    first: u64,
    /// Completions of consecutive sequence numbers. Empty only if there are no others either.
    run: VecDeque<Completion>,
    /// All others. The one that follows the run is not among them.
    apart: BTreeMap<u64, Completion>,
}

impl Completions {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.run.len() + self.apart.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    /// Every one with its sequence number, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Completion)> {
        let apart = |(sequence, completion): (&u64, _)| (*sequence, completion);
        let before = self.apart.range(..self.first).map(apart);
        let after = self.apart.range(self.first..).map(apart);
        let run = self.run.iter().enumerate();
        before.chain(run.map(|(index, completion)| (self.first + index as u64, completion))).chain(after)
    }

    /// True if there are so many from sequence number `from` on. Looks at no more than that.
    pub(super) fn are_at_least(&self, count: usize, from: u64) -> bool {
        let forgotten = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let in_run = self.run.len().saturating_sub(forgotten);
        in_run >= count || self.apart.range(from..).nth(count - in_run - 1).is_some()
    }

    /// The highest sequence number.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        let in_run = (self.run.len() as u64).checked_sub(1).map(|offset| self.first + offset);
        in_run.max(self.apart.last_key_value().map(|(sequence, _)| *sequence))
    }

    /// The one of this sequence number.
    #[must_use]
    pub fn get(&self, sequence: u64) -> Option<&Completion> {
        match self.place(sequence) {
            Some(index) if index < self.run.len() => self.run.get(index),
            _ => self.apart.get(&sequence),
        }
    }

    /// Sets the one of this sequence number.
    pub fn insert(&mut self, sequence: u64, completion: Completion) {
        if self.run.is_empty() {
            self.first = sequence;
        }
        match self.place(sequence) {
            Some(index) if index < self.run.len() => self.run[index] = completion,
            Some(index) if index == self.run.len() => {
                self.run.push_back(completion);
                self.lengthen_run();
            }
            _ => {
                self.apart.insert(sequence, completion);
            }
        }
    }

    /// Forgets those below this sequence number. Returns what their replies counted for.
    pub(super) fn forget_below(&mut self, sequence: u64) -> usize {
        let mut reply_bytes = 0;
        while self.first < sequence
            && let Some(completion) = self.run.pop_front()
        {
            self.first += 1;
            reply_bytes += completion.reply_bytes();
        }
        while let Some(entry) = self.apart.first_entry()
            && *entry.key() < sequence
        {
            reply_bytes += entry.remove().reply_bytes();
        }
        if self.run.is_empty()
            && let Some((first, completion)) = self.apart.pop_first()
        {
            self.first = first;
            self.run.push_back(completion);
            self.lengthen_run();
        }
        // A burst that is over leaves no memory behind.
        if self.run.capacity() > SMALL_RUN && self.run.len() < self.run.capacity() / 8 {
            self.run.shrink_to(SMALL_RUN.max(2 * self.run.len()));
        }
        reply_bytes
    }

    /// What all replies count for.
    pub(super) fn reply_bytes(&self) -> usize {
        self.run.iter().chain(self.apart.values()).map(Completion::reply_bytes).sum()
    }

    /// Where this sequence number is in the run, or would be if the run went so far.
    fn place(&self, sequence: u64) -> Option<usize> {
        sequence.checked_sub(self.first).and_then(|offset| usize::try_from(offset).ok())
    }

    /// Moves into the run those that follow it.
    fn lengthen_run(&mut self) {
        while !self.apart.is_empty()
            && let Some(next) = self.first.checked_add(self.run.len() as u64)
            && let Some(completion) = self.apart.remove(&next)
        {
            self.run.push_back(completion);
        }
    }
}

/// The order in which completions came decides which of them stand apart, and makes no difference.
impl PartialEq for Completions {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Completions {}

impl Hash for Completions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        self.iter().for_each(|completion| completion.hash(state));
    }
}

impl FromIterator<(u64, Completion)> for Completions {
    fn from_iter<T: IntoIterator<Item = (u64, Completion)>>(completions: T) -> Self {
        let mut all = Self::default();
        for (sequence, completion) in completions {
            all.insert(sequence, completion);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use syros_types::Prng;

    impl Completions {
        /// Bytes of memory, replies left out. A tree's node has room for eleven, and all nodes but the root are half full.
        fn memory_bytes(&self) -> usize {
            const NODE_BYTES: usize =
                11 * (size_of::<u64>() + size_of::<Completion>()) + 13 * size_of::<usize>();
            let nodes = self.apart.len().div_ceil(5) + usize::from(!self.apart.is_empty());
            size_of::<Self>() + self.run.capacity() * size_of::<Completion>() + nodes * NODE_BYTES
        }
    }

    #[test]
    fn a_gap_takes_no_memory_in_whatever_order_completions_come() {
        const FAR: u64 = crate::sessions::SESSION_WINDOW_MAX - 1;
        for sequences in [[FAR, 1], [1, FAR], [FAR / 2, FAR]] {
            let gap: Completions =
                sequences.map(|sequence| (sequence, Completion::Nilext)).into_iter().collect();
            assert!(gap.memory_bytes() < 1200, "{} bytes for {sequences:?}", gap.memory_bytes());
        }
        let sparse: Completions = (0..FAR / 2).map(|half| (2 * half, Completion::Nilext)).collect();
        assert!(sparse.memory_bytes() < 100 * sparse.len(), "{} bytes", sparse.memory_bytes());
    }

    #[test]
    fn the_highest_sequence_number_of_all_has_none_after_it() {
        let mut completions = Completions::default();
        for sequence in [u64::MAX, u64::MAX - 1, u64::MAX - 1, u64::MAX] {
            completions.insert(sequence, Completion::Nilext);
        }
        assert_eq!((completions.len(), completions.last()), (2, Some(u64::MAX)));
        assert_eq!(completions.forget_below(u64::MAX), 0);
        assert!(completions.iter().eq([(u64::MAX, &Completion::Nilext)]));
    }

    #[test]
    fn those_that_are_forgotten_leave_no_memory() {
        let mut burst: Completions = (1..=100_000).map(|sequence| (sequence, Completion::Nilext)).collect();
        assert!(burst.apart.is_empty() && burst.memory_bytes() < 50 * burst.len());
        burst.forget_below(100_000);
        assert_eq!((burst.len(), burst.last()), (1, Some(100_000)));
        assert!(burst.memory_bytes() < 8 << 10, "{} bytes", burst.memory_bytes());
    }

    /// Completions come in every order, are replaced and forgotten; a plain map does the same.
    #[test]
    fn they_are_those_of_a_map() {
        for seed in 0..300 {
            let mut prng = Prng::new(seed);
            let (mut completions, mut map) = (Completions::default(), BTreeMap::new());
            let (mut below, spread) = (0, 1 + prng.below(40));
            for _ in 0..200 {
                let sequence = below + prng.below(spread);
                match prng.below(8) {
                    0 => {
                        below += prng.below(spread);
                        let kept = map.split_off(&below);
                        let bytes: usize = map.values().map(Completion::reply_bytes).sum();
                        assert_eq!(completions.forget_below(below), bytes);
                        map = kept;
                    }
                    kind => {
                        let mut reply = || Completion::Reply(Body::from([7].repeat(prng.below(3) as usize)));
                        let completion = if kind < 4 { Completion::Nilext } else { reply() };
                        completions.insert(sequence, completion.clone());
                        map.insert(sequence, completion);
                    }
                }
                let expected: Vec<_> =
                    map.iter().map(|(sequence, completion)| (*sequence, completion)).collect();
                assert_eq!(completions.iter().collect::<Vec<_>>(), expected, "seed {seed}");
                assert_eq!(completions.len(), map.len());
                let (from, count) = (below + prng.below(spread), 1 + prng.below(9) as usize);
                assert_eq!(
                    completions.are_at_least(count, from),
                    map.range(from..).count() >= count,
                    "seed {seed}"
                );
                assert_eq!(completions.is_empty(), map.is_empty());
                assert_eq!(completions.last(), map.last_key_value().map(|(sequence, _)| *sequence));
                assert!((0..below + spread).all(|any| completions.get(any) == map.get(&any)), "seed {seed}");
                assert_eq!(
                    completions.reply_bytes(),
                    map.values().map(Completion::reply_bytes).sum::<usize>()
                );
                assert_eq!(map.clone().into_iter().collect::<Completions>(), completions);
                assert_eq!(map.clone().into_iter().rev().collect::<Completions>(), completions);
            }
        }
    }
}
