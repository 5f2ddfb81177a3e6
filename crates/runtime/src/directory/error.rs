//! Why a data directory cannot be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use syros_types::OtherConfiguration;
use syros_wal::DiskError;

use super::DIRECTORY_FORMAT;
use super::identity::Identity;
use crate::config::FirstStart;

/// Why a data directory cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum DirectoryError {
    /// Reading or writing failed.
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The directory is a symbolic link to what does not exist.
    Dangling {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
    },
    /// One of the small files of the directory cannot be written.
    Write {
        /// The directory.
        path: PathBuf,
        /// What was being done to which file, and what the system said.
        source: DiskError,
    },
    /// Another process uses the directory.
    Locked {
        /// The directory.
        path: PathBuf,
        /// The process, if the lock says.
        process: Option<u32>,
    },
    /// There is no replica in the directory, and nobody said that this is its first start.
    Empty(PathBuf),
    /// First start was asked for, but the directory is a replica's already.
    AlreadyInUse {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        identity: Identity,
        /// What was asked for.
        first_start: FirstStart,
    },
    /// A node that is to take the place of another one was asked for, and the directory holds a replica's data.
    HoldsData {
        /// The directory.
        path: PathBuf,
        /// What is in it.
        found: &'static str,
    },
    /// The first start of a new cluster was asked for, and the directory is of a node that is to take the place of another one.
    Replaces(PathBuf),
    /// First start was asked for, but the directory holds something that is no replica's.
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the things found there.
        found: PathBuf,
    },
    /// A backup is to be restored into a directory that holds something.
    Occupied {
        /// The directory.
        path: PathBuf,
        /// One of the things found there.
        found: PathBuf,
    },
    /// A restore into this directory was interrupted.
    Unfinished(PathBuf),
    /// The system gives no random number.
    Random(io::Error),
    /// The identity file is no identity file.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The directory was written by another version of Syros.
    Format {
        /// The directory.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// The directory is of a configuration that this version of Syros cannot act in.
    Configuration {
        /// The directory.
        path: PathBuf,
        /// What it says.
        other: OtherConfiguration,
    },
    /// The directory belongs to somebody else.
    Mismatch {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        found: Box<Identity>,
        /// Who the configuration says this is.
        expected: Box<Identity>,
    },
}

impl DirectoryError {
    /// True if a later start may succeed though nobody mends anything.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                !matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
            }
            Self::Write { .. } | Self::Locked { .. } | Self::Random(_) => true,
            _ => false,
        }
    }
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, path, source } => write!(f, "cannot {doing} {}: {source}", path.display()),
            Self::Dangling { path, target } => write!(
                f,
                "directory {} is a symbolic link to {}, which does not exist: is its file system mounted?",
                path.display(),
                target.display()
            ),
            Self::Write { path, source } => write!(f, "in directory {}: {source}", path.display()),
            Self::Locked { path, process: Some(process) } => {
                write!(f, "directory {} is in use by process {process}", path.display())
            }
            Self::Locked { path, process: None } => {
                write!(f, "directory {} is in use by another process", path.display())
            }
            Self::Empty(path) => write!(
                f,
                "directory {} holds no replica. If this is the very first start of this replica in a new \
                 cluster, start it once with --bootstrap. If it ran before and its disk is lost, start it with \
                 --replace: a new node takes its place. If the cluster is to grow by it, start it with --join. (It cannot come back as the node that it was: \
                 acknowledgements it no longer knows of may still be counted, and writes would be lost)",
                path.display()
            ),
            Self::AlreadyInUse { path, identity, first_start } => write!(
                f,
                "directory {} belongs to {identity} already; start it without {}",
                path.display(),
                first_start.option()
            ),
            Self::HoldsData { path, found } => write!(
                f,
                "directory {} has no identity, and data in {found}. If only the identity is lost and there is a copy of \
                 it, put it back, and start the node without --replace or --join. To have a new node take its place, for \
                 good, empty the directory first",
                path.display()
            ),
            Self::Replaces(path) => write!(
                f,
                "directory {} was made by --replace or --join, for a node that asks a cluster for a place. To start a \
                 new cluster, empty the directory first",
                path.display()
            ),
            Self::NotEmpty { path, found } => write!(
                f,
                "directory {} cannot be made a replica's: it contains {}, and no identity",
                path.display(),
                found.display()
            ),
            Self::Occupied { path, found } => write!(
                f,
                "directory {} is not empty ('{}' is in it): a backup is restored into a directory that is new or empty",
                path.display(),
                found.display()
            ),
            Self::Unfinished(path) => write!(
                f,
                "directory {} is what an interrupted `syros restore` left: empty it, and restore the backup again",
                path.display()
            ),
            Self::Random(error) => write!(f, "cannot draw a random number: {error}"),
            Self::Damaged { path, problem } => {
                write!(
                    f,
                    "identity file {} is damaged: {problem}. It changes with each start of the node: put it back from a copy \
                     that was made since the last one, or start the node with an empty directory and --replace",
                    path.display()
                )
            }
            Self::Format { path, found } => write!(
                f,
                "directory {} has format {found}, this version of Syros reads formats 1 to {DIRECTORY_FORMAT}",
                path.display()
            ),
            Self::Configuration { path, other } => {
                write!(f, "directory {} is of another configuration: {other}", path.display())
            }
            Self::Mismatch { path, found, expected } if found.engine != expected.engine => write!(
                f,
                "directory {} was written by engine {}, but the configuration says engine {}. An engine cannot read \
                 what another one wrote: set the engine back, or start a new cluster with this one",
                path.display(),
                found.engine,
                expected.engine
            ),
            Self::Mismatch { path, found, expected } => write!(
                f,
                "directory {} belongs to {found}, but the configuration says {expected}. What is wrong: the \
                 configuration, or the file {}",
                path.display(),
                path.join("identity").display()
            ),
        }
    }
}

impl std::error::Error for DirectoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Write { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The error of an operation on a file or directory.
pub(super) fn io_error<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> DirectoryError + use<'a> {
    move |source| DirectoryError::Io { doing, path: path.to_owned(), source }
}
