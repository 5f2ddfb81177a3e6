//! Entries that clients, members or learners want of the log on disk, and what is found of them.

use crate::message::{LogEntry, Peer};
use crate::record::Ticket;
use alloc::vec::Vec;
use syros_types::{OpNumber, View};

/// Entries that somebody wants of the log on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntriesWanted {
    /// Who wants them.
    pub copier: Peer,
    /// They follow this entry.
    pub after: OpNumber,
    /// The replica had executed so many entries when it asked for this: no later one is told.
    pub applied: OpNumber,
    /// The last record that the replica had emitted by then.
    pub ticket: Ticket,
    /// About so many bytes of them at most.
    pub bytes_max: usize,
    /// So many of them at most.
    pub entries_max: u64,
}

/// Entries that may be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScannedEntries {
    /// These follow; none, if the records that were read name no more that may be told.
    Entries {
        /// The view of the entry before the first.
        after_view: View,
        /// The entries.
        entries: Vec<LogEntry>,
    },
    /// The records that were read do not hold them.
    Gone {
        /// They hold those behind this entry.
        base: OpNumber,
        /// Reading from an earlier record on gives no more.
        is_cut: bool,
    },
}
