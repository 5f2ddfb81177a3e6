//! Reading a backup: the head and the blocks of its snapshot, then the records of the log behind it.

use crate::chain::{Chain, Until};
use crate::data::DataReader;
use crate::error::BackupError;
use crate::layout::MANIFEST;
use crate::log_file::LogFile;
use crate::manifest::{LastEntry, Manifest};
use crate::moment::rfc3339;
use crate::records::RECORD_HEADER_BYTES;
use crate::storage::Place;
use syros_protocol::message::{Describe, LogEntry};
use syros_protocol::record::{Record, SnapshotHead};
use syros_snapshot::{HEAD_KIND, STATE_KIND, SnapshotStoreError};
use syros_storage::{SnapshotContents, SnapshotSurvey};
use syros_types::{Class, Description, Footprint, OpNumber, WallTime};
use syros_wal::{Cause, Disk, DiskError, DiskOperation, SnapshotHeader, SnapshotReader};
use syros_wire::Malformed;

/// Longest record: what the log takes in one piece.
const RECORD_BYTES_MAX: usize = 512 << 20;

/// Most bytes of a head, as of any snapshot.
const HEAD_BYTES_MAX: usize = 1 << 30;

/// A finished backup.
#[derive(Clone, Debug)]
pub struct Backup {
    place: Place,
    manifest: Manifest,
    chain: Chain,
}

/// Something that a backup holds. They come in this order.
#[derive(Debug)]
pub enum Item<'a> {
    /// What the snapshot holds besides the state, decoded and as it is.
    Head(Box<SnapshotHead>),
    /// A block of the state.
    Block(&'a [u8]),
    /// A record of the log behind the snapshot.
    Record(Box<Record>),
}

/// What a snapshot file says of itself that begins with these bytes; `None` if no snapshot file does.
#[must_use]
pub fn snapshot_header(bytes: &[u8]) -> Option<SnapshotHeader> {
    SnapshotHeader::read(bytes.first_chunk()?)
}

impl Backup {
    /// Opens the backup in a place. Its data is not looked at.
    ///
    /// # Errors
    /// [`BackupError::NoManifest`], [`BackupError::Format`], [`BackupError::Damaged`], and what the system says.
    pub fn open(place: &Place) -> Result<Self, BackupError> {
        let manifest = Manifest::read(place)?;
        let chain = Chain::open(place, &manifest)?;
        Ok(Self { place: place.clone(), manifest, chain })
    }

    /// One without a log behind it.
    pub(crate) fn new(place: &Place, manifest: Manifest) -> Self {
        Self { place: place.clone(), manifest, chain: Chain::default() }
    }

    pub(crate) const fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The files of the log behind it, in their order.
    #[must_use]
    pub fn log_files(&self) -> &[LogFile] {
        &self.chain.files
    }

    /// The last entry that it reaches.
    #[must_use]
    pub fn end(&self) -> LastEntry {
        self.chain.end(self.manifest.origin.last)
    }

    /// The last entry of what is wanted.
    ///
    /// # Errors
    /// [`BackupError::OutOfRange`] names what there is; else as [`Self::read`].
    pub fn resolve(&self, until: Until) -> Result<LastEntry, BackupError> {
        let (base, end) = (self.manifest.origin.last, self.end());
        let refuse = |wanted: String| {
            let moment = |entry: LastEntry| format!("entry {} of {}", entry.op_number.0, rfc3339(entry.time));
            let range = if base == end {
                format!("{} alone", moment(base))
            } else {
                format!("{} to {}", moment(base), moment(end))
            };
            Err(BackupError::OutOfRange { wanted, range })
        };
        match until {
            Until::End => return Ok(end),
            Until::Entry(number) if number < base.op_number || number > end.op_number => {
                return refuse(format!("entry {}", number.0));
            }
            // Entries that are not in the backup may have times up to that.
            Until::Time(time) if time < base.time || time > end.time => return refuse(rfc3339(time)),
            Until::Entry(number) if number == base.op_number => return Ok(base),
            Until::Entry(_) | Until::Time(_) => {}
        }
        let is_within = |number: OpNumber, time: WallTime| match until {
            Until::End => true,
            Until::Entry(last) => number <= last,
            Until::Time(last) => time <= last,
        };
        let reaches =
            |file: &LogFile| file.last.op_number >= base.op_number && is_within(file.first, file.first_time);
        let in_question = |file: &LogFile| reaches(file) && !is_within(file.last.op_number, file.last.time);
        let mut found = base;
        for file in self.chain.files.iter().filter(|file| reaches(file) && !in_question(file)) {
            if file.last.op_number > found.op_number {
                found = file.last;
            }
        }
        self.chain.read(
            &self.place,
            base,
            in_question,
            any_operation,
            |number, entry| -> Result<(), BackupError> {
                if is_within(number, entry.time) {
                    found = LastEntry { op_number: number, view: entry.view, time: entry.time };
                }
                Ok(())
            },
        )?;
        Ok(found)
    }

    /// Reads the entries behind the snapshot and the records, each with its number, up to `last`.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_log<E: From<BackupError>>(
        &self,
        last: OpNumber,
        describe: Describe,
        mut take: impl FnMut(OpNumber, LogEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let base = self.manifest.origin.last.op_number;
        let wants = |file: &LogFile| file.first <= last && file.last.op_number >= base;
        self.chain.read(&self.place, self.manifest.origin.last, wants, describe, |number, entry| {
            if number <= last { take(number, entry) } else { Ok(()) }
        })
    }

    /// Where it is.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// What it holds.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Reads everything, and compares it with the manifest. `on_bytes` hears how many bytes of data have been read.
    ///
    /// # Errors
    /// [`BackupError`] names the file and the place that is damaged.
    pub fn verify(&self, on_bytes: impl FnMut(u64)) -> Result<(), BackupError> {
        let found = self.survey(on_bytes)?;
        let nothing = |_: OpNumber, _: LogEntry| -> Result<(), BackupError> { Ok(()) };
        self.chain.read(&self.place, self.manifest.origin.last, |_| true, any_operation, nothing)?;
        let Manifest { keys, digest, is_of_disk_engine, .. } = self.manifest;
        let expected = SnapshotContents { keys, digest, is_of_disk_engine };
        if found == expected {
            return Ok(());
        }
        let problem = format!("it says {expected:?}, and the data has {found:?}");
        Err(BackupError::Damaged { place: self.place.name_of(MANIFEST), offset: 0, problem })
    }

    /// Reads everything.
    pub(crate) fn survey(&self, mut on_bytes: impl FnMut(u64)) -> Result<SnapshotContents, BackupError> {
        let mut survey = SnapshotSurvey::default();
        let mut bytes = 0;
        self.read(any_operation, |item| {
            if let Item::Block(block) = item {
                bytes += block.len() as u64;
                on_bytes(bytes);
                survey.block(block).map_err(|error| BackupError::state(&self.place, error))?;
            }
            Ok(())
        })?;
        match self.manifest.origin.snapshot {
            Some(_) => survey.finish().map_err(|error| BackupError::state(&self.place, error)),
            None => Ok(SnapshotContents { keys: 0, digest: 0, is_of_disk_engine: false }),
        }
    }

    /// Reads everything, one thing after the other; `describe` knows the operations in records. What has been taken counts for
    /// nothing if this fails.
    ///
    /// # Errors
    /// What `take` says, [`BackupError`] if anything is not what was written, and what the system says.
    pub fn read<E: From<BackupError>>(
        &self,
        describe: Describe,
        mut take: impl FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut disk = DataDisk {
            data: DataReader::new(&self.place, &self.manifest.parts),
            length: 0,
            position: 0,
            failed: None,
        };
        if let Some((op_number, bytes)) = self.manifest.origin.snapshot {
            disk.length = bytes;
            self.read_snapshot(&mut disk, op_number, &mut take)?;
        }
        self.read_records(&mut disk.data, describe, &mut take)?;
        Ok(disk.data.end()?)
    }

    fn read_snapshot<E: From<BackupError>>(
        &self,
        disk: &mut DataDisk,
        op_number: OpNumber,
        take: &mut impl FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let opened = SnapshotReader::open(disk, op_number, self.manifest.origin.cluster);
        let (header, mut reader) =
            opened.map_err(|error| BackupError::of_reader(&self.place, error, disk.failed.take()))?;
        let mut head = Some(Vec::new());
        loop {
            let next = reader.next(disk);
            let block =
                next.map_err(|error| BackupError::of_reader(&self.place, error, disk.failed.take()))?;
            match (block, &mut head) {
                (Some((HEAD_KIND, piece)), Some(bytes)) if bytes.len() + piece.len() <= HEAD_BYTES_MAX => {
                    bytes.extend_from_slice(piece);
                    continue;
                }
                (Some((STATE_KIND, _)) | None, _) => {}
                (Some((kind, _)), _) => {
                    return Err(BackupError::state(&self.place, SnapshotStoreError::Kind(kind)).into());
                }
            }
            if let Some(bytes) = head.take() {
                take(Item::Head(Box::new(self.head(&bytes, &header)?)))?;
            }
            match block {
                Some((_, block)) => take(Item::Block(block))?,
                None => return Ok(()),
            }
        }
    }

    fn head(&self, bytes: &[u8], header: &SnapshotHeader) -> Result<SnapshotHead, BackupError> {
        let decoded = syros_wire::decode_snapshot_head(bytes).map_err(SnapshotStoreError::Head);
        let head = decoded.map_err(|error| BackupError::state(&self.place, error))?;
        if (head.op_number, head.view, head.time) == (header.op_number, header.view, header.time) {
            return Ok(head);
        }
        let other = SnapshotStoreError::OtherHead { op_number: header.op_number, found: head.op_number };
        Err(BackupError::state(&self.place, other))
    }

    fn read_records<E: From<BackupError>>(
        &self,
        data: &mut DataReader,
        describe: Describe,
        take: &mut impl FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let record = |problem: &str| BackupError::Record {
            place: self.place.to_string(),
            problem: problem.to_owned(),
        };
        let mut left = self.manifest.origin.record_bytes;
        while left > 0 {
            let mut header = [0; RECORD_HEADER_BYTES];
            let length = if data.read(&mut header)? { u32::from_le_bytes(header) as usize } else { 0 };
            let whole = (RECORD_HEADER_BYTES + length) as u64;
            if length == 0 || length > RECORD_BYTES_MAX || whole > left {
                return Err(record("its length is impossible").into());
            }
            let mut bytes = vec![0; length];
            if !data.read(&mut bytes)? {
                return Err(record("the data ends in the middle of it").into());
            }
            left -= whole;
            let decoded: Result<Record, Malformed> = syros_wire::decode_record(&bytes, describe);
            take(Item::Record(Box::new(decoded.map_err(|error| BackupError::record(&self.place, &error))?)))?;
        }
        Ok(())
    }
}

/// Any operation is taken for one: whoever only looks whether a backup is intact need not know them.
#[must_use]
pub fn any_operation(_: &[u8]) -> Option<Description> {
    Some(Description { class: Class::Merge, footprint: Footprint::All, growth: 1 })
}

/// The data as a disk with one file on it, which is read once, from its beginning to its end.
struct DataDisk {
    data: DataReader,
    length: u64,
    position: u64,
    /// Why the last call failed.
    failed: Option<BackupError>,
}

impl DataDisk {
    /// A backup is only read.
    fn refuse<T>(operation: DiskOperation) -> Result<T, DiskError> {
        let cause = Cause::Other("a backup is only read".to_owned());
        Err(DiskError { operation, file: "a backup".to_owned(), cause })
    }
}

impl Disk for DataDisk {
    type File = String;

    fn open(&mut self, name: &str) -> Result<String, DiskError> {
        Ok(name.to_owned())
    }

    fn length(&mut self, _: &String) -> Result<u64, DiskError> {
        Ok(self.length)
    }

    fn read(&mut self, file: &String, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        assert!(offset == self.position, "a snapshot is read from its beginning to its end");
        let failed = |cause| DiskError { operation: DiskOperation::Read, file: file.clone(), cause };
        match self.data.read(buffer) {
            Ok(true) => {
                self.position += buffer.len() as u64;
                Ok(())
            }
            Ok(false) => Err(failed(Cause::ShortRead)),
            Err(error) => {
                let cause = Cause::Other(error.to_string());
                self.failed = Some(error);
                Err(failed(cause))
            }
        }
    }

    fn create(&mut self, _: &str) -> Result<String, DiskError> {
        Self::refuse(DiskOperation::Create)
    }

    fn append(&mut self, _: &mut String, _: &[u8]) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Append)
    }

    fn fill(&mut self, _: &mut String, _: u64, _: &[&[u8]]) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Fill)
    }

    fn truncate(&mut self, _: &mut String, _: u64) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Truncate)
    }

    fn sync(&mut self, _: &mut String) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Sync)
    }

    fn sync_and_evict(&mut self, _: &mut String) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Sync)
    }

    fn rename(&mut self, _: &str, _: &str) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Rename)
    }

    fn remove(&mut self, _: &str) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Remove)
    }

    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Self::refuse(DiskOperation::List)
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::SyncDirectory)
    }
}
