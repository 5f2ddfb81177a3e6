//! When records have become durable. The log's thread knows it first, and the event loop may hear of it much later.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use syros_types::Instant;
use syros_wal::RecordNumber;

use crate::clock::Clock;

/// Times that are kept for the event loop, which takes them in each of its turns. A loop that is busy for longer gets its own
/// time for the records of later syncs.
const TIMES_MAX: usize = 256;

/// No record is waited for.
const NONE: u64 = u64::MAX;

/// What the log's thread notes for the records of operations that are traced.
#[derive(Debug)]
pub(crate) struct SyncTimes {
    clock: Clock,
    /// The first record that is waited for. Syncs before it are not noted.
    awaited: AtomicU64,
    /// Up to which record all are durable since when.
    times: Mutex<Vec<(RecordNumber, Instant)>>,
}

impl SyncTimes {
    pub(crate) const fn new(clock: Clock) -> Self {
        Self { clock, awaited: AtomicU64::new(NONE), times: Mutex::new(Vec::new()) }
    }

    /// The log's thread: all records up to this one are durable.
    pub(crate) fn on_durable(&self, persisted: RecordNumber) {
        if persisted.0 < self.awaited.load(Ordering::Acquire) {
            return;
        }
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        if times.len() < TIMES_MAX {
            times.push((persisted, self.clock.now().instant));
        }
    }

    /// The event loop: waits for this record, before the log's thread has got it.
    pub(super) fn wait_for(&self, record: Option<RecordNumber>) {
        self.awaited.store(record.map_or(NONE, |record| record.0), Ordering::Release);
    }

    /// The event loop: what has been noted.
    pub(super) fn take(&self) -> Vec<(RecordNumber, Instant)> {
        std::mem::take(&mut *self.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_syncs_that_are_waited_for_are_noted_and_no_more_than_there_is_room_for() {
        let times = SyncTimes::new(Clock::start());
        times.on_durable(RecordNumber(5));
        assert_eq!(times.take(), []);
        times.wait_for(Some(RecordNumber(7)));
        (5..9).for_each(|record| times.on_durable(RecordNumber(record)));
        let taken = times.take();
        let records: Vec<u64> = taken.iter().map(|(record, _)| record.0).collect();
        assert_eq!(records, [7, 8]);
        assert!(taken[0].1 <= taken[1].1);
        (0..2 * TIMES_MAX as u64).for_each(|record| times.on_durable(RecordNumber(100 + record)));
        assert_eq!(times.take().len(), TIMES_MAX);
        times.wait_for(None);
        times.on_durable(RecordNumber(10_000));
        assert_eq!(times.take(), []);
    }
}
