//! Where the files of a replica are in its data directory. What becomes of them when it starts, [`syros_node::data`]
//! decides.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use syros_node::data::{Data, DataError, OpenNotice, ReopenError, ReplicaFiles, VIEW_FILE, ViewFile};
use syros_protocol::replica::Config;
use syros_snapshot::{States, StoredError};
use syros_types::{OpNumber, ReplicaId, View};
use syros_wal::{FileDisk, FileDiskError, Options, ReadError, SpaceKeeper, Wal, WalError, WriteError};

use crate::directory::{DataDirectory, ENGINE, SNAPSHOTS, VIEW, WAL};
use crate::reserve::{LogSpace, Reserve};

/// Why what a replica has on disk cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum StoreError {
    /// A directory cannot be used.
    Directory(FileDiskError),
    /// Log and snapshots cannot be used.
    Stored(StoredError),
    /// The view cannot be read.
    View(ReadError),
    /// The view cannot be written.
    NoteView(WriteError),
    /// Everything is damaged, the view too: the replica cannot come back under its identity.
    Hopeless {
        /// The data directory.
        directory: PathBuf,
        /// What is wrong with the log or with the snapshot.
        damage: String,
        /// What is wrong with the view.
        view: String,
    },
    /// A replica without peers is damaged: nobody has what it lost.
    Alone {
        /// The data directory.
        directory: PathBuf,
        /// What is wrong.
        damage: String,
    },
    /// What is damaged cannot be set aside.
    SetAside {
        /// What was being done.
        doing: &'static str,
        /// To which directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A new log cannot be written.
    NewLog(WalError),
    /// After this, what the log holds is in doubt: only a restart finds out, and the log is not opened again before.
    LogInDoubt(WalError),
    /// The system gives no thread.
    Thread(io::Error),
    /// A replica that starts for the first time has reached a view already.
    NotNewView(View),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(error) => error.fmt(f),
            Self::Stored(error) => error.fmt(f),
            Self::View(error) => write!(f, "the view that the replica has reached cannot be read: {error}"),
            Self::NoteView(error) => write!(f, "the view cannot be written: {error}"),
            Self::Hopeless { directory, damage, view } => write!(
                f,
                "{damage}; it could be repaired from the other replicas, but the view that this replica has \
                 reached is lost as well ({view}). If files were moved or a disk is not mounted, put back \
                 what was there. Otherwise start it with an empty directory and --replace, so that a new node takes its \
                 place: votes that this one no longer knows of may still count. `syros inspect {}` tells what is left",
                directory.display()
            ),
            Self::Alone { directory, damage } => write!(
                f,
                "{damage}; there is no other replica from which it could be repaired. Nothing has been \
                 changed: put back the files from a copy of the whole directory. `syros inspect {}` tells \
                 what is left",
                directory.display()
            ),
            Self::SetAside { doing, path, source } => {
                write!(f, "cannot {doing} {}: {source}", path.display())
            }
            Self::NewLog(error) | Self::LogInDoubt(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "cannot start the thread of the log: {error}"),
            Self::NotNewView(view) => write!(
                f,
                "the directory has no identity, but a file {VIEW_FILE}/{VIEW_FILE} that has reached view {}; \
                 a replica that ever ran must not be started as a new one",
                view.0
            ),
        }
    }
}

impl std::error::Error for StoreError {}

impl StoreError {
    /// True if what is on disk is not what was written there.
    pub(crate) const fn is_damage(&self) -> bool {
        matches!(self, Self::Stored(error) if error.is_damage())
    }
}

impl From<ReopenError> for StoreError {
    fn from(error: ReopenError) -> Self {
        match error {
            ReopenError::NoteView(error) => Self::NoteView(error),
            ReopenError::Log(error) => Self::Stored(StoredError::Log(error)),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Thread(error)
    }
}

impl From<FileDiskError> for StoreError {
    fn from(error: FileDiskError) -> Self {
        Self::Directory(error)
    }
}

/// Opens what is in a data directory, with the states of engines that `states` finds.
pub(crate) fn open<S: States<FileDisk>>(
    config: &Config,
    options: &Options,
    directory: &DataDirectory,
    reserve: &Arc<Reserve>,
    states: impl Fn() -> S,
) -> Result<(Data<FileDisk, S::Engine>, S), StoreError> {
    let mut place = DirectoryFiles { replica: config.replica, directory, reserve };
    Data::open(config, options, &mut place, states).map_err(|error| {
        let path = || directory.path().to_owned();
        match error {
            DataError::Files(error) => error,
            DataError::Stored(error) => StoreError::Stored(error),
            DataError::View(error) => StoreError::View(error),
            DataError::NoteView(error) => StoreError::NoteView(error),
            DataError::Hopeless { damage, view } => StoreError::Hopeless { directory: path(), damage, view },
            DataError::Alone { damage } => StoreError::Alone { directory: path(), damage },
            DataError::NewLog(error) => StoreError::NewLog(error),
            DataError::NotNewView(view) => StoreError::NotNewView(view),
        }
    })
}

/// Opens the log of a running replica again.
pub(crate) fn reopen_log(
    directory: &DataDirectory,
    options: &Options,
    reserve: &Arc<Reserve>,
    view: &mut ViewFile<FileDisk>,
) -> Result<Wal<FileDisk>, StoreError> {
    Ok(syros_node::data::reopen_log(options, log_disk(directory, reserve)?, view)?)
}

/// The disk of the log, which takes up the reserve but for its last part.
fn log_disk(directory: &DataDirectory, reserve: &Arc<Reserve>) -> Result<FileDisk, StoreError> {
    with_reserve(directory, WAL, Arc::new(LogSpace(Arc::clone(reserve))))
}

/// A disk that takes up the reserve when it is full: for what a replica cannot do without.
fn with_reserve(
    directory: &DataDirectory,
    name: &str,
    space: Arc<dyn SpaceKeeper>,
) -> Result<FileDisk, StoreError> {
    Ok(FileDisk::open_in(directory.open_directory(), name)?.with_space_keeper(space))
}

/// Where a log is prepared that takes the place of a damaged one.
const NEW_WAL: &str = "wal.new";

/// The files of a replica in its data directory.
struct DirectoryFiles<'a> {
    replica: ReplicaId,
    directory: &'a DataDirectory,
    reserve: &'a Arc<Reserve>,
}

impl DirectoryFiles<'_> {
    /// What went wrong with this part of the directory while something damaged was set aside.
    fn failed(&self, doing: &'static str, name: &str) -> impl Fn(io::Error) -> StoreError {
        let path = self.directory.path().join(name);
        move |source| StoreError::SetAside { doing, path: path.clone(), source }
    }
}

impl ReplicaFiles for DirectoryFiles<'_> {
    type Disk = FileDisk;
    type Error = StoreError;

    fn is_new(&self) -> bool {
        !self.directory.holds_state()
    }

    fn view(&mut self) -> Result<FileDisk, StoreError> {
        let space: Arc<dyn SpaceKeeper> = Arc::<Reserve>::clone(self.reserve);
        with_reserve(self.directory, VIEW, space)
    }

    fn log(&mut self) -> Result<FileDisk, StoreError> {
        log_disk(self.directory, self.reserve)
    }

    fn snapshots(&mut self) -> Result<FileDisk, StoreError> {
        Ok(FileDisk::open_in(self.directory.open_directory(), SNAPSHOTS)?)
    }

    fn new_log(&mut self) -> Result<FileDisk, StoreError> {
        let directory = self.directory.open_directory();
        match directory.remove_directory(NEW_WAL) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed("remove", NEW_WAL)(error)),
            _ => Ok(FileDisk::open_in(directory, NEW_WAL)?),
        }
    }

    fn set_aside(&mut self) -> Result<String, StoreError> {
        let directory = self.directory.open_directory();
        let place = self.directory.free_name().map_err(self.failed("look into", WAL))?;
        directory.create_directory(&place).map_err(self.failed("create", &place))?;
        for part in [ENGINE, SNAPSHOTS, WAL] {
            if directory.contains(part).map_err(self.failed("look for", part))? {
                let renamed = directory.rename(part, &format!("{place}/{part}"));
                renamed.map_err(self.failed("set aside", part))?;
            }
        }
        directory.rename(NEW_WAL, WAL).map_err(self.failed("rename", NEW_WAL))?;
        directory.sync().map_err(self.failed("sync", WAL))?;
        Ok(directory.path().join(place).display().to_string())
    }

    fn on_notice(&mut self, notice: &OpenNotice<'_>) {
        let (directory, node) = (self.directory.path().display(), self.replica.0);
        match notice {
            OpenNotice::TornTail(cut) => {
                tracing::warn!(
                    node,
                    error = cut,
                    "the write-ahead log ends in a torn write, as a crash leaves it"
                );
            }
            OpenNotice::Loaded { op_number: OpNumber(entry), bytes } => {
                tracing::info!(node, entry, bytes, "this replica has loaded its snapshot");
            }
            OpenNotice::SetAside { damage, kept_in } => tracing::error!(
                node,
                directory = %directory,
                error = damage,
                kept_in,
                "this replica's log or snapshots are damaged: it starts without its memory, gets everything from the other \
                 replicas, and keeps the damaged files"
            ),
            OpenNotice::ViewDamaged(problem) => {
                tracing::error!(
                    node,
                    directory = %directory,
                    error = problem,
                    "the file of the view is damaged; it is written anew, as the write-ahead log has it"
                );
            }
            OpenNotice::ViewMissing => tracing::error!(
                node,
                directory = %directory,
                "{VIEW_FILE}/{VIEW_FILE} is missing; it is written anew, as the write-ahead log has it"
            ),
        }
    }
}

/// How a replica's log is opened.
pub(crate) const fn log_options(
    config: &Config,
    cluster: u64,
    segment_bytes: u64,
    keep_bytes: u64,
) -> Options {
    let mut options = Options::new(cluster, config.replica);
    (options.segment_bytes, options.keep_bytes) = (segment_bytes, keep_bytes);
    // What other replicas send is bounded by their memory. A log that refuses it would stop everything,
    // heartbeats too.
    if options.waiting_bytes_max < config.settings.log_bytes_max {
        options.waiting_bytes_max = config.settings.log_bytes_max;
    }
    options
}
