//! The data directory of one replica: whose it is, and that only one process uses it.
//!
//! ```text
//! DIRECTORY/identity   who this node is, in which position, and who the others are; whole or not at all
//! DIRECTORY/formation  the same before the group is formed; gone when there is an identity
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
//! a replica's when the operator says that this is the first start, and when no other member knows better:
//! `syros_protocol::formation` decides that. A directory of a version before 0.1 gets its node's number at its
//! first start with a later one, and learns the others' from them.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use syros_machine::MachineName;
use syros_protocol::replica::Durability;
use syros_types::{
    ConfigurationEpoch, ConfigurationId, FastQuorum, Group, GroupId, Incarnation, NodeId, OtherConfiguration,
    ReplicaId, Roster,
};

use crate::config::EngineKind;
use crate::disk_space::{RESERVE_FILE, make_room_to_start};

/// Version of the layout of a data directory. A process refuses every later one.
pub const DIRECTORY_FORMAT: u64 = 3;

/// Version of a directory with keys in memory: what wrote it knew of nothing else.
const MEMORY_FORMAT: u64 = 1;

/// Last version of a directory that names no configuration and no lives, and calls nodes disks.
const DISKS_FORMAT: u64 = 2;

/// What the names of directories with damaged stores begin with; a number follows.
pub(crate) const DAMAGED_PREFIX: &str = "damaged-";

/// A process that was killed holds its lock until the system has taken its memory apart, which takes a second for
/// gigabytes. Whoever starts it again at once waits for that.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// How often a lock is tried.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// First line of an identity file: tells it from everything else that might have its name.
const IDENTITY_TITLE: &str = "syros replica identity";

/// First line of the file that a directory has before the group is formed.
const FORMATION_TITLE: &str = "syros replica formation";

/// The line with the longest lease that was promised, in microseconds.
const LEASE_KEY: &str = "lease-micros";

/// The file that is locked.
const LOCK_FILE: &str = "lock";

/// Names of the two files.
const IDENTITY_FILE: &str = "identity";
const FORMATION_FILE: &str = "formation";

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
    durability.name()
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
    /// The directory is a symbolic link to what does not exist.
    Dangling {
        /// The link.
        path: PathBuf,
        /// Where it leads.
        target: PathBuf,
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
            Self::Random(error) => write!(f, "cannot draw a random number: {error}"),
            Self::Damaged { path, problem } => {
                write!(
                    f,
                    "identity file {} is damaged: {problem}. It is a short text that hardly ever changes: put it \
                     back from a copy",
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
            _ => None,
        }
    }
}

/// A data directory that this process owns until the value is dropped.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    identity: Identity,
    node: NodeId,
    /// Which life of the node this is.
    incarnation: Incarnation,
    /// The nodes in the positions of the group, as far as they are known.
    roster: Roster,
    /// The longest lease that the replica may have promised and not waited out.
    lease: Option<Duration>,
    /// Before the group is formed: the roster that this node has voted for.
    vote: Option<Roster>,
    is_new: bool,
    /// Holds the lock; the system releases it when the process ends, however it ends.
    lock: File,
}

/// How a data directory that is in use is recognized: by the file that this process has locked. A path may lead somewhere
/// else meanwhile, because the directory was removed, renamed or replaced, or its file system unmounted; what is open is
/// then written on, to files that no restart will find.
#[derive(Clone, Debug)]
pub(crate) struct Anchor {
    path: PathBuf,
    /// Device and inode of the lock.
    device: u64,
    inode: u64,
}

impl Anchor {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with the directory, if it is not there any more. Nothing, if the system does not say.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_missing = |error: &io::Error| {
            matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::StaleNetworkFileHandle
            )
        };
        let lacks = |name: &str| fs::metadata(self.path.join(name)).is_err_and(|error| is_missing(&error));
        let problem = match fs::metadata(self.path.join(LOCK_FILE)) {
            Ok(lock) if (lock.dev(), lock.ino()) != (self.device, self.inode) => {
                "another one has taken its place"
            }
            // One of them is there at any time.
            Ok(_) if lacks(IDENTITY_FILE) && lacks(FORMATION_FILE) => "its file identity has been removed",
            Ok(_) => return None,
            Err(error) if !is_missing(&error) => return None,
            Err(_) if self.path.is_dir() => {
                "its files are gone: were they removed, or their file system unmounted?"
            }
            Err(_) => "it was removed or renamed",
        };
        Some(format!("the data directory {} is not there any more: {problem}", self.path.display()))
    }
}

impl DataDirectory {
    /// Opens the directory of a replica, or creates it on its first start (`bootstrap`). A first start that did
    /// not get as far as [`DataDirectory::claim`] may be repeated, with `bootstrap` or without.
    ///
    /// # Errors
    /// [`DirectoryError`]: it is in use, belongs to somebody else, is missing, or exists already.
    pub fn open(path: &Path, identity: Identity, bootstrap: bool) -> Result<Self, DirectoryError> {
        let file = path.join(IDENTITY_FILE);
        if !bootstrap && !exists(&file)? && !exists(&path.join(FORMATION_FILE))? {
            return Err(if exists(&path.join("wal"))? {
                DirectoryError::Damaged { path: file, problem: "it is missing".to_owned() }
            } else {
                DirectoryError::Empty(path.to_owned())
            });
        }
        fs::create_dir_all(path).map_err(|error| match fs::read_link(path) {
            Ok(target) if !path.exists() => DirectoryError::Dangling { path: path.to_owned(), target },
            _ => io_error("create directory", path)(error),
        })?;
        make_room_to_start(path);
        let lock = lock(path)?;
        let nothing = Roster::unknown(identity.group);
        let (found, is_new) = match read_file(path, IDENTITY_FILE, IDENTITY_TITLE)? {
            Some(found) if bootstrap => {
                let (path, identity) = (path.to_owned(), found.identity);
                return Err(DirectoryError::AlreadyBootstrapped { path, identity });
            }
            Some(found) => (Some(found), false),
            None => {
                refuse_strangers(path)?;
                (read_file(path, FORMATION_FILE, FORMATION_TITLE)?, true)
            }
        };
        if let Some(found) = found.as_ref().filter(|found| found.identity != identity) {
            let (found, expected) = (Box::new(found.identity), Box::new(identity));
            return Err(DirectoryError::Mismatch { path: path.to_owned(), found, expected });
        }
        let (ours, configuration) = (ConfigurationId::FIRST, found.as_ref().map(|found| found.configuration));
        configuration
            .map_or(Ok(()), |theirs| ours.check(theirs))
            .map_err(|other| DirectoryError::Configuration { path: path.to_owned(), other })?;
        let incarnation = found.as_ref().map_or(Incarnation::UNKNOWN, |found| found.incarnation).next();
        let lease = found.as_ref().and_then(|found| found.lease);
        let known = found.and_then(|found| Some((found.node?, found.roster)));
        let (node, roster) = match known {
            Some(known) => known,
            None => (random_node()?, None),
        };
        let own = |roster: Option<Roster>| roster.unwrap_or(nothing).with(identity.replica, node);
        let (vote, roster) = if is_new { (roster, nothing) } else { (None, own(roster)) };
        let directory =
            Self { path: path.to_owned(), identity, node, incarnation, roster, lease, vote, is_new, lock };
        // What others are told of node and life must be found again. So a directory of an older format becomes one of this.
        if is_new {
            directory.write(FORMATION_FILE, FORMATION_TITLE, directory.vote)?;
        } else {
            directory.write(IDENTITY_FILE, IDENTITY_TITLE, Some(directory.roster))?;
        }
        Ok(directory)
    }

    /// Makes the directory the replica's, if this is its first start. Called when everything else in it
    /// has been made, so that an interrupted first start can be repeated, and that from then on anything
    /// missing has been lost.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub fn claim(&self) -> Result<(), DirectoryError> {
        if !self.is_new {
            return Ok(());
        }
        self.write(IDENTITY_FILE, IDENTITY_TITLE, Some(self.roster))?;
        // If it stays, nobody will look at it.
        let _ = fs::remove_file(self.path.join(FORMATION_FILE));
        Ok(())
    }

    /// Makes durable for which roster this node votes.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub(crate) fn vote(&mut self, roster: Roster) -> Result<(), DirectoryError> {
        self.write(FORMATION_FILE, FORMATION_TITLE, Some(roster))?;
        self.vote = Some(roster);
        Ok(())
    }

    /// The group has been formed with this roster: [`DataDirectory::claim`] writes it.
    pub(crate) const fn form(&mut self, roster: Roster) {
        self.roster = roster;
    }

    /// Makes durable who the others are, of a directory that did not know.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub(crate) fn learn(&mut self, roster: Roster) -> Result<(), DirectoryError> {
        self.write(IDENTITY_FILE, IDENTITY_TITLE, Some(roster))?;
        self.roster = roster;
        Ok(())
    }

    /// The replica is about to promise leases of this length. Gives back the longest that it may have promised before:
    /// that one is to be waited out, and stands in the directory until [`DataDirectory::end_promises`].
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub(crate) fn begin_promises(&mut self, lease: Duration) -> Result<Duration, DirectoryError> {
        let longest = self.lease.map_or(lease, |before| before.max(lease));
        self.record_lease(longest)?;
        Ok(longest)
    }

    /// Promises longer than this lease have been waited out.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub(crate) fn end_promises(&mut self, lease: Duration) -> Result<(), DirectoryError> {
        self.record_lease(lease)
    }

    fn record_lease(&mut self, lease: Duration) -> Result<(), DirectoryError> {
        if self.lease.replace(lease) == Some(lease) || self.is_new {
            // A new directory gets its identity file with all of it.
            return Ok(());
        }
        self.write(IDENTITY_FILE, IDENTITY_TITLE, Some(self.roster))
    }

    fn write(&self, name: &str, title: &str, roster: Option<Roster>) -> Result<(), DirectoryError> {
        write_file(&self.path, name, &self.text(title, roster))
    }

    /// What an identity file says. Lines that a version does not know it overlooks.
    fn text(&self, title: &str, roster: Option<Roster>) -> String {
        let Identity { cluster, replica, group, fast_quorum, durability, engine } = self.identity;
        let ConfigurationId { group: group_id, epoch } = ConfigurationId::FIRST;
        let mut text = format!(
            "{title}\nformat = {DIRECTORY_FORMAT}\ncluster = {cluster:016x}\ngroup = {}\nepoch = {}\nreplica = {}\n\
             replicas = {}\nfast-quorum = {fast_quorum}\ndurability = {}\nengine = {engine}\nnode = {}\n\
             incarnation = {}\n",
            group_id.0,
            epoch.0,
            replica.0,
            group.size(),
            durability_name(durability),
            self.node,
            self.incarnation.0,
        );
        if let Some(roster) = roster {
            let nodes = roster.nodes().iter();
            let nodes = nodes.map(|node| format!("{:016x}", node.map_or(0, NodeId::number)));
            text += &format!("nodes = {}\n", nodes.collect::<Vec<_>>().join(" "));
        }
        if let Some(lease) = self.lease {
            text += &format!("{LEASE_KEY} = {}\n", lease.as_micros());
        }
        text
    }

    /// Which life of the node this is: one more than the last time its directory was opened.
    pub(crate) const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The node whose directory this is.
    pub(crate) const fn node(&self) -> NodeId {
        self.node
    }

    /// The nodes in the positions of the group, as far as they are known.
    pub(crate) const fn roster(&self) -> &Roster {
        &self.roster
    }

    /// What this node has voted for.
    pub(crate) const fn voted(&self) -> Option<Roster> {
        self.vote
    }

    /// True if this is the replica's first start: it has never acted.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// How to find out, from any thread, whether this directory still is where it was.
    pub(crate) fn anchor(&self) -> io::Result<Anchor> {
        let lock = self.lock.metadata()?;
        Ok(Anchor { path: self.path.clone(), device: lock.dev(), inode: lock.ino() })
    }

    /// Tries whether files can be written and made durable here, by writing one of a few megabytes; it
    /// leaves none behind. Writes nothing into a directory that has taken the place of this one.
    ///
    /// # Errors
    /// What the system said, or what is wrong with the directory.
    pub fn try_writing(&self) -> io::Result<()> {
        /// A disk with less space than this would be full again at once.
        const BYTES: usize = 4 << 20;
        if let Some(problem) = self.anchor()?.problem() {
            return Err(io::Error::new(ErrorKind::NotFound, problem));
        }
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
    Ok(read_file(path, IDENTITY_FILE, IDENTITY_TITLE)?.map(|found| found.identity))
}

/// Whose directory this will be when its group has been formed; `None` if it is nobody's, or has been formed.
///
/// # Errors
/// As [`read_identity`].
pub fn read_formation(path: &Path) -> Result<Option<Identity>, DirectoryError> {
    Ok(read_file(path, FORMATION_FILE, FORMATION_TITLE)?.map(|found| found.identity))
}

/// What an identity file says.
struct IdentityFile {
    identity: Identity,
    /// Absent in directories of before.
    node: Option<NodeId>,
    roster: Option<Roster>,
    lease: Option<Duration>,
    /// How often the node had started.
    incarnation: Incarnation,
    configuration: ConfigurationId,
}

fn read_file(path: &Path, name: &str, title: &'static str) -> Result<Option<IdentityFile>, DirectoryError> {
    let file = path.join(name);
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
    let fields = Fields::parse(&text, title).map_err(damaged)?;
    let format = fields.number("format").map_err(damaged)?;
    if !(MEMORY_FORMAT..=DIRECTORY_FORMAT).contains(&format) {
        return Err(DirectoryError::Format { path: path.to_owned(), found: format });
    }
    let identity = fields.identity().map_err(damaged)?;
    let node = fields.node().map_err(damaged)?;
    let roster = fields.roster(identity.group).map_err(damaged)?;
    let lease = fields.lease().map_err(damaged)?;
    let (incarnation, configuration) =
        if format <= DISKS_FORMAT { Ok(<_>::default()) } else { fields.life() }.map_err(damaged)?;
    Ok(Some(IdentityFile { identity, node, roster, lease, incarnation, configuration }))
}

fn random_node() -> Result<NodeId, DirectoryError> {
    loop {
        let number =
            getrandom::u64().map_err(|error| DirectoryError::Random(io::Error::other(error.to_string())))?;
        if let Some(node) = NodeId::new(number) {
            return Ok(node);
        }
    }
}

/// The lines `key = value` of an identity file.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn parse(text: &'a str, title: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(title) {
            return Err(format!("its first line is not '{title}'"));
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

    /// The value of this key, or in older formats of the other one.
    fn either(&self, key: &'static str, older: &'static str) -> Option<(&'static str, &'a str)> {
        [key, older].into_iter().find_map(|key| Some((key, self.get(key).ok()?)))
    }

    /// Directories of before have none.
    fn node(&self) -> Result<Option<NodeId>, String> {
        let Some((key, value)) = self.either("node", "disk") else { return Ok(None) };
        let node = u64::from_str_radix(value, 16).ok().and_then(NodeId::new);
        node.map(Some).ok_or_else(|| format!("{key} = {value} is not a hexadecimal number above 0"))
    }

    /// How often the node had started, and the configuration that it acted in.
    fn life(&self) -> Result<(Incarnation, ConfigurationId), String> {
        let (number, epoch) = (self.number("group")?, ConfigurationEpoch(self.number("epoch")?));
        let group = u32::try_from(number).map_err(|_| format!("group = {number} is above {}", u32::MAX))?;
        let group = GroupId(group);
        Ok((Incarnation(self.number("incarnation")?), ConfigurationId { group, epoch }))
    }

    /// Directories of before have none.
    fn lease(&self) -> Result<Option<Duration>, String> {
        if self.get(LEASE_KEY).is_err() {
            return Ok(None);
        }
        self.number(LEASE_KEY).map(|micros| Some(Duration::from_micros(micros)))
    }

    fn roster(&self, group: Group) -> Result<Option<Roster>, String> {
        let Some((key, value)) = self.either("nodes", "disks") else { return Ok(None) };
        let numbers: Result<Vec<u64>, _> =
            value.split(' ').map(|number| u64::from_str_radix(number, 16)).collect();
        let numbers = numbers.ok().filter(|numbers| numbers.len() == group.size());
        let numbers =
            numbers.ok_or_else(|| format!("{key} = {value} are not {} hexadecimal numbers", group.size()))?;
        let nodes =
            group.members().zip(numbers).filter_map(|(member, number)| Some((member, NodeId::new(number)?)));
        Ok(Some(nodes.fold(Roster::unknown(group), |roster, (member, node)| roster.with(member, node))))
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
    let name = path.join(LOCK_FILE);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(io_error("open", &name))?;
    let until = Instant::now() + LOCK_PATIENCE;
    let mut has_told = false;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if Instant::now() >= until {
                    return Err(DirectoryError::Locked(path.to_owned()));
                }
                if !std::mem::replace(&mut has_told, true) {
                    tracing::info!(
                        directory = %path.display(),
                        "the data directory is in use by another process: this one waits for that to end"
                    );
                }
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(error) => return Err(io_error("lock", &name)(error.into())),
        }
    }
}

/// A directory that is about to become a replica's may contain what an interrupted first start left
/// behind, and nothing else. (Whether that includes records is seen when the log is opened.)
fn refuse_strangers(path: &Path) -> Result<(), DirectoryError> {
    for entry in fs::read_dir(path).map_err(io_error("read directory", path))? {
        let entry = entry.map_err(io_error("read directory", path))?;
        let name = entry.file_name();
        // A file system of its own begins with an empty `lost+found` (ext2 to ext4).
        let known = [
            "lock",
            "identity.new",
            "formation",
            "formation.new",
            "wal",
            "snapshots",
            "engine",
            "view",
            RESERVE_FILE,
            "lost+found",
        ];
        if !known.iter().any(|&own| name == own) {
            return Err(DirectoryError::NotEmpty { path: path.to_owned(), found: name.into() });
        }
    }
    Ok(())
}

/// Writes a file so that a crash at any moment leaves all of it or what was there before.
fn write_file(path: &Path, name: &str, text: &str) -> Result<(), DirectoryError> {
    let (new, file) = (path.join(format!("{name}.new")), path.join(name));
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
    fn a_directory_that_is_not_there_any_more_is_noticed_and_its_place_left_alone() {
        let (path, away) = (scratch("anchor"), scratch("anchor-away"));
        let directory = DataDirectory::open(&path, identity(), true).unwrap();
        let anchor = directory.anchor().unwrap();
        let problem = || anchor.problem().unwrap_or_default();
        assert_eq!(problem(), "", "it has a file of before it is formed");
        directory.claim().unwrap();
        assert_eq!(problem(), "");
        directory.try_writing().unwrap();

        fs::rename(&path, &away).unwrap();
        assert!(problem().contains("removed or renamed") && problem().contains("anchor"), "{}", problem());
        // As what is below a file system that was unmounted.
        fs::create_dir(&path).unwrap();
        assert!(problem().contains("unmounted"), "{}", problem());
        assert!(directory.try_writing().unwrap_err().to_string().contains("unmounted"));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "nothing is written there");
        fs::write(path.join(LOCK_FILE), "").unwrap();
        assert!(problem().contains("another one"), "{}", problem());
        fs::remove_dir_all(&path).unwrap();

        fs::rename(&away, &path).unwrap();
        assert_eq!(problem(), "");
        fs::remove_file(path.join(IDENTITY_FILE)).unwrap();
        assert!(problem().contains("identity has been removed"), "{}", problem());
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_link_that_leads_nowhere_is_named() {
        let path = scratch("dangling");
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        let refused = DataDirectory::open(&path, identity(), true).unwrap_err().to_string();
        assert!(refused.contains("is a symbolic link to nowhere, which does not exist"), "{refused}");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn first_start_then_later_starts() {
        let path = scratch("starts");
        let refused = DataDirectory::open(&path, identity(), false).unwrap_err();
        assert!(matches!(refused, DirectoryError::Empty(_)), "{refused}");
        assert!(!path.exists(), "a refused start creates nothing");

        let mut first = DataDirectory::open(&path, identity(), true).unwrap();
        assert!(first.is_new());
        let roster = Roster::unknown(identity().group).with(identity().replica, first.node());
        first.vote(roster).unwrap();
        first.form(roster);
        let node = first.node();
        drop(first);
        // It is interrupted, and repeated without being told so.
        let mut first = DataDirectory::open(&path, identity(), false).unwrap();
        assert!(first.is_new());
        assert_eq!((first.node(), first.voted()), (node, Some(roster)));
        first.form(roster);
        first.claim().unwrap();
        assert!(!path.join(FORMATION_FILE).exists());
        let refused = DataDirectory::open(&path, identity(), false).unwrap_err();
        assert!(matches!(refused, DirectoryError::Locked(_)), "{refused}");
        drop(first);

        let refused = DataDirectory::open(&path, identity(), true).unwrap_err();
        assert!(matches!(refused, DirectoryError::AlreadyBootstrapped { .. }), "{refused}");
        let again = DataDirectory::open(&path, identity(), false).unwrap();
        assert!(!again.is_new());
        assert_eq!(again.incarnation(), Incarnation(3), "it was opened twice before");
        assert_eq!((again.node(), *again.roster()), (node, roster));
        assert_eq!(read_identity(&path).unwrap(), Some(identity()));
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_longer_lease_is_remembered_until_it_has_been_waited_out() {
        let path = scratch("lease");
        let (long, short) = (Duration::from_secs(20), Duration::from_millis(200));
        let mut new = DataDirectory::open(&path, identity(), true).unwrap();
        assert_eq!(new.begin_promises(long).unwrap(), long);
        new.claim().unwrap();
        drop(new);
        // Whoever ends before the promise does begins anew with waiting.
        for _ in 0..2 {
            let mut again = DataDirectory::open(&path, identity(), false).unwrap();
            assert_eq!(again.begin_promises(short).unwrap(), long);
        }
        let mut again = DataDirectory::open(&path, identity(), false).unwrap();
        assert_eq!(again.begin_promises(short).unwrap(), long);
        again.end_promises(short).unwrap();
        drop(again);
        let mut again = DataDirectory::open(&path, identity(), false).unwrap();
        assert_eq!(again.begin_promises(short).unwrap(), short);
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_directory_without_a_node_gets_one_and_learns_the_others() {
        let path = scratch("before");
        DataDirectory::open(&path, identity(), true).unwrap().claim().unwrap();
        let file = path.join(IDENTITY_FILE);
        let text = fs::read_to_string(&file).unwrap();
        let unknown = ["node", "incarnation", "group", "epoch", "engine"];
        let lines = text.lines().filter(|line| !unknown.iter().any(|key| line.starts_with(key)));
        let before: String = lines.map(|line| format!("{line}\n")).collect();
        let before = before.replace("format = 3", "format = 1");
        fs::write(&file, before).unwrap();

        let mut opened = DataDirectory::open(&path, identity(), false).unwrap();
        let node = opened.node();
        assert!(!opened.is_new());
        assert_eq!(*opened.roster(), Roster::unknown(identity().group).with(identity().replica, node));
        let learnt = opened.roster().with(ReplicaId(0), NodeId::new(5).unwrap());
        opened.learn(learnt).unwrap();
        drop(opened);
        let again = DataDirectory::open(&path, identity(), false).unwrap();
        assert_eq!((again.node(), *again.roster()), (node, learnt));
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_file_system_of_its_own_is_no_stranger_s_directory() {
        let path = scratch("mount");
        fs::create_dir_all(path.join("lost+found")).unwrap();
        assert!(DataDirectory::open(&path, identity(), true).unwrap().is_new());
        fs::write(path.join("novel.txt"), "").unwrap();
        let refused = DataDirectory::open(&path, identity(), true).unwrap_err();
        assert!(matches!(refused, DirectoryError::NotEmpty { .. }), "{refused}");
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_lock_is_waited_for() {
        let path = scratch("lock");
        let first = DataDirectory::open(&path, identity(), true).unwrap();
        first.claim().unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| DataDirectory::open(&path, identity(), false));
            // Whether it is let go before the other asks or after makes no difference.
            drop(first);
            assert!(second.join().unwrap().is_ok());
        });
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
            ("format = 3", "format = 9", "format 9"),
            ("format = 3", "format = x", "format = x is not a number"),
            ("replica = 2", "replica = 3", "replica = 3 is not below 3"),
            ("replicas = 3", "replicas = 4", "replicas = 4"),
            ("majority", "minority", "fast-quorum = minority"),
            ("fsync", "hope", "durability = hope"),
            ("cluster = 0000000000000077\n", "", "no line 'cluster'"),
            ("node = ", "node = x", "is not a hexadecimal number above 0"),
            ("nodes = ", "nodes = 1 ", "are not 3 hexadecimal numbers"),
            ("incarnation = ", "lives = ", "no line 'incarnation'"),
            ("group = 0", "group = 4294967296", "group = 4294967296 is above 4294967295"),
            ("epoch = 0", "epoch = 1", "it names group 0, epoch 1; here it is group 0, epoch 0"),
            ("group = 0", "group = 7", "it names group 7, epoch 0; here it is group 0, epoch 0"),
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
