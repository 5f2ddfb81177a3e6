//! Segments that the log itself does not need any more, kept for those who copy it.
//!
//! When records may go, the segments that hold them get another name instead of being removed, up to
//! [`Options::keep_bytes`](crate::Options::keep_bytes). Opening the log does not read them, so they make no start slower, and damage
//! in them costs nothing but what could be copied from them. Builds that know nothing of them leave them alone.
//!
//! A name has the first record of the segment and the one that follows its last: so whether nothing is missing between them is seen
//! without reading them. What does not connect to the log is removed when the log is opened.

use crate::disk::{Disk, DiskError};
use crate::format::{RECORD_NUMBER_MAX, RecordNumber, segment_name};
use std::collections::VecDeque;

const PREFIX: &str = "kept-";
const SUFFIX: &str = ".log";
/// As of the names of segments.
const DIGITS: usize = 20;

/// A segment that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeptSegment {
    /// Its first record.
    pub(crate) first: RecordNumber,
    /// The record after its last.
    pub(crate) next: RecordNumber,
}

impl KeptSegment {
    pub(crate) fn name(self) -> String {
        format!("{PREFIX}{:0DIGITS$}-{:0DIGITS$}{SUFFIX}", self.first.0, self.next.0)
    }

    /// The segment of a file of this name, if it is one that is kept.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let number = |digits: &str| {
            let is_plain = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.parse().ok().filter(|number| (1..=RECORD_NUMBER_MAX).contains(number));
            number.filter(|_| is_plain).map(RecordNumber)
        };
        let (first, next) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
        let (first, next) = (number(first)?, number(next)?);
        (first < next).then_some(Self { first, next })
    }
}

/// The kept segments, ascending, that reach up to the segment that begins with `log`, without a gap.
pub(crate) fn connected(mut kept: Vec<KeptSegment>, log: RecordNumber) -> VecDeque<KeptSegment> {
    kept.sort_unstable();
    let mut connected: VecDeque<KeptSegment> = VecDeque::new();
    for segment in kept.into_iter().rev() {
        if segment.next == connected.front().map_or(log, |after| after.first) {
            connected.push_front(segment);
        }
    }
    connected
}

/// What is kept of a log.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Ascending, without a gap, with the length of each in bytes.
    segments: VecDeque<(KeptSegment, u64)>,
    bytes: u64,
}

impl Kept {
    /// Finds what is kept of a log whose first segment begins with `log`, and removes the rest.
    ///
    /// # Errors
    /// What the disk says, but for removals: what it does not remove now it is asked to when the log is opened next.
    pub(crate) fn open<D: Disk>(disk: &mut D, log: RecordNumber, bytes_max: u64) -> Result<Self, DiskError> {
        let found: Vec<_> = disk.list()?.iter().filter_map(|name| KeptSegment::of_name(name)).collect();
        let segments = connected(found.clone(), log);
        for lost in found.into_iter().filter(|segment| !segments.contains(segment)) {
            let _ = disk.remove(&lost.name());
        }
        let mut kept = Self::default();
        for segment in segments {
            let file = disk.open(&segment.name())?;
            kept.push(segment, disk.length(&file)?);
        }
        kept.trim(disk, bytes_max);
        Ok(kept)
    }

    fn push(&mut self, segment: KeptSegment, bytes: u64) {
        self.segments.push_back((segment, bytes));
        self.bytes += bytes;
    }

    /// Keeps a segment of the log, and removes what is then too much. It is not a segment of the log any more when the directory is
    /// synced.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn add<D: Disk>(
        &mut self,
        disk: &mut D,
        segment: KeptSegment,
        bytes_max: u64,
    ) -> Result<(), DiskError> {
        let name = segment_name(segment.first);
        if bytes_max == 0 {
            return disk.remove(&name);
        }
        let file = disk.open(&name)?;
        let bytes = disk.length(&file)?;
        disk.rename(&name, &segment.name())?;
        self.push(segment, bytes);
        self.trim(disk, bytes_max);
        Ok(())
    }

    /// Removes the oldest ones until no more than so many bytes are left. Nobody has to know whether a removal is durable: what
    /// comes back after a crash is found, or does not connect. True if there were some to remove.
    pub(crate) fn trim<D: Disk>(&mut self, disk: &mut D, bytes_max: u64) -> bool {
        let mut trims = false;
        while self.bytes > bytes_max
            && let Some((segment, bytes)) = self.segments.pop_front()
        {
            trims = true;
            self.bytes -= bytes;
            let _ = disk.remove(&segment.name());
        }
        trims
    }

    /// The first record that is kept.
    pub(crate) fn first(&self) -> Option<RecordNumber> {
        self.segments.front().map(|(segment, _)| segment.first)
    }

    /// Bytes of what is kept.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }
}
