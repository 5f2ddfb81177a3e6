//! What is wrong with records of a write-ahead log.

use core::fmt;
use syros_types::{OpNumber, OperationId, View};

/// A record that cannot follow those before it: the write-ahead log is not this replica's, or damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidRecord {
    /// Entries that do not connect to the log.
    Gap {
        /// The log ends here.
        op_number: OpNumber,
        /// The record's entries begin here.
        first: OpNumber,
    },
    /// A reference to an update that no record holds.
    MissingBody(OperationId),
    /// The bytes of an update are no operation.
    Malformed(OperationId),
    /// A view before the one already reached.
    ViewWentBack {
        /// Reached before.
        view: View,
        /// In the record.
        record: View,
    },
    /// An entry with an earlier view or time than the one before it.
    Backwards {
        /// The one before it.
        op_number: OpNumber,
    },
    /// The log does not begin at the beginning, and the snapshots that go with it are not there.
    NoSnapshot {
        /// The last one that would do; `None` if no record names one.
        needed: Option<OpNumber>,
    },
    /// A snapshot is not the one that the log goes with.
    OtherSnapshot {
        /// The log begins after this entry.
        base: OpNumber,
        /// The snapshot ends with this one, or with an entry of this number and another view or time.
        found: OpNumber,
    },
}

impl fmt::Display for InvalidRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { op_number, first } => {
                write!(f, "entries from {} cannot follow a log that ends at {}", first.0, op_number.0)
            }
            Self::MissingBody(id) => write!(f, "update {id} is referred to and not there"),
            Self::Malformed(id) => write!(f, "update {id} is no operation"),
            Self::ViewWentBack { view, record } => {
                write!(f, "view {} after view {}", record.0, view.0)
            }
            Self::Backwards { op_number } => {
                write!(f, "the entry after {} has an earlier view or time", op_number.0)
            }
            Self::NoSnapshot { needed: None } => {
                f.write_str("the log has lost its beginning, and names no snapshot in its place")
            }
            Self::NoSnapshot { needed: Some(needed) } => {
                write!(f, "the log goes with a snapshot at entry {}, which is missing", needed.0)
            }
            Self::OtherSnapshot { base, found } => {
                write!(
                    f,
                    "a snapshot at entry {} does not go with a log that begins after entry {}",
                    found.0, base.0
                )
            }
        }
    }
}

impl core::error::Error for InvalidRecord {}
