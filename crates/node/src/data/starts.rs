//! How often a replica has started, told beside its view and in its log: so a log is recognized that was put back from a copy,
//! which has forgotten what the replica has acknowledged since.
//!
//! The log is told first. So it knows of every start that the file beside the view knows of, whenever the machine stops.

use syros_wal::{Disk, ReadError, WriteError, log_segments, read_atomic, write_atomically};

/// Name of the file with the number of starts, beside the view's and in the log's directory.
pub(super) const STARTS_FILE: &str = "starts";

/// Starts that are known of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Starts {
    /// Beside the view. A build that knew no such file has left none.
    known: u64,
    /// In the log; `None` if there is none at all, which is found where it is read.
    of_log: Option<u64>,
}

impl Starts {
    /// Reads both files. One that is damaged is as good as none.
    pub(super) fn read<D: Disk>(view: &mut D, log: &mut D) -> Result<Self, ReadError> {
        let is_there = !log_segments(log)?.is_empty();
        Ok(Self { known: read(view)?, of_log: if is_there { Some(read(log)?) } else { None } })
    }

    /// What is wrong if the log is an old one.
    pub(super) fn damage(self) -> Option<String> {
        let Self { known, of_log } = self;
        of_log.filter(|of_log| *of_log < known).map(|of_log| {
            format!(
                "the write-ahead log is that of start {of_log} of this replica, which has started {known} times: an old \
                 copy was put back, which has forgotten what the replica has acknowledged since"
            )
        })
    }

    /// The replica starts with this log.
    pub(super) fn count<D: Disk>(self, view: &mut D, log: &mut D) -> Result<(), WriteError> {
        let next = self.known.max(self.of_log.unwrap_or_default()) + 1;
        write(log, next)?;
        write(view, next)
    }

    /// A log that is to replace a damaged one knows of all starts.
    pub(super) fn tell<D: Disk>(self, log: &mut D) -> Result<(), WriteError> {
        write(log, self.known)
    }
}

fn read<D: Disk>(disk: &mut D) -> Result<u64, ReadError> {
    let bytes = match read_atomic(disk, STARTS_FILE) {
        Ok(bytes) => bytes.unwrap_or_default(),
        Err(ReadError::Damaged { .. }) => Vec::new(),
        Err(error) => return Err(error),
    };
    Ok(bytes.try_into().map_or(0, u64::from_le_bytes))
}

fn write<D: Disk>(disk: &mut D, starts: u64) -> Result<(), WriteError> {
    write_atomically(disk, STARTS_FILE, &starts.to_le_bytes())
}
