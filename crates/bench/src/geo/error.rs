//! Why an experiment with distance came to nothing.

use crate::cluster;
use crate::error::Error;
use core::fmt;
use syros_client::ConnectError;
use syros_experiment::InvalidWorkload;
use syros_relay::CONNECTIONS_MAX;

/// Why an experiment with distance came to nothing.
#[derive(Debug)]
pub enum GeoError {
    /// There must be a client.
    NoClients,
    /// These are more connections than the relay takes.
    Connections {
        /// Clients asked for, in all regions together.
        clients: usize,
        /// Those of the clients and of the replicas.
        connections: usize,
    },
    /// The system does not let this process open so many files.
    Files {
        /// Files needed.
        files: usize,
        /// The limit (`ulimit -Hn`).
        limit: u64,
    },
    /// Something cannot be done to the cluster.
    Cluster(cluster::Error),
    /// A client cannot reach the cluster, or cannot be made.
    Client(Error),
    /// There is no client to write the keys.
    Connect(ConnectError),
    /// A key cannot be written.
    Write(syros_client::Error),
    /// The first replica, which is to lead, does not lead (any more): this one does, or none.
    Leader(Option<usize>),
    /// Clients cannot ask for this.
    Workload(InvalidWorkload),
    /// The caller wanted no more.
    Interrupted,
}

impl fmt::Display for GeoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoClients => f.write_str("the number of clients must be at least 1"),
            Self::Connections { clients, connections } => {
                write!(
                    f,
                    "{clients} clients and the replicas need {connections} connections; the limit is {CONNECTIONS_MAX}"
                )
            }
            Self::Files { files, limit } => {
                write!(f, "connections need {files} open files; the system's limit is {limit} (ulimit -Hn)")
            }
            Self::Cluster(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
            Self::Connect(error) => error.fmt(f),
            Self::Write(error) => write!(f, "a key cannot be written before the measurement: {error}"),
            Self::Leader(Some(leader)) => {
                write!(f, "replica {leader} leads instead of replica 0: is the machine too busy?")
            }
            Self::Leader(None) => f.write_str("no replica leads: is the machine too busy?"),
            Self::Workload(error) => error.fmt(f),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl core::error::Error for GeoError {}

impl From<cluster::Error> for GeoError {
    fn from(error: cluster::Error) -> Self {
        Self::Cluster(error)
    }
}

impl From<Error> for GeoError {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

impl From<ConnectError> for GeoError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

impl From<InvalidWorkload> for GeoError {
    fn from(error: InvalidWorkload) -> Self {
        Self::Workload(error)
    }
}
