//! What the clients of a [`Blend`] ask for, operation by operation.

use crate::blend::{Blend, OperationKind, ReadLatest};
use crate::distribution::{KeyChoice, Keys};
use crate::error::InvalidWorkload;
use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};
use syros_types::Prng;

/// Most records of a scan: YCSB's. Their number is chosen from 1 to this, all alike.
pub const SCAN_RECORDS_MAX: u64 = 100;

/// The records that there are, which all clients share.
#[derive(Clone, Debug)]
pub struct Records {
    /// All with a lower number have been written.
    there: u64,
    /// The number of the next new one.
    next: u64,
    /// Numbers from `there` on that have been written.
    early: BTreeSet<u64>,
    /// Appends begun to each file so far.
    appended: Vec<u64>,
    /// What was updated, and when, in that order; kept only if somebody asks for what is latest.
    updated: VecDeque<(Duration, u64)>,
}

/// Most updates that are remembered as the latest: some more than can end in the shortest round trip.
const UPDATED_MAX: usize = 1 << 16;

/// Appends that go to one key. A file is as many keys as that takes, one after the other: values have a limit, and in
/// the end a file would be longer.
pub const APPENDS_PER_KEY: u64 = 1_000;

impl Records {
    /// So many have been written.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self {
            there: count,
            next: count,
            early: BTreeSet::new(),
            appended: Vec::new(),
            updated: VecDeque::new(),
        }
    }

    /// Records that can be read: those whose writes have ended, up to the first that has not.
    #[must_use]
    pub const fn there(&self) -> u64 {
        self.there
    }

    /// Records of which somebody has begun to write the last.
    #[must_use]
    pub const fn begun(&self) -> u64 {
        self.next
    }

    /// The number of a new record, which is about to be written.
    pub const fn begin(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// The key that the next append to one of so many files goes to.
    fn append(&mut self, file: u64, files: u64) -> u64 {
        self.appended.resize(files as usize, 0);
        let Some(appended) = self.appended.get_mut(file as usize) else { return file };
        *appended += 1;
        file + files * ((*appended - 1) / APPENDS_PER_KEY)
    }

    /// A record whose update was acknowledged in this window before now; each update is as likely as the others.
    fn latest(&mut self, window: Duration, now: Duration, prng: &mut Prng) -> Option<u64> {
        while self.updated.front().is_some_and(|(at, _)| *at + window < now) {
            self.updated.pop_front();
        }
        if self.updated.is_empty() {
            return None;
        }
        let chosen = prng.below(self.updated.len() as u64);
        self.updated.get(chosen as usize).map(|(_, key)| *key)
    }

    /// A new record has been written.
    fn end(&mut self, key: u64) {
        self.early.insert(key);
        while self.early.remove(&self.there) {
            self.there += 1;
        }
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkloadOperation {
    /// What it does.
    pub kind: OperationKind,
    /// The number of its record, or of its first one; among counters or keys of files if it is one of those.
    pub key: u64,
    /// Number of records: 1 unless it is a scan.
    pub records: u64,
}

/// What one client asks for, one after the other.
#[derive(Clone, Debug)]
pub struct OperationStream {
    blend: Blend,
    chooser: Keys,
    prng: Prng,
}

impl OperationStream {
    /// Operations on so many records at first.
    ///
    /// # Errors
    /// [`InvalidWorkload`] if there is no record.
    pub fn new(blend: Blend, choice: KeyChoice, records: u64, prng: Prng) -> Result<Self, InvalidWorkload> {
        let chosen_of = if blend.files() > 0 { blend.files() } else { records };
        Ok(Self { blend, chooser: Keys::new(choice, chosen_of)?, prng })
    }

    /// The next operation, at this time, counted from whenever. Whoever carries it out says so in the end
    /// ([`OperationStream::end`]).
    pub fn draw(&mut self, records: &mut Records, now: Duration) -> WorkloadOperation {
        let kind = self.blend.kind(self.prng.below(100));
        if kind == OperationKind::Insert {
            return WorkloadOperation { kind, key: records.begin(), records: 1 };
        }
        if kind == OperationKind::Append {
            let file = self.chooser.draw(self.blend.files(), &mut self.prng);
            return WorkloadOperation { kind, key: records.append(file, self.blend.files()), records: 1 };
        }
        if kind == OperationKind::Read
            && let Some(ReadLatest { percent, window }) = self.blend.latest()
            && self.prng.below(100) < u64::from(percent)
            && let Some(key) = records.latest(window, now, &mut self.prng)
        {
            return WorkloadOperation { kind, key, records: 1 };
        }
        let there = records.there();
        let key = self.chooser.draw(there, &mut self.prng);
        let records = if kind == OperationKind::Scan {
            (1 + self.prng.below(SCAN_RECORDS_MAX)).min(there.saturating_sub(key)).max(1)
        } else {
            1
        };
        WorkloadOperation { kind, key, records }
    }

    /// An operation has ended, whatever came of it, at this time, counted from when [`OperationStream::draw`] counts.
    pub fn end(&self, step: WorkloadOperation, records: &mut Records, now: Duration) {
        match step.kind {
            OperationKind::Insert => records.end(step.key),
            OperationKind::Update if self.blend.latest().is_some() => {
                if records.updated.len() == UPDATED_MAX {
                    records.updated.pop_front();
                }
                records.updated.push_back((now, step.key));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn steps(name: &str, choice: &str, records: u64) -> OperationStream {
        let (blend, choice) = (name.parse().unwrap(), choice.parse().unwrap());
        OperationStream::new(blend, choice, records, Prng::new(3)).unwrap()
    }

    #[test]
    fn every_kind_has_its_share() {
        let draws = 50_000;
        for name in ["load", "a", "b", "c", "d", "e", "f", "nilext", "mix:60/30/10", "25%", "record-append:7"]
        {
            let (mut steps, mut records) = (steps(name, "zipfian", 1_000), Records::new(1_000));
            let mut counts = BTreeMap::new();
            for _ in 0..draws {
                let step = steps.draw(&mut records, Duration::ZERO);
                *counts.entry(step.kind).or_insert(0_u64) += 1;
                steps.end(step, &mut records, Duration::ZERO);
            }
            let blend: Blend = name.parse().unwrap();
            for kind in OperationKind::ALL {
                let share = f64::from(blend.percent(kind)) / 100.0;
                let counted = counts.get(&kind).copied().unwrap_or_default() as f64 / f64::from(draws);
                let sigma = (share * (1.0 - share) / f64::from(draws)).sqrt();
                assert!((counted - share).abs() <= 5.0 * sigma, "{name}: {counted} of {kind:?}, not {share}");
            }
        }
    }

    #[test]
    fn a_scan_is_of_1_to_100_records_all_lengths_alike() {
        let (mut steps, mut records) = (steps("e", "uniform", 1_000_000), Records::new(1_000_000));
        let mut counts = vec![0_u32; 101];
        for _ in 0..100_000 {
            let step = steps.draw(&mut records, Duration::ZERO);
            if step.kind == OperationKind::Scan {
                counts[step.records as usize] += 1;
            }
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (800..1_100).contains(count)), "{counts:?}");
        let (mut steps, mut records) = (self::steps("e", "latest:5", 10), Records::new(10));
        for _ in 0..1_000 {
            let step = steps.draw(&mut records, Duration::ZERO);
            assert!(
                step.kind == OperationKind::Insert || step.key + step.records <= 10,
                "{step:?} is beyond the end"
            );
        }
    }

    #[test]
    fn what_is_not_written_yet_is_not_read() {
        let mut records = Records::new(2);
        assert_eq!((records.begin(), records.begin(), records.begin()), (2, 3, 4));
        records.end(3);
        assert_eq!(records.there(), 2);
        records.end(2);
        assert_eq!((records.there(), records.begun()), (4, 5));
        records.end(4);
        assert_eq!(records.there(), 5);
    }

    #[test]
    fn what_was_just_updated_is_read_again_in_its_share() {
        let micros = Duration::from_micros;
        for share in [0.0, 0.3, 1.0] {
            let name = format!("read-latest:{}/200us", share * 100.0);
            let (mut steps, mut records) = (steps(&name, "uniform", 1_000_000), Records::new(1_000_000));
            let (mut reads, mut latest, mut updated) = (0.0, 0.0, Vec::new());
            for time in (0..100_000).map(|turn| micros(turn * 10)) {
                let step = steps.draw(&mut records, time);
                if step.kind == OperationKind::Read && time > micros(10_000) {
                    reads += 1.0;
                    let of_window = updated.iter().rev().take_while(|(at, _)| *at + micros(200) >= time);
                    latest += f64::from(u8::from(of_window.clone().any(|(_, key)| *key == step.key)));
                } else if step.kind == OperationKind::Update {
                    updated.push((time, step.key));
                }
                steps.end(step, &mut records, time);
            }
            let sigma = f64::sqrt(share * (1.0 - share) / reads);
            // By chance a record of the window is hardly ever chosen, and the window is hardly ever empty.
            let of_reads = latest / reads;
            assert!((of_reads - share).abs() <= 5.0 * sigma + 0.001, "{name}: {of_reads}");
        }
    }

    #[test]
    fn files_are_appended_to_in_keys_of_their_own() {
        let (mut steps, mut records) = (steps("record-append:3", "uniform", 10), Records::new(10));
        let mut counts = BTreeMap::new();
        for _ in 0..10 * APPENDS_PER_KEY {
            *counts.entry(steps.draw(&mut records, Duration::ZERO).key).or_insert(0_u64) += 1;
        }
        // Whatever is not full is the last key of its file.
        let last = counts.keys().max().copied().unwrap();
        assert!(counts.iter().all(|(key, count)| *count == APPENDS_PER_KEY || key + 6 > last), "{counts:?}");
        assert_eq!(counts.values().sum::<u64>(), 10 * APPENDS_PER_KEY);
        let mut one = self::steps("record-append", "zipfian", 10);
        assert!((0..APPENDS_PER_KEY).all(|_| one.draw(&mut Records::new(10), Duration::ZERO).key == 0));
    }

    #[test]
    fn a_load_writes_one_after_the_other() {
        let (mut steps, mut records) = (steps("load", "sequential", 1), Records::new(0));
        let keys: Vec<u64> = (0..4).map(|_| steps.draw(&mut records, Duration::ZERO).key).collect();
        assert_eq!(keys, [0, 1, 2, 3]);
        assert!(
            OperationStream::new("load".parse().unwrap(), "uniform".parse().unwrap(), 0, Prng::new(1))
                .is_err()
        );
    }
}
