//! The files of a backup in a directory.

use super::{Meanwhile, NewFile, Storage};
use crate::error::BackupError;
use crate::layout::{CLAIM, MANIFEST, TEMPORARY};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Small enough that every file system and every tool takes it.
const PART_BYTES: u64 = 256 << 20;

/// Synced whenever so many bytes have been written, so that the last sync does not take long.
const SYNC_BYTES: u64 = 32 << 20;

/// A new file that only its owner may read: a backup has all data in it.
fn create_new(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// A directory.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// The claim, locked: so others know that whoever made it is still there.
    claim: Mutex<Option<File>>,
}

impl Directory {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), claim: Mutex::new(None) }
    }

    fn failed(&self, doing: &'static str, file: &str) -> impl FnOnce(io::Error) -> BackupError {
        BackupError::io(doing, self.name_of(file))
    }

    fn sync(&self) -> Result<(), BackupError> {
        sync_directory(&self.path)
    }

    fn open_file(&self, file: &str) -> Result<Option<File>, BackupError> {
        match File::open(self.path.join(file)) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("open", file)(error)),
        }
    }

    /// Nobody has claimed the directory before; or what is to be told to whoever comes second.
    fn create_claim(&self) -> Result<File, BackupError> {
        match create_new(&self.path.join(CLAIM)) {
            Ok(file) => {
                // Whoever looks whether it is locked holds it for a moment.
                file.lock().map_err(self.failed("lock", CLAIM))?;
                Ok(file)
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(self.other_claim()?),
            Err(error) => Err(self.failed("create", CLAIM)(error)),
        }
    }

    fn other_claim(&self) -> Result<BackupError, BackupError> {
        let is_alive = match self.open_file(CLAIM)?.map(|file| file.try_lock()) {
            Some(Err(TryLockError::Error(error))) => return Err(self.failed("lock", CLAIM)(error)),
            // Without a claim, the one who had it has come to an end just now.
            Some(Err(TryLockError::WouldBlock)) | None => true,
            Some(Ok(())) => false,
        };
        if is_alive {
            return Ok(BackupError::Claimed { place: self.name() });
        }
        let found = self.list()?.into_iter().find(|name| name != CLAIM);
        Ok(BackupError::NotEmpty { place: self.name(), found: found.unwrap_or_else(|| CLAIM.to_owned()) })
    }
}

impl Storage for Directory {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn name_of(&self, file: &str) -> String {
        self.path.join(file).display().to_string()
    }

    fn part_bytes(&self) -> u64 {
        PART_BYTES
    }

    fn claim(&self) -> Result<(), BackupError> {
        match fs::DirBuilder::new().mode(0o700).create(&self.path) {
            Ok(()) => sync_directory(&parent(&self.path))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let found = self.list()?;
                // Whoever has claimed it says what is the matter.
                if let Some(found) = found.iter().find(|_| !found.iter().any(|name| name == CLAIM)) {
                    return Err(BackupError::NotEmpty { place: self.name(), found: found.clone() });
                }
            }
            Err(error) => return Err(BackupError::io("create directory", self.name())(error)),
        }
        let claim = self.create_claim()?;
        // Another one may have made a whole backup since it was looked at.
        let found = self.list()?.into_iter().find(|name| name != CLAIM);
        if let Some(found) = found {
            self.remove(CLAIM)?;
            return Err(BackupError::NotEmpty { place: self.name(), found });
        }
        *self.claim.lock().unwrap_or_else(PoisonError::into_inner) = Some(claim);
        Ok(())
    }

    fn release(&self) {
        let claim = self.claim.lock().unwrap_or_else(PoisonError::into_inner).take();
        if claim.is_some() {
            // One that stays does no harm beside a manifest.
            let _ = self.remove(CLAIM);
        }
    }

    fn create(&self, file: &str) -> Result<Box<dyn NewFile>, BackupError> {
        let name = self.name_of(file);
        let file = create_new(&self.path.join(file)).map_err(BackupError::io("create", name.clone()))?;
        Ok(Box::new(PlainFile { name, file, unsynced: 0 }))
    }

    fn settle(&self, _: Meanwhile<'_>) -> Result<(), BackupError> {
        self.sync()
    }

    fn abandon(&self) {}

    fn publish(&self, file: &str, bytes: Vec<u8>, _: Meanwhile<'_>) -> Result<(), BackupError> {
        let (path, temporary) = (self.path.join(file), format!("{file}{TEMPORARY}"));
        if path.exists() {
            // Somebody has continued the backup before this process held it.
            return Err(BackupError::InUse { place: self.name() });
        }
        let written = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(self.path.join(&temporary))
            .map_err(self.failed("create", &temporary))
            .and_then(|mut file| {
                file.write_all(&bytes).map_err(self.failed("write", &temporary))?;
                file.sync_all().map_err(self.failed("sync", &temporary))?;
                fs::rename(self.path.join(&temporary), &path).map_err(self.failed("rename", &temporary))
            });
        if let Err(error) = written {
            // A disk that is full is not to stay so.
            let _ = self.remove(&temporary);
            return Err(error);
        }
        self.sync()
    }

    fn open(&self, file: &str) -> Result<Option<Box<dyn Read + Send>>, BackupError> {
        let found = self.open_file(file)?;
        Ok(found.map(|file| -> Box<dyn Read + Send> { Box::new(file) }))
    }

    fn read_starts(&self, files: &[String], bytes_max: usize) -> Result<Vec<Option<Vec<u8>>>, BackupError> {
        let read = |name: &String| {
            let Some(file) = self.open_file(name)? else { return Ok(None) };
            let mut bytes = Vec::new();
            file.take(bytes_max as u64).read_to_end(&mut bytes).map_err(self.failed("read", name))?;
            Ok(Some(bytes))
        };
        files.iter().map(read).collect()
    }

    fn list(&self) -> Result<Vec<String>, BackupError> {
        let failed = || BackupError::io("read directory", self.name());
        let entries = fs::read_dir(&self.path).map_err(failed())?;
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned()).map_err(failed())
        };
        entries.map(name).collect()
    }

    fn remove(&self, file: &str) -> Result<(), BackupError> {
        match fs::remove_file(self.path.join(file)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.failed("remove", file)(error)),
            _ => Ok(()),
        }
    }

    fn hold(&self) -> Result<Option<File>, BackupError> {
        let Some(manifest) = self.open_file(MANIFEST)? else { return Ok(None) };
        match manifest.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BackupError::InUse { place: self.name() }),
            Err(TryLockError::Error(error)) => return Err(self.failed("lock", MANIFEST)(error)),
        }
        // What a crash interrupted.
        for name in self.list()?.iter().filter(|name| name.ends_with(TEMPORARY) || *name == CLAIM) {
            let _ = self.remove(name);
        }
        Ok(Some(manifest))
    }

    fn warning(&self) -> Option<String> {
        None
    }
}

/// A file that is being written.
#[derive(Debug)]
struct PlainFile {
    name: String,
    file: File,
    unsynced: u64,
}

impl PlainFile {
    fn sync(&mut self) -> Result<(), BackupError> {
        self.unsynced = 0;
        self.file.sync_all().map_err(BackupError::io("sync", self.name.clone()))
    }
}

impl NewFile for PlainFile {
    fn append(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.file.write_all(bytes).map_err(BackupError::io("write", self.name.clone()))?;
        self.unsynced += bytes.len() as u64;
        if self.unsynced >= SYNC_BYTES { self.sync() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>, _: Meanwhile<'_>) -> Result<(), BackupError> {
        self.sync()
    }
}

fn sync_directory(path: &Path) -> Result<(), BackupError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(BackupError::io("sync directory", path.display().to_string()))
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
