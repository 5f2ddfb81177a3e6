//! The data directory of one replica: whose it is, and that only one process uses it.
//!
//! ```text
//! DIRECTORY/identity   who this replica is; written once, whole or not at all
//! DIRECTORY/lock       locked for as long as a process uses the directory
//! DIRECTORY/wal/       the write-ahead log
//! DIRECTORY/snapshots/ the snapshot that goes with it, and one that is being written or received
//! DIRECTORY/engine/N/  the store of an engine on disk; a second one while it takes over a snapshot
//! DIRECTORY/view/      the view that the replica has reached, once more
//! DIRECTORY/damaged-N/ log and snapshots that were found to be damaged and are no longer used
//! ```
//!
//! A replica that lost its disk must never come back under its old identity: acknowledgements it gave
//! and no longer knows of may still be counted by others. So an empty directory is only ever made into
//! a replica's when the operator says that this is the first start.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use syros_machine::MachineName;
use syros_protocol::replica::Durability;
use syros_types::{FastQuorum, Group, ReplicaId};

use crate::config::EngineKind;

/// Version of the layout of a data directory. A process refuses every later one.
pub const DIRECTORY_FORMAT: u64 = 2;

/// Version of a directory with keys in memory: what wrote it knew of nothing else.
const MEMORY_FORMAT: u64 = 1;

/// What the names of directories with damaged stores begin with; a number follows.
pub(crate) const DAMAGED_PREFIX: &str = "damaged-";

/// First line of an identity file: tells it from everything else that might have its name.
const IDENTITY_TITLE: &str = "syros replica identity";

/// An identity file is a few lines; anything longer is none.
const IDENTITY_BYTES_MAX: u64 = 4096;

/// Whose data a directory holds, and what may never change about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster; never 0.
    pub cluster: u64,
    /// The member of the cluster.
    pub replica: ReplicaId,
    /// The cluster's size.
    pub group: Group,
    /// The cluster's fast quorum mode.
    pub fast_quorum: FastQuorum,
    /// When this replica's acknowledgements leave.
    pub durability: Durability,
    /// What executes its log.
    pub engine: EngineKind,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} of cluster {:016x} (fast quorum {}, durability {}, engine {})",
            self.replica,
            self.group.size(),
            self.cluster,
            self.fast_quorum,
            durability_name(self.durability),
            self.engine
        )
    }
}

/// The name of a durability as configuration and identity files spell it.
#[must_use]
pub const fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Fsync => "fsync",
        Durability::Replicated => "replicated",
    }
}

/// The durability with this name.
#[must_use]
pub fn durability_named(name: &str) -> Option<Durability> {
    [Durability::Fsync, Durability::Replicated].into_iter().find(|&d| durability_name(d) == name)
}

/// The fast quorum mode with this name.
#[must_use]
pub fn fast_quorum_named(name: &str) -> Option<FastQuorum> {
    FastQuorum::ALL.into_iter().find(|mode| mode.name() == name)
}

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
    /// Another process uses the directory.
    Locked(PathBuf),
    /// There is no replica in the directory, and nobody said that this is its first start.
    Empty(PathBuf),
    /// First start was asked for, but the directory is a replica's already.
    AlreadyBootstrapped {
        /// The directory.
        path: PathBuf,
        /// Whose it is.
        identity: Identity,
    },
    /// First start was asked for, but the directory holds something that is no replica's.
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the things found there.
        found: PathBuf,
    },
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

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, path, source } => write!(f, "cannot {doing} {}: {source}", path.display()),
            Self::Locked(path) => {
                write!(f, "directory {} is in use by another process", path.display())
            }
            Self::Empty(path) => write!(
                f,
                "directory {} holds no replica. If this is the very first start of this replica in a new \
                 cluster, start it once with --bootstrap. If it ever ran before and lost its disk, it must \
                 not come back under its old identity: acknowledgements it no longer knows of may still be \
                 counted, and writes would be lost",
                path.display()
            ),
            Self::AlreadyBootstrapped { path, identity } => write!(
                f,
                "directory {} belongs to {identity} already; start it without --bootstrap",
                path.display()
            ),
            Self::NotEmpty { path, found } => write!(
                f,
                "directory {} cannot be made a replica's: it contains {}, and no identity",
                path.display(),
                found.display()
            ),
            Self::Damaged { path, problem } => {
                write!(
                    f,
                    "identity file {} is damaged: {problem}. It is a short text that never changes: put it back \
                     from a copy",
                    path.display()
                )
            }
            Self::Format { path, found } => write!(
                f,
                "directory {} has format {found}, this version of Syros reads formats 1 to {DIRECTORY_FORMAT}",
                path.display()
            ),
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
            _ => None,
        }
    }
}

/// A data directory that this process owns until the value is dropped.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    identity: Identity,
    is_new: bool,
    /// Holds the lock; the system releases it when the process ends, however it ends.
    _lock: File,
}

impl DataDirectory {
    /// Opens the directory of a replica, or creates it on its first start (`bootstrap`).
    ///
    /// # Errors
    /// [`DirectoryError`]: it is in use, belongs to somebody else, is missing, or exists already.
    pub fn open(path: &Path, identity: Identity, bootstrap: bool) -> Result<Self, DirectoryError> {
        let file = path.join("identity");
        if !bootstrap && !exists(&file)? {
            return Err(if exists(&path.join("wal"))? {
                DirectoryError::Damaged { path: file, problem: "it is missing".to_owned() }
            } else {
                DirectoryError::Empty(path.to_owned())
            });
        }
        fs::create_dir_all(path).map_err(io_error("create directory", path))?;
        let lock = lock(path)?;
        match read_identity(path)? {
            Some(identity) if bootstrap => {
                return Err(DirectoryError::AlreadyBootstrapped { path: path.to_owned(), identity });
            }
            Some(found) if found != identity => {
                let (found, expected) = (Box::new(found), Box::new(identity));
                return Err(DirectoryError::Mismatch { path: path.to_owned(), found, expected });
            }
            Some(_) => {}
            None if !bootstrap => return Err(DirectoryError::Empty(path.to_owned())),
            None => refuse_strangers(path)?,
        }
        Ok(Self { path: path.to_owned(), identity, is_new: bootstrap, _lock: lock })
    }

    /// Makes the directory the replica's, if this is its first start. Called when everything else in it
    /// has been made, so that an interrupted first start can be repeated, and that from then on anything
    /// missing has been lost.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub fn claim(&self) -> Result<(), DirectoryError> {
        if self.is_new { write_identity(&self.path, self.identity) } else { Ok(()) }
    }

    /// True if this is the replica's first start.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Tries whether files can be written and made durable here, by writing one of a few megabytes; it
    /// leaves none behind.
    ///
    /// # Errors
    /// What the system said.
    pub fn try_writing(&self) -> io::Result<()> {
        /// A disk with less space than this would be full again at once.
        const BYTES: usize = 4 << 20;
        let path = self.path.join("probe.tmp");
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&vec![0; BYTES])?;
            file.sync_all()
        });
        let removed = fs::remove_file(&path);
        written.and(removed)
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the write-ahead log lives.
    #[must_use]
    pub fn wal(&self) -> PathBuf {
        self.path.join("wal")
    }

    /// Where snapshots live.
    #[must_use]
    pub fn snapshots(&self) -> PathBuf {
        self.path.join("snapshots")
    }

    /// Where the stores of an engine on disk live.
    #[must_use]
    pub fn engine(&self) -> PathBuf {
        self.path.join("engine")
    }

    /// Where the view lives.
    pub(crate) fn view(&self) -> PathBuf {
        self.path.join("view")
    }

    /// Where a log is prepared that takes the place of a damaged one.
    pub(crate) fn new_wal(&self) -> PathBuf {
        self.path.join("wal.new")
    }

    /// A name that is not taken, for what is damaged.
    pub(crate) fn free_place(&self) -> io::Result<PathBuf> {
        let mut number: u64 = 1;
        loop {
            let place = self.path.join(format!("{DAMAGED_PREFIX}{number}"));
            if !place.try_exists()? {
                return Ok(place);
            }
            number += 1;
        }
    }

    /// Makes renames in the directory durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Whose directory this is; `None` if it is nobody's. Takes no lock.
///
/// # Errors
/// [`DirectoryError`] if the identity cannot be read or is damaged or of an unknown format.
pub fn read_identity(path: &Path) -> Result<Option<Identity>, DirectoryError> {
    let file = path.join("identity");
    let length = match fs::metadata(&file) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error("read", &file)(error)),
    };
    let damaged = |problem: String| DirectoryError::Damaged { path: file.clone(), problem };
    if length > IDENTITY_BYTES_MAX {
        return Err(damaged(format!("it has {length} bytes, at most {IDENTITY_BYTES_MAX} are expected")));
    }
    let bytes = fs::read(&file).map_err(io_error("read", &file))?;
    let text = String::from_utf8(bytes).map_err(|_| damaged("it is not text".to_owned()))?;
    let fields = Fields::parse(&text).map_err(damaged)?;
    let format = fields.number("format").map_err(damaged)?;
    if !(MEMORY_FORMAT..=DIRECTORY_FORMAT).contains(&format) {
        return Err(DirectoryError::Format { path: path.to_owned(), found: format });
    }
    fields.identity().map(Some).map_err(damaged)
}

/// The lines `key = value` of an identity file.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(IDENTITY_TITLE) {
            return Err(format!("its first line is not '{IDENTITY_TITLE}'"));
        }
        lines
            .map(|line| line.split_once(" = ").ok_or_else(|| format!("line '{line}' is not 'key = value'")))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn get(&self, key: &str) -> Result<&'a str, String> {
        let found = self.0.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| *value).ok_or_else(|| format!("it has no line '{key}'"))
    }

    fn number(&self, key: &str) -> Result<u64, String> {
        let value = self.get(key)?;
        value.parse().map_err(|_| format!("{key} = {value} is not a number"))
    }

    fn identity(&self) -> Result<Identity, String> {
        let replica = self.number("replica")?;
        let size = self.number("replicas")?;
        let group = usize::try_from(size).ok().and_then(|size| Group::new(size).ok());
        let group = group.ok_or_else(|| format!("replicas = {size} is not 1, 3, 5, 7 or 9"))?;
        let member = u8::try_from(replica).ok().filter(|&r| usize::from(r) < group.size());
        let cluster = self.get("cluster")?;
        let (quorum, durability) = (self.get("fast-quorum")?, self.get("durability")?);
        Ok(Identity {
            cluster: u64::from_str_radix(cluster, 16)
                .map_err(|_| format!("cluster = {cluster} is not a hexadecimal number"))?,
            replica: ReplicaId(member.ok_or_else(|| format!("replica = {replica} is not below {size}"))?),
            group,
            fast_quorum: fast_quorum_named(quorum)
                .ok_or_else(|| format!("fast-quorum = {quorum} is no fast quorum mode"))?,
            durability: durability_named(durability)
                .ok_or_else(|| format!("durability = {durability} is neither fsync nor replicated"))?,
            engine: match self.number("format")? {
                MEMORY_FORMAT => EngineKind::Memory,
                _ => {
                    let engine = self.get("engine")?;
                    let machine = engine.strip_prefix("machine ").and_then(MachineName::new);
                    machine.map(EngineKind::Machine).or_else(|| EngineKind::named(engine)).ok_or_else(
                        || format!("engine = {engine} is none of memory, disk, rocksdb and 'machine NAME'"),
                    )?
                }
            },
        })
    }
}

fn io_error<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> DirectoryError + use<'a> {
    move |source| DirectoryError::Io { doing, path: path.to_owned(), source }
}

fn exists(path: &Path) -> Result<bool, DirectoryError> {
    path.try_exists().map_err(io_error("read", path))
}

fn lock(path: &Path) -> Result<File, DirectoryError> {
    let name = path.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(io_error("open", &name))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(DirectoryError::Locked(path.to_owned())),
        Err(error) => Err(io_error("lock", &name)(error.into())),
    }
}

/// A directory that is about to become a replica's may contain what an interrupted first start left
/// behind, and nothing else. (Whether that includes records is seen when the log is opened.)
fn refuse_strangers(path: &Path) -> Result<(), DirectoryError> {
    for entry in fs::read_dir(path).map_err(io_error("read directory", path))? {
        let entry = entry.map_err(io_error("read directory", path))?;
        let name = entry.file_name();
        if !["lock", "identity.new", "wal", "snapshots", "engine", "view"].iter().any(|&own| name == own) {
            return Err(DirectoryError::NotEmpty { path: path.to_owned(), found: name.into() });
        }
    }
    Ok(())
}

/// Writes the identity so that a crash at any moment leaves all of it or none.
fn write_identity(path: &Path, identity: Identity) -> Result<(), DirectoryError> {
    // Older versions go on reading what they can read.
    let format = if identity.engine == EngineKind::Memory { MEMORY_FORMAT } else { DIRECTORY_FORMAT };
    let mut text = format!(
        "{IDENTITY_TITLE}\nformat = {format}\ncluster = {:016x}\nreplica = {}\nreplicas = {}\n\
         fast-quorum = {}\ndurability = {}\n",
        identity.cluster,
        identity.replica.0,
        identity.group.size(),
        identity.fast_quorum,
        durability_name(identity.durability)
    );
    if identity.engine != EngineKind::Memory {
        text += &format!("engine = {}\n", identity.engine);
    }
    let (new, file) = (path.join("identity.new"), path.join("identity"));
    let mut out = File::create(&new).map_err(io_error("create", &new))?;
    out.write_all(text.as_bytes()).and_then(|()| out.sync_all()).map_err(io_error("write", &new))?;
    fs::rename(&new, &file).map_err(io_error("rename", &new))?;
    // A file's name is durable when its directory is; the directory's own name, when its parent is.
    let parent = path.canonicalize().ok().and_then(|p| p.parent().map(Path::to_owned));
    for directory in [Some(path.to_owned()), parent].into_iter().flatten() {
        let synced = File::open(&directory).and_then(|d| d.sync_all());
        synced.map_err(io_error("sync directory", &directory))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            cluster: 0x77,
            replica: ReplicaId(2),
            group: Group::new(3).unwrap(),
            fast_quorum: FastQuorum::Majority,
            durability: Durability::Fsync,
            engine: EngineKind::Memory,
        }
    }

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("syros-directory-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn first_start_then_later_starts() {
        let path = scratch("starts");
        let refused = DataDirectory::open(&path, identity(), false).unwrap_err();
        assert!(matches!(refused, DirectoryError::Empty(_)), "{refused}");
        assert!(!path.exists(), "a refused start creates nothing");

        let first = DataDirectory::open(&path, identity(), true).unwrap();
        assert!(first.is_new());
        first.claim().unwrap();
        let refused = DataDirectory::open(&path, identity(), false).unwrap_err();
        assert!(matches!(refused, DirectoryError::Locked(_)), "{refused}");
        drop(first);

        let refused = DataDirectory::open(&path, identity(), true).unwrap_err();
        assert!(matches!(refused, DirectoryError::AlreadyBootstrapped { .. }), "{refused}");
        assert!(!DataDirectory::open(&path, identity(), false).unwrap().is_new());
        assert_eq!(read_identity(&path).unwrap(), Some(identity()));
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_state_machine_is_not_given_the_data_of_another() {
        let path = scratch("machine");
        let machine = |name| EngineKind::Machine(MachineName::new(name).unwrap());
        let written = Identity { engine: machine("record-append"), ..identity() };
        DataDirectory::open(&path, written, true).unwrap().claim().unwrap();
        assert_eq!(read_identity(&path).unwrap(), Some(written));
        for engine in [EngineKind::Memory, machine("record-append-2")] {
            let refused = DataDirectory::open(&path, Identity { engine, ..written }, false).unwrap_err();
            let refused = refused.to_string();
            assert!(refused.contains("engine machine record-append,"), "{refused}");
            assert!(refused.contains(&format!("engine {engine}.")), "{refused}");
        }
        let file = path.join("identity");
        let text = fs::read_to_string(&file).unwrap().replace("machine record", "machine Record");
        fs::write(&file, text).unwrap();
        let refused = read_identity(&path).unwrap_err().to_string();
        assert!(refused.contains("engine = machine Record-append is none of"), "{refused}");
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn somebody_elses_directory_is_refused_by_name() {
        let path = scratch("mismatch");
        DataDirectory::open(&path, identity(), true).unwrap().claim().unwrap();
        let others = [
            Identity { cluster: 0x78, ..identity() },
            Identity { replica: ReplicaId(1), ..identity() },
            Identity { group: Group::new(5).unwrap(), ..identity() },
            Identity { fast_quorum: FastQuorum::Supermajority, ..identity() },
            Identity { durability: Durability::Replicated, ..identity() },
        ];
        for other in others {
            let refused = DataDirectory::open(&path, other, false).unwrap_err().to_string();
            assert!(refused.contains("belongs to replica 2 of 3 of cluster 0000000000000077"), "{refused}");
            assert!(refused.contains(&other.to_string()), "{refused}");
        }
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn strange_contents_are_refused_by_name() {
        let path = scratch("strange");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("thesis.tex"), "important").unwrap();
        let refused = DataDirectory::open(&path, identity(), true).unwrap_err().to_string();
        assert!(refused.contains("thesis.tex"), "{refused}");
        fs::remove_file(path.join("thesis.tex")).unwrap();

        DataDirectory::open(&path, identity(), true).unwrap().claim().unwrap();
        let file = path.join("identity");
        let good = fs::read_to_string(&file).unwrap();
        for (from, to, complaint) in [
            ("format = 1", "format = 9", "format 9"),
            ("format = 1", "format = x", "format = x is not a number"),
            ("replica = 2", "replica = 3", "replica = 3 is not below 3"),
            ("replicas = 3", "replicas = 4", "replicas = 4"),
            ("majority", "minority", "fast-quorum = minority"),
            ("fsync", "hope", "durability = hope"),
            ("cluster = 0000000000000077\n", "", "no line 'cluster'"),
            ("identity", "garbage", "first line"),
        ] {
            fs::write(&file, good.replacen(from, to, 1)).unwrap();
            let refused = DataDirectory::open(&path, identity(), false).unwrap_err().to_string();
            assert!(refused.contains(complaint), "{refused} should say {complaint}");
        }
        fs::write(&file, vec![b'x'; 10_000]).unwrap();
        assert!(read_identity(&path).unwrap_err().to_string().contains("10000 bytes"));
        fs::write(&file, [0xff, 0xfe]).unwrap();
        assert!(read_identity(&path).unwrap_err().to_string().contains("not text"));
        fs::remove_dir_all(&path).unwrap();
    }
}
