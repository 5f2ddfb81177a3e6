//! Entries for those who copy the log, from the records of a replica that it has written long ago.
//!
//! A [`LogScan`] reads the write-ahead log from some record on, which need not be the first. It goes by the same rules as
//! [`Restored`](super::Restored) does ([`ReplayedLog`]): an entry may stand there several times, and the last record that has one of
//! its number says which it is, until a record says that the number is committed. What it does not know, because it stands before the
//! record that it began with, it leaves out: its log then begins later. So what it holds is a piece of the log that reading from the
//! first record on gives (lemma B8 in docs/PROTOCOL.md).

use super::PlantedBug;
use super::invalid_record::InvalidRecord;
use super::replayed_log::ReplayedLog;
use super::wanted_entries::{EntriesWanted, ScannedEntries};
use crate::message::{Describe, LogEntry, Prepared};
use crate::record::{Checkpoint, Record};
use alloc::vec::Vec;
use syros_types::{OpNumber, View, WallTime};

/// A piece of a replica's log, as records of its write-ahead log tell it.
#[derive(Clone, Debug)]
pub struct LogScan {
    replayed: ReplayedLog,
    /// The log begins somewhere: an entry has been named.
    has_begun: bool,
    /// What is before the log's beginning was never in the records, or not with what follows: no earlier record helps.
    is_cut: bool,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
}

impl LogScan {
    /// Nothing yet.
    #[must_use]
    pub const fn new(describe: Describe) -> Self {
        Self {
            replayed: ReplayedLog::new(describe),
            has_begun: false,
            is_cut: false,
            #[cfg(feature = "planted-bugs")]
            planted: None,
        }
    }

    /// Makes it wrong in a known way, if the bug is one of this module.
    #[cfg(feature = "planted-bugs")]
    pub const fn plant(&mut self, bug: Option<PlantedBug>) {
        self.planted = bug;
    }

    #[cfg(feature = "planted-bugs")]
    fn planted(&self, bug: PlantedBug) -> bool {
        self.planted == Some(bug)
    }

    #[cfg(not(feature = "planted-bugs"))]
    #[expect(clippy::unused_self, reason = "same signature as with planted bugs")]
    const fn planted(&self, _bug: PlantedBug) -> bool {
        false
    }

    /// The log begins behind this entry, if it is known by now where it begins.
    #[must_use]
    pub fn base(&self) -> Option<OpNumber> {
        self.has_begun.then(|| self.replayed.log.base())
    }

    /// Bytes of the entries that it holds, approximately.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.replayed.log.bytes()
    }

    /// Takes in the next record.
    ///
    /// # Errors
    /// [`InvalidRecord`] if it cannot follow those before it.
    pub fn take(&mut self, record: Record) -> Result<(), InvalidRecord> {
        match record {
            Record::View { .. } => {}
            Record::Accept(request) => self.replayed.accept(request),
            Record::Append { first, view, time, commit, entries } => {
                self.append(first, view, time, entries)?;
                self.replayed.commit_up_to(commit);
            }
            // Those that follow in a view need not be committed.
            Record::Transfer { base, entries } => self.replace(base, entries)?,
            Record::EnterView { base, commit, suffix, .. } => {
                self.replace(base, suffix)?;
                self.replayed.commit_up_to(commit);
                self.replayed.clear_dlog();
            }
            Record::Checkpoint(checkpoint) => self.checkpoint(*checkpoint)?,
            // The log begins anew, with nothing.
            Record::Forgot { .. } => {
                self.begin_after(OpNumber(0), View(0), WallTime(0));
                self.replayed.commit = OpNumber(0);
                self.replayed.clear_dlog();
                self.is_cut = true;
            }
        }
        Ok(())
    }

    fn begin_after(&mut self, base: OpNumber, view: View, time: WallTime) {
        self.replayed.begin_after(base, view, time);
        self.has_begun = true;
    }

    fn append(
        &mut self,
        first: OpNumber,
        view: View,
        time: WallTime,
        entries: Vec<Prepared>,
    ) -> Result<(), InvalidRecord> {
        if self.has_begun {
            self.replayed.check_next(first)?;
        }
        let numbers = (first.0..).map(OpNumber);
        for (number, prepared) in numbers.zip(entries) {
            match self.replayed.payload(prepared) {
                // Of the one before the first it is not known of which view it is.
                Ok(_) if !self.has_begun => self.begin_after(number, view, time),
                Ok(payload) => self.replayed.append(LogEntry { view, time, payload })?,
                // Its body stands before the record that was begun with.
                Err(InvalidRecord::MissingBody(_)) => self.begin_after(number, view, time),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn replace(&mut self, base: OpNumber, mut entries: Vec<LogEntry>) -> Result<(), InvalidRecord> {
        if self.has_begun && base >= self.replayed.log.base() {
            if self.planted(PlantedBug::CopyOverwritten) {
                let end = self.replayed.log.op_number();
                entries.drain(..entries.len().min((end.0 - base.0.min(end.0)) as usize));
                return self.replayed.replace(end.max(base), entries);
            }
            return self.replayed.replace(base, entries);
        }
        // Its own beginning is replaced as well.
        self.has_begun = false;
        let mut entries = entries.into_iter();
        if let Some(entry) = entries.next() {
            self.begin_after(base.next(), entry.view, entry.time);
            self.replayed.replace(base.next(), entries.collect())?;
        }
        Ok(())
    }

    /// A checkpoint names the entry after which the log begins for who has its snapshot. If that is in the log, nothing changes;
    /// otherwise the snapshot came from another member, and what is before it never was in the records.
    fn checkpoint(&mut self, checkpoint: Checkpoint) -> Result<(), InvalidRecord> {
        let Checkpoint { base, base_view, base_time, commit, suffix, dlog, .. } = checkpoint;
        let agrees = self.has_begun && self.replayed.log.view_at(base) == Some(base_view);
        if !agrees {
            self.is_cut |= self.has_begun && self.replayed.log.base() < base;
            self.begin_after(base, base_view, base_time);
            for entry in suffix {
                self.replayed.append(entry)?;
            }
        }
        // A snapshot holds what is executed.
        self.replayed.commit_up_to(commit.max(base));
        self.replayed.clear_dlog();
        for request in dlog {
            self.replayed.accept(request);
        }
        Ok(())
    }

    /// Drops entries that were told, up to this one, as far as no record can replace them.
    pub fn forget_up_to(&mut self, told: OpNumber) {
        let told = told.min(self.replayed.commit);
        while self.replayed.log.base() < told && self.replayed.log.op_number() > self.replayed.log.base() {
            self.replayed.log.pop_front();
        }
    }

    /// The entries that may be told of those that are wanted. `has_read_all` says that every record has been read which the
    /// replica had emitted when they were asked for.
    #[must_use]
    pub fn entries(&self, wanted: &EntriesWanted, has_read_all: bool) -> ScannedEntries {
        let EntriesWanted { after, applied, bytes_max, entries_max, .. } = *wanted;
        let log = &self.replayed.log;
        let nothing = ScannedEntries::Entries { after_view: View(0), entries: Vec::new() };
        if !self.has_begun {
            return nothing;
        }
        if log.base() > after {
            return ScannedEntries::Gone { base: log.base(), is_cut: self.is_cut };
        }
        // What the records do not say to be committed, a later one may replace.
        let last = if has_read_all { applied } else { applied.min(self.replayed.commit) };
        let Some(after_view) = log.view_at(after) else { return nothing };
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut number = after.next();
        while number <= last && bytes < bytes_max && (entries.len() as u64) < entries_max {
            let Some(entry) = log.entry(number) else { break };
            bytes += entry.memory_bytes();
            entries.push(entry.clone());
            number = number.next();
        }
        ScannedEntries::Entries { after_view, entries }
    }

    /// True if it holds so many bytes of entries behind this one that may be told that an answer needs no more records.
    #[must_use]
    pub fn has_enough(&self, wanted: &EntriesWanted) -> bool {
        let EntriesWanted { after, applied, bytes_max, entries_max, .. } = *wanted;
        let log = &self.replayed.log;
        let last = applied.min(self.replayed.commit).min(log.op_number());
        if !self.has_begun || log.base() > after || last <= after {
            return false;
        }
        last.0 - after.0 >= entries_max || last == applied || self.bytes() >= bytes_max.saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{BodyHash, Payload, Request};
    use crate::record::Ticket;
    use alloc::vec;
    use syros_types::{Class, Description, Footprint, OperationId, SessionId};

    fn any(_: &[u8]) -> Option<Description> {
        Some(Description { class: Class::Merge, footprint: Footprint::All, growth: 1 })
    }

    fn scan_of(records: Vec<Record>) -> LogScan {
        let mut scan = LogScan::new(any);
        records.into_iter().for_each(|record| scan.take(record).unwrap());
        scan
    }

    fn wanted(after: u64, applied: u64) -> EntriesWanted {
        EntriesWanted {
            copier: crate::message::Peer::Client(1),
            after: OpNumber(after),
            applied: OpNumber(applied),
            ticket: Ticket(0),
            bytes_max: usize::MAX,
            entries_max: u64::MAX,
        }
    }

    fn id(sequence: u64) -> OperationId {
        OperationId { session: SessionId(1), sequence }
    }

    fn request(sequence: u64) -> Request {
        Request { id: id(sequence), micros: 1, acked_below: 0, body: [1].into() }
    }

    fn accept(sequence: u64) -> Record {
        Record::Accept(request(sequence))
    }

    fn append(first: u64, view: u64, commit: u64, entries: Vec<Prepared>) -> Record {
        let (first, view, commit) = (OpNumber(first), View(view), OpNumber(commit));
        Record::Append { first, view, time: WallTime(0), commit, entries }
    }

    fn ticks(count: usize) -> Vec<Prepared> {
        vec![Prepared::Tick; count]
    }

    fn entry(view: u64) -> LogEntry {
        LogEntry { view: View(view), time: WallTime(0), payload: Payload::Tick }
    }

    fn enter(view: u64, base: u64, commit: u64, suffix: Vec<LogEntry>) -> Record {
        let (view, base, commit) = (View(view), OpNumber(base), OpNumber(commit));
        Record::EnterView { view, rule: None, base, commit, suffix }
    }

    fn checkpoint(base: u64, view: u64, dlog: Vec<Request>) -> Record {
        Record::Checkpoint(alloc::boxed::Box::new(Checkpoint {
            view: View(view),
            last_normal: View(view),
            rule: None,
            base: OpNumber(base),
            base_view: View(view),
            base_time: WallTime(0),
            commit: OpNumber(base),
            suffix: Vec::new(),
            dlog,
            amnesiac: false,
        }))
    }

    /// The views of the entries that are told, and that of the one before.
    fn told(scan: &LogScan, after: u64, applied: u64, has_read_all: bool) -> Result<(u64, Vec<u64>), u64> {
        match scan.entries(&wanted(after, applied), has_read_all) {
            ScannedEntries::Entries { after_view, entries } => {
                Ok((after_view.0, entries.iter().map(|entry| entry.view.0).collect()))
            }
            ScannedEntries::Gone { base, .. } => Err(base.0),
        }
    }

    #[test]
    fn only_what_no_record_can_replace_is_told() {
        let before = vec![checkpoint(0, 0, vec![]), append(1, 0, 0, ticks(4)), append(5, 0, 2, ticks(1))];
        let scan = scan_of(before.clone());
        assert_eq!(told(&scan, 0, 9, false), Ok((0, vec![0, 0])), "of the rest nobody knows yet");
        assert_eq!(told(&scan, 0, 1, false), Ok((0, vec![0])), "not executed when it was asked for");
        assert_eq!(told(&scan, 0, 4, true), Ok((0, vec![0; 4])), "all records have been read");
        // A later view has others in the place of three of them.
        let mut records = before;
        records.extend([enter(3, 2, 2, vec![entry(3)]), append(4, 3, 3, ticks(2))]);
        assert_eq!(told(&scan_of(records.clone()), 0, 9, false), Ok((0, vec![0, 0, 3])));
        assert_eq!(told(&scan_of(records), 0, 9, true), Ok((0, vec![0, 0, 3, 3, 3])));
    }

    #[test]
    fn a_scan_may_begin_anywhere_and_leaves_out_what_it_cannot_know() {
        // The body of the first entry stands before; the second one is whole, and of the third one nothing is missing.
        let reference = |sequence| Prepared::Reference { id: id(sequence), body_hash: BodyHash::default() };
        let records = vec![
            accept(2),
            append(11, 4, 10, vec![reference(2)]),
            append(12, 4, 11, vec![reference(1)]),
            accept(3),
            append(13, 4, 12, vec![reference(3), Prepared::Tick]),
            append(15, 4, 14, ticks(1)),
        ];
        let scan = scan_of(records.clone());
        assert_eq!(scan.base(), Some(OpNumber(12)));
        assert_eq!(told(&scan, 11, 90, false), Err(12));
        assert_eq!(told(&scan, 12, 90, false), Ok((4, vec![4, 4])));
        let whole: Vec<Record> = [checkpoint(10, 4, vec![request(1)])].into_iter().chain(records).collect();
        assert_eq!(told(&scan_of(whole), 10, 90, false), Ok((4, vec![4; 4])));
        // Its own beginning is replaced.
        let scan = scan_of(vec![append(11, 4, 0, ticks(3)), enter(5, 9, 9, vec![entry(5), entry(5)])]);
        assert_eq!(told(&scan, 10, 90, true), Ok((5, vec![5])));
        assert_eq!(
            told(&scan_of(vec![append(11, 4, 0, ticks(3)), enter(5, 9, 9, vec![])]), 1, 90, true),
            Ok((0, vec![]))
        );
    }

    #[test]
    fn a_snapshot_of_another_member_leaves_a_gap() {
        let before = || vec![checkpoint(0, 0, vec![]), append(1, 0, 0, ticks(4)), append(5, 0, 4, ticks(1))];
        let with = |record| scan_of(before().into_iter().chain([record]).collect());
        // One of its own changes nothing, and says that what it holds is final.
        assert_eq!(told(&with(checkpoint(5, 0, vec![])), 0, 90, false), Ok((0, vec![0; 5])));
        for (base, view) in [(9, 0), (5, 2)] {
            assert_eq!(told(&with(checkpoint(base, view, vec![])), 4, 90, false), Err(base));
            let gone = with(checkpoint(base, view, vec![])).entries(&wanted(4, 90), false);
            assert_eq!(gone, ScannedEntries::Gone { base: OpNumber(base), is_cut: true });
        }
        // Without its memory a replica begins anew.
        let mut scan = with(Record::Forgot { view: View(3) });
        assert_eq!(told(&scan, 2, 90, true), Ok((0, vec![])));
        scan.take(enter(4, 0, 3, vec![entry(0), entry(0), entry(0), entry(4)])).unwrap();
        assert_eq!(told(&scan, 2, 90, false), Ok((0, vec![0])));
    }

    #[test]
    fn what_was_told_is_forgotten_as_far_as_it_is_final() {
        let mut scan =
            scan_of(vec![checkpoint(0, 0, vec![]), append(1, 0, 0, ticks(4)), append(5, 0, 3, ticks(1))]);
        scan.forget_up_to(OpNumber(4));
        assert_eq!(told(&scan, 2, 90, false), Err(3));
        assert_eq!(told(&scan, 3, 90, true), Ok((0, vec![0, 0])));
        assert!(scan.take(append(9, 0, 0, ticks(1))).is_err(), "a gap is no log");
        assert!(scan.take(enter(1, 1, 0, vec![])).is_ok(), "its beginning is replaced");
    }
}
