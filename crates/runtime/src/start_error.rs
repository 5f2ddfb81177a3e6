//! Why a process cannot start.

use std::fmt;
use std::io;

use syros_tls::TlsError;
use syros_types::InvalidGroupSize;

use crate::config::EngineKind;
use crate::directory::DirectoryError;
use crate::discover::DiscoverError;
use crate::socket::ListenError;
use crate::store::StoreError;

/// Why a process cannot start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The list of replicas is of an impossible length.
    Group(InvalidGroupSize),
    /// The list of replicas and the replica's configuration disagree.
    GroupMismatch {
        /// Length of the list.
        listed: usize,
        /// Size of the group in the replica's configuration.
        configured: usize,
    },
    /// A node of a cluster of one is to take the place of another one.
    NothingToReplace,
    /// The data directory cannot be used.
    Directory(DirectoryError),
    /// This program was built without the engine.
    NoSuchEngine(EngineKind),
    /// The write-ahead log cannot be used.
    Log {
        /// The data directory.
        directory: std::path::PathBuf,
        /// Why.
        source: LogError,
    },
    /// A port cannot be listened on.
    Listen(ListenError),
    /// There is no TLS.
    Tls(TlsError),
    /// No replica tells what cluster this is.
    Discover(DiscoverError),
    /// The system lacks something that every process needs.
    System {
        /// What.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl StartError {
    /// True if a later start may succeed though nobody mends anything: an address that the machine does not have yet, a disk that
    /// is full.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Log { source: LogError::Store(error), .. } => !error.is_damage(),
            Self::Log { .. } | Self::Listen(_) | Self::Discover(_) | Self::System { .. } => true,
            Self::Directory(error) => error.may_pass(),
            Self::Group(_)
            | Self::GroupMismatch { .. }
            | Self::NothingToReplace
            | Self::NoSuchEngine(_)
            | Self::Tls(_) => false,
        }
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(error) => error.fmt(f),
            Self::GroupMismatch { listed, configured } => {
                write!(f, "{listed} replicas are listed, but the group has {configured}")
            }
            Self::NothingToReplace => f.write_str(
                "--replace and --join have the other nodes of a cluster take this one in, and `replicas` lists no others",
            ),
            Self::Directory(error) => error.fmt(f),
            Self::NoSuchEngine(EngineKind::Machine(name)) => {
                write!(f, "engine machine {name}: such a node is started by the program that has the machine")
            }
            Self::NoSuchEngine(kind) => write!(
                f,
                "engine {0}: this program was built without it; build it with --features {0}, or choose another",
                kind.name()
            ),
            Self::Log { directory, source } => write!(f, "directory {}: {source}", directory.display()),
            Self::Listen(error) => error.fmt(f),
            Self::Tls(error) => write!(f, "TLS: {error}"),
            Self::Discover(error) => error.fmt(f),
            Self::System { what, source } => write!(f, "cannot get {what}: {source}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<DirectoryError> for StartError {
    fn from(error: DirectoryError) -> Self {
        Self::Directory(error)
    }
}

impl From<ListenError> for StartError {
    fn from(error: ListenError) -> Self {
        Self::Listen(error)
    }
}

/// Why a node must not run that has run: its cluster does not need it any more, or would not take it. It is inside the error of
/// [`Node::run`](crate::Node::run).
#[derive(Debug)]
pub struct NotWanted(pub String);

impl fmt::Display for NotWanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for NotWanted {}

/// The error of something that the system does not give.
pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |source| StartError::System { what, source }
}

/// Why a replica cannot start with what it has on disk.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogError {
    /// What is on disk cannot be used.
    Store(StoreError),
    /// The directory cannot be made the replica's.
    Claim(DirectoryError),
    /// The system gives no thread.
    Thread(io::Error),
    /// The store of the engine cannot be created.
    Engine(syros_storage::StoreError),
    /// The space of the file system cannot be asked for.
    Space(io::Error),
    /// The data cannot fit into memory.
    TooLargeForMemory {
        /// Length of the snapshot.
        bytes: u64,
        /// Memory that the process may take.
        memory: u64,
    },
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Claim(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "cannot start a thread of the replica: {error}"),
            Self::Engine(error) => error.fmt(f),
            Self::Space(error) => write!(f, "cannot look after the space of the file system: {error}"),
            Self::TooLargeForMemory { bytes, memory } => write!(
                f,
                "the snapshot has {bytes} bytes, and this process may take {memory} bytes of memory: start it where \
                 there is more"
            ),
        }
    }
}

impl std::error::Error for LogError {}
