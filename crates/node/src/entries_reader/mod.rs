//! Reading the log on disk for those who copy it: which segment is begun with, how much is read at a time, and what is reported.
//!
//! A thread that may wait for the disk drives an [`EntriesReader`] (`runtime::entries_thread`), step by step; the simulator does the
//! same in virtual time, with everything that happens to the log between two steps. Which entries may be told [`LogScan`] decides.
//!
//! A reader looks for the newest segment that begins before the entries that are wanted, which takes the first records of each, and
//! reads on from there. If entries of that segment refer to bodies that stand before it, the segment before is tried. It keeps its
//! place until the copier asks for the next entries.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use syros_protocol::message::{Describe, Peer};
#[cfg(feature = "planted-bugs")]
use syros_protocol::replica::PlantedBug;
use syros_protocol::replica::{DISK_COPIERS_MAX, EntriesWanted, LAGGING_MAX, LogScan, ScannedEntries};
use syros_types::{ConfigurationId, OpNumber, View};
use syros_wal::{
    Disk, DiskError, LogPiece, LogPosition, LogReadError, Options, RecordNumber, log_segments, read_log,
};

/// Bytes read in one step: a few milliseconds of a slow disk, and of one core. Other threads go on meanwhile.
const STEP_BYTES: u64 = 1 << 20;

/// After so many steps an answer is given, with no entries if none have been found: who asks does not wait for ever, and asks again.
const STEPS_MAX: u32 = 64;

/// A segment may go while it is read. After so many times an answer without entries is given.
const LOST_MAX: u32 = 3;

/// Entries that somebody wants, and how far the log can be read for that.
#[derive(Clone, Copy, Debug)]
pub struct EntriesJob {
    /// What is wanted.
    pub wanted: EntriesWanted,
    /// The record of its ticket.
    pub emitted: RecordNumber,
    /// The last record that is durable.
    pub durable: RecordNumber,
}

/// What was found.
#[derive(Debug)]
pub struct EntriesReport {
    /// Who wants entries.
    pub copier: Peer,
    /// It wants entries behind this one.
    pub after: OpNumber,
    /// `None` if the log cannot be read.
    pub found: Option<ScannedEntries>,
    /// What an operator should know.
    pub warning: Option<String>,
}

/// A job, and what has been done for it.
#[derive(Debug)]
struct Reading {
    job: EntriesJob,
    steps: u32,
    lost: u32,
}

/// Where reading for somebody is.
#[derive(Debug)]
struct Cursor {
    copier: Peer,
    scan: LogScan,
    position: LogPosition,
    /// Segments before the one that was begun with.
    earlier: Vec<RecordNumber>,
}

/// Why there is no answer yet, and may be none.
enum Trouble {
    /// What is on disk is not what was written.
    Damage(String),
    Disk(DiskError),
}

/// Reads the log of a replica for those who copy it, in bounded steps.
#[derive(Debug)]
pub struct EntriesReader<D: Disk> {
    disk: D,
    options: Options,
    configuration: ConfigurationId,
    describe: Describe,
    step_bytes: u64,
    #[cfg(feature = "planted-bugs")]
    planted: Option<PlantedBug>,
    /// One for each copier, of whom the core lets few in.
    jobs: VecDeque<Reading>,
    /// Those used last are last.
    cursors: Vec<Cursor>,
    /// With which record the log began when it was last looked, and behind which entry it has all.
    oldest: Option<(RecordNumber, OpNumber)>,
}

impl<D: Disk> EntriesReader<D> {
    /// A reader of the log on this disk, which `options` say whose it is; records are of this configuration.
    pub const fn new(disk: D, options: Options, configuration: ConfigurationId, describe: Describe) -> Self {
        Self {
            step_bytes: STEP_BYTES,
            disk,
            options,
            configuration,
            describe,
            #[cfg(feature = "planted-bugs")]
            planted: None,
            jobs: VecDeque::new(),
            cursors: Vec::new(),
            oldest: None,
        }
    }

    /// Makes it wrong in a known way, if the bug is one of this module or its parts.
    #[cfg(feature = "planted-bugs")]
    pub const fn plant(&mut self, bug: Option<PlantedBug>) {
        self.planted = bug;
    }

    /// Has a step read about so many bytes.
    #[must_use]
    pub fn with_step_bytes(self, step_bytes: u64) -> Self {
        Self { step_bytes, ..self }
    }

    /// Takes a job.
    pub fn begin(&mut self, job: EntriesJob) {
        self.jobs.push_back(Reading { job, steps: 0, lost: 0 });
    }

    /// True if there is something to do.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.jobs.is_empty()
    }

    /// Reads the next piece, for one copier after the other; what was found, if that is enough.
    pub fn step(&mut self) -> Option<EntriesReport> {
        let mut reading = self.jobs.pop_front()?;
        reading.steps += 1;
        let EntriesWanted { copier, after, .. } = reading.job.wanted;
        let cursor = self.take_cursor(copier, after);
        let report = |found, warning| Some(EntriesReport { copier, after, found, warning });
        match self.read_on(&mut reading, cursor) {
            Ok(None) => {
                self.jobs.push_back(reading);
                None
            }
            Ok(Some(found)) => report(Some(found), None),
            Err(Trouble::Damage(problem)) => report(None, Some(problem)),
            // It may be better next time.
            Err(Trouble::Disk(error)) => report(Some(nothing()), Some(error.to_string())),
        }
    }

    /// The place that is kept for a copier, if it serves for what follows this entry.
    fn take_cursor(&mut self, copier: Peer, after: OpNumber) -> Option<Cursor> {
        let at = self.cursors.iter().position(|cursor| cursor.copier == copier)?;
        let cursor = self.cursors.remove(at);
        Some(cursor).filter(|cursor| cursor.scan.base().is_none_or(|base| base <= after))
    }

    fn keep_cursor(&mut self, cursor: Cursor) {
        if self.cursors.len() >= DISK_COPIERS_MAX + LAGGING_MAX {
            self.cursors.remove(0);
        }
        self.cursors.push(cursor);
    }

    fn new_scan(&self) -> LogScan {
        #[cfg_attr(not(feature = "planted-bugs"), expect(unused_mut, reason = "only to plant a bug"))]
        let mut scan = LogScan::new(self.describe);
        #[cfg(feature = "planted-bugs")]
        scan.plant(self.planted);
        scan
    }

    /// A place at the newest of these segments.
    fn begin_at(&self, copier: Peer, mut segments: Vec<RecordNumber>) -> Option<Cursor> {
        let first = segments.pop()?;
        let scan = self.new_scan();
        Some(Cursor { copier, scan, position: LogPosition::beginning_of(first), earlier: segments })
    }

    /// Reads a piece; what has been found, if that is enough.
    fn read_on(
        &mut self,
        reading: &mut Reading,
        cursor: Option<Cursor>,
    ) -> Result<Option<ScannedEntries>, Trouble> {
        let EntriesJob { wanted, emitted, durable } = reading.job;
        let mut cursor = match cursor {
            Some(cursor) => cursor,
            None => {
                let segments = log_segments(&mut self.disk).map_err(Trouble::Disk)?;
                match self.begin_at(wanted.copier, segments) {
                    Some(cursor) => cursor,
                    // The log is being set up.
                    None => return Ok(Some(nothing())),
                }
            }
        };
        let (group, describe) = (self.configuration.of_group(), self.describe);
        let Cursor { scan, position, .. } = &mut cursor;
        let mut problem = None;
        let piece =
            read_log(&mut self.disk, &self.options, position, durable, self.step_bytes, |number, bytes| {
                let taken = syros_wire::decode_record_of(group, bytes, describe)
                    .map_err(|error| error.to_string())
                    .and_then(|record| scan.take(record).map_err(|error| error.to_string()));
                scan.forget_up_to(wanted.after);
                problem = taken.err().map(|error| format!("{number} of the log makes no sense: {error}"));
                let is_gone = scan.base().is_some_and(|base| base > wanted.after);
                problem.is_none() && !is_gone && !scan.has_enough(&wanted)
            });
        if let Some(problem) = problem {
            return Err(Trouble::Damage(problem));
        }
        let is_at_end = match piece {
            Ok(piece) => piece == LogPiece::End,
            // It is looked for anew what there is.
            Err(LogReadError::Gone(_)) => {
                reading.lost += 1;
                return Ok((reading.lost > LOST_MAX).then(nothing));
            }
            Err(LogReadError::Disk(error)) => return Err(Trouble::Disk(error)),
            Err(error @ LogReadError::Damaged { .. }) => return Err(Trouble::Damage(error.to_string())),
        };
        let has_read_all = emitted <= durable && cursor.position.next() > emitted;
        let found = cursor.scan.entries(&wanted, has_read_all);
        let is_too_late = match &found {
            ScannedEntries::Gone { is_cut, .. } => !is_cut,
            ScannedEntries::Entries { .. } => is_at_end && cursor.scan.base().is_none(),
        };
        if is_too_late {
            // What is wanted may begin in the segment before.
            match self.begin_at(wanted.copier, cursor.earlier) {
                Some(earlier) => {
                    self.keep_cursor(earlier);
                    return Ok(None);
                }
                None if matches!(found, ScannedEntries::Gone { .. }) => return Ok(Some(found)),
                None => return Err(Trouble::Damage("the log on disk has no entries".to_owned())),
            }
        }
        if matches!(found, ScannedEntries::Gone { .. }) {
            return Ok(Some(found));
        }
        let is_over = is_at_end || cursor.scan.has_enough(&wanted) || reading.steps >= STEPS_MAX;
        self.keep_cursor(cursor);
        Ok(is_over.then_some(found))
    }

    /// The entry behind which the log on disk has all, about: as far as the first records tell, of which all up to `durable` are
    /// durable. `None` if they do not.
    ///
    /// # Errors
    /// What the disk says, and what is wrong with what is on it.
    pub fn oldest(&mut self, durable: RecordNumber) -> Result<Option<OpNumber>, LogReadError> {
        let Some(first) = log_segments(&mut self.disk)?.first().copied() else { return Ok(None) };
        if let Some((_, oldest)) = self.oldest.filter(|(looked_at, _)| *looked_at == first) {
            return Ok(Some(oldest));
        }
        let mut scan = LogScan::new(self.describe);
        let mut position = LogPosition::beginning_of(first);
        let (group, describe) = (self.configuration.of_group(), self.describe);
        let through = durable.min(RecordNumber(first.0 + OLDEST_RECORDS_MAX));
        read_log(&mut self.disk, &self.options, &mut position, through, STEP_BYTES, |_, bytes| {
            let record = syros_wire::decode_record_of(group, bytes, describe);
            record.is_ok_and(|record| scan.take(record).is_ok())
        })?;
        self.oldest = scan.base().map(|base| (first, base));
        Ok(scan.base())
    }
}

/// So many records tell where a segment begins: the bodies that its first entries refer to stand among them, or before it.
const OLDEST_RECORDS_MAX: u64 = 1_000;

/// No entries yet.
const fn nothing() -> ScannedEntries {
    ScannedEntries::Entries { after_view: View(0), entries: Vec::new() }
}
