//! The consensus log: ordered entries, in chunks so that it grows without ever being copied.

use crate::message::{LogEntry, Payload};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use syros_types::{OpNumber, View, WallTime};

/// Entries in a chunk. Large enough that chunk bookkeeping vanishes, small enough that the first one
/// costs an idle replica only about 100 KB.
const CHUNK: usize = 1024;

/// The log of one replica: what follows its base. What comes before the base is in a snapshot, here or
/// with another member.
///
/// Invariants: entry numbers are contiguous from `base + 1`; views and times never decrease along the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Log {
    chunks: VecDeque<Vec<LogEntry>>,
    base: OpNumber,
    base_view: View,
    base_time: WallTime,
    /// Places at the beginning of the first chunk whose entries are gone.
    vacant: usize,
    op_number: OpNumber,
    bytes: usize,
}

impl Log {
    /// An empty log.
    #[must_use]
    pub const fn new() -> Self {
        Self::after(OpNumber(0), View(0), WallTime(0))
    }

    /// A log that begins after entry `base`, which has this view and time.
    #[must_use]
    pub const fn after(base: OpNumber, base_view: View, base_time: WallTime) -> Self {
        Self { chunks: VecDeque::new(), base, base_view, base_time, vacant: 0, op_number: base, bytes: 0 }
    }

    /// Number of the last entry; the base if there is none.
    #[must_use]
    pub const fn op_number(&self) -> OpNumber {
        self.op_number
    }

    /// The entries begin after this number.
    #[must_use]
    pub const fn base(&self) -> OpNumber {
        self.base
    }

    /// Memory the entries take, in bytes, approximately.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The entry with this number, if the log has it.
    #[must_use]
    pub fn entry(&self, number: OpNumber) -> Option<&LogEntry> {
        let offset = usize::try_from(number.0.checked_sub(self.base.0 + 1)?).ok()?;
        let index = offset + self.vacant;
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    /// View of the entry with this number; `View(0)` for number 0; `None` before the base and past the
    /// end.
    #[must_use]
    pub fn view_at(&self, number: OpNumber) -> Option<View> {
        if number == self.base { Some(self.base_view) } else { self.entry(number).map(|entry| entry.view) }
    }

    /// Log time of the last entry.
    #[must_use]
    pub fn last_time(&self) -> WallTime {
        self.time_at(self.op_number).unwrap_or_default()
    }

    /// Log time of the entry with this number, as [`Log::view_at`] gives its view.
    #[must_use]
    pub fn time_at(&self, number: OpNumber) -> Option<WallTime> {
        if number == self.base { Some(self.base_time) } else { self.entry(number).map(|entry| entry.time) }
    }

    /// Appends an entry.
    ///
    /// # Panics
    /// If its view or time is before the last entry's.
    pub fn append(&mut self, entry: LogEntry) -> OpNumber {
        assert!(self.view_at(self.op_number) <= Some(entry.view), "views never decrease along the log");
        assert!(self.last_time() <= entry.time, "time never decreases along the log");
        self.bytes += entry.memory_bytes();
        match self.chunks.back_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(entry),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(entry);
                self.chunks.push_back(chunk);
            }
        }
        self.op_number = self.op_number.next();
        self.op_number
    }

    /// Removes the last entry.
    pub fn pop(&mut self) -> Option<LogEntry> {
        if self.op_number == self.base {
            return None;
        }
        let chunk = self.chunks.back_mut()?;
        let entry = chunk.pop()?;
        if chunk.is_empty() {
            self.chunks.pop_back();
        }
        self.op_number.0 -= 1;
        self.bytes -= entry.memory_bytes();
        if self.op_number == self.base {
            self.chunks.clear();
            self.vacant = 0;
        }
        Some(entry)
    }

    /// Removes the first entry: the base moves on by one.
    pub fn pop_front(&mut self) {
        let vacancy = LogEntry { view: View(0), time: WallTime(0), payload: Payload::Tick };
        let Some(entry) = self.chunks.front_mut().and_then(|chunk| chunk.get_mut(self.vacant)) else {
            return;
        };
        let entry = core::mem::replace(entry, vacancy);
        self.bytes -= entry.memory_bytes();
        self.base = self.base.next();
        self.base_view = entry.view;
        self.base_time = entry.time;
        self.vacant += 1;
        if self.base == self.op_number {
            self.chunks.clear();
            self.vacant = 0;
        } else if self.vacant == CHUNK {
            self.chunks.pop_front();
            self.vacant = 0;
        }
    }

    /// Lets the log begin after `base`, whose entry has this view and time in every log that is right.
    /// What follows stays if this log agrees about that entry.
    pub fn begin_after(&mut self, base: OpNumber, base_view: View, base_time: WallTime) {
        if self.view_at(base) == Some(base_view) {
            while self.base < base {
                self.pop_front();
            }
        } else {
            *self = Self::after(base, base_view, base_time);
        }
    }

    /// Copies of the entries after `base`, to the end.
    ///
    /// # Panics
    /// If the log begins later.
    #[must_use]
    pub fn suffix(&self, base: OpNumber) -> Vec<LogEntry> {
        assert!(base >= self.base, "the log begins after {}, not {}", self.base.0, base.0);
        (base.0 + 1..=self.op_number.0).filter_map(|n| self.entry(OpNumber(n)).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(view: u64, time: u64) -> LogEntry {
        LogEntry { view: View(view), time: WallTime(time), payload: Payload::Tick }
    }

    #[test]
    fn numbers_are_contiguous_across_chunks() {
        let mut log = Log::new();
        for n in 1..=2500 {
            assert_eq!(log.append(entry(n / 100, n)), OpNumber(n));
        }
        assert_eq!(log.entry(OpNumber(1025)).map(|e| e.time), Some(WallTime(1025)));
        assert_eq!((log.entry(OpNumber(0)), log.entry(OpNumber(2501))), (None, None));
        assert_eq!(log.view_at(OpNumber(0)), Some(View(0)));
        while log.op_number() > OpNumber(1024) {
            log.pop();
        }
        assert_eq!(log.suffix(OpNumber(1022)).len(), 2);
        assert_eq!(log.append(entry(99, 5000)), OpNumber(1025));
        assert_eq!(log.last_time(), WallTime(5000));
        while log.pop().is_some() {}
        assert_eq!((log.bytes(), log.op_number()), (0, OpNumber(0)));
    }

    #[test]
    fn the_beginning_goes_and_numbers_stay() {
        let mut log = Log::new();
        for n in 1..=3000 {
            log.append(entry(n / 100, n));
        }
        while log.base() < OpNumber(1500) {
            log.pop_front();
        }
        assert_eq!((log.entry(OpNumber(1500)), log.view_at(OpNumber(1499))), (None, None));
        assert_eq!(log.view_at(OpNumber(1500)), Some(View(15)));
        assert_eq!(log.entry(OpNumber(1501)).map(|e| e.time), Some(WallTime(1501)));
        assert_eq!(log.suffix(OpNumber(2990)).len(), 10);
        let fresh = (1501..=3000).fold(Log::after(OpNumber(1500), View(15), WallTime(1500)), |mut log, n| {
            log.append(entry(n / 100, n));
            log
        });
        assert_eq!(log.bytes(), fresh.bytes());
        while log.op_number() > OpNumber(1500) {
            assert!(log.pop().is_some());
        }
        assert_eq!((log.pop(), log.bytes(), log.last_time()), (None, 0, WallTime(1500)));
        assert_eq!(log.append(entry(15, 1500)), OpNumber(1501));
    }

    #[test]
    fn a_log_that_agrees_with_a_snapshot_keeps_what_follows() {
        let log = (1..=9).fold(Log::new(), |mut log, n| {
            log.append(entry(n / 5, n));
            log
        });
        let mut agrees = log.clone();
        agrees.begin_after(OpNumber(6), View(1), WallTime(6));
        assert_eq!((agrees.base(), agrees.op_number()), (OpNumber(6), OpNumber(9)));
        for (base, view) in [(6, 2), (12, 1)] {
            let mut differs = log.clone();
            differs.begin_after(OpNumber(base), View(view), WallTime(20));
            assert_eq!((differs.op_number(), differs.bytes()), (OpNumber(base), 0));
        }
    }

    #[test]
    #[should_panic(expected = "time never decreases")]
    fn time_may_not_go_back() {
        let mut log = Log::new();
        log.append(entry(0, 2));
        log.append(entry(0, 1));
    }
}
