//! Which operations of one connection may be in flight together.
//!
//! Every operation locks its keys, as a reader or as an updater, in the order of arrival, all at once:
//! so there is no deadlock, and an operation that holds all its locks overlaps no earlier one that is
//! unfinished, except that both only read. Operations on all keys (FLUSHALL, SCAN) lock no key; they
//! and all others pass one [`WholeKeyspaceLock`].

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Passes a key hash on: it is mixed well enough already.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = syros_types::key_hash(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Memory for more keys than this is given back when no key is locked.
const KEYS_KEPT_MAX: usize = 8192;

/// The lock of one key.
#[derive(Debug)]
struct KeyLock {
    /// Groups that hold it.
    holders: u32,
    /// The holders only read.
    reading: bool,
    /// The group that asked for it last.
    last: u64,
    /// Groups that wait for it, and whether they only read.
    waiting: VecDeque<(u64, bool)>,
}

/// The locks of single keys.
#[derive(Debug, Default)]
pub(crate) struct KeyLocks {
    keys: HashMap<u64, KeyLock, BuildHasherDefault<KeyHasher>>,
}

impl KeyLocks {
    /// The group that asked last for the lock of this key and has not given it back.
    pub(crate) fn last(&self, key: u64) -> Option<u64> {
        self.keys.get(&key).map(|lock| lock.last)
    }

    /// Asks for a key's lock. True if the group has it now; else it waits for its turn.
    pub(crate) fn acquire(&mut self, key: u64, group: u64, reading: bool) -> bool {
        match self.keys.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(KeyLock { holders: 1, reading, last: group, waiting: VecDeque::new() });
                true
            }
            Entry::Occupied(mut entry) => {
                let lock = entry.get_mut();
                lock.last = group;
                let shared = reading && lock.reading && lock.waiting.is_empty();
                if shared {
                    lock.holders += 1;
                } else {
                    lock.waiting.push_back((group, reading));
                }
                shared
            }
        }
    }

    /// Gives one holder's lock back, and names the groups that have it now.
    pub(crate) fn release(&mut self, key: u64, granted: &mut Vec<u64>) {
        let Entry::Occupied(mut entry) = self.keys.entry(key) else { return };
        let lock = entry.get_mut();
        lock.holders -= 1;
        if lock.holders > 0 {
            return;
        }
        let Some((first, reading)) = lock.waiting.pop_front() else {
            entry.remove();
            return;
        };
        granted.push(first);
        lock.holders = 1;
        lock.reading = reading;
        while reading && lock.waiting.front().is_some_and(|(_, reading)| *reading) {
            granted.extend(lock.waiting.pop_front().map(|(group, _)| group));
            lock.holders += 1;
        }
    }

    /// Gives back memory that an unusual operation took.
    pub(crate) fn shrink(&mut self) {
        if self.keys.is_empty() && self.keys.capacity() > KEYS_KEPT_MAX {
            self.keys.shrink_to(0);
        }
    }
}

/// What an operation is to the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockMode {
    /// It reads some keys.
    ReadSome,
    /// It updates some keys.
    UpdateSome,
    /// It reads all keys.
    ReadAll,
    /// It updates all keys.
    UpdateAll,
}

/// Keeps operations on all keys from those on some, in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct WholeKeyspaceLock {
    /// How many are inside, by [`LockMode`].
    inside: [u32; 4],
    waiting: VecDeque<(u64, LockMode)>,
}

impl WholeKeyspaceLock {
    const fn inside(&self, mode: LockMode) -> u32 {
        self.inside[mode as usize]
    }

    const fn admits(&self, mode: LockMode) -> bool {
        // What nobody may share with: an update of all keys.
        let shared = self.inside(LockMode::UpdateAll) == 0;
        let no_update = self.inside(LockMode::UpdateSome) == 0;
        let no_read = self.inside(LockMode::ReadSome) == 0 && self.inside(LockMode::ReadAll) == 0;
        match mode {
            LockMode::ReadSome => shared,
            LockMode::UpdateSome => shared && self.inside(LockMode::ReadAll) == 0,
            LockMode::ReadAll => shared && no_update,
            LockMode::UpdateAll => shared && no_update && no_read,
        }
    }

    /// Asks to pass. True if the group is inside now; else it waits for its turn.
    pub(crate) fn enter(&mut self, group: u64, mode: LockMode) -> bool {
        let admitted = self.waiting.is_empty() && self.admits(mode);
        if admitted {
            self.inside[mode as usize] += 1;
        } else {
            self.waiting.push_back((group, mode));
        }
        admitted
    }

    /// One that was inside is done; names those that are inside now.
    pub(crate) fn leave(&mut self, mode: LockMode, granted: &mut Vec<u64>) {
        self.inside[mode as usize] -= 1;
        while let Some((group, mode)) = self.waiting.front().copied() {
            if !self.admits(mode) {
                return;
            }
            self.waiting.pop_front();
            self.inside[mode as usize] += 1;
            granted.push(group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released(locks: &mut KeyLocks, key: u64) -> Vec<u64> {
        let mut granted = Vec::new();
        locks.release(key, &mut granted);
        granted
    }

    #[test]
    fn readers_share_and_updaters_take_turns() {
        let mut locks = KeyLocks::default();
        assert!(locks.acquire(7, 1, true));
        assert!(locks.acquire(7, 2, true));
        assert!(!locks.acquire(7, 3, false));
        // A reader must not overtake the updater that waits.
        assert!(!locks.acquire(7, 4, true));
        assert!(!locks.acquire(7, 5, true));
        assert!(!locks.acquire(7, 6, false));
        assert_eq!(locks.last(7), Some(6));
        assert!(locks.acquire(8, 9, false));
        assert_eq!(released(&mut locks, 7), []);
        assert_eq!(released(&mut locks, 7), [3]);
        assert_eq!(released(&mut locks, 7), [4, 5]);
        assert_eq!(released(&mut locks, 7), []);
        assert_eq!(released(&mut locks, 7), [6]);
        assert_eq!(released(&mut locks, 7), []);
        assert_eq!((locks.last(7), locks.last(8)), (None, Some(9)));
    }

    #[test]
    fn the_gate_lets_only_those_together_that_do_not_overlap() {
        use LockMode::{ReadAll, ReadSome, UpdateAll, UpdateSome};
        let together = |a, b| {
            let mut lock = WholeKeyspaceLock::default();
            assert!(lock.enter(1, a));
            lock.enter(2, b)
        };
        for (a, b, allowed) in [
            (ReadSome, ReadSome, true),
            (ReadSome, UpdateSome, true),
            (UpdateSome, UpdateSome, true),
            (ReadAll, ReadAll, true),
            (ReadAll, ReadSome, true),
            (ReadAll, UpdateSome, false),
            (UpdateAll, ReadSome, false),
            (UpdateAll, UpdateSome, false),
            (UpdateAll, ReadAll, false),
            (UpdateAll, UpdateAll, false),
        ] {
            assert_eq!((together(a, b), together(b, a)), (allowed, allowed), "{a:?} {b:?}");
        }
    }

    #[test]
    fn the_gate_keeps_the_order_of_arrival() {
        use LockMode::{ReadSome, UpdateAll, UpdateSome};
        let mut lock = WholeKeyspaceLock::default();
        assert!(lock.enter(1, UpdateSome));
        assert!(!lock.enter(2, UpdateAll));
        assert!(!lock.enter(3, UpdateSome));
        assert!(!lock.enter(4, ReadSome));
        let mut granted = Vec::new();
        lock.leave(UpdateSome, &mut granted);
        assert_eq!(granted, [2]);
        lock.leave(UpdateAll, &mut granted);
        assert_eq!(granted, [2, 3, 4]);
    }
}
