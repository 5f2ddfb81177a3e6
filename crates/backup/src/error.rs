//! Why a backup cannot be written or read.

use crate::layout::FORMAT;
use std::fmt;
use std::io;
use syros_s3::S3Error;
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
        place: String,
        /// What the system says.
        source: io::Error,
    },
    /// Something is there already, and a backup overwrites nothing.
    NotEmpty {
        /// Where it is, or was to be.
        place: String,
        /// One of the things in it.
        found: String,
    },
    /// There is no manifest: it is no backup, or one that was not finished.
    NoManifest {
        /// Where it is, or was to be.
        place: String,
    },
    /// A manifest is of a format that this build does not read.
    Format {
        /// The manifest.
        place: String,
        /// Its format.
        found: u64,
    },
    /// A file is not what was written.
    Damaged {
        /// The file.
        place: String,
        /// Where in it, in bytes.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// All files are what was written, and what they hold is no snapshot.
    Snapshot {
        /// Where it is, or was to be.
        place: String,
        /// What is wrong.
        source: Box<SnapshotStoreError>,
    },
    /// Another process makes a backup there, or one was interrupted.
    Claimed {
        /// Where it is, or was to be.
        place: String,
    },
    /// There may be no more parts.
    TooLarge {
        /// Where it is, or was to be.
        place: String,
        /// The most parts that there may be.
        parts: usize,
        /// About how long each is, in bytes.
        part_bytes: u64,
    },
    /// A store refuses something, or cannot be reached.
    Store(S3Error),
    /// A store has said that it has an object, and does not have it, or another one.
    NotStored {
        /// The object.
        object: String,
    },
    /// Another process continues the backup.
    InUse {
        /// Where it is, or was to be.
        place: String,
    },
    /// The backup was made of what was left of a cluster, which is gone: nothing can follow.
    HasRecords {
        /// Where it is, or was to be.
        place: String,
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
        /// Where it is, or was to be.
        place: String,
        /// What is wrong.
        problem: String,
    },
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, place, source } => write!(f, "cannot {doing} {place}: {source}"),
            Self::NotEmpty { place, found } => write!(
                f,
                "{place} is not empty ('{found}' is in it), and nothing there is overwritten: name a new or an empty place"
            ),
            Self::NoManifest { place } => write!(
                f,
                "{place} holds no finished backup: there is no manifest, which is written last. If it is what an interrupted syros \
                 backup has left (data-0, claim), it is of no use: delete it, and make another. If it is a node's data directory \
                 (identity, wal), keep it: syros inspect shows what is in it"
            ),
            Self::Format { place, found } => {
                write!(f, "{place} has format version {found}; this build reads version {FORMAT}")
            }
            Self::Damaged { place, offset, problem } => {
                write!(f, "{place} is damaged at offset {offset}: {problem}")
            }
            Self::Snapshot { place, source } => {
                write!(f, "the backup in {place} holds no state that can be read: {source}")
            }
            Self::Claimed { place } => write!(
                f,
                "another command makes a backup in {place} at this moment, or one was interrupted: name another place. If none is \
                 running, delete what is there",
            ),
            Self::TooLarge { place, parts, part_bytes } => write!(
                f,
                "the backup in {place} would have more than {parts} parts of {} MiB: make it in a directory, whose parts are larger",
                part_bytes >> 20
            ),
            Self::Store(error) => error.fmt(f),
            Self::NotStored { object } => write!(
                f,
                "the store took {object}, and gives back something else: it does not keep what is written to it"
            ),
            Self::InUse { place } => {
                write!(f, "another process continues the backup in {place}")
            }
            Self::HasRecords { place } => write!(
                f,
                "the backup in {place} was made by syros recover of what was left of a cluster, and nothing can follow: make a backup \
                 of the cluster that was restored from it"
            ),
            Self::OutOfRange { wanted, range } => {
                write!(f, "the backup does not reach {wanted}: it covers {range}")
            }
            Self::Record { place, problem } => {
                write!(f, "the backup in {place} holds a record that cannot be read: {problem}")
            }
        }
    }
}

impl std::error::Error for BackupError {}

impl BackupError {
    /// For what the system says about a place, or about a file in one.
    pub(crate) fn io(doing: &'static str, place: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let place = place.into();
        // What is read from a store says itself which object it is about.
        move |source| source.downcast().unwrap_or_else(|source| Self::Io { doing, place, source })
    }

    /// For what is wrong with the state in a backup.
    pub(crate) fn state(place: &impl fmt::Display, error: impl Into<SnapshotStoreError>) -> Self {
        Self::Snapshot { place: place.to_string(), source: Box::new(error.into()) }
    }

    /// For what is wrong with a record in a backup.
    pub(crate) fn record(place: &impl fmt::Display, error: &Malformed) -> Self {
        Self::Record { place: place.to_string(), problem: error.to_string() }
    }

    /// The failure of a file behind an error of the reader of snapshots.
    pub(crate) fn of_reader(place: &impl fmt::Display, error: SnapshotError, failed: Option<Self>) -> Self {
        failed.unwrap_or_else(|| Self::state(place, error))
    }
}
