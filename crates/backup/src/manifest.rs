//! The manifest of a backup: a title, lines `key = value`, and a checksum of all of them. It is written last.

use crate::error::BackupError;
use crate::layout::{FORMAT, MANIFEST, part_name};
use crate::storage::Place;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::str::FromStr;
use syros_types::{OpNumber, View, WallTime};

const TITLE: &str = "syros backup";

/// A manifest is a few lines, and one for each part of 256 MiB; anything longer is none.
const MANIFEST_BYTES_MAX: usize = 16 << 20;

/// Most parts that a manifest has room for: a line for each has about 95 bytes.
pub(crate) const PARTS_MAX: usize = 160_000;

/// A SHA-256 hash.
pub(crate) type Hash = [u8; 32];

/// What a file with data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its length in bytes.
    pub bytes: u64,
    /// The SHA-256 hash of all of it.
    pub hash: [u8; 32],
}

/// What a backup is of, as the one who makes it knows before it has been read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// A random number, by which nodes know that they were restored from the same backup; not 0.
    pub id: u64,
    /// The cluster.
    pub cluster: u64,
    /// The version of the program that made the backup.
    pub product: String,
    /// When it was made.
    pub created: WallTime,
    /// The snapshot's last entry and its length in bytes; `None` if the records go back to the beginning.
    pub snapshot: Option<(OpNumber, u64)>,
    /// The last entry of the log in it: the snapshot's, if there are no entries behind that.
    pub last: LastEntry,
    /// Bytes of records behind the snapshot.
    pub record_bytes: u64,
}

/// The last entry of the log in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastEntry {
    /// Its number.
    pub op_number: OpNumber,
    /// Its view.
    pub view: View,
    /// Its log time.
    pub time: WallTime,
}

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// What it is of.
    pub origin: Origin,
    /// Keys in the snapshot.
    pub keys: u64,
    /// The digest of the snapshot's state.
    pub digest: u64,
    /// An engine on disk wrote the snapshot.
    pub is_of_disk_engine: bool,
    /// The files with the data, in their order.
    pub parts: Vec<Part>,
}

impl Manifest {
    /// What the parts take, in bytes.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes).sum()
    }

    /// What the data takes that is not compressed, in bytes.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        let Origin { snapshot, record_bytes, .. } = &self.origin;
        snapshot.map_or(0, |(_, bytes)| bytes) + record_bytes
    }

    /// The name of the kind of engine whose data it is.
    #[must_use]
    pub const fn engine(&self) -> &'static str {
        if self.is_of_disk_engine { "disk" } else { "memory" }
    }

    pub(crate) fn text(&self) -> String {
        let Origin { id, cluster, product, created, snapshot, last, record_bytes } = &self.origin;
        let (snapshot, snapshot_bytes) = snapshot.unwrap_or_default();
        let mut text = format!(
            "{TITLE}\nformat = {FORMAT}\nbackup = {id:016x}\ncluster = {cluster:016x}\nproduct = {product}\n\
             created-micros = {}\nengine = {}\nlast-entry = {}\nlast-view = {}\nlast-time-micros = {}\n\
             snapshot-entry = {}\nsnapshot-bytes = {snapshot_bytes}\nkeys = {}\ndigest = {:016x}\n\
             record-bytes = {record_bytes}\n",
            created.0,
            self.engine(),
            last.op_number.0,
            last.view.0,
            last.time.0,
            snapshot.0,
            self.keys,
            self.digest,
        );
        for (number, Part { bytes, hash }) in (1..).zip(&self.parts) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "part = {} {bytes} {}", part_name(number), hexadecimal(hash));
        }
        let checksum = hexadecimal(&Sha256::digest(&text).into());
        text + "sha256 = " + &checksum + "\n"
    }

    /// Reads the manifest of the backup in a place.
    pub(crate) fn read(place: &Place) -> Result<Self, BackupError> {
        let name = place.name_of(MANIFEST);
        let damaged = |problem: &str| BackupError::Damaged {
            place: name.clone(),
            offset: 0,
            problem: problem.to_owned(),
        };
        let Some(bytes) = place.read_start(MANIFEST, MANIFEST_BYTES_MAX + 1)? else {
            // The place may not be there either.
            place.storage().list()?;
            return Err(BackupError::NoManifest { place: place.to_string() });
        };
        if bytes.len() > MANIFEST_BYTES_MAX {
            let problem = format!("it has more than {MANIFEST_BYTES_MAX} bytes, too many for a manifest");
            return Err(damaged(&problem));
        }
        let text = String::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        if text.lines().next() != Some(TITLE) {
            return Err(damaged("it is no manifest of a backup"));
        }
        let fields = Fields::of(&text);
        let at = text.rfind("sha256 = ").ok_or_else(|| damaged("it has no checksum at its end"))?;
        let is_intact =
            text[at..] == format!("sha256 = {}\n", hexadecimal(&Sha256::digest(&text[..at]).into()));
        match fields.number::<u64>("format") {
            // A later format has its checksum where it pleases.
            Ok(found) if found != FORMAT => return Err(BackupError::Format { place: name, found }),
            _ if !is_intact => return Err(damaged("its checksum does not match")),
            _ => {}
        }
        fields.manifest().map_err(|problem| damaged(&problem))
    }
}

/// The lines of a manifest.
pub(crate) struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    /// Those of a text whose first line is a title.
    pub(crate) fn of(text: &'a str) -> Self {
        Self(text.lines().skip(1).filter_map(|line| line.split_once(" = ")).collect())
    }

    pub(crate) fn get(&self, key: &str) -> Result<&str, String> {
        let found = self.0.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| *value).ok_or_else(|| format!("it has no line '{key}'"))
    }

    pub(crate) fn number<T: FromStr>(&self, key: &str) -> Result<T, String> {
        let value = self.get(key)?;
        value.parse().map_err(|_| format!("{key} = {value} is not a number"))
    }

    pub(crate) fn hexadecimal(&self, key: &str) -> Result<u64, String> {
        let value = self.get(key)?;
        u64::from_str_radix(value, 16).map_err(|_| format!("{key} = {value} is not a hexadecimal number"))
    }

    fn manifest(&self) -> Result<Manifest, String> {
        let snapshot_bytes: u64 = self.number("snapshot-bytes")?;
        let snapshot = OpNumber(self.number("snapshot-entry")?);
        let last = LastEntry {
            op_number: OpNumber(self.number("last-entry")?),
            view: View(self.number("last-view")?),
            time: WallTime(self.number("last-time-micros")?),
        };
        let is_of_disk_engine = match self.get("engine")? {
            "memory" => false,
            "disk" => true,
            other => return Err(format!("engine = {other} is neither memory nor disk")),
        };
        let parts = self.0.iter().filter(|(key, _)| *key == "part");
        Ok(Manifest {
            origin: Origin {
                id: self.hexadecimal("backup")?,
                cluster: self.hexadecimal("cluster")?,
                product: self.get("product")?.to_owned(),
                created: WallTime(self.number("created-micros")?),
                snapshot: (snapshot_bytes > 0).then_some((snapshot, snapshot_bytes)),
                last,
                record_bytes: self.number("record-bytes")?,
            },
            keys: self.number("keys")?,
            digest: self.hexadecimal("digest")?,
            is_of_disk_engine,
            parts: (1..)
                .zip(parts)
                .map(|(number, (_, value))| part(number, value))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn part(number: u64, value: &str) -> Result<Part, String> {
    let mut words = value.split(' ');
    let (name, bytes, hash) = (words.next(), words.next(), words.next());
    let bytes = bytes.and_then(|bytes| bytes.parse().ok());
    let hash = hash.and_then(hash_of);
    match (name == Some(&part_name(number)), bytes, hash) {
        (true, Some(bytes), Some(hash)) => Ok(Part { bytes, hash }),
        _ => Err(format!("part = {value} does not describe part {number}")),
    }
}

pub(crate) fn hexadecimal(hash: &Hash) -> String {
    hash.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

pub(crate) fn hash_of(text: &str) -> Option<Hash> {
    let mut hash = Hash::default();
    if text.len() != 2 * hash.len() || !text.is_ascii() {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(hash)
}
