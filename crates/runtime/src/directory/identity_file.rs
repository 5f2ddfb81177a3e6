//! The files `identity` and `formation`: a title, and lines `key = value`. They are written whole or not at all.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use syros_machine::MachineName;
use syros_types::{
    ConfigurationEpoch, ConfigurationId, Group, GroupId, Incarnation, NodeId, Reconfiguration, ReplicaId,
    Roster,
};
use syros_wal::{FileDisk, replace_file};

use super::DIRECTORY_FORMAT;
use super::error::{DirectoryError, io_error};
use super::identity::{BackupId, Identity, durability_name, durability_named, fast_quorum_named};
use crate::config::{EngineKind, FirstStart};

/// Version of a directory with keys in memory: what wrote it knew of nothing else.
const MEMORY_FORMAT: u64 = 1;

/// Last version of a directory that names no configuration and no lives, and calls nodes disks.
const DISKS_FORMAT: u64 = 2;

/// The line with the longest lease that was promised, in microseconds.
const LEASE_KEY: &str = "lease-micros";

/// The line that says that the node is to take the place of another one.
const REPLACES_KEY: &str = "replaces";

/// The line that says that the node is one of the two that the cluster grows by.
const JOINS_KEY: &str = "joins";

/// The line with the nodes before the size of the group changed.
const BEFORE_KEY: &str = "nodes-before";

/// The line with the number of the backup that the data comes from.
const RESTORED_KEY: &str = "restored-from";

/// One of the two files. Their first lines tell them from everything else that might have their names.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileKind {
    pub(super) name: &'static str,
    title: &'static str,
}

/// Who this node is and who the others are.
pub(super) const IDENTITY: FileKind = FileKind { name: "identity", title: "syros replica identity" };

/// The same, before the group is formed.
pub(super) const FORMATION: FileKind = FileKind { name: "formation", title: "syros replica formation" };

/// An identity file is a few lines; anything longer is none.
const IDENTITY_BYTES_MAX: u64 = 4096;

/// Whose directory this is; `None` if it is nobody's. Takes no lock.
///
/// # Errors
/// [`DirectoryError`] if the identity cannot be read or is damaged or of an unknown format.
pub fn read_identity(path: &Path) -> Result<Option<Identity>, DirectoryError> {
    Ok(IdentityFile::read(path, IDENTITY)?.map(|found| found.identity))
}

/// Whose directory this is, and in which configuration its replica acts; `None` if it is nobody's. Takes no lock.
///
/// # Errors
/// As [`read_identity`].
pub(crate) fn read_membership(path: &Path) -> Result<Option<(Identity, Reconfiguration)>, DirectoryError> {
    Ok(IdentityFile::read(path, IDENTITY)?.map(|found| {
        let roster = found.roster.unwrap_or_else(|| Roster::unknown(found.identity.group));
        let (epoch, before) = (found.configuration.epoch, found.before);
        (found.identity, Reconfiguration { epoch, roster, before })
    }))
}

/// Whose directory this will be when its group has been formed; `None` if it is nobody's, or has been formed.
///
/// # Errors
/// As [`read_identity`].
pub fn read_formation(path: &Path) -> Result<Option<Identity>, DirectoryError> {
    Ok(IdentityFile::read(path, FORMATION)?.map(|found| found.identity))
}

/// What an identity file says.
#[derive(Clone, Debug)]
pub(super) struct IdentityFile {
    pub(super) identity: Identity,
    /// Absent in directories of before.
    pub(super) node: Option<NodeId>,
    pub(super) roster: Option<Roster>,
    /// The roster before, if that is of another size.
    pub(super) before: Option<Roster>,
    pub(super) lease: Option<Duration>,
    /// How often the node had started.
    pub(super) incarnation: Incarnation,
    pub(super) configuration: ConfigurationId,
    /// The place that the node asks a cluster for which exists: it has not got it yet.
    pub(super) place_wanted: Option<FirstStart>,
    /// The backup that the group began with.
    pub(super) restored: Option<BackupId>,
}

impl IdentityFile {
    /// Reads the file of the directory `path`; `None` if it is not there.
    pub(super) fn read(path: &Path, kind: FileKind) -> Result<Option<Self>, DirectoryError> {
        let file = path.join(kind.name);
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
        let fields = Fields::parse(&text, kind.title).map_err(damaged)?;
        let format = fields.number("format").map_err(damaged)?;
        if !(MEMORY_FORMAT..=DIRECTORY_FORMAT).contains(&format) {
            return Err(DirectoryError::Format { path: path.to_owned(), found: format });
        }
        let before = fields.before().map_err(damaged)?;
        let identity = fields.identity(before.as_ref()).map_err(damaged)?;
        let node = fields.node().map_err(damaged)?;
        let roster = fields.roster(identity.group).map_err(damaged)?;
        let lease = fields.lease().map_err(damaged)?;
        let (incarnation, configuration) =
            if format <= DISKS_FORMAT { Ok(<_>::default()) } else { fields.life() }.map_err(damaged)?;
        let place_wanted = fields.place_wanted().map_err(damaged)?;
        let restored = fields.restored().map_err(damaged)?;
        Ok(Some(Self {
            identity,
            node,
            roster,
            before,
            lease,
            incarnation,
            configuration,
            place_wanted,
            restored,
        }))
    }

    /// Writes the file, durably: a crash leaves all of it or what was there before.
    pub(super) fn write(&self, disk: &mut FileDisk, kind: FileKind) -> Result<(), DirectoryError> {
        replace_file(disk, kind.name, self.text(kind.title).as_bytes())
            .map_err(|source| DirectoryError::Write { path: disk.path().to_owned(), source })
    }

    /// What the file says. Lines that a version does not know it overlooks.
    fn text(&self, title: &str) -> String {
        let Identity { cluster, replica, group, fast_quorum, durability, engine } = self.identity;
        let ConfigurationId { group: group_id, epoch } = self.configuration;
        let mut text = format!(
            "{title}\nformat = {DIRECTORY_FORMAT}\ncluster = {cluster:016x}\ngroup = {}\nepoch = {}\nreplica = {}\n\
             replicas = {}\nfast-quorum = {fast_quorum}\ndurability = {}\nengine = {engine}\n",
            group_id.0,
            epoch.0,
            replica.0,
            group.size(),
            durability_name(durability),
        );
        if let Some(node) = self.node {
            text += &format!("node = {node}\n");
        }
        text += &format!("incarnation = {}\n", self.incarnation.0);
        for (key, roster) in [("nodes", self.roster), (BEFORE_KEY, self.before)] {
            let Some(roster) = roster else { continue };
            let nodes = roster.nodes().iter();
            let nodes = nodes.map(|node| format!("{:016x}", node.map_or(0, NodeId::number)));
            text += &format!("{key} = {}\n", nodes.collect::<Vec<_>>().join(" "));
        }
        match self.place_wanted {
            Some(FirstStart::Join) => text += &format!("{JOINS_KEY} = true\n"),
            Some(_) => text += &format!("{REPLACES_KEY} = true\n"),
            None => {}
        }
        if let Some(BackupId(backup)) = self.restored {
            text += &format!("{RESTORED_KEY} = {backup:016x}\n");
        }
        if let Some(lease) = self.lease {
            text += &format!("{LEASE_KEY} = {}\n", lease.as_micros());
        }
        text
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
        if epoch > ConfigurationEpoch::MAX {
            return Err(format!("epoch = {} is above {}", epoch.0, ConfigurationEpoch::MAX.0));
        }
        let group = u32::try_from(number).map_err(|_| format!("group = {number} is above {}", u32::MAX))?;
        let group = GroupId(group);
        Ok((Incarnation(self.number("incarnation")?), ConfigurationId { group, epoch }))
    }

    /// Only directories that were made from a backup say so.
    fn restored(&self) -> Result<Option<BackupId>, String> {
        let Ok(value) = self.get(RESTORED_KEY) else { return Ok(None) };
        let backup = u64::from_str_radix(value, 16).ok().filter(|backup| *backup > 0);
        let problem = || format!("{RESTORED_KEY} = {value} is not a hexadecimal number above 0");
        backup.map(|backup| Some(BackupId(backup))).ok_or_else(problem)
    }

    fn place_wanted(&self) -> Result<Option<FirstStart>, String> {
        for (key, wanted) in [(REPLACES_KEY, FirstStart::Replace), (JOINS_KEY, FirstStart::Join)] {
            match self.get(key) {
                Err(_) => {}
                Ok("true") => return Ok(Some(wanted)),
                Ok(value) => return Err(format!("{key} = {value} is not 'true'")),
            }
        }
        Ok(None)
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
        let roster = roster_of(value).filter(|roster| roster.group() == group);
        let problem = || format!("{key} = {value} are not {} hexadecimal numbers", group.size());
        roster.map(Some).ok_or_else(problem)
    }

    /// Only nodes of a group whose size has changed have it.
    fn before(&self) -> Result<Option<Roster>, String> {
        let Ok(value) = self.get(BEFORE_KEY) else { return Ok(None) };
        let problem = || format!("{BEFORE_KEY} = {value} are not 1, 3, 5, 7 or 9 hexadecimal numbers");
        roster_of(value).map(Some).ok_or_else(problem)
    }

    fn identity(&self, before: Option<&Roster>) -> Result<Identity, String> {
        let replica = self.number("replica")?;
        let size = self.number("replicas")?;
        let group = usize::try_from(size).ok().and_then(|size| Group::new(size).ok());
        let group = group.ok_or_else(|| format!("replicas = {size} is not 1, 3, 5, 7 or 9"))?;
        // A node that the group has shrunk by may be needed yet.
        let is_one = |member: &ReplicaId| {
            group.has(*member) || before.is_some_and(|before| before.group().has(*member))
        };
        let member = u8::try_from(replica).ok().map(ReplicaId).filter(is_one);
        let cluster = self.get("cluster")?;
        let (quorum, durability) = (self.get("fast-quorum")?, self.get("durability")?);
        Ok(Identity {
            cluster: u64::from_str_radix(cluster, 16)
                .map_err(|_| format!("cluster = {cluster} is not a hexadecimal number"))?,
            replica: member.ok_or_else(|| format!("replica = {replica} is not below {size}"))?,
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

/// The nodes whose numbers a line has, 0 where one is not known.
fn roster_of(value: &str) -> Option<Roster> {
    let numbers: Result<Vec<u64>, _> =
        value.split(' ').map(|number| u64::from_str_radix(number, 16)).collect();
    let numbers = numbers.ok()?;
    let group = Group::new(numbers.len()).ok()?;
    let nodes =
        group.members().zip(numbers).filter_map(|(member, number)| Some((member, NodeId::new(number)?)));
    Some(nodes.fold(Roster::unknown(group), |roster, (member, node)| roster.with(member, node)))
}
