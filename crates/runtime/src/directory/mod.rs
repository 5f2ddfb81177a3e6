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
//! DIRECTORY/restoring  while the directory is made from a backup: nothing in it is of use before that ends
//! DIRECTORY/damaged-N/ log and snapshots that were found to be damaged and are no longer used
//! ```
//!
//! A replica that lost its disk must never come back under its old identity: acknowledgements it gave
//! and no longer knows of may still be counted by others. So an empty directory is only ever made into
//! a replica's when the operator says that this is the first start, and when no other member knows better:
//! `syros_protocol::formation` decides that. A directory of a version before 0.1 gets its node's number at its
//! first start with a later one, and learns the others' from them.

mod error;
mod identity;
mod identity_file;
mod lock;
mod presence;
mod restoring;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use syros_types::{ConfigurationEpoch, ConfigurationId, Incarnation, NodeId, Reconfiguration, Roster};
use syros_wal::{FileDisk, LOCK_FILE, OpenDirectory};

pub use error::DirectoryError;
pub(crate) use identity::BackupId;
pub use identity::{Identity, durability_name, durability_named, fast_quorum_named};
pub(crate) use identity_file::read_membership;
pub use identity_file::{read_formation, read_identity};
pub(crate) use presence::PresenceCheck;
pub(crate) use restoring::RestoringDirectory;

use crate::config::FirstStart;
use crate::reserve::{RESERVE_FILE, make_room_to_start};
use error::io_error;
use identity_file::{FORMATION, FileKind, IDENTITY, IdentityFile};
use lock::open_locked;

/// Version of the layout of a data directory. A process refuses every later one.
pub const DIRECTORY_FORMAT: u64 = 3;

/// The directory of the write-ahead log.
pub(crate) const WAL: &str = "wal";

/// The directory of the snapshots.
pub(crate) const SNAPSHOTS: &str = "snapshots";

/// The directory with the stores of an engine on disk.
pub(crate) const ENGINE: &str = "engine";

/// The directory of the view.
pub(crate) const VIEW: &str = "view";

/// What [`DataDirectory::try_writing`] writes.
const PROBE_FILE: &str = "probe.tmp";

/// What the names of directories with damaged stores begin with; a number follows.
pub(crate) const DAMAGED_PREFIX: &str = "damaged-";

/// A data directory that this process owns until the value is dropped.
#[derive(Debug)]
pub struct DataDirectory {
    /// The directory, with its lock; the system releases that when the process ends, however it ends.
    disk: FileDisk,
    identity: Identity,
    node: NodeId,
    /// Which life of the node this is.
    incarnation: Incarnation,
    /// The configuration that the replica acts in. Its roster names the nodes in the positions of the group, as far as they are
    /// known.
    configuration: Reconfiguration,
    /// Before the node is in the group: the place that it asks for.
    place_wanted: Option<FirstStart>,
    /// The longest lease that the replica may have promised and not waited out.
    lease: Option<Duration>,
    /// Before the group is formed: the roster that this node has voted for.
    vote: Option<Roster>,
    is_new: bool,
    /// The node copies what a group holds that it is not in. Nothing else in the directory is worth anything before it is.
    learns: bool,
    /// The backup that the group began with.
    restored: Option<BackupId>,
}

impl DataDirectory {
    /// Opens the directory of a replica, or creates it on its first start. A first start that did not get as far as
    /// [`DataDirectory::claim`] may be repeated, as a first start or not.
    ///
    /// # Errors
    /// [`DirectoryError`]: it is in use, belongs to somebody else, is missing, or exists already.
    pub fn open(
        path: &Path,
        identity: Identity,
        first_start: Option<FirstStart>,
    ) -> Result<Self, DirectoryError> {
        let file = path.join(IDENTITY.name);
        if first_start.is_none() && !exists(&file)? && !exists(&path.join(FORMATION.name))? {
            return Err(if exists(&path.join(WAL))? {
                DirectoryError::Damaged { path: file, problem: "it is missing".to_owned() }
            } else {
                DirectoryError::Empty(path.to_owned())
            });
        }
        fs::create_dir_all(path).map_err(|error| match fs::read_link(path) {
            Ok(target) if !path.exists() => DirectoryError::Dangling { path: path.to_owned(), target },
            _ => io_error("create directory", path)(error),
        })?;
        // One that is refused gets no lock, and keeps everything that is in it.
        if !exists(&path.join(LOCK_FILE))? {
            examine(path, identity, first_start)?;
        }
        make_room_to_start(path);
        let disk = open_locked(path)?;
        sync_parent(path)?;
        // Another process may have made something of it meanwhile.
        let Examined { found, is_new, identity } = examine(path, identity, first_start)?;
        let restored = found.as_ref().and_then(|found| found.restored);
        let nothing = Roster::unknown(identity.group);
        let configuration = found.as_ref().map_or(ConfigurationId::FIRST, |found| found.configuration);
        let was_wanted = found.as_ref().and_then(|found| found.place_wanted);
        let incarnation = found.as_ref().map_or(Incarnation::UNKNOWN, |found| found.incarnation).next();
        let lease = found.as_ref().and_then(|found| found.lease);
        let before = found.as_ref().and_then(|found| found.before);
        let known = found.and_then(|found| Some((found.node?, found.roster)));
        let (node, roster) = match known {
            Some(known) => known,
            None => (random_node()?, None),
        };
        let own = |roster: Option<Roster>| match roster.unwrap_or(nothing) {
            // The group has shrunk by this node.
            known if !known.group().has(identity.replica) => known,
            known => known.with(identity.replica, node),
        };
        let (vote, roster) = if is_new { (roster, nothing) } else { (None, own(roster)) };
        let configuration = Reconfiguration { epoch: configuration.epoch, roster, before };
        // A node that has voted may be in its group already.
        let wanted = first_start.filter(|first_start| first_start.asks_for_place() && vote.is_none());
        let place_wanted = wanted.or(was_wanted).filter(|_| is_new);
        let mut directory = Self {
            disk,
            identity,
            node,
            incarnation,
            configuration,
            place_wanted,
            lease,
            vote,
            is_new,
            learns: false,
            restored,
        };
        directory.write_all()?;
        Ok(directory)
    }

    /// What others are told of node and life must be found again. So a directory of an older format becomes one of this.
    fn write_all(&mut self) -> Result<(), DirectoryError> {
        if self.is_new {
            self.write(FORMATION, self.vote)
        } else {
            self.write(IDENTITY, Some(self.configuration.roster))
        }
    }

    /// Makes the directory the replica's, if this is its first start. Called when everything else in it
    /// has been made, so that an interrupted first start can be repeated, and that from then on anything
    /// missing has been lost.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub fn claim(&mut self) -> Result<(), DirectoryError> {
        if !self.is_new || self.learns {
            return Ok(());
        }
        self.place_wanted = None;
        self.write(IDENTITY, Some(self.configuration.roster))?;
        self.forget_formation()
    }

    /// The node is in its group. If the file stayed and the identity were lost, what the node holds would be taken for the copy of one
    /// that is in none: see [`DataDirectory::forget_copy`].
    fn forget_formation(&self) -> Result<(), DirectoryError> {
        match self.open_directory().remove_file(FORMATION.name) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(io_error("remove file", &self.path().join(FORMATION.name))(error))
            }
            _ => Ok(()),
        }
    }

    /// The node copies what the group of this configuration holds, and is none of its members.
    pub(crate) const fn learn_from(&mut self, configuration: Reconfiguration) {
        self.form(configuration);
        self.learns = true;
    }

    /// Removes what a node has copied that was to come into a group and was stopped before it did.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub(crate) fn forget_copy(&self) -> Result<(), DirectoryError> {
        // Whoever asks for a place began with an empty directory, whichever place that was.
        if !self.is_new || self.place_wanted.is_none() {
            return Ok(());
        }
        for name in [WAL, SNAPSHOTS, ENGINE, VIEW] {
            let path = self.path().join(name);
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(io_error("remove directory", &path)(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes durable for which roster this node votes.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub(crate) fn vote(&mut self, roster: Roster) -> Result<(), DirectoryError> {
        self.write(FORMATION, Some(roster))?;
        self.vote = Some(roster);
        Ok(())
    }

    /// The node is in the group, which has this configuration: [`DataDirectory::claim`] writes it.
    pub(crate) const fn form(&mut self, configuration: Reconfiguration) {
        self.configuration = configuration;
        self.identity.group = configuration.roster.group();
    }

    /// Makes durable which configuration the replica acts in from now on.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub(crate) fn adopt(&mut self, configuration: Reconfiguration) -> Result<(), DirectoryError> {
        self.form(configuration);
        if self.learns {
            if !configuration.has_voter(self.identity.replica, self.node) {
                return Ok(());
            }
            (self.learns, self.place_wanted) = (false, None);
        }
        let mut written = self.write(IDENTITY, Some(configuration.roster));
        if written.is_err() {
            // The reserve is for what a node cannot do without.
            let _ = self.open_directory().remove_file(RESERVE_FILE);
            written = self.write(IDENTITY, Some(configuration.roster));
        }
        written?;
        if self.is_new { self.forget_formation() } else { Ok(()) }
    }

    /// Makes durable who the others are, of a directory that did not know.
    ///
    /// # Errors
    /// [`DirectoryError::Io`].
    pub(crate) fn learn(&mut self, roster: Roster) -> Result<(), DirectoryError> {
        if self.learns {
            self.configuration.roster = roster;
            return Ok(());
        }
        self.write(IDENTITY, Some(roster))?;
        self.configuration.roster = roster;
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
        self.write(IDENTITY, Some(self.configuration.roster))
    }

    fn write(&mut self, kind: FileKind, roster: Option<Roster>) -> Result<(), DirectoryError> {
        let file = IdentityFile {
            identity: self.identity,
            node: Some(self.node),
            roster,
            before: self.configuration.before,
            lease: self.lease,
            incarnation: self.incarnation,
            configuration: ConfigurationId { epoch: self.configuration.epoch, ..ConfigurationId::FIRST },
            place_wanted: self.place_wanted,
            restored: self.restored,
        };
        file.write(&mut self.disk, kind)
    }

    /// What is written in it: who the node is, and what its cluster was made with.
    pub(crate) const fn identity(&self) -> Identity {
        self.identity
    }

    /// Which life of the node this is: one more than the last time its directory was opened.
    pub(crate) const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// The node whose directory this is.
    pub(crate) const fn node(&self) -> NodeId {
        self.node
    }

    /// The configuration that the replica acts in.
    pub(crate) const fn configuration(&self) -> Reconfiguration {
        self.configuration
    }

    /// The place that the node asks for in a group that exists, if it is in none yet.
    pub(crate) const fn place_wanted(&self) -> Option<FirstStart> {
        self.place_wanted
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

    /// True if log and snapshots are there, or have been lost: the replica has acted, or begins with a backup.
    #[must_use]
    pub const fn holds_state(&self) -> bool {
        !self.is_new || self.restored.is_some()
    }

    /// How to find out, from any thread, whether this directory still is where it was.
    pub(crate) fn presence(&self) -> io::Result<PresenceCheck> {
        PresenceCheck::new(&self.disk)
    }

    /// Tries whether files can be written and made durable here, by writing one of a few megabytes; it
    /// leaves none behind. Writes nothing into a directory that has taken the place of this one.
    ///
    /// # Errors
    /// What the system said, or what is wrong with the directory.
    pub fn try_writing(&self) -> io::Result<()> {
        /// A disk with less space than this would be full again at once.
        const BYTES: usize = 4 << 20;
        if let Some(problem) = self.presence()?.problem() {
            return Err(io::Error::new(ErrorKind::NotFound, problem));
        }
        let directory = self.open_directory();
        let created = directory.open_file(PROBE_FILE, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC);
        let written = created.and_then(|mut file| {
            file.write_all(&vec![0; BYTES])?;
            file.sync_all()
        });
        let removed = directory.remove_file(PROBE_FILE);
        written.and(removed)
    }

    /// The directory that is locked: what is done in it is done there, wherever its path leads meanwhile.
    pub(crate) const fn open_directory(&self) -> &OpenDirectory {
        self.disk.directory()
    }

    /// Where the directory was when it was opened. A running node writes through [`DataDirectory::open_directory`].
    pub(crate) fn path(&self) -> &Path {
        self.disk.path()
    }

    /// Where snapshots live.
    #[must_use]
    pub fn snapshots(&self) -> PathBuf {
        self.path().join(SNAPSHOTS)
    }

    /// A name that is not taken, for what is damaged.
    pub(crate) fn free_name(&self) -> io::Result<String> {
        let mut number: u64 = 1;
        loop {
            let name = format!("{DAMAGED_PREFIX}{number}");
            if !self.open_directory().contains(&name)? {
                return Ok(name);
            }
            number += 1;
        }
    }
}

/// What is in a directory that the node may use.
struct Examined {
    found: Option<IdentityFile>,
    is_new: bool,
    /// The node's identity, with what has changed about its cluster since that was configured.
    identity: Identity,
}

/// Looks whether a directory may be used, and changes nothing.
fn examine(
    path: &Path,
    identity: Identity,
    first_start: Option<FirstStart>,
) -> Result<Examined, DirectoryError> {
    let (found, is_new) = match IdentityFile::read(path, IDENTITY)? {
        Some(found) => {
            if let Some(first_start) = first_start {
                let (path, identity) = (path.to_owned(), found.identity);
                return Err(DirectoryError::AlreadyInUse { path, identity, first_start });
            }
            (Some(found), false)
        }
        None => (check_new(path, first_start)?, true),
    };
    let restored = found.as_ref().and_then(|found| found.restored);
    // The configuration may name the cluster as it did when the directory was made from a backup, or as it is called since.
    let is_named = found.as_ref().is_some_and(|found| found.identity.cluster == identity.cluster);
    let cluster = restored.filter(|_| !is_named).map(|backup| backup.cluster(identity.cluster));
    let identity = Identity { cluster: cluster.unwrap_or(identity.cluster), ..identity };
    // The group may have another size by now than the list of nodes in the configuration says.
    let resized =
        found.as_ref().filter(|found| !is_new && found.configuration.epoch > ConfigurationEpoch::FIRST);
    let identity =
        Identity { group: resized.map_or(identity.group, |found| found.identity.group), ..identity };
    // The mode that the cluster was made with goes on until the leader is asked to change it.
    let identity = match &found {
        Some(found) if !is_new && found.identity.fast_quorum.may_become(identity.fast_quorum) => {
            Identity { fast_quorum: found.identity.fast_quorum, ..identity }
        }
        _ => identity,
    };
    if let Some(found) = found.as_ref().filter(|found| found.identity != identity) {
        let (found, expected) = (Box::new(found.identity), Box::new(identity));
        return Err(DirectoryError::Mismatch { path: path.to_owned(), found, expected });
    }
    let configuration = found.as_ref().map_or(ConfigurationId::FIRST, |found| found.configuration);
    ConfigurationId::FIRST
        .check(configuration.of_group())
        .map_err(|other| DirectoryError::Configuration { path: path.to_owned(), other })?;
    Ok(Examined { found, is_new, identity })
}

/// Checks a directory without an identity: whether the node may begin in it. Gives back what an earlier start has left.
fn check_new(path: &Path, first_start: Option<FirstStart>) -> Result<Option<IdentityFile>, DirectoryError> {
    refuse_unknown_contents(path)?;
    let found = IdentityFile::read(path, FORMATION)?;
    match (&found, first_start) {
        (Some(found), Some(FirstStart::Bootstrap)) if found.place_wanted.is_some() => {
            return Err(DirectoryError::Replaces(path.to_owned()));
        }
        // What it holds is for a new cluster.
        (Some(found), Some(FirstStart::Replace | FirstStart::Join)) if found.restored.is_some() => {
            refuse_data(path)?;
        }
        // Before anybody is asked: a node whose place is taken cannot come back, whatever is found here.
        (None, Some(FirstStart::Replace | FirstStart::Join)) => refuse_data(path)?,
        _ => {}
    }
    Ok(found)
}

/// Makes the name of the directory durable.
fn sync_parent(path: &Path) -> Result<(), DirectoryError> {
    let Some(parent) = path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned)) else {
        return Ok(());
    };
    File::open(&parent).and_then(|parent| parent.sync_all()).map_err(io_error("sync directory", &parent))
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

fn exists(path: &Path) -> Result<bool, DirectoryError> {
    path.try_exists().map_err(io_error("read", path))
}

/// A node that is to take the place of another one begins with nothing.
fn refuse_data(path: &Path) -> Result<(), DirectoryError> {
    for name in [WAL, SNAPSHOTS, ENGINE, VIEW] {
        let directory = path.join(name);
        let is_empty = match fs::read_dir(&directory) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(error) => return Err(io_error("read directory", &directory)(error)),
        };
        if !is_empty {
            return Err(DirectoryError::HoldsData { path: path.to_owned(), found: name });
        }
    }
    Ok(())
}

/// A directory that is about to become a replica's may contain what an interrupted first start left
/// behind, and nothing else. (Whether that includes records is seen when the log is opened.)
fn refuse_unknown_contents(path: &Path) -> Result<(), DirectoryError> {
    for entry in fs::read_dir(path).map_err(io_error("read directory", path))? {
        let entry = entry.map_err(io_error("read directory", path))?;
        let name = entry.file_name();
        // A file system of its own begins with an empty `lost+found` (ext2 to ext4).
        let known = [
            LOCK_FILE,
            "identity.tmp",
            "formation",
            "formation.tmp",
            // What older builds may have left behind.
            "identity.new",
            "formation.new",
            WAL,
            SNAPSHOTS,
            ENGINE,
            VIEW,
            RESERVE_FILE,
            "lost+found",
        ];
        if !known.iter().any(|&own| name == own) {
            return Err(DirectoryError::NotEmpty { path: path.to_owned(), found: name.into() });
        }
    }
    Ok(())
}
