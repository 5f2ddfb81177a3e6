//! What the clients saw, and whether one copy of the data could have answered like that.

use crate::machine::{KEYS, KeyValues, Operation};

/// Most operations of one run.
pub(crate) const OPERATIONS_MAX: usize = 6;

/// How far an operation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) enum Progress {
    /// Not begun.
    #[default]
    Later,
    /// Begun and not answered, or answered with "unknown": it may take effect or not.
    Open,
    /// Answered with nothing but an acknowledgement.
    Done,
    /// Answered with a value.
    Value(u32),
    /// The client was told that it has no effect and never will.
    Refused,
}

impl Progress {
    pub(crate) const fn is_answered(self) -> bool {
        matches!(self, Self::Done | Self::Value(_))
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Record {
    pub(crate) progress: Progress,
    /// Those that had been answered when it began, as bits.
    pub(crate) before: u8,
}

/// Every operation, by its place in the setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct History(pub(crate) [Record; OPERATIONS_MAX]);

impl History {
    /// The answered ones, as bits.
    pub(crate) fn answered(&self) -> u8 {
        let bits = self.0.iter().enumerate().filter(|(_, record)| record.progress.is_answered());
        bits.fold(0, |bits, (index, _)| bits | 1 << index)
    }

    pub(crate) fn begin(&mut self, operation: usize) {
        self.0[operation] = Record { progress: Progress::Open, before: self.answered() };
    }

    pub(crate) fn end(&mut self, operation: usize, progress: Progress) {
        self.0[operation].progress = progress;
    }

    /// True if the answers could have come from one copy of the data, in some order in which nothing
    /// comes before what had been answered when it began. `last`: what a read of all keys returns after all
    /// that has been answered.
    pub(crate) fn is_linearizable(&self, operations: &[Operation], last: Option<KeyValues>) -> bool {
        let taking_part =
            |record: &Record| record.progress.is_answered() || record.progress == Progress::Open;
        let open: u8 = self.bits(|record| record.progress == Progress::Open);
        let left = self.bits(taking_part);
        let search = Search { history: self, operations, open, last };
        search.from([0; KEYS], left)
    }

    fn bits(&self, wanted: impl Fn(&Record) -> bool) -> u8 {
        let wanted = self.0.iter().enumerate().filter(|(_, record)| wanted(record));
        wanted.fold(0, |bits, (index, _)| bits | 1 << index)
    }
}

struct Search<'a> {
    history: &'a History,
    operations: &'a [Operation],
    open: u8,
    last: Option<KeyValues>,
}

impl Search<'_> {
    /// Tries every order of the operations `left`, after others that made `store`.
    fn from(&self, store: KeyValues, left: u8) -> bool {
        if left & !self.open == 0 && self.last.is_none_or(|last| last == store) {
            return true;
        }
        (0..self.operations.len()).any(|index| {
            let bit = 1 << index;
            let record = self.history.0[index];
            // What is open precedes nothing.
            if left & bit == 0 || record.before & left != 0 {
                return false;
            }
            let mut next = store;
            let value = self.operations[index].apply(&mut next);
            match record.progress {
                Progress::Value(seen) if seen != value => false,
                _ => self.from(next, left & !bit),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: [Operation; 4] =
        [Operation::Set(0, 1), Operation::Set(0, 2), Operation::Get(0), Operation::AppendAndGet(0, 3)];

    #[test]
    fn a_completed_update_is_seen_afterwards() {
        let mut history = History::default();
        history.begin(0);
        assert!(history.is_linearizable(&OPERATIONS, Some([0, 0, 0])));
        assert!(history.is_linearizable(&OPERATIONS, Some([1, 0, 0])));
        assert!(!history.is_linearizable(&OPERATIONS, Some([2, 0, 0])));
        history.end(0, Progress::Done);
        assert!(!history.is_linearizable(&OPERATIONS, Some([0, 0, 0])));
        assert!(history.is_linearizable(&OPERATIONS, Some([1, 0, 0])));
    }

    #[test]
    fn real_time_order_holds_between_answered_and_begun() {
        let mut history = History::default();
        history.begin(0);
        history.begin(1);
        history.end(0, Progress::Done);
        history.end(1, Progress::Done);
        // Concurrent: either order.
        assert!(history.is_linearizable(&OPERATIONS, Some([1, 0, 0])));
        assert!(history.is_linearizable(&OPERATIONS, Some([2, 0, 0])));
        history.begin(3);
        history.end(3, Progress::Value(13));
        assert!(history.is_linearizable(&OPERATIONS, Some([13, 0, 0])));
        assert!(!history.is_linearizable(&OPERATIONS, Some([1, 0, 0])));
        let mut ordered = History::default();
        ordered.begin(0);
        ordered.end(0, Progress::Done);
        ordered.begin(1);
        ordered.end(1, Progress::Done);
        assert!(!ordered.is_linearizable(&OPERATIONS, Some([1, 0, 0])));
        ordered.begin(2);
        ordered.end(2, Progress::Value(1));
        assert!(!ordered.is_linearizable(&OPERATIONS, None));
    }

    #[test]
    fn what_was_refused_has_no_effect() {
        let mut history = History::default();
        history.begin(0);
        history.end(0, Progress::Refused);
        assert!(history.is_linearizable(&OPERATIONS, Some([0, 0, 0])));
        assert!(!history.is_linearizable(&OPERATIONS, Some([1, 0, 0])));
    }
}
