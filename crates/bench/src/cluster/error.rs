//! Why something cannot be done to a cluster.

use core::fmt;
use core::time::Duration;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why something cannot be done to a cluster.
#[derive(Debug)]
pub enum Error {
    /// Namespaces need root.
    NotRoot,
    /// There is no working `ip netns` here, for this reason.
    NoNamespaces(String),
    /// The cluster was started without namespaces: its links cannot be cut.
    NoLinks,
    /// The relay between regions cannot be reached from namespaces.
    RegionsInNamespaces,
    /// The system refused what a relay between regions takes.
    Relay(std::io::Error),
    /// No addresses of this machine are left.
    NoAddress,
    /// A file or directory cannot be made.
    File(PathBuf, std::io::Error),
    /// The process of this node cannot be started.
    Start(usize, std::io::Error),
    /// This node does not run.
    NotRunning(usize),
    /// This node cannot be sent a signal.
    Signal(usize, std::io::Error),
    /// This node cannot be asked to let another lead.
    HandOver(usize, syros_client::StatusError),
    /// A command failed.
    Command {
        /// The command line.
        command: String,
        /// What it printed, or why it could not be run.
        problem: String,
    },
    /// The cluster was not well within this time, because of this.
    NotWell(Duration, String),
    /// A node has ended by itself.
    Ended {
        /// Which.
        node: usize,
        /// How.
        status: ExitStatus,
        /// The last lines it logged.
        last: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRoot => f.write_str("cutting links takes network namespaces, and those take root"),
            Self::NoNamespaces(problem) => {
                write!(f, "cutting links takes network namespaces (Debian: iproute2): {problem}")
            }
            Self::NoLinks => f.write_str("the cluster is on loopback: it has no links to cut"),
            Self::RegionsInNamespaces => f.write_str("nodes in regions cannot have network namespaces too"),
            Self::Relay(error) => write!(f, "cannot lay lines between the regions: {error}"),
            Self::NoAddress => f.write_str("no free addresses in 127.0.0.0/8"),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Start(node, error) => write!(f, "cannot start node {node}: {error}"),
            Self::NotRunning(node) => write!(f, "node {node} does not run"),
            Self::Signal(node, error) => write!(f, "node {node} cannot be sent a signal: {error}"),
            Self::HandOver(node, error) => write!(f, "node {node} cannot be asked to hand over: {error}"),
            Self::Command { command, problem } => write!(f, "'{command}' failed: {problem}"),
            Self::NotWell(patience, problem) => {
                write!(f, "the cluster was not well within {patience:?}: {problem}")
            }
            Self::Ended { node, status, last } => {
                write!(f, "node {node} has ended by itself, {status}; its last words:\n  {last}")
            }
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::File(_, error) | Self::Start(_, error) | Self::Signal(_, error) | Self::Relay(error) => {
                Some(error)
            }
            _ => None,
        }
    }
}
