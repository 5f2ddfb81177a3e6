//! The consensus log: ordered entries, in chunks so that it grows without ever being copied.

use crate::message::LogEntry;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use syros_types::{OpNumber, View, WallTime};

/// Entries in a chunk. Large enough that chunk bookkeeping vanishes, small enough that the first one
/// costs an idle replica only about 100 KB.
const CHUNK: usize = 1024;

/// The log of one replica.
///
/// Invariants: entry numbers are contiguous from 1; views and times never decrease along the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Log {
    chunks: VecDeque<Vec<LogEntry>>,
    op_number: OpNumber,
    bytes: usize,
}

impl Log {
    /// An empty log.
    #[must_use]
    pub const fn new() -> Self {
        Self { chunks: VecDeque::new(), op_number: OpNumber(0), bytes: 0 }
    }

    /// Number of the last entry; 0 if there is none.
    #[must_use]
    pub const fn op_number(&self) -> OpNumber {
        self.op_number
    }

    /// Memory the entries take, in bytes, approximately.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The entry with this number, if the log has it.
    #[must_use]
    pub fn entry(&self, number: OpNumber) -> Option<&LogEntry> {
        let index = usize::try_from(number.0.checked_sub(1)?).ok()?;
        self.chunks.get(index / CHUNK)?.get(index % CHUNK)
    }

    /// View of the entry with this number; `View(0)` for number 0; `None` past the end.
    #[must_use]
    pub fn view_at(&self, number: OpNumber) -> Option<View> {
        if number.0 == 0 { Some(View(0)) } else { self.entry(number).map(|entry| entry.view) }
    }

    /// Log time of the last entry.
    #[must_use]
    pub fn last_time(&self) -> WallTime {
        self.entry(self.op_number).map_or(WallTime(0), |entry| entry.time)
    }

    /// Appends an entry.
    ///
    /// # Panics
    /// If its view or time is before the last entry's.
    pub fn append(&mut self, entry: LogEntry) -> OpNumber {
        if let Some(last) = self.entry(self.op_number) {
            assert!(last.view <= entry.view, "views never decrease along the log");
            assert!(last.time <= entry.time, "time never decreases along the log");
        }
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
        let chunk = self.chunks.back_mut()?;
        let entry = chunk.pop()?;
        if chunk.is_empty() {
            self.chunks.pop_back();
        }
        self.op_number.0 -= 1;
        self.bytes -= entry.memory_bytes();
        Some(entry)
    }

    /// Copies of the entries after `base`, to the end.
    #[must_use]
    pub fn suffix(&self, base: OpNumber) -> Vec<LogEntry> {
        (base.0 + 1..=self.op_number.0).filter_map(|n| self.entry(OpNumber(n)).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Payload;

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
    #[should_panic(expected = "time never decreases")]
    fn time_may_not_go_back() {
        let mut log = Log::new();
        log.append(entry(0, 2));
        log.append(entry(0, 1));
    }
}
