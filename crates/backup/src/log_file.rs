//! A file of the log behind a backup's snapshot: some entries, in their order. It says what it holds in lines `key = value`, like
//! the manifest, and after them come chunks with records of a write-ahead log.
//!
//! Each file names the one before it by its checksum, which covers that of its chunks. So files cannot change places, one
//! cannot be missing between two others, and none can come from another backup.

use crate::chunk::{CHUNK_BYTES_MAX, CHUNK_HEADER_BYTES, ChunkHeader, ChunkPlace, put_chunk};
use crate::error::BackupError;
use crate::manifest::{Fields, Hash, LastEntry, hash_of, hexadecimal};
use crate::records::records_of;
use crate::storage::Place;
use sha2::{Digest as _, Sha256};
use std::io::Read as _;
use syros_protocol::message::{Describe, LogEntry};
use syros_protocol::record::Record;
use syros_types::{OpNumber, View, WallTime};

/// The format that this build writes, and the only one it reads.
pub(crate) const LOG_FORMAT: u64 = 1;

const TITLE: &str = "syros backup log";

/// The lines take a few hundred bytes.
pub(crate) const LINES_BYTES_MAX: usize = 4096;

/// A file is ended when its entries take so many bytes; one entry may take more, as in a frame between replicas.
pub(crate) const LOG_BYTES: usize = 32 << 20;

/// Chunks of such files have numbers of parts that no part of the snapshot has.
const FIRST_PART: u64 = 1 << 32;

/// The name of the file with this number; the first is 1.
#[must_use]
pub(crate) fn log_name(number: u64) -> String {
    format!("log-{number:08}")
}

/// The number of the file with this name, if it is a file of the log.
pub(crate) fn log_number(name: &str) -> Option<u64> {
    name.strip_prefix("log-").filter(|digits| digits.len() == 8)?.parse().ok()
}

/// What a file of the log says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Its number.
    pub number: u64,
    /// The backup that it belongs to.
    pub backup: u64,
    /// Its first entry.
    pub first: OpNumber,
    /// Log time of that.
    pub first_time: WallTime,
    /// Its last entry.
    pub last: LastEntry,
    /// Bytes of records in it.
    pub data_bytes: u64,
    /// Bytes of chunks in it.
    pub stored_bytes: u64,
    pub(crate) data_hash: Hash,
    pub(crate) previous: Hash,
    /// The checksum of its lines, by which the next one names it.
    pub(crate) hash: Hash,
    /// Bytes of its lines.
    pub(crate) lines_bytes: usize,
}

/// The entries that are to become a file.
#[derive(Debug, Default)]
pub(crate) struct PendingLog {
    /// First entry and its time.
    pub(crate) first: Option<(OpNumber, WallTime)>,
    pub(crate) records: Vec<u8>,
}

impl PendingLog {
    /// The file with these entries, which end with `last`.
    pub(crate) fn encode(
        &self,
        backup: u64,
        number: u64,
        last: LastEntry,
        previous: Hash,
    ) -> Option<(LogFile, Vec<u8>)> {
        let (first, first_time) = self.first?;
        let mut chunks = Vec::with_capacity(self.records.len() / 2);
        for data in self.records.chunks(CHUNK_BYTES_MAX) {
            let offset = chunks.len() as u64;
            put_chunk(ChunkPlace { part: FIRST_PART + number, offset }, data, &mut chunks);
        }
        let data_hash: Hash = Sha256::digest(&chunks).into();
        let mut bytes = format!(
            "{TITLE}\nformat = {LOG_FORMAT}\nbackup = {backup:016x}\nnumber = {number}\nfirst-entry = {}\n\
             first-time-micros = {}\nlast-entry = {}\nlast-view = {}\nlast-time-micros = {}\ndata-bytes = {}\n\
             stored-bytes = {}\ndata-sha256 = {}\nprevious-sha256 = {}\n",
            first.0,
            first_time.0,
            last.op_number.0,
            last.view.0,
            last.time.0,
            self.records.len(),
            chunks.len(),
            hexadecimal(&data_hash),
            hexadecimal(&previous),
        );
        let hash: Hash = Sha256::digest(&bytes).into();
        bytes = bytes + "sha256 = " + &hexadecimal(&hash) + "\n";
        let file = LogFile {
            number,
            backup,
            first,
            first_time,
            last,
            data_bytes: self.records.len() as u64,
            stored_bytes: chunks.len() as u64,
            data_hash,
            previous,
            hash,
            lines_bytes: bytes.len(),
        };
        let mut bytes = bytes.into_bytes();
        bytes.extend_from_slice(&chunks);
        Some((file, bytes))
    }
}

impl LogFile {
    /// Reads what the file with this number says of itself, from what it begins with.
    pub(crate) fn open(place: &Place, number: u64, beginning: &[u8]) -> Result<Self, BackupError> {
        Self::decode(beginning, number).map_err(|problem| problem.at(place.name_of(&log_name(number))))
    }

    fn decode(beginning: &[u8], number: u64) -> Result<Self, Problem> {
        let damaged = |problem: &str| Problem::Damaged(problem.to_owned());
        let mark = b"\nsha256 = ";
        let at = beginning
            .windows(mark.len())
            .position(|bytes| bytes == mark)
            .ok_or_else(|| damaged("it does not begin as a file of a backup's log does"))?
            + 1;
        let end = at + mark.len() - 1 + 64 + 1;
        let lines = beginning.get(..end).ok_or_else(|| damaged("it ends in its first lines"))?;
        let text = core::str::from_utf8(lines).map_err(|_| damaged("its first lines are no text"))?;
        if text.lines().next() != Some(TITLE) {
            return Err(damaged("it is no file of a backup's log"));
        }
        let fields = Fields::of(text);
        let hash: Hash = Sha256::digest(&text[..at]).into();
        let is_intact = text[at..] == format!("sha256 = {}\n", hexadecimal(&hash));
        match fields.number::<u64>("format") {
            Ok(found) if found != LOG_FORMAT => return Err(Problem::Format(found)),
            _ if !is_intact => return Err(damaged("the checksum of its first lines does not match")),
            _ => {}
        }
        let file = Self::from_fields(&fields, hash, end).map_err(Problem::Damaged)?;
        if file.number != number {
            return Err(Problem::Damaged(format!(
                "it is file {} of the log, and its name says {number}",
                file.number
            )));
        }
        Ok(file)
    }

    fn from_fields(fields: &Fields<'_>, hash: Hash, lines_bytes: usize) -> Result<Self, String> {
        let hash_in = |key: &str| {
            let value = fields.get(key)?;
            hash_of(value).ok_or_else(|| format!("{key} = {value} is no SHA-256"))
        };
        let file = Self {
            number: fields.number("number")?,
            backup: fields.hexadecimal("backup")?,
            first: OpNumber(fields.number("first-entry")?),
            first_time: WallTime(fields.number("first-time-micros")?),
            last: LastEntry {
                op_number: OpNumber(fields.number("last-entry")?),
                view: View(fields.number("last-view")?),
                time: WallTime(fields.number("last-time-micros")?),
            },
            data_bytes: fields.number("data-bytes")?,
            stored_bytes: fields.number("stored-bytes")?,
            data_hash: hash_in("data-sha256")?,
            previous: hash_in("previous-sha256")?,
            hash,
            lines_bytes,
        };
        if file.first.0 == 0 || file.first > file.last.op_number || file.first_time > file.last.time {
            return Err("its first entry comes after its last one".to_owned());
        }
        Ok(file)
    }

    /// Reads the entries, each with its number. `describe` knows their operations.
    ///
    /// # Errors
    /// What `take` says, [`BackupError`] if anything is not what was written, and what the system says.
    pub(crate) fn read<E: From<BackupError>>(
        &self,
        place: &Place,
        describe: Describe,
        take: &mut impl FnMut(OpNumber, LogEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = place.name_of(&log_name(self.number));
        let records = self.records(place, &name)?;
        let mut next = self.first;
        let mut last = None;
        for record in records_of(&records, describe) {
            let record = record.map_err(|problem| BackupError::Record { place: name.clone(), problem })?;
            let Record::Transfer { base, entries } = record else {
                return Err(damaged(&name, "it holds something that is no entry".to_owned()).into());
            };
            if base.next() != next {
                let problem = format!("entry {} follows where {} should", base.next().0, next.0);
                return Err(damaged(&name, problem).into());
            }
            for entry in entries {
                last = Some(LastEntry { op_number: next, view: entry.view, time: entry.time });
                take(next, entry)?;
                next = next.next();
            }
        }
        if last == Some(self.last) {
            return Ok(());
        }
        Err(damaged(&name, format!("it ends with {last:?}, and says that it ends with {:?}", self.last))
            .into())
    }

    /// All records, checked against what the lines say.
    fn records(&self, place: &Place, name: &str) -> Result<Vec<u8>, BackupError> {
        let mut file = place.open(&log_name(self.number))?;
        let mut bytes = Vec::new();
        // One more than there should be tells of a file that goes on.
        let length = self.lines_bytes as u64 + self.stored_bytes;
        (&mut file).take(length + 1).read_to_end(&mut bytes).map_err(BackupError::io("read", name))?;
        let chunks = bytes.get(self.lines_bytes..).unwrap_or_default();
        if bytes.len() as u64 != length {
            return Err(damaged(name, format!("it has {} bytes, and had {length}", bytes.len())));
        }
        if Hash::from(Sha256::digest(chunks)) != self.data_hash {
            return Err(self.explain(name, chunks));
        }
        let mut records = Vec::new();
        self.each_chunk(name, chunks, |data| records.extend_from_slice(&data))?;
        if records.len() as u64 == self.data_bytes {
            return Ok(records);
        }
        Err(damaged(name, format!("it has {} bytes of records, and had {}", records.len(), self.data_bytes)))
    }

    /// Where chunks are damaged whose checksum does not match.
    fn explain(&self, name: &str, chunks: &[u8]) -> BackupError {
        let found = self.each_chunk(name, chunks, drop);
        found.err().unwrap_or_else(|| damaged(name, "the checksum of its entries does not match".to_owned()))
    }

    fn each_chunk(
        &self,
        name: &str,
        chunks: &[u8],
        mut take: impl FnMut(Vec<u8>),
    ) -> Result<(), BackupError> {
        let mut offset = 0;
        while offset < chunks.len() {
            let at = |problem: String| BackupError::Damaged {
                place: name.to_owned(),
                offset: (self.lines_bytes + offset) as u64,
                problem,
            };
            let place = ChunkPlace { part: FIRST_PART + self.number, offset: offset as u64 };
            let (header, stored) = chunks[offset..]
                .split_first_chunk::<CHUNK_HEADER_BYTES>()
                .ok_or_else(|| at("a chunk reaches beyond the end of the file".to_owned()))?;
            let header = ChunkHeader::decode(*header).map_err(at)?;
            let stored = stored
                .get(..header.stored_bytes())
                .ok_or_else(|| at("a chunk reaches beyond the end of the file".to_owned()))?;
            take(header.data(place, stored).map_err(at)?);
            offset += CHUNK_HEADER_BYTES + header.stored_bytes();
        }
        Ok(())
    }
}

fn damaged(name: &str, problem: String) -> BackupError {
    BackupError::Damaged { place: name.to_owned(), offset: 0, problem }
}

/// What is wrong with the lines.
enum Problem {
    Damaged(String),
    Format(u64),
}

impl Problem {
    fn at(self, place: String) -> BackupError {
        match self {
            Self::Damaged(problem) => BackupError::Damaged { place, offset: 0, problem },
            Self::Format(found) => BackupError::Format { place, found },
        }
    }
}
