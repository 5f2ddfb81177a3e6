//! Writing a backup: its data as it comes, and the manifest when all of it has been read back.

use crate::chunk::{CHUNK_BYTES_MAX, ChunkPlace, put_chunk};
use crate::error::BackupError;
use crate::layout::{CLAIM, MANIFEST, TEMPORARY, is_part_name, part_header, part_name};
use crate::log_file::log_number;
use crate::manifest::{Manifest, Origin, PARTS_MAX, Part};
use crate::reader::Backup;
use crate::storage::{NewFile, Place};
use sha2::{Digest as _, Sha256};

/// A backup that is being written.
#[derive(Debug)]
pub struct BackupWriter {
    place: Place,
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
    file: Box<dyn NewFile>,
    bytes: u64,
    hash: Sha256,
}

impl PartFile {
    fn create(place: &Place, number: u64) -> Result<Self, BackupError> {
        let file = place.storage().create(&part_name(number))?;
        let mut part = Self { number, file, bytes: 0, hash: Sha256::new() };
        part.append(&part_header(number))?;
        Ok(part)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.file.append(bytes)?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

impl BackupWriter {
    /// Begins a backup in a place that is made, or that is there and empty. Nobody else can begin one there then, until it is
    /// finished, or removed by [`remove_unfinished`].
    ///
    /// # Errors
    /// [`BackupError::NotEmpty`], [`BackupError::Claimed`], and what the system or the store says.
    pub fn create(place: &Place) -> Result<Self, BackupError> {
        place.storage().claim()?;
        Ok(Self {
            place: place.clone(),
            part: None,
            parts: Vec::new(),
            pending: Vec::with_capacity(CHUNK_BYTES_MAX),
            chunk_bytes: CHUNK_BYTES_MAX,
            part_bytes: place.storage().part_bytes(),
        })
    }

    /// Ends chunks and parts earlier.
    #[cfg(test)]
    pub(crate) const fn in_small_pieces(mut self) -> Self {
        (self.chunk_bytes, self.part_bytes) = (700, 2000);
        self
    }

    /// Writes the next piece of the data. `meanwhile` is called again and again while a store takes long.
    ///
    /// # Errors
    /// [`BackupError::TooLarge`], and what the system or the store says.
    pub fn write(&mut self, mut data: &[u8], meanwhile: &mut dyn FnMut()) -> Result<(), BackupError> {
        while !data.is_empty() {
            let (now, later) = data.split_at(data.len().min(self.chunk_bytes - self.pending.len()));
            self.pending.extend_from_slice(now);
            data = later;
            if self.pending.len() == self.chunk_bytes {
                self.write_chunk(meanwhile)?;
            }
        }
        Ok(())
    }

    fn write_chunk(&mut self, meanwhile: &mut dyn FnMut()) -> Result<(), BackupError> {
        let part = match &mut self.part {
            Some(part) => part,
            none => {
                if self.parts.len() == PARTS_MAX {
                    let (parts, part_bytes) = (PARTS_MAX, self.part_bytes);
                    return Err(BackupError::TooLarge { place: self.place.to_string(), parts, part_bytes });
                }
                none.insert(PartFile::create(&self.place, self.parts.len() as u64 + 1)?)
            }
        };
        let mut chunk = Vec::with_capacity(CHUNK_BYTES_MAX / 2);
        put_chunk(ChunkPlace { part: part.number, offset: part.bytes }, &self.pending, &mut chunk);
        self.pending.clear();
        part.append(&chunk)?;
        if part.bytes >= self.part_bytes { self.end_part(meanwhile) } else { Ok(()) }
    }

    fn end_part(&mut self, meanwhile: &mut dyn FnMut()) -> Result<(), BackupError> {
        if let Some(part) = self.part.take() {
            part.file.finish(meanwhile)?;
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
            self.write_chunk(&mut meanwhile)?;
        }
        self.end_part(&mut meanwhile)?;
        let Self { place, parts, .. } = self;
        place.storage().settle(&mut meanwhile)?;
        let unread = Manifest { origin, keys: 0, digest: 0, is_of_disk_engine: false, parts };
        let contents = Backup::new(&place, unread.clone()).survey(|_| meanwhile())?;
        let manifest = Manifest {
            keys: contents.keys,
            digest: contents.digest,
            is_of_disk_engine: contents.is_of_disk_engine,
            ..unread
        };
        place.storage().publish(MANIFEST, manifest.text().into_bytes(), &mut meanwhile)?;
        place.storage().release();
        Ok(manifest)
    }
}

/// Removes what a backup that failed has written, and lets another one be made there; only whoever has begun it may do so. A
/// directory stays, and so does whatever else is in the place. True if the backup is finished after all, and stays: no answer of a store may
/// have told so.
pub fn remove_unfinished(place: &Place) -> bool {
    let storage = place.storage();
    storage.abandon();
    // A store that cannot be reached keeps what it has. Nobody takes that for a backup.
    let Ok(names) = storage.list() else { return false };
    if names.iter().any(|name| name == MANIFEST) {
        storage.release();
        return true;
    }
    for name in &names {
        let whole = name.strip_suffix(TEMPORARY).unwrap_or(name);
        if whole == MANIFEST || is_part_name(whole) || log_number(whole).is_some() {
            let _ = storage.remove(name);
        }
    }
    if names.iter().any(|name| name == CLAIM) {
        storage.release();
    }
    false
}
