//! A data directory that is made from a backup.

use std::fs;
use std::path::Path;

use syros_types::{ConfigurationId, Incarnation};
use syros_wal::{FileDisk, LOCK_FILE, OpenDirectory, replace_file};

use super::error::{DirectoryError, io_error};
use super::identity::{BackupId, Identity};
use super::identity_file::{FORMATION, IdentityFile};
use super::lock::open_locked;
use super::{ENGINE, SNAPSHOTS, VIEW, WAL, random_node, sync_parent};

/// As long as this file is there, nothing in the directory is of use: no node starts with it.
const UNFINISHED: &str = "restoring";

/// A data directory that is made from a backup, and locked.
#[derive(Debug)]
pub(crate) struct RestoringDirectory {
    disk: FileDisk,
}

impl RestoringDirectory {
    /// Begins with a directory that is made, or that is there and empty.
    ///
    /// # Errors
    /// [`DirectoryError::Occupied`], and what the system says.
    pub(crate) fn create(path: &Path) -> Result<Self, DirectoryError> {
        fs::create_dir_all(path).map_err(io_error("create directory", path))?;
        if path.join(UNFINISHED).exists() {
            return Err(DirectoryError::Unfinished(path.to_owned()));
        }
        for entry in fs::read_dir(path).map_err(io_error("read directory", path))? {
            let name = entry.map_err(io_error("read directory", path))?.file_name();
            // A file system of its own begins with an empty `lost+found` (ext2 to ext4).
            if name != "lost+found" {
                return Err(DirectoryError::Occupied { path: path.to_owned(), found: name.into() });
            }
        }
        let mut disk = open_locked(path)?;
        sync_parent(path)?;
        replace_file(&mut disk, UNFINISHED, b"syros restore is not done\n")
            .map_err(|source| DirectoryError::Write { path: path.to_owned(), source })?;
        Ok(Self { disk })
    }

    /// The directory that is locked.
    pub(crate) const fn open_directory(&self) -> &OpenDirectory {
        self.disk.directory()
    }

    /// All is there: makes the directory that of a node which takes part in forming a group.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn finish(mut self, identity: Identity, backup: BackupId) -> Result<(), DirectoryError> {
        let file = IdentityFile {
            identity,
            node: Some(random_node()?),
            before: None,
            roster: None,
            lease: None,
            incarnation: Incarnation::UNKNOWN,
            configuration: ConfigurationId::FIRST,
            place_wanted: None,
            restored: Some(backup),
        };
        file.write(&mut self.disk, FORMATION)?;
        let path = self.disk.path().join(UNFINISHED);
        self.open_directory().remove_file(UNFINISHED).map_err(io_error("remove", &path))?;
        self.open_directory().sync().map_err(io_error("sync directory", self.disk.path()))
    }

    /// Removes what was made. What the system refuses to remove stays, and the directory is then of no use.
    pub(crate) fn give_up(self) {
        let directory = self.open_directory();
        for name in [WAL, SNAPSHOTS, ENGINE, VIEW] {
            let _ = directory.remove_directory(name);
        }
        let _ = directory.remove_file(FORMATION.name);
        let _ = directory.remove_file(LOCK_FILE);
        let _ = directory.remove_file(UNFINISHED);
    }
}
