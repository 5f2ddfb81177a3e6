//! What the clients of a [`Blend`] ask for, operation by operation.

use crate::blend::{Blend, Kind};
use crate::distribution::{KeyChoice, Keys};
use crate::workload::InvalidWorkload;
use std::collections::BTreeSet;
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
}

/// Appends that go to one key. A file is as many keys as that takes, one after the other: values have a limit, and in
/// the end a file would be longer.
pub const APPENDS_PER_KEY: u64 = 1_000;

impl Records {
    /// So many have been written.
    #[must_use]
    pub const fn new(count: u64) -> Self {
        Self { there: count, next: count, early: BTreeSet::new(), appended: Vec::new() }
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

    /// A new record has been written.
    pub fn end(&mut self, key: u64) {
        self.early.insert(key);
        while self.early.remove(&self.there) {
            self.there += 1;
        }
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub kind: Kind,
    /// The number of its record, or of its first one; among counters or keys of files if it is one of those.
    pub key: u64,
    /// Number of records: 1 unless it is a scan.
    pub records: u64,
}

/// What one client asks for, one after the other.
#[derive(Clone, Debug)]
pub struct Steps {
    blend: Blend,
    chooser: Keys,
    prng: Prng,
}

impl Steps {
    /// Operations on so many records at first.
    ///
    /// # Errors
    /// [`InvalidWorkload`] if there is no record.
    pub fn new(blend: Blend, choice: KeyChoice, records: u64, prng: Prng) -> Result<Self, InvalidWorkload> {
        let chosen_of = if blend.files() > 0 { blend.files() } else { records };
        Ok(Self { blend, chooser: Keys::new(choice, chosen_of)?, prng })
    }

    /// The next operation. Whoever carries out an insert says so in the end ([`Records::end`]).
    pub fn draw(&mut self, records: &mut Records) -> Step {
        let kind = self.blend.kind(self.prng.below(100));
        if kind == Kind::Insert {
            return Step { kind, key: records.begin(), records: 1 };
        }
        if kind == Kind::Append {
            let file = self.chooser.draw(self.blend.files(), &mut self.prng);
            return Step { kind, key: records.append(file, self.blend.files()), records: 1 };
        }
        let there = records.there();
        let key = self.chooser.draw(there, &mut self.prng);
        let records = if kind == Kind::Scan {
            (1 + self.prng.below(SCAN_RECORDS_MAX)).min(there.saturating_sub(key)).max(1)
        } else {
            1
        };
        Step { kind, key, records }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn steps(name: &str, choice: &str, records: u64) -> Steps {
        let (blend, choice) = (name.parse().unwrap(), choice.parse().unwrap());
        Steps::new(blend, choice, records, Prng::new(3)).unwrap()
    }

    #[test]
    fn every_kind_has_its_share() {
        let draws = 50_000;
        for name in ["load", "a", "b", "c", "d", "e", "f", "nilext", "mix:60/30/10", "25%", "record-append:7"]
        {
            let (mut steps, mut records) = (steps(name, "zipfian", 1_000), Records::new(1_000));
            let mut counts = BTreeMap::new();
            for _ in 0..draws {
                let step = steps.draw(&mut records);
                *counts.entry(step.kind).or_insert(0_u64) += 1;
                if step.kind == Kind::Insert {
                    records.end(step.key);
                }
            }
            let blend: Blend = name.parse().unwrap();
            for kind in Kind::ALL {
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
            let step = steps.draw(&mut records);
            if step.kind == Kind::Scan {
                counts[step.records as usize] += 1;
            }
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|count| (800..1_100).contains(count)), "{counts:?}");
        let (mut steps, mut records) = (self::steps("e", "latest:5", 10), Records::new(10));
        for _ in 0..1_000 {
            let step = steps.draw(&mut records);
            assert!(step.kind == Kind::Insert || step.key + step.records <= 10, "{step:?} is beyond the end");
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
    fn files_are_appended_to_in_keys_of_their_own() {
        let (mut steps, mut records) = (steps("record-append:3", "uniform", 10), Records::new(10));
        let mut counts = BTreeMap::new();
        for _ in 0..10 * APPENDS_PER_KEY {
            *counts.entry(steps.draw(&mut records).key).or_insert(0_u64) += 1;
        }
        // Whatever is not full is the last key of its file.
        let last = counts.keys().max().copied().unwrap();
        assert!(counts.iter().all(|(key, count)| *count == APPENDS_PER_KEY || key + 6 > last), "{counts:?}");
        assert_eq!(counts.values().sum::<u64>(), 10 * APPENDS_PER_KEY);
        let mut one = self::steps("record-append", "zipfian", 10);
        assert!((0..APPENDS_PER_KEY).all(|_| one.draw(&mut Records::new(10)).key == 0));
    }

    #[test]
    fn a_load_writes_one_after_the_other() {
        let (mut steps, mut records) = (steps("load", "sequential", 1), Records::new(0));
        let keys: Vec<u64> = (0..4).map(|_| steps.draw(&mut records).key).collect();
        assert_eq!(keys, [0, 1, 2, 3]);
        assert!(Steps::new("load".parse().unwrap(), "uniform".parse().unwrap(), 0, Prng::new(1)).is_err());
    }
}
