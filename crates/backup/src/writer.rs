//! Writing a backup: its data as it comes, and the manifest when all of it has been read back.

use crate::chunk::{CHUNK_BYTES_MAX, ChunkPlace, put_chunk};
use crate::error::BackupError;
use crate::layout::{MANIFEST, part_header, part_name};
use crate::log_file::log_name;
use crate::manifest::{Manifest, Origin, Part};
use crate::reader::Backup;
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// A part is ended when it has as many bytes. Small enough that every file system and every tool takes it.
const PART_BYTES: u64 = 256 << 20;

/// Synced whenever so many bytes have been written, so that the last sync does not take long.
const SYNC_BYTES: u64 = 32 << 20;

/// A backup that is being written.
#[derive(Debug)]
pub struct BackupWriter {
    path: PathBuf,
    part: Option<PartFile>,
    parts: Vec<Part>,
    /// Data that does not fill a chunk yet.
    pending: Vec<u8>,
    chunk_bytes: usize,
    part_bytes: u64,
}

#[derive(Debug)]
struct PartFile {
    number: u64,
    path: PathBuf,
    file: File,
    bytes: u64,
    unsynced: u64,
    hash: Sha256,
}

impl PartFile {
    fn create(directory: &Path, number: u64) -> Result<Self, BackupError> {
        let path = directory.join(part_name(number));
        let file = File::create_new(&path).map_err(BackupError::io("create", &path))?;
        let mut part = Self { number, path, file, bytes: 0, unsynced: 0, hash: Sha256::new() };
        part.append(&part_header(number))?;
        Ok(part)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.file.write_all(bytes).map_err(BackupError::io("write", &self.path))?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.unsynced += bytes.len() as u64;
        if self.unsynced >= SYNC_BYTES { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), BackupError> {
        self.unsynced = 0;
        self.file.sync_all().map_err(BackupError::io("sync", &self.path))
    }
}

impl BackupWriter {
    /// Begins a backup in a directory that is made, or that is there and empty.
    ///
    /// # Errors
    /// [`BackupError::NotEmpty`], and what the system says.
    pub fn create(path: &Path) -> Result<Self, BackupError> {
        match fs::create_dir(path) {
            Ok(()) => sync_directory(&parent(path))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let mut entries = fs::read_dir(path).map_err(BackupError::io("read directory", path))?;
                if let Some(entry) = entries.next() {
                    let entry = entry.map_err(BackupError::io("read directory", path))?;
                    let found = entry.file_name().to_string_lossy().into_owned();
                    return Err(BackupError::NotEmpty { path: path.to_owned(), found });
                }
            }
            Err(error) => return Err(BackupError::io("create directory", path)(error)),
        }
        Ok(Self {
            path: path.to_owned(),
            part: None,
            parts: Vec::new(),
            pending: Vec::with_capacity(CHUNK_BYTES_MAX),
            chunk_bytes: CHUNK_BYTES_MAX,
            part_bytes: PART_BYTES,
        })
    }

    /// Ends chunks and parts earlier.
    #[cfg(test)]
    pub(crate) const fn in_small_pieces(mut self) -> Self {
        (self.chunk_bytes, self.part_bytes) = (700, 2000);
        self
    }

    /// Writes the next piece of the data.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(&mut self, mut data: &[u8]) -> Result<(), BackupError> {
        while !data.is_empty() {
            let (now, later) = data.split_at(data.len().min(self.chunk_bytes - self.pending.len()));
            self.pending.extend_from_slice(now);
            data = later;
            if self.pending.len() == self.chunk_bytes {
                self.write_chunk()?;
            }
        }
        Ok(())
    }

    fn write_chunk(&mut self) -> Result<(), BackupError> {
        let part = match &mut self.part {
            Some(part) => part,
            none => none.insert(PartFile::create(&self.path, self.parts.len() as u64 + 1)?),
        };
        let mut chunk = Vec::with_capacity(CHUNK_BYTES_MAX / 2);
        put_chunk(ChunkPlace { part: part.number, offset: part.bytes }, &self.pending, &mut chunk);
        self.pending.clear();
        part.append(&chunk)?;
        if part.bytes >= self.part_bytes { self.end_part() } else { Ok(()) }
    }

    fn end_part(&mut self) -> Result<(), BackupError> {
        if let Some(mut part) = self.part.take() {
            part.sync()?;
            self.parts.push(Part { bytes: part.bytes, hash: part.hash.finalize().into() });
        }
        Ok(())
    }

    /// Makes all data durable, reads it back, and writes the manifest: from then on it is a backup. `meanwhile` is called
    /// again and again while it reads, which takes as long as the disk needs.
    ///
    /// # Errors
    /// What the system says, and everything that can be wrong with what is read back.
    pub fn finish(mut self, origin: Origin, mut meanwhile: impl FnMut()) -> Result<Manifest, BackupError> {
        if !self.pending.is_empty() {
            self.write_chunk()?;
        }
        self.end_part()?;
        sync_directory(&self.path)?;
        let Self { path, parts, .. } = self;
        let unread = Manifest { origin, keys: 0, digest: 0, is_of_disk_engine: false, parts };
        let contents = Backup::new(&path, unread.clone()).survey(|_| meanwhile())?;
        let manifest = Manifest {
            keys: contents.keys,
            digest: contents.digest,
            is_of_disk_engine: contents.is_of_disk_engine,
            ..unread
        };
        write_manifest(&path, &manifest)?;
        Ok(manifest)
    }
}

/// Writes the manifest, durably: a crash leaves all of it or nothing.
fn write_manifest(directory: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let (path, temporary) = (directory.join(MANIFEST), directory.join(format!("{MANIFEST}.tmp")));
    let mut file = File::create_new(&temporary).map_err(BackupError::io("create", &temporary))?;
    file.write_all(manifest.text().as_bytes()).map_err(BackupError::io("write", &temporary))?;
    file.sync_all().map_err(BackupError::io("sync", &temporary))?;
    fs::rename(&temporary, &path).map_err(BackupError::io("rename", &temporary))?;
    sync_directory(directory)
}

pub(crate) fn sync_directory(path: &Path) -> Result<(), BackupError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(BackupError::io("sync directory", path))
}

fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Removes what a backup that failed has written. The directory stays, and so does whatever else is in it.
pub fn remove_unfinished(path: &Path) {
    if path.join(MANIFEST).exists() {
        return;
    }
    for number in 1.. {
        if fs::remove_file(path.join(part_name(number))).is_err() {
            break;
        }
    }
    for number in 1.. {
        let name = log_name(number);
        let _ = fs::remove_file(path.join(format!("{name}.tmp")));
        if fs::remove_file(path.join(name)).is_err() {
            break;
        }
    }
    // It is not there unless the very end failed.
    let _ = fs::remove_file(path.join(format!("{MANIFEST}.tmp")));
}
