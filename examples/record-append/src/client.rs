//! A client with a method for each operation.

use crate::operation::{InvalidOperation, Operation, take_bytes, take_u64};
use crate::store::{APPENDED, FILE_BYTES_MAX, FULL, FileStore};
use std::fmt;
use std::net::ToSocketAddrs;
use syros_client::{Body, Client, ConnectError, Options, ReadPolicy};

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It was not sent.
    Invalid(InvalidOperation),
    /// The cluster did not answer, or refused.
    Client(syros_client::Error),
    /// The file has no room for the record, which is not there.
    Full,
    /// The answer is none that this operation has: the cluster runs another version.
    Answer,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
            Self::Full => {
                write!(
                    f,
                    "the file has no room for the record: the limit of a file is {FILE_BYTES_MAX} bytes"
                )
            }
            Self::Answer => f.write_str("the answer is not of the kind that the operation has"),
        }
    }
}

impl std::error::Error for Error {}

impl From<InvalidOperation> for Error {
    fn from(error: InvalidOperation) -> Self {
        Self::Invalid(error)
    }
}

impl From<syros_client::Error> for Error {
    fn from(error: syros_client::Error) -> Self {
        Self::Client(error)
    }
}

/// A file, and how many records it has.
pub type Listed = (Vec<u8>, u64);

/// The files of a cluster. Clones share their connections.
#[derive(Clone, Debug)]
pub struct Files(Client);

impl Files {
    /// Connects to the nodes, given in the order of their ids.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(
        nodes: &[impl ToSocketAddrs + fmt::Display],
        options: Options,
    ) -> Result<Self, ConnectError> {
        Ok(Self(Client::connect(nodes, options)?.wait()?))
    }

    /// The same, with reads answered in this way.
    #[must_use]
    pub fn reading(&self, policy: ReadPolicy) -> Self {
        Self(self.0.reading(policy))
    }

    fn execute(&self, operation: &Operation<'_>) -> Result<Body, Error> {
        Ok(self.0.submit_to::<FileStore>(operation.encode()?).wait()?)
    }

    /// Appends a record and returns when it is durable: one round trip in a cluster of supermajority mode. Records of
    /// one thread follow each other in its order; nobody tells where among those of others, or that the file was full.
    ///
    /// # Errors
    /// [`Error`].
    pub fn append(&self, file: &[u8], record: &[u8]) -> Result<(), Error> {
        self.execute(&Operation::Append { file, record }).map(drop)
    }

    /// Appends a record and returns which one of the file it is, from 0.
    ///
    /// # Errors
    /// [`Error`].
    pub fn append_at(&self, file: &[u8], record: &[u8]) -> Result<u64, Error> {
        let reply = self.execute(&Operation::AppendAt { file, record })?;
        match reply.split_first() {
            Some((&APPENDED, mut number)) => take_u64(&mut number).ok_or(Error::Answer),
            Some((&FULL, [])) => Err(Error::Full),
            _ => Err(Error::Answer),
        }
    }

    /// Removes a file, if there is one.
    ///
    /// # Errors
    /// [`Error`].
    pub fn remove(&self, file: &[u8]) -> Result<(), Error> {
        self.execute(&Operation::Remove { file }).map(drop)
    }

    /// Number of records in a file; 0 if there is none.
    ///
    /// # Errors
    /// [`Error`].
    pub fn length(&self, file: &[u8]) -> Result<u64, Error> {
        let reply = self.execute(&Operation::Length { file })?;
        take_u64(&mut &reply[..]).ok_or(Error::Answer)
    }

    /// Up to `count` records from number `from` on. Long ranges take several reads, so what is appended or removed
    /// meanwhile may be seen.
    ///
    /// # Errors
    /// [`Error`].
    pub fn read(&self, file: &[u8], from: u64, count: u64) -> Result<Vec<Vec<u8>>, Error> {
        let mut records = Vec::new();
        loop {
            let read = records.len() as u64;
            let (from, count) = (from.saturating_add(read), count - read);
            let reply = self.execute(&Operation::Read { file, from, count })?;
            let mut rest = &reply[..];
            while !rest.is_empty() {
                records.push(take_bytes(&mut rest).ok_or(Error::Answer)?.to_vec());
            }
            let got = records.len() as u64 - read;
            if got == 0 || got == count {
                return Ok(records);
            }
            if got > count {
                return Err(Error::Answer);
            }
        }
    }

    /// All files, in the order of their names. Many of them take several reads.
    ///
    /// # Errors
    /// [`Error`].
    pub fn list(&self) -> Result<Vec<Listed>, Error> {
        let mut files: Vec<Listed> = Vec::new();
        loop {
            let after = files.last().map_or(&[][..], |(name, _)| name);
            let reply = self.execute(&Operation::List { after })?;
            let mut rest = &reply[..];
            if rest.is_empty() {
                return Ok(files);
            }
            while !rest.is_empty() {
                let name = take_bytes(&mut rest).ok_or(Error::Answer)?;
                files.push((name.to_vec(), take_u64(&mut rest).ok_or(Error::Answer)?));
            }
        }
    }
}
