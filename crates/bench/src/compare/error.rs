//! Why a comparison came to nothing.

use crate::cluster;
use crate::error::Error;
use core::fmt;
use core::time::Duration;
use syros_experiment::InvalidWorkload;

/// Why a comparison came to nothing.
#[derive(Debug)]
pub enum CompareError {
    /// A number is not within its limits.
    Number {
        /// What it is the number of, as the command line calls it.
        name: &'static str,
        /// The number.
        value: u64,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A measurement must take time.
    NoDuration,
    /// The system does not let this process open so many files.
    Files {
        /// Files needed: connections, mostly.
        files: u64,
        /// The limit (`ulimit -Hn`).
        limit: u64,
    },
    /// Something cannot be done to the cluster.
    Cluster(cluster::Error),
    /// A client cannot reach the cluster, or cannot be made.
    Client(Error),
    /// Records could not be written before the measurement, or the store could not be emptied.
    Fill {
        /// How many requests failed.
        failed: u64,
        /// Of so many.
        of: u64,
    },
    /// The cluster changed its leader while it was measured.
    Leader {
        /// The view before.
        before: u64,
        /// The view after; `None` if nobody led.
        after: Option<u64>,
    },
    /// Operations have not ended so long after the last of them was sent.
    Unended {
        /// Operations in flight.
        operations: usize,
        /// How long they were waited for.
        patience: Duration,
    },
    /// Clients cannot ask for this.
    Workload(InvalidWorkload),
    /// The caller wanted no more.
    Interrupted,
}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { name, value, min, max } => write!(f, "{name}: {value} is not from {min} to {max}"),
            Self::NoDuration => f.write_str("duration: 0 s is no time to measure anything in"),
            Self::Files { files, limit } => {
                write!(f, "connections need {files} open files; the system's limit is {limit} (ulimit -Hn)")
            }
            Self::Cluster(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
            Self::Fill { failed, of } => {
                write!(f, "{failed} of {of} requests failed that write records before the measurement")
            }
            Self::Leader { before, after: Some(after) } => {
                write!(f, "the view changed from {before} to {after} meanwhile: is the machine too busy?")
            }
            Self::Leader { before, after: None } => {
                write!(f, "nobody led after view {before}: is the machine too busy?")
            }
            Self::Unended { operations, patience } => {
                write!(f, "{operations} operations have not ended {patience:?} after the last was sent")
            }
            Self::Workload(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl core::error::Error for CompareError {}

impl From<cluster::Error> for CompareError {
    fn from(error: cluster::Error) -> Self {
        Self::Cluster(error)
    }
}

impl From<Error> for CompareError {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<InvalidWorkload> for CompareError {
    fn from(error: InvalidWorkload) -> Self {
        Self::Workload(error)
    }
}
