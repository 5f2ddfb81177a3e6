//! What a replica puts on disk, and how it comes back from there.

use crate::message::{Body, Describe, LogEntry, Prepared, Request};
use alloc::vec::Vec;
use syros_types::{OpNumber, View, WallTime};

/// Number of the last record that must be on disk; records are numbered 1, 2, 3 in the order in
/// which a replica emits them after it started. 0: nothing to wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// One record of the write-ahead log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// The replica has moved to `view`, and was last normal in `last_normal`.
    View {
        /// Current view.
        view: View,
        /// Last view in which the replica was normal.
        last_normal: View,
    },
    /// An update entered the durability log.
    Accept(Request),
    /// Entries were appended to the log after `first - 1`.
    Append {
        /// Op number of the first entry.
        first: OpNumber,
        /// View of the leader that ordered them.
        view: View,
        /// Log time of all entries.
        time: WallTime,
        /// Commit number known at that moment.
        commit: OpNumber,
        /// The entries; updates whose body an earlier `Accept` holds are references.
        entries: Vec<Prepared>,
    },
    /// Entries that came by state transfer replace whatever followed `base`. All of them are
    /// committed; the durability log stays.
    Transfer {
        /// They follow this op number.
        base: OpNumber,
        /// The entries.
        entries: Vec<LogEntry>,
    },
    /// The replica entered `view` as normal: `suffix` replaces whatever followed `base`, and the
    /// durability log is cleared. One record, so that a crash sees all of it or nothing.
    EnterView {
        /// The new view.
        view: View,
        /// The suffix follows this op number.
        base: OpNumber,
        /// Commit number known at that moment.
        commit: OpNumber,
        /// The log after `base`.
        suffix: Vec<LogEntry>,
    },
}

/// A body that is empty: the reply of a nilext update.
#[must_use]
pub fn empty_body() -> Body {
    Body::from([])
}

/// Describes a request, if its bytes are an operation.
pub(crate) fn describe(describe: Describe, request: Request) -> Option<crate::message::Update> {
    let (class, footprint) = describe(&request.body)?;
    Some(crate::message::Update { request, class, footprint })
}
