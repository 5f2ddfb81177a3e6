//! Why a backup cannot be written or read.

use crate::layout::FORMAT;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use syros_snapshot::SnapshotStoreError;
use syros_wal::SnapshotError;
use syros_wire::Malformed;

/// Why a backup cannot be written or read.
#[derive(Debug)]
pub enum BackupError {
    /// The system refuses something.
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Something is there already, and a backup overwrites nothing.
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the things in it.
        found: String,
    },
    /// There is no manifest: it is no backup, or one that was not finished.
    NoManifest {
        /// The directory.
        path: PathBuf,
    },
    /// A manifest is of a format that this build does not read.
    Format {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u64,
    },
    /// A file is not what was written.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// All files are what was written, and what they hold is no snapshot.
    Snapshot {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        source: Box<SnapshotStoreError>,
    },
    /// Another process continues the backup.
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The backup was made of what was left of a cluster, which is gone: nothing can follow.
    HasRecords {
        /// The directory.
        path: PathBuf,
    },
    /// The backup does not reach what is wanted of it.
    OutOfRange {
        /// What is wanted, in words.
        wanted: String,
        /// What there is, in words.
        range: String,
    },
    /// All files are what was written, and a record of the log in them is none.
    Record {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, path, source } => write!(f, "cannot {doing} {}: {source}", path.display()),
            Self::NotEmpty { path, found } => write!(
                f,
                "{} is not empty ('{found}' is in it), and nothing there is overwritten: name a new or an empty directory",
                path.display()
            ),
            Self::NoManifest { path } => write!(
                f,
                "{} holds no finished backup: there is no manifest, which is written last. A backup that was interrupted is of \
                 no use: delete it, and make another",
                path.display()
            ),
            Self::Format { path, found } => write!(
                f,
                "{} has format version {found}; this build reads version {}",
                path.display(),
                FORMAT
            ),
            Self::Damaged { path, offset, problem } => {
                write!(f, "{} is damaged at offset {offset}: {problem}", path.display())
            }
            Self::Snapshot { path, source } => {
                write!(f, "the backup in {} holds no state that can be read: {source}", path.display())
            }
            Self::InUse { path } => {
                write!(f, "another process continues the backup in {}", path.display())
            }
            Self::HasRecords { path } => write!(
                f,
                "the backup in {} was made by syros recover of what was left of a cluster, and nothing can follow: make a backup of \
                 the cluster that was restored from it",
                path.display()
            ),
            Self::OutOfRange { wanted, range } => {
                write!(f, "the backup does not reach {wanted}: it covers {range}")
            }
            Self::Record { path, problem } => {
                write!(f, "the backup in {} holds a record that cannot be read: {problem}", path.display())
            }
        }
    }
}

impl std::error::Error for BackupError {}

impl BackupError {
    /// For what the system says about a path.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// For what is wrong with the state in a backup.
    pub(crate) fn state(path: &Path, error: impl Into<SnapshotStoreError>) -> Self {
        Self::Snapshot { path: path.to_owned(), source: Box::new(error.into()) }
    }

    /// For what is wrong with a record in a backup.
    pub(crate) fn record(path: &Path, error: &Malformed) -> Self {
        Self::Record { path: path.to_owned(), problem: error.to_string() }
    }

    /// The failure of a file behind an error of the reader of snapshots.
    pub(crate) fn of_reader(path: &Path, error: SnapshotError, failed: Option<Self>) -> Self {
        failed.unwrap_or_else(|| Self::state(path, error))
    }
}
