//! What a replica has on disk, opened: the write-ahead log, the snapshot that goes with it, and the view it
//! has reached, which is kept a second time because a replica that lost it can never come back.
//!
//! What is damaged is set aside as a whole, never used in part: the replica starts without its memory and
//! gets everything from the others.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use syros_protocol::record::Record;
use syros_protocol::replica::Config;
use syros_snapshot::{States, Stored, StoredError};
use syros_types::{OpNumber, ReplicaId, View};
use syros_wal::{
    Disk, FileDisk, FileDiskError, Options, ReadError, Wal, WalError, WriteError, read_atomic,
    write_atomically,
};

use crate::directory::DataDirectory;
use crate::disk_space::Reserve;

/// Name of the file with the view, in a directory of its own.
const VIEW_FILE: &str = "view";

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
                 what was there. Otherwise leave this replica switched off: votes that it no longer knows \
                 of may still count, and the others go on without it. `syros inspect {}` tells what is left",
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
            Self::NewLog(error) => error.fmt(f),
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

impl From<FileDiskError> for StoreError {
    fn from(error: FileDiskError) -> Self {
        Self::Directory(error)
    }
}

/// The view that a replica has reached, in a file of its own. Written before the log tells it, so never
/// behind it.
pub(crate) struct ViewFile {
    disk: FileDisk,
    owner: Owner,
    view: Result<Option<View>, String>,
}

impl ViewFile {
    fn open(path: &Path, owner: Owner, reserve: &Arc<Reserve>) -> Result<Self, StoreError> {
        let mut disk = with_reserve(FileDisk::open(path)?, reserve);
        let view = read_view(&mut disk, owner).map_err(StoreError::View)?;
        Ok(Self { disk, owner, view })
    }

    /// The view in the file.
    pub(crate) fn view(&self) -> View {
        self.view.clone().ok().flatten().unwrap_or_default()
    }

    /// Makes durable that the replica may have acted in `view`.
    pub(crate) fn note(&mut self, view: View) -> Result<(), WriteError> {
        if self.view != Ok(Some(view)) {
            let mut bytes = view.0.to_le_bytes().to_vec();
            bytes.extend_from_slice(&self.owner.cluster.to_le_bytes());
            bytes.push(self.owner.replica.0);
            write_atomically(&mut self.disk, VIEW_FILE, &bytes)?;
            self.view = Ok(Some(view));
        }
        Ok(())
    }

    /// Writes the file anew: it is not what was written any more.
    pub(crate) fn renew(&mut self) -> Result<(), WriteError> {
        let view = self.view();
        self.view = Ok(None);
        self.note(view)
    }
}

/// Whose a file of a data directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) cluster: u64,
    pub(crate) replica: ReplicaId,
}

/// Reads the file with the view: 8 bytes view, 8 bytes cluster, 1 byte replica; in old files only the view.
/// If it is not what was written, the inner error says what is wrong.
pub(crate) fn read_view<D: Disk>(
    disk: &mut D,
    owner: Owner,
) -> Result<Result<Option<View>, String>, ReadError> {
    let bytes = match read_atomic(disk, VIEW_FILE) {
        Ok(None) => return Ok(Ok(None)),
        Ok(Some(bytes)) => bytes,
        Err(error @ ReadError::Damaged { .. }) => return Ok(Err(format!("{VIEW_FILE}/{error}"))),
        Err(error) => return Err(error),
    };
    let number = |at: usize| {
        let bytes = bytes.get(at..at + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    let found = match bytes.len() {
        8 => owner,
        17 => Owner { cluster: number(8), replica: ReplicaId(bytes[16]) },
        length => return Ok(Err(format!("{VIEW_FILE}/{VIEW_FILE} has {length} bytes, not 17"))),
    };
    if found != owner {
        let Owner { cluster, replica } = found;
        return Ok(Err(format!("{VIEW_FILE}/{VIEW_FILE} belongs to {replica} of cluster {cluster:016x}")));
    }
    Ok(Ok(Some(View(number(0)))))
}

/// What a replica has on disk.
pub(crate) struct Store<E> {
    pub(crate) wal: Wal<FileDisk>,
    pub(crate) stored: Stored<FileDisk, E>,
    /// Not behind what the log tells.
    pub(crate) view: ViewFile,
}

impl<E> Store<E> {
    /// Opens what is there, with the states of engines that `states` finds. What is damaged is set aside, and the
    /// replica is then without memory.
    pub(crate) fn open<S: States<FileDisk, Engine = E>>(
        config: &Config,
        cluster: u64,
        directory: &DataDirectory,
        segment_bytes: u64,
        reserve: &Arc<Reserve>,
        states: impl Fn() -> S,
    ) -> Result<(Self, S), StoreError> {
        let owner = Owner { cluster, replica: config.replica };
        let mut view = ViewFile::open(&directory.view(), owner, reserve)?;
        if directory.is_new() && view.view() > View(0) {
            return Err(StoreError::NotNewView(view.view()));
        }
        let options = log_options(config, cluster, segment_bytes);
        let (wal, stored, states) = match read_back(config, &options, directory, reserve, states()) {
            Err(StoreError::Stored(error)) if error.is_damage() && !directory.is_new() => {
                let damage = error.to_string();
                if config.group.size() == 1 {
                    return Err(StoreError::Alone { directory: directory.path().to_owned(), damage });
                }
                let lost = |view: String| StoreError::Hopeless {
                    directory: directory.path().to_owned(),
                    damage: damage.clone(),
                    view,
                };
                let reached = match &view.view {
                    Ok(Some(reached)) => *reached,
                    Ok(None) => return Err(lost(format!("there is no file {VIEW_FILE}/{VIEW_FILE}"))),
                    Err(problem) => return Err(lost(problem.clone())),
                };
                let place = set_aside(&options, directory, reached)?;
                log::error!(
                    "directory {}: {damage}. {} starts without its memory and gets everything from the other \
                     replicas; what is damaged is kept in {}",
                    directory.path().display(),
                    config.replica,
                    place.display()
                );
                read_back(config, &options, directory, reserve, states())?
            }
            read => read?,
        };
        match &view.view {
            Err(problem) => log::error!(
                "directory {}: {problem}; it is written anew, as the write-ahead log has it",
                directory.path().display()
            ),
            Ok(None) if !directory.is_new() => log::error!(
                "directory {}: {VIEW_FILE}/{VIEW_FILE} is missing; it is written anew, as the write-ahead log \
                 has it",
                directory.path().display()
            ),
            Ok(_) => {}
        }
        // One that was damaged can be had from an intact log.
        let reached = stored.restored.view().max(view.view());
        view.note(reached).map_err(StoreError::NoteView)?;
        Ok((Self { wal, stored, view }, states))
    }
}

/// Reads back log and snapshots.
#[expect(clippy::type_complexity, reason = "three things, each with one name")]
fn read_back<S: States<FileDisk>>(
    config: &Config,
    options: &Options,
    directory: &DataDirectory,
    reserve: &Arc<Reserve>,
    mut states: S,
) -> Result<(Wal<FileDisk>, Stored<FileDisk, S::Engine>, S), StoreError> {
    let options = Options { may_create: directory.is_new(), ..options.clone() };
    let snapshots = FileDisk::open(&directory.snapshots())?;
    let log = with_reserve(FileDisk::open(&directory.wal())?, reserve);
    let (wal, stored) = Stored::open(config, options, snapshots, log, &mut states, |recovery| {
        if let Some(cut) = &recovery.cut {
            log::warn!("write-ahead log: {cut}, as a crash in the middle of a write leaves it");
        }
    })
    .map_err(StoreError::Stored)?;
    if let Some((OpNumber(entry), bytes)) = stored.snapshot {
        log::info!("{} has loaded its snapshot at entry {entry} ({bytes} bytes)", config.replica);
    }
    Ok((wal, stored, states))
}

/// A disk that takes up the reserve when it is full: for what a replica cannot do without.
fn with_reserve(disk: FileDisk, reserve: &Arc<Reserve>) -> FileDisk {
    let reserve = Arc::clone(reserve);
    disk.with_reserve(move || reserve.release())
}

/// How a replica's log is opened.
const fn log_options(config: &Config, cluster: u64, segment_bytes: u64) -> Options {
    let mut options = Options::new(cluster, config.replica);
    options.segment_bytes = segment_bytes;
    // What other replicas send is bounded by their memory. A log that refuses it would stop everything,
    // heartbeats too.
    if options.waiting_bytes_max < config.log_bytes_max {
        options.waiting_bytes_max = config.log_bytes_max;
    }
    options
}

/// Moves log and snapshots out of the way and begins a new log, which says that the replica has lost its
/// memory. A crash at any moment leaves the replica damaged, or the new log whole.
fn set_aside(options: &Options, directory: &DataDirectory, view: View) -> Result<PathBuf, StoreError> {
    let failed = |doing, path: &Path| {
        let path = path.to_owned();
        move |source| StoreError::SetAside { doing, path, source }
    };
    let fresh = directory.new_wal();
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(failed("remove", &fresh))?;
    }
    let options = Options { may_create: true, ..options.clone() };
    let (mut wal, _) = Wal::open(FileDisk::open(&fresh)?, options, |_, _| Ok(()))
        .map_err(|error| StoreError::Stored(StoredError::Log(error)))?;
    let mut record = Vec::new();
    syros_wire::encode_record(&Record::Forgot { view }, &mut record);
    // A record of a few bytes is refused by nothing but a disk.
    let _ = wal.append(&[&record]);
    wal.flush().and_then(|()| wal.sync()).map_err(StoreError::NewLog)?;
    drop(wal);

    let place = directory.free_place().map_err(failed("look into", &directory.wal()))?;
    fs::create_dir(&place).map_err(failed("create", &place))?;
    for part in [directory.engine(), directory.snapshots(), directory.wal()] {
        if let Some(name) = part.file_name()
            && part.exists()
        {
            fs::rename(&part, place.join(name)).map_err(failed("set aside", &part))?;
        }
    }
    fs::rename(&fresh, directory.wal()).map_err(failed("rename", &fresh))?;
    directory.sync().map_err(failed("sync", &directory.wal()))?;
    Ok(place)
}
