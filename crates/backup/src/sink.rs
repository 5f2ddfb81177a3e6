//! A backup as a disk on which one snapshot file is written.

use crate::writer::BackupWriter;
use std::cell::RefCell;
use std::rc::Rc;
use syros_wal::{Cause, Disk, DiskError, DiskOperation};

/// Takes what is written to the one file on it for the data of a backup. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct SnapshotSink(Rc<RefCell<BackupWriter>>);

impl SnapshotSink {
    /// Goes on where the backup is.
    #[must_use]
    pub fn new(writer: BackupWriter) -> Self {
        Self(Rc::new(RefCell::new(writer)))
    }

    /// The backup.
    ///
    /// # Panics
    /// If there are clones.
    #[must_use]
    pub fn into_writer(self) -> BackupWriter {
        Rc::into_inner(self.0).expect("nobody else writes to it").into_inner()
    }

    fn refuse<T>(operation: DiskOperation, file: &str) -> Result<T, DiskError> {
        let cause = Cause::Other("a backup is written from its beginning to its end".to_owned());
        Err(DiskError { operation, file: file.to_owned(), cause })
    }
}

impl Disk for SnapshotSink {
    type File = String;

    fn create(&mut self, name: &str) -> Result<String, DiskError> {
        Ok(name.to_owned())
    }

    fn append(&mut self, file: &mut String, bytes: &[u8]) -> Result<(), DiskError> {
        self.0.borrow_mut().write(bytes, &mut || {}).map_err(|error| DiskError {
            operation: DiskOperation::Append,
            file: file.clone(),
            cause: Cause::Other(error.to_string()),
        })
    }

    // What is written is made durable when the backup is finished.
    fn sync(&mut self, _: &mut String) -> Result<(), DiskError> {
        Ok(())
    }

    fn rename(&mut self, _: &str, _: &str) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync_directory(&mut self) -> Result<(), DiskError> {
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<String>, DiskError> {
        Ok(Vec::new())
    }

    fn open(&mut self, name: &str) -> Result<String, DiskError> {
        Self::refuse(DiskOperation::Open, name)
    }

    fn fill(&mut self, file: &mut String, _: u64, _: &[&[u8]]) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Fill, file)
    }

    fn read(&mut self, file: &String, _: u64, _: &mut [u8]) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Read, file)
    }

    fn length(&mut self, file: &String) -> Result<u64, DiskError> {
        Self::refuse(DiskOperation::Length, file)
    }

    fn truncate(&mut self, file: &mut String, _: u64) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Truncate, file)
    }

    fn sync_and_evict(&mut self, file: &mut String) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Sync, file)
    }

    fn remove(&mut self, name: &str) -> Result<(), DiskError> {
        Self::refuse(DiskOperation::Remove, name)
    }
}
