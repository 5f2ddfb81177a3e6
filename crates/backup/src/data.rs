//! The data of a backup as one stream: its parts one after the other, each checked as it is read.

use crate::chunk::{CHUNK_HEADER_BYTES, ChunkHeader, ChunkPlace};
use crate::error::BackupError;
use crate::layout::{PART_HEADER_BYTES, part_header, part_name};
use crate::manifest::Part;
use crate::storage::Place;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::io::{ErrorKind, Read};

/// Reads the data from its beginning to its end. Holds one chunk.
#[derive(Debug)]
pub(crate) struct DataReader {
    place: Place,
    parts: Vec<Part>,
    /// Parts that have been opened.
    opened: usize,
    part: Option<OpenPart>,
    /// The chunk that is being read, and how much of it has been.
    chunk: Vec<u8>,
    at: usize,
}

struct OpenPart {
    name: String,
    file: Box<dyn Read + Send>,
    number: u64,
    expected: Part,
    /// Bytes that have been read.
    offset: u64,
    hash: Sha256,
}

impl fmt::Debug for OpenPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenPart")
            .field("name", &self.name)
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}

impl OpenPart {
    fn damaged(&self, offset: u64, problem: String) -> BackupError {
        BackupError::Damaged { place: self.name.clone(), offset, problem }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), BackupError> {
        self.file.read_exact(buffer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                let bytes = self.expected.bytes;
                self.damaged(self.offset, format!("it ends here, and had {bytes} bytes"))
            }
            _ => BackupError::io("read", self.name.clone())(error),
        })?;
        self.hash.update(&*buffer);
        self.offset += buffer.len() as u64;
        Ok(())
    }

    /// The next chunk; `None` at the end of the part.
    fn chunk(&mut self) -> Result<Option<Vec<u8>>, BackupError> {
        if self.offset == self.expected.bytes {
            return Ok(None);
        }
        let place = ChunkPlace { part: self.number, offset: self.offset };
        let mut header = [0; CHUNK_HEADER_BYTES];
        self.read(&mut header)?;
        let header = ChunkHeader::decode(header).map_err(|problem| self.damaged(place.offset, problem))?;
        if self.offset + header.stored_bytes() as u64 > self.expected.bytes {
            return Err(self.damaged(place.offset, "a chunk reaches beyond the end of the file".to_owned()));
        }
        let mut stored = vec![0; header.stored_bytes()];
        self.read(&mut stored)?;
        header.data(place, &stored).map(Some).map_err(|problem| self.damaged(place.offset, problem))
    }

    /// Checks what can be checked when all of it has been read.
    fn end(mut self) -> Result<(), BackupError> {
        let more = self.file.read(&mut [0]).map_err(BackupError::io("read", self.name.clone()))?;
        if more > 0 {
            return Err(self.damaged(self.offset, format!("it goes on, and had {} bytes", self.offset)));
        }
        let hash: [u8; 32] = std::mem::take(&mut self.hash).finalize().into();
        if hash == self.expected.hash {
            return Ok(());
        }
        Err(self.damaged(0, "its SHA-256 is not the one in the manifest: it is of another backup".to_owned()))
    }
}

impl DataReader {
    pub(crate) fn new(place: &Place, parts: &[Part]) -> Self {
        Self { place: place.clone(), parts: parts.to_vec(), opened: 0, part: None, chunk: Vec::new(), at: 0 }
    }

    /// Fills the buffer with what comes next; false if the data has ended before that, and then the buffer holds anything.
    ///
    /// # Errors
    /// What the system says, and [`BackupError::Damaged`].
    pub(crate) fn read(&mut self, mut buffer: &mut [u8]) -> Result<bool, BackupError> {
        while !buffer.is_empty() {
            if self.at == self.chunk.len() && !self.next_chunk()? {
                return Ok(false);
            }
            let count = buffer.len().min(self.chunk.len() - self.at);
            let (now, later) = buffer.split_at_mut(count);
            now.copy_from_slice(&self.chunk[self.at..self.at + count]);
            self.at += count;
            buffer = later;
        }
        Ok(true)
    }

    /// Checks that all data has been read.
    ///
    /// # Errors
    /// What the system says, and [`BackupError::Damaged`].
    pub(crate) fn end(&mut self) -> Result<(), BackupError> {
        if self.at == self.chunk.len() && !self.next_chunk()? {
            return Ok(());
        }
        let problem = "there is more data than the manifest says".to_owned();
        let place = self.place.name_of(&part_name(self.opened as u64));
        Err(BackupError::Damaged { place, offset: 0, problem })
    }

    /// Reads the next chunk; false if there is none.
    fn next_chunk(&mut self) -> Result<bool, BackupError> {
        loop {
            if let Some(part) = &mut self.part {
                if let Some(chunk) = part.chunk()? {
                    (self.chunk, self.at) = (chunk, 0);
                    return Ok(true);
                }
                if let Some(part) = self.part.take() {
                    part.end()?;
                }
            }
            if !self.open_next()? {
                return Ok(false);
            }
        }
    }

    fn open_next(&mut self) -> Result<bool, BackupError> {
        let Some(expected) = self.parts.get(self.opened).copied() else { return Ok(false) };
        self.opened += 1;
        let number = self.opened as u64;
        let file = self.place.open(&part_name(number))?;
        let name = self.place.name_of(&part_name(number));
        let mut part = OpenPart { name, file, number, expected, offset: 0, hash: Sha256::new() };
        let mut header = [0; PART_HEADER_BYTES];
        part.read(&mut header)?;
        if header != part_header(number) {
            return Err(part.damaged(0, format!("it does not begin as part {number} of a backup does")));
        }
        self.part = Some(part);
        Ok(true)
    }
}
