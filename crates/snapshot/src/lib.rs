//! The snapshots of one replica: what the core asks for ([`Action::TakeSnapshot`] and its like), done on
//! a disk, one step at a time and synchronously. A server calls it from a thread of its own, the simulator
//! step by step in virtual time. And the way back to a replica's state from such a snapshot and the
//! write-ahead log beside it: [`Stored`].
//!
//! A snapshot file holds two kinds of blocks: first the head ([`SnapshotHead`], cut into pieces), then the
//! state of the engine as the engine cuts it.
//!
//! [`Action::TakeSnapshot`]: syros_protocol::replica::Action::TakeSnapshot
#![forbid(unsafe_code)]

mod states;
mod stored;

pub use states::{SnapshotFiles, States, StoreDirectory, StoreLoader, Stores};
pub use stored::{Stored, StoredError};

use std::fmt;
use syros_protocol::record::SnapshotHead;
use syros_storage::{DamagedSnapshot, LoadError, Loader, MemoryEngine, StoreError};
use syros_types::OpNumber;
use syros_wal::{
    Disk, DiskError, ReceiveError, SnapshotBytes, SnapshotError, SnapshotHeader, SnapshotReader,
    SnapshotReceiver, SnapshotWriter, list_snapshots, remove_snapshot, remove_unfinished,
};
use syros_wire::Malformed;

/// Kind of the blocks that make up the head.
pub const HEAD_KIND: u8 = 1;
/// Kind of the blocks that make up the engine's state.
pub const STATE_KIND: u8 = 2;

/// Bytes of the head in one block.
const HEAD_BLOCK_BYTES: usize = 1 << 20;

/// Most bytes of a head: a session table beyond this is damage. 65,536 sessions with a thousand answers
/// each take less.
const HEAD_BYTES_MAX: usize = 1 << 30;

/// Why something could not be done with a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotStoreError {
    /// The disk failed, or the file is not what was written.
    File(SnapshotError),
    /// The blocks of the head are no head.
    Head(Malformed),
    /// The head is another snapshot's.
    OtherHead {
        /// The snapshot.
        op_number: OpNumber,
        /// What its head says.
        found: OpNumber,
    },
    /// The head is longer than any can be.
    HeadTooLong,
    /// A block of a kind that does not exist.
    Kind(u8),
    /// The blocks of the state are no state.
    State(DamagedSnapshot),
    /// A part of a snapshot came that does not follow the last one.
    Part,
    /// The store of a disk engine refuses, or is not what was written.
    Store(StoreError),
    /// The blocks of the state are what was written, but the state machine of this program cannot read them.
    Unreadable {
        /// The machine.
        by: String,
        /// What it says.
        why: String,
    },
}

impl fmt::Display for SnapshotStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Head(error) => write!(f, "the head of the snapshot is damaged: {error}"),
            Self::OtherHead { op_number, found } => {
                write!(f, "the head of the snapshot of op {} is that of op {}", op_number.0, found.0)
            }
            Self::HeadTooLong => {
                write!(f, "the head of the snapshot exceeds the limit of {HEAD_BYTES_MAX} bytes")
            }
            Self::Kind(kind) => write!(f, "a snapshot has no blocks of kind {kind}"),
            Self::State(error) => write!(f, "the state in the snapshot is damaged: {error}"),
            Self::Part => f.write_str("a part of a snapshot does not follow the one before"),
            Self::Store(error) => error.fmt(f),
            Self::Unreadable { by, why } => {
                write!(f, "state machine {by} cannot read the snapshot, which is intact: {why}")
            }
        }
    }
}

impl std::error::Error for SnapshotStoreError {}

impl From<SnapshotError> for SnapshotStoreError {
    fn from(error: SnapshotError) -> Self {
        Self::File(error)
    }
}

impl From<DiskError> for SnapshotStoreError {
    fn from(error: DiskError) -> Self {
        Self::File(SnapshotError::Disk(error))
    }
}

impl From<DamagedSnapshot> for SnapshotStoreError {
    fn from(error: DamagedSnapshot) -> Self {
        Self::State(error)
    }
}

impl From<StoreError> for SnapshotStoreError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<LoadError> for SnapshotStoreError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Damaged(damage) => Self::State(damage),
            LoadError::Store(error) => Self::Store(error),
        }
    }
}

impl From<ReceiveError> for SnapshotStoreError {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Disk(error) => error.into(),
            ReceiveError::Offset { .. } => Self::Part,
        }
    }
}

impl SnapshotStoreError {
    /// The failure of the disk behind it, if that is what it is; else the file is not what was written.
    #[must_use]
    pub const fn disk(&self) -> Option<&DiskError> {
        match self {
            Self::File(SnapshotError::Disk(error)) => Some(error),
            _ => None,
        }
    }
}

/// Makes an engine of the blocks of its state.
pub trait Load {
    /// The engine.
    type Engine;

    /// Takes in one block.
    ///
    /// # Errors
    /// If it is none, or the disk refuses.
    fn block(&mut self, block: &[u8]) -> Result<(), SnapshotStoreError>;

    /// The engine; `head` is what the snapshot holds besides its state, as bytes.
    ///
    /// # Errors
    /// If the blocks are not all of one snapshot, or the disk refuses.
    fn finish(self, head: &[u8]) -> Result<Self::Engine, SnapshotStoreError>;
}

impl Load for Loader {
    type Engine = MemoryEngine;

    fn block(&mut self, block: &[u8]) -> Result<(), SnapshotStoreError> {
        Ok(Self::block(self, block)?)
    }

    fn finish(self, _: &[u8]) -> Result<MemoryEngine, SnapshotStoreError> {
        Ok(Self::finish(self)?)
    }
}

/// A snapshot read back.
#[derive(Debug)]
pub struct Loaded<E> {
    /// What it says besides the state.
    pub head: SnapshotHead,
    /// An engine with the state.
    pub engine: E,
    /// Length in bytes.
    pub bytes: u64,
}

/// Where the snapshots of a replica are kept.
pub struct SnapshotStore<D: Disk> {
    disk: D,
    cluster: u64,
    writer: Option<SnapshotWriter<D>>,
    receiver: Option<SnapshotReceiver<D>>,
    /// The one that somebody reads. Open, so that it can be read to its end when it has been replaced.
    source: Option<(OpNumber, SnapshotBytes<D>)>,
}

impl<D: Disk> fmt::Debug for SnapshotStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotStore").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl<D: Disk> SnapshotStore<D> {
    /// The snapshot_store of a replica of this cluster. Removes what an earlier process left unfinished.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn open(mut disk: D, cluster: u64) -> Result<Self, SnapshotStoreError> {
        remove_unfinished(&mut disk)?;
        Ok(Self { disk, cluster, writer: None, receiver: None, source: None })
    }

    /// The snapshots that are whole, oldest first. Their contents are not looked at.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn list(&mut self) -> Result<Vec<OpNumber>, SnapshotStoreError> {
        Ok(list_snapshots(&mut self.disk)?)
    }

    /// Begins a snapshot; one that is being written is given up.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn begin(&mut self, head: &SnapshotHead) -> Result<(), SnapshotStoreError> {
        self.give_up()?;
        let SnapshotHead { op_number, view, time, .. } = *head;
        let header = SnapshotHeader { cluster: self.cluster, op_number, view, time };
        // Kept before anything is written: what a full disk has taken of the head is removed with it.
        let writer = self.writer.insert(SnapshotWriter::create(&mut self.disk, header)?);
        let mut bytes = Vec::new();
        syros_wire::encode_snapshot_head(head, &mut bytes);
        for piece in bytes.chunks(HEAD_BLOCK_BYTES) {
            writer.block(&mut self.disk, HEAD_KIND, piece)?;
        }
        Ok(())
    }

    /// Writes the next block of the engine's state.
    ///
    /// # Errors
    /// What the disk reports.
    ///
    /// # Panics
    /// If no snapshot is being written.
    pub fn state(&mut self, block: &[u8]) -> Result<(), SnapshotStoreError> {
        let writer = self.writer.as_mut().expect("a snapshot was begun");
        Ok(writer.block(&mut self.disk, STATE_KIND, block)?)
    }

    /// Ends the snapshot: when this returns it is on disk for good. Returns its length in bytes.
    ///
    /// # Errors
    /// What the disk reports.
    ///
    /// # Panics
    /// If no snapshot is being written.
    pub fn finish(&mut self) -> Result<u64, SnapshotStoreError> {
        let writer = self.writer.take().expect("a snapshot was begun");
        Ok(writer.finish(&mut self.disk)?)
    }

    /// Gives up the snapshot that is being written, if one is.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn give_up(&mut self) -> Result<(), SnapshotStoreError> {
        match self.writer.take() {
            None => Ok(()),
            Some(writer) => Ok(writer.abandon(&mut self.disk)?),
        }
    }

    /// Writes a part of a snapshot that is being received; the one at offset 0 begins it. Returns how much
    /// of it is here.
    ///
    /// # Errors
    /// What the disk reports, and [`SnapshotStoreError::Part`].
    pub fn write_part(
        &mut self,
        op_number: OpNumber,
        offset: u64,
        part: &[u8],
    ) -> Result<u64, SnapshotStoreError> {
        if offset == 0 {
            self.stop_receiving()?;
            self.receiver = Some(SnapshotReceiver::create(&mut self.disk, op_number)?);
        }
        let receiver = self.receiver.as_mut().filter(|receiver| receiver.op_number() == op_number);
        let receiver = receiver.ok_or(SnapshotStoreError::Part)?;
        receiver.append(&mut self.disk, offset, part)?;
        Ok(receiver.received())
    }

    fn stop_receiving(&mut self) -> Result<(), SnapshotStoreError> {
        match self.receiver.take() {
            None => Ok(()),
            Some(receiver) => Ok(receiver.abandon(&mut self.disk)?),
        }
    }

    /// Checks the snapshot that has been received, keeps it for good, and loads it.
    ///
    /// # Errors
    /// What the disk reports, and everything that can be wrong with a file. It is removed then.
    pub fn receive<L: Load>(
        &mut self,
        op_number: OpNumber,
        loader: L,
    ) -> Result<Loaded<L::Engine>, SnapshotStoreError> {
        let receiver = self.receiver.take_if(|receiver| receiver.op_number() == op_number);
        receiver.ok_or(SnapshotStoreError::Part)?.finish(&mut self.disk, self.cluster)?;
        self.load(op_number, loader).inspect_err(|error| {
            if error.disk().is_none() {
                // If this fails too, it is found again when a process loads it.
                let _ = remove_snapshot(&mut self.disk, op_number);
            }
        })
    }

    /// Loads a snapshot.
    ///
    /// # Errors
    /// What the disk reports, and everything that can be wrong with a file.
    pub fn load<L: Load>(
        &mut self,
        op_number: OpNumber,
        mut loader: L,
    ) -> Result<Loaded<L::Engine>, SnapshotStoreError> {
        let (header, mut reader) = SnapshotReader::open(&mut self.disk, op_number, self.cluster)?;
        let mut head_bytes = Vec::new();
        while let Some((kind, block)) = reader.next(&mut self.disk)? {
            match kind {
                HEAD_KIND if head_bytes.len() + block.len() > HEAD_BYTES_MAX => {
                    return Err(SnapshotStoreError::HeadTooLong);
                }
                HEAD_KIND => head_bytes.extend_from_slice(block),
                STATE_KIND => loader.block(block)?,
                kind => return Err(SnapshotStoreError::Kind(kind)),
            }
        }
        let head = syros_wire::decode_snapshot_head(&head_bytes).map_err(SnapshotStoreError::Head)?;
        if (head.op_number, head.view, head.time) != (header.op_number, header.view, header.time) {
            return Err(SnapshotStoreError::OtherHead { op_number, found: head.op_number });
        }
        Ok(Loaded { head, engine: loader.finish(&head_bytes)?, bytes: reader.length() })
    }

    /// Reads up to `most` bytes of a snapshot from `offset` on, for a member that asked; nothing if there
    /// is no such snapshot or no such byte.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn read_part(
        &mut self,
        op_number: OpNumber,
        offset: u64,
        most: usize,
    ) -> Result<Option<Vec<u8>>, SnapshotStoreError> {
        if self.source.as_ref().is_none_or(|(open, _)| *open != op_number) {
            self.source = match SnapshotBytes::open(&mut self.disk, op_number) {
                Ok(source) => Some((op_number, source)),
                Err(SnapshotError::Missing { .. }) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        }
        let Some((_, source)) = &self.source else { return Ok(None) };
        let mut part = vec![0; most];
        let length = source.read(&mut self.disk, offset, &mut part)?;
        part.truncate(length);
        Ok((length > 0).then_some(part))
    }

    /// Removes the finished snapshots that are older than this one.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn remove_before(&mut self, op_number: OpNumber) -> Result<(), SnapshotStoreError> {
        for older in list_snapshots(&mut self.disk)?.into_iter().filter(|other| *other < op_number) {
            remove_snapshot(&mut self.disk, older)?;
        }
        Ok(())
    }

    /// Removes all finished snapshots but this one: what a process does before it begins to make its own.
    ///
    /// # Errors
    /// What the disk reports.
    pub fn keep_only(&mut self, op_number: Option<OpNumber>) -> Result<(), SnapshotStoreError> {
        for other in list_snapshots(&mut self.disk)? {
            if Some(other) != op_number {
                remove_snapshot(&mut self.disk, other)?;
            }
        }
        Ok(())
    }
}
