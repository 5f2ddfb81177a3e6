//! Which log entry changed a key last, for the newest part of the log (IONIA 4.4).
//!
//! A leader says by it how far a follower must be to answer a read; every member says by it up to where
//! its log might still change the answer. What is forgotten is summed up in one number, at least as high
//! as whatever was forgotten: an answer can be too high, which makes somebody wait, and never too low.

#[cfg(feature = "model")]
mod fingerprint;

use crate::hash::{HashMap, shrink_table};
use alloc::collections::VecDeque;
use syros_types::room::shrink_queue;
use syros_types::{Footprint, OpNumber};

/// The last entry that changed each key, of the entries after [`Self::trimmed`].
#[derive(Clone, Debug, Default)]
pub struct ChangeHistory {
    keys: HashMap<u64, OpNumber>,
    /// The last entry that may have changed every key.
    all: OpNumber,
    /// The last entry that changed any key.
    newest: OpNumber,
    /// The changes in log order, oldest first. One that is not its key's last is void.
    changes: VecDeque<(OpNumber, u64)>,
    trimmed: OpNumber,
}

impl ChangeHistory {
    /// Bytes that one change of one key takes.
    pub const CHANGE_BYTES: usize = 2 * size_of::<(OpNumber, u64)>();

    /// Notes that an entry, the last one so far, changes what is in `footprint`.
    pub fn record(&mut self, number: OpNumber, footprint: &Footprint) {
        self.newest = number;
        match footprint.keys() {
            None => self.all = number,
            Some(keys) => {
                for key in keys {
                    self.keys.insert(*key, number);
                    self.changes.push_back((number, *key));
                }
            }
        }
    }

    /// No entry after this one has changed what is in `footprint`.
    #[must_use]
    pub fn last_change(&self, footprint: &Footprint) -> OpNumber {
        self.known_change(footprint).max(self.trimmed)
    }

    /// The last entry that changed what is in `footprint`, of those that are not forgotten; 0 if none did.
    #[must_use]
    pub fn known_change(&self, footprint: &Footprint) -> OpNumber {
        match footprint.keys() {
            None => self.newest,
            Some(keys) => keys
                .iter()
                .filter_map(|key| self.keys.get(key))
                .max()
                .copied()
                .unwrap_or_default()
                .max(self.all),
        }
    }

    /// Entries up to here are summed up in this number.
    #[must_use]
    pub const fn trimmed(&self) -> OpNumber {
        self.trimmed
    }

    /// Changes it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Forgets the entries up to `number`, and as many more as it takes to hold at most `changes_max` changes.
    pub fn trim(&mut self, number: OpNumber, changes_max: usize) {
        self.trimmed = self.trimmed.max(number);
        while let Some((changed, key)) = self.changes.front().copied()
            && (changed <= self.trimmed || self.changes.len() > changes_max)
        {
            self.trimmed = self.trimmed.max(changed);
            self.changes.pop_front();
            if self.keys.get(&key) == Some(&changed) {
                self.keys.remove(&key);
            }
        }
        shrink_table(&mut self.keys);
        shrink_queue(&mut self.changes);
    }

    /// Forgets everything: entries up to `number` are summed up in it, and later ones are to be noted again.
    pub fn restart(&mut self, number: OpNumber) {
        *self = Self { trimmed: number, newest: number, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const MANY: usize = 100;

    #[test]
    fn the_last_change_of_each_key() {
        let mut history = ChangeHistory::default();
        history.record(OpNumber(1), &Footprint::One(10));
        history.record(OpNumber(2), &Footprint::of(vec![10, 11]));
        history.record(OpNumber(3), &Footprint::One(12));
        assert_eq!(history.last_change(&Footprint::One(10)), OpNumber(2));
        assert_eq!(history.last_change(&Footprint::of(vec![11, 12])), OpNumber(3));
        assert_eq!(history.last_change(&Footprint::One(99)), OpNumber(0));
        assert_eq!(history.last_change(&Footprint::All), OpNumber(3));
        history.record(OpNumber(4), &Footprint::All);
        assert_eq!(history.last_change(&Footprint::One(99)), OpNumber(4));
    }

    #[test]
    fn a_burst_leaves_no_room_behind() {
        let mut history = ChangeHistory::default();
        for number in 1..=100_000 {
            history.record(OpNumber(number), &Footprint::One(number));
        }
        for number in 1..100_000 {
            history.trim(OpNumber(number), 100_000);
        }
        assert!(history.keys.capacity() <= 1024 && history.changes.capacity() <= 1024);
        assert_eq!(history.known_change(&Footprint::One(100_000)), OpNumber(100_000));
    }

    #[test]
    fn what_is_forgotten_is_never_answered_too_low() {
        let mut history = ChangeHistory::default();
        for number in 1..=10 {
            history.record(OpNumber(number), &Footprint::One(number % 4));
        }
        history.trim(OpNumber(7), MANY);
        assert_eq!((history.trimmed(), history.len()), (OpNumber(7), 3));
        assert_eq!(history.last_change(&Footprint::One(3)), OpNumber(7), "the trimmed index stands for it");
        assert_eq!(history.last_change(&Footprint::One(1)), OpNumber(9));
        history.trim(OpNumber(0), 1);
        assert_eq!((history.trimmed(), history.len()), (OpNumber(9), 1), "the bound goes before the wish");
        assert_eq!(history.last_change(&Footprint::One(1)), OpNumber(9));
        assert_eq!(history.last_change(&Footprint::One(2)), OpNumber(10));
        history.restart(OpNumber(4));
        assert!(history.is_empty());
        assert_eq!(history.last_change(&Footprint::All), OpNumber(4));
    }
}
