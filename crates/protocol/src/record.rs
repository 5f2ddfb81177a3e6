//! What a replica puts on disk, and how it comes back from there.

use crate::message::{Body, LogEntry, Prepared, Request};
use crate::sessions::Sessions;
use alloc::boxed::Box;
use alloc::vec::Vec;
use syros_types::{FastRule, OpNumber, Reconfiguration, View, WallTime};

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
        /// The entries; updates whose body an earlier `Accept` holds are references, whose hash is not written.
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
        /// By what it counts; `None`: by the configuration's rule.
        rule: Option<FastRule>,
        /// The suffix follows this op number.
        base: OpNumber,
        /// Commit number known at that moment.
        commit: OpNumber,
        /// The log after `base`.
        suffix: Vec<LogEntry>,
    },
    /// Everything but what the snapshot at its base holds: with that snapshot, the records before this
    /// one are not needed. Without it (it was never finished), this record says nothing new.
    Checkpoint(Box<Checkpoint>),
    /// What the replica knew is lost, but for its view: it is amnesiac until it enters a view.
    Forgot {
        /// The newest view it may have acted in.
        view: View,
    },
}

/// Content of a checkpoint record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// Current view.
    pub view: View,
    /// Last view in which the replica was normal.
    pub last_normal: View,
    /// By what that view counted; `None`: by the configuration's rule.
    pub rule: Option<FastRule>,
    /// Last op number in the snapshot.
    pub base: OpNumber,
    /// View of the entry at `base`.
    pub base_view: View,
    /// Log time of the entry at `base`.
    pub base_time: WallTime,
    /// Commit number.
    pub commit: OpNumber,
    /// The log after `base`.
    pub suffix: Vec<LogEntry>,
    /// The durability log without what the log holds, in arrival order.
    pub dlog: Vec<Request>,
    /// The replica had lost its memory, and had entered no view since: what `Forgot` says. A log that has lost the
    /// segment with that record, and begins with this one, must say so all the same.
    pub amnesiac: bool,
}

/// What a snapshot holds besides the state of the engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotHead {
    /// It is the state after this log entry.
    pub op_number: OpNumber,
    /// The entry's view.
    pub view: View,
    /// The entry's log time.
    pub time: WallTime,
    /// The session table after that entry.
    pub sessions: Sessions,
    /// The newest configuration that the log up to there says, if it says one: the group may not have begun it yet.
    pub configuration: Option<Reconfiguration>,
}

/// A body that is empty: the reply of a nilext update.
#[must_use]
pub fn empty_body() -> Body {
    Body::from([])
}
