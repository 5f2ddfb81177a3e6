//! Why peers could not be measured.

use super::PeerKind;
use crate::cluster;
use crate::compare::CompareError;
use crate::error::Error;
use core::fmt;
use core::time::Duration;
use std::path::PathBuf;
use std::process::ExitStatus;
use syros_experiment::Blend;
use syros_types::Protocol;

/// Why peers could not be measured.
#[derive(Debug)]
pub enum PeerError {
    /// There is no such system.
    Unknown(String),
    /// A program is not in PATH.
    NotInstalled {
        /// The program.
        program: &'static str,
        /// The Debian package that has it.
        package: &'static str,
    },
    /// Not every system can be asked for these operations.
    Workload(Blend),
    /// A system needs more servers than it is to have.
    Replicas {
        /// The system.
        kind: PeerKind,
        /// What it is to have.
        replicas: usize,
        /// What it takes at least.
        min: usize,
    },
    /// A protocol of Syros has another number of replicas.
    Protocol {
        /// The protocol.
        protocol: Protocol,
        /// What it is to have.
        replicas: usize,
    },
    /// A system takes no values of this length.
    ValueBytes {
        /// The system.
        kind: PeerKind,
        /// The length, in bytes.
        bytes: u64,
        /// The longest, in bytes.
        max: u64,
    },
    /// A file or directory cannot be made.
    File(PathBuf, std::io::Error),
    /// A server cannot be started.
    Start(String, std::io::Error),
    /// A server has ended by itself.
    Ended {
        /// Which.
        server: String,
        /// How.
        status: ExitStatus,
        /// The last lines it logged.
        last: String,
    },
    /// Servers were not ready within this time.
    NotReady {
        /// How long they were waited for.
        patience: Duration,
        /// What was missing.
        problem: String,
        /// The last lines that the first of them logged.
        last: String,
    },
    /// A client cannot connect.
    Connect(String),
    /// Records could not be written before the measurement.
    Fill {
        /// How many requests failed.
        failed: u64,
        /// Of so many.
        of: u64,
        /// What the server said to the last one.
        refusal: Option<String>,
    },
    /// Another server came to lead while the system was measured.
    Leader,
    /// The load or Syros failed.
    Compare(CompareError),
}

impl PeerError {
    /// True if the same measurement may succeed when it is repeated.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Leader | Self::Compare(CompareError::Leader { .. }))
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let names = PeerKind::ALL.map(PeerKind::name).join(", ");
                write!(f, "there is no system '{name}': {names}")
            }
            Self::NotInstalled { program, package } => {
                write!(f, "{program} is not in PATH (Debian: apt-get install {package})")
            }
            Self::Workload(blend) => write!(
                f,
                "workload {blend}: all systems can be asked for reads and overwrites only, as in a, b, c, f, nilext or 75%"
            ),
            Self::Replicas { kind, replicas, min } => {
                write!(f, "{kind} takes {min} replicas at least, not {replicas}")
            }
            Self::Protocol { protocol, replicas } => {
                write!(f, "--protocol: {protocol} has 1 replica, not {replicas}")
            }
            Self::ValueBytes { kind, bytes, max } => {
                write!(f, "{kind} takes values of {max} bytes at most, not of {bytes}")
            }
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Start(server, error) => write!(f, "cannot start {server}: {error}"),
            Self::Ended { server, status, last } => {
                write!(f, "{server} has ended by itself, {status}; its last words:\n  {last}")
            }
            Self::NotReady { patience, problem, last } => {
                write!(
                    f,
                    "not ready within {patience:?}: {problem}; last words of the first server:\n  {last}"
                )
            }
            Self::Connect(problem) => write!(f, "a client cannot connect: {problem}"),
            Self::Fill { failed, of, refusal } => {
                write!(f, "{failed} of {of} requests failed that write records before the measurement")?;
                refusal.as_ref().map_or(Ok(()), |refusal| write!(f, ": {refusal}"))
            }
            Self::Leader => f.write_str("another server came to lead meanwhile: is the machine too busy?"),
            Self::Compare(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for PeerError {}

impl From<CompareError> for PeerError {
    fn from(error: CompareError) -> Self {
        Self::Compare(error)
    }
}

impl From<Error> for PeerError {
    fn from(error: Error) -> Self {
        Self::Compare(error.into())
    }
}

impl From<cluster::Error> for PeerError {
    fn from(error: cluster::Error) -> Self {
        Self::Compare(error.into())
    }
}
