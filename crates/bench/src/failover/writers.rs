//! Clients that write all the time, and remember what was acknowledged and when.

use super::FailoverError;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use syros_client::{Client, ConnectError, Options};

/// A writer rests this long between an answer and its next write: enough load to see every gap of a few
/// milliseconds, and not so much that the load is what is measured.
const PAUSE: Duration = Duration::from_millis(1);

/// Keys read back with one command.
const READ_BACK_KEYS: u64 = 200;

/// What one writer has written: the values `0..count` to keys of their own, but for those in `failed`.
#[derive(Debug, Default)]
struct Log {
    /// When each acknowledgement came.
    acknowledged: Vec<Instant>,
    /// Writes without an acknowledgement: they may have been executed or not.
    failed: Vec<u64>,
}

impl Log {
    fn count(&self) -> u64 {
        (self.acknowledged.len() + self.failed.len()) as u64
    }
}

/// Writers at work.
pub(super) struct Writers {
    logs: Vec<Arc<Mutex<Log>>>,
    threads: Vec<JoinHandle<()>>,
    is_over: Arc<AtomicBool>,
}

/// What they had written at the end.
pub(super) struct Written(Vec<Log>);

fn key(writer: usize, number: u64) -> String {
    format!("failover:{writer}:{number}")
}

fn value(writer: usize, number: u64) -> String {
    format!("{number} by {writer}")
}

fn lock(log: &Mutex<Log>) -> std::sync::MutexGuard<'_, Log> {
    // A push cannot leave a list half-written.
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Writers {
    /// Each with a client of its own.
    pub(super) fn start(addresses: &[SocketAddr], count: usize) -> Result<Self, ConnectError> {
        let mut writers = Self { logs: Vec::new(), threads: Vec::new(), is_over: Arc::default() };
        for writer in 0..count {
            let client = Client::connect(addresses, Options::default())?.wait()?;
            let (log, is_over) = (Arc::new(Mutex::new(Log::default())), Arc::clone(&writers.is_over));
            writers.logs.push(Arc::clone(&log));
            writers.threads.push(std::thread::spawn(move || write(writer, &client, &log, &is_over)));
        }
        Ok(writers)
    }

    /// True if every writer has had an acknowledgement after `since`.
    pub(super) fn all_wrote_since(&self, since: Instant) -> bool {
        self.logs.iter().all(|log| lock(log).acknowledged.last().is_some_and(|last| *last > since))
    }

    /// The longest time without any acknowledgement that began before `until` and ended after `from`.
    pub(super) fn longest_gap(&self, from: Instant, until: Instant) -> Duration {
        let mut all: Vec<Instant> =
            self.logs.iter().flat_map(|log| around(&lock(log).acknowledged, from, until)).collect();
        all.sort_unstable();
        gap(&all, from, until)
    }

    /// The longest time that one of the writers had no acknowledgement, likewise.
    pub(super) fn longest_gap_of_one(&self, from: Instant, until: Instant) -> Duration {
        let of_one = |log: &Arc<Mutex<Log>>| gap(&around(&lock(log).acknowledged, from, until), from, until);
        self.logs.iter().map(of_one).max().unwrap_or_default()
    }

    /// Waits until every writer has ended.
    pub(super) fn stop(mut self) -> Written {
        self.end();
        Written(self.logs.drain(..).map(|log| core::mem::take(&mut *lock(&log))).collect())
    }

    fn end(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        self.end();
    }
}

fn write(writer: usize, client: &Client, log: &Mutex<Log>, is_over: &AtomicBool) {
    let mut number = 0;
    while !is_over.load(Ordering::Relaxed) {
        let result = client.set(key(writer, number), value(writer, number)).wait();
        let now = Instant::now();
        let mut log = lock(log);
        match result {
            Ok(()) => log.acknowledged.push(now),
            Err(_) => log.failed.push(number),
        }
        drop(log);
        number += 1;
        std::thread::sleep(PAUSE);
    }
}

/// The acknowledgements from the last one up to `from` to the first one after `until`.
fn around(acknowledged: &[Instant], from: Instant, until: Instant) -> Vec<Instant> {
    let first = acknowledged.partition_point(|at| *at <= from).saturating_sub(1);
    let last = (acknowledged.partition_point(|at| *at <= until) + 1).min(acknowledged.len());
    acknowledged[first..last.max(first)].to_vec()
}

/// The longest time between two neighbours that overlaps the time from `from` to `until`. What lies
/// outside counts as if there had been an acknowledgement at each end.
fn gap(sorted: &[Instant], from: Instant, until: Instant) -> Duration {
    let overlapping = sorted.windows(2).filter(|pair| pair[1] > from && pair[0] < until);
    let inside = overlapping.map(|pair| pair[1] - pair[0]).max();
    let begin = sorted.first().map_or(until, |first| (*first).min(until)).saturating_duration_since(from);
    let end = until.saturating_duration_since(sorted.last().map_or(from, |last| (*last).max(from)));
    inside.unwrap_or_default().max(begin).max(end)
}

impl Written {
    /// Writes that were acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.0.iter().map(|log| log.acknowledged.len() as u64).sum()
    }

    /// Writes that were not.
    pub(super) fn failed(&self) -> u64 {
        self.0.iter().map(|log| log.failed.len() as u64).sum()
    }

    /// Reads everything back and counts what was acknowledged and is not there.
    pub(super) fn count_lost(&self, addresses: &[SocketAddr]) -> Result<u64, FailoverError> {
        let client = Client::connect(addresses, Options::default()).map_err(FailoverError::Connect)?;
        let client = client.wait().map_err(FailoverError::Connect)?;
        let mut lost = 0;
        for (writer, log) in self.0.iter().enumerate() {
            let mut first = 0;
            while first < log.count() {
                let numbers = first..log.count().min(first + READ_BACK_KEYS);
                let keys: Vec<String> = numbers.clone().map(|number| key(writer, number)).collect();
                let values = client.get_many(&keys).wait().map_err(FailoverError::ReadBack)?;
                let is_lost = |(number, found): (u64, &Option<Vec<u8>>)| {
                    found.as_deref() != Some(value(writer, number).as_bytes())
                        && log.failed.binary_search(&number).is_err()
                };
                lost += numbers.clone().zip(&values).filter(|pair| is_lost(*pair)).count() as u64;
                first = numbers.end;
            }
        }
        Ok(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_found_where_they_overlap_the_time_asked_about() {
        let origin = Instant::now();
        let at = |millis: u64| origin + Duration::from_millis(millis);
        let gap = |acknowledged: &[u64], from: u64, until: u64| {
            let all: Vec<Instant> = acknowledged.iter().map(|millis| at(*millis)).collect();
            gap(&around(&all, at(from), at(until)), at(from), at(until)).as_millis()
        };
        // The gap begins before the fault and ends after it.
        assert_eq!(gap(&[0, 10, 20, 340, 350, 400], 25, 350), 320);
        // An older one does not count, nor one after the end.
        assert_eq!(gap(&[0, 500, 510, 520, 530, 540, 900], 515, 535), 10);
        // One that goes on at the end does.
        assert_eq!(gap(&[0, 10, 20], 15, 200), 180);
        assert_eq!(gap(&[], 15, 200), 185);
        assert_eq!(gap(&[100], 15, 200), 100);
    }
}
