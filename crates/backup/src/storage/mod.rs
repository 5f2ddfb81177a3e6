//! Where the files of a backup are: in a directory, or as objects in a bucket of an S3-compatible store.
//!
//! What a backup asks of such a place, and how each of them does it:
//!
//! | | directory | bucket |
//! |---|---|---|
//! | a file is there whole or not at all | written under another name, synced, renamed, the directory synced | PUT of the whole object |
//! | a file that is there is never written again | only who holds the lock writes; it looks first | `If-None-Match: *` |
//! | one backup at a time is made | the file `claim` is created exclusively, and locked | the object `claim` is put if it is not there |
//! | one process at a time continues a backup | the manifest is locked while it does | two of them cannot write one file of the log: the second one is refused |
//!
//! A store that does not know `If-None-Match` cannot keep two writers apart who write within the same moment. What they
//! then leave does not fit together, and verification says so. [`Place::warning`] tells of such a store.
//!
//! Objects are at most 16 MiB, but for a file of the log with one large entry in it. So none is uploaded in parts, and an
//! upload that is interrupted leaves nothing behind that somebody would have to pay for.

mod bucket;
mod directory;

use crate::error::BackupError;
use bucket::Bucket;
use directory::Directory;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use syros_s3::{Client, Location};

/// Is called again and again while something takes long.
pub(crate) type Meanwhile<'a> = &'a mut dyn FnMut();

/// A file that is being written, from its beginning to its end.
pub(crate) trait NewFile: fmt::Debug {
    /// Adds bytes.
    fn append(&mut self, bytes: &[u8]) -> Result<(), BackupError>;

    /// There are no more bytes. It is durable after the next [`Storage::settle`].
    fn finish(self: Box<Self>, meanwhile: Meanwhile<'_>) -> Result<(), BackupError>;
}

/// What a backup asks of the place where its files are.
pub(crate) trait Storage: fmt::Debug + Send + Sync {
    /// The place, for people.
    fn name(&self) -> String;

    /// A file in it, for people.
    fn name_of(&self, file: &str) -> String;

    /// A part is ended when it has so many bytes.
    fn part_bytes(&self) -> u64;

    /// Takes the place for a new backup, which must be new or empty. Of two who try, one succeeds.
    fn claim(&self) -> Result<(), BackupError>;

    /// Ends what [`Self::claim`] began: the backup is finished, or nothing of it is left.
    fn release(&self);

    /// Begins a file that must be new.
    fn create(&self, file: &str) -> Result<Box<dyn NewFile>, BackupError>;

    /// Waits until all files that were finished are durable.
    fn settle(&self, meanwhile: Meanwhile<'_>) -> Result<(), BackupError>;

    /// Gives up all files that are not durable.
    fn abandon(&self);

    /// Writes a file that must be new: all of it or nothing, durably.
    fn publish(&self, file: &str, bytes: Vec<u8>, meanwhile: Meanwhile<'_>) -> Result<(), BackupError>;

    /// Opens a file to read it from its beginning to its end; `None` if there is none.
    fn open(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, BackupError>;

    /// Up to so many bytes of the beginning of each of some files; `None` where there is none.
    fn read_starts(&self, files: &[String], bytes_max: usize) -> Result<Vec<Option<Vec<u8>>>, BackupError>;

    /// The names of all files.
    fn list(&self) -> Result<Vec<String>, BackupError>;

    /// Removes a file, if it is there.
    fn remove(&self, file: &str) -> Result<(), BackupError>;

    /// Keeps others from continuing the backup that is there, as long as the file is open; no file where there is no backup, and
    /// where files are not locked.
    fn hold(&self) -> Result<Option<File>, BackupError>;

    /// What whoever uses the place should know.
    fn warning(&self) -> Option<String>;
}

/// Where a backup is, or is to be. Clones are the same place.
#[derive(Clone, Debug)]
pub struct Place(Arc<dyn Storage>);

impl Place {
    /// A directory.
    #[must_use]
    pub fn directory(path: &Path) -> Self {
        Self(Arc::new(Directory::new(path)))
    }

    /// A bucket, or what in it begins with a prefix.
    #[must_use]
    pub fn bucket(client: Client, location: Location) -> Self {
        Self(Arc::new(Bucket::new(client, location)))
    }

    pub(crate) fn storage(&self) -> &dyn Storage {
        &*self.0
    }

    /// What whoever makes or continues a backup there should know, once that has begun: what the store cannot do.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        self.0.warning()
    }

    /// A file in it, for people.
    pub(crate) fn name_of(&self, file: &str) -> String {
        self.0.name_of(file)
    }

    /// The beginning of a file.
    pub(crate) fn read_start(&self, file: &str, bytes_max: usize) -> Result<Option<Vec<u8>>, BackupError> {
        Ok(self.0.read_starts(&[file.to_owned()], bytes_max)?.pop().flatten())
    }

    /// A file that must be there.
    pub(crate) fn open(&self, file: &str) -> Result<Box<dyn Read + Send>, BackupError> {
        let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, "it is missing");
        let found = self.0.open(file)?;
        found.ok_or_else(|| BackupError::io("open", self.name_of(file))(missing()))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name())
    }
}
