//! Why there is no report.

use core::fmt;
use std::net::SocketAddr;
use syros_client::{ConnectError, LinkError};
use syros_experiment::InvalidWorkload;
use syros_types::limits::VALUE_BYTES_MAX;

/// Why there is no report.
#[derive(Debug)]
pub enum Error {
    /// There must be a connection, and a writer for every connection.
    Connections {
        /// Connections asked for.
        connections: usize,
        /// Writers asked for.
        writers: usize,
    },
    /// There is nothing to ask for.
    Workload(InvalidWorkload),
    /// A share above all.
    ReadsPercent(u8),
    /// A value of so many bytes is longer than the limit.
    ValueBytes(usize),
    /// The clients cannot be made.
    Connect(ConnectError),
    /// A replica cannot be reached, for the last reason given, if there was one. The load would measure
    /// a cluster with a fault.
    Unreachable(SocketAddr, Option<LinkError>),
    /// The system refused an event queue, or failed to wait.
    System(std::io::Error),
    /// The CPU time of the process of this id cannot be read.
    Process(u32, std::io::Error),
    /// The number of CPU seconds in the statistics of the process of this id makes no sense.
    ProcessStatistics(u32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connections { connections, writers } => {
                write!(f, "{connections} connections for {writers} writers: there must be 1 to {writers}")
            }
            Self::Workload(error) => write!(f, "{error}"),
            Self::ReadsPercent(percent) => write!(f, "{percent} percent of reads: at most 100"),
            Self::ValueBytes(bytes) => {
                write!(f, "a value of {bytes} bytes is above the limit of {VALUE_BYTES_MAX}")
            }
            Self::Connect(error) => write!(f, "{error}"),
            Self::Unreachable(address, Some(error)) => write!(f, "replica at {address}: {error}"),
            Self::Unreachable(address, None) => write!(f, "replica at {address} does not answer"),
            Self::System(error) => write!(f, "{error}"),
            Self::Process(pid, error) => write!(f, "CPU time of process {pid}: {error}"),
            Self::ProcessStatistics(pid) => {
                write!(f, "CPU time of process {pid}: its statistics are in an unknown format")
            }
        }
    }
}

impl From<InvalidWorkload> for Error {
    fn from(error: InvalidWorkload) -> Self {
        Self::Workload(error)
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Connect(error) => Some(error),
            Self::System(error) | Self::Process(_, error) => Some(error),
            _ => None,
        }
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}
