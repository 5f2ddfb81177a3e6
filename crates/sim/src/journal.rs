//! A replica's disk, and the real write-ahead log on it.

use crate::adapter::PACE;
use crate::rot;
use crate::shelf::Shelf;
use crate::tally::Kind;
use syros_protocol::record::{Record, Ticket};
use syros_protocol::replica::Config;
use syros_snapshot::{DepotError, SnapshotFiles, States, Stored, StoredError};
use syros_types::{Prng, ReplicaId, View};
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{Cause, OpenError, Options, RecordNumber, Wal, WalError};

/// The cluster that all simulated logs belong to.
const CLUSTER: u64 = 1;

/// How a disk operation of a process ended badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskTrouble {
    /// The machine stopped in the middle of it.
    Stopped,
    /// The disk refused; the log writes nothing any more.
    Failed,
    /// What is on the disk is not what was written.
    Damaged,
}

impl From<DepotError> for DiskTrouble {
    fn from(error: DepotError) -> Self {
        match error.disk() {
            Some(error) if error.cause == Cause::Stopped => Self::Stopped,
            Some(_) => Self::Failed,
            None => Self::Damaged,
        }
    }
}

impl From<WalError> for DiskTrouble {
    fn from(error: WalError) -> Self {
        match error {
            WalError::Disk(error) if error.cause == Cause::Stopped => Self::Stopped,
            _ => Self::Failed,
        }
    }
}

/// A disk, which outlives the processes that use it.
#[derive(Debug)]
pub struct Disk {
    disk: MemoryDisk,
    /// The stores of an engine that is on disk.
    shelf: Shelf,
    sizes: Sizes,
    /// A log was opened on it before.
    used: bool,
    /// It has rotted since it was last read: whoever finds it damaged is right.
    rotten: bool,
}

/// Sizes of a log's files.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Of a segment, in bytes.
    pub segment: u64,
    /// Of the pieces in which room is made, in bytes.
    pub reserve: u64,
}

/// Faults about to happen to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// The machine stops at the operation after so many others.
    Stop(u64),
    /// The next append fails after so many bytes.
    Write(usize),
    /// The next sync fails.
    Sync,
}

impl Disk {
    /// An empty disk, for a log with such files.
    #[must_use]
    pub fn new(sizes: Sizes) -> Self {
        let (disk, shelf) = (MemoryDisk::new(), Shelf::default());
        Self { disk, shelf, sizes, used: false, rotten: false }
    }

    /// The sizes of its log's files.
    pub(crate) const fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Has a fault happen. One that is not met is taken back by [`Disk::cancel_faults`].
    pub fn plan(&self, fault: DiskFault) {
        match fault {
            DiskFault::Stop(after) => self.disk.stop_at(self.disk.operations() + 1 + after),
            DiskFault::Write(written) => self.disk.fail_next_write(Cause::Full, written),
            DiskFault::Sync => self.disk.fail_next_sync(Cause::Io),
        }
    }

    /// True if the machine has stopped in the middle of an operation.
    pub(crate) fn has_stopped(&self) -> bool {
        self.disk.has_stopped()
    }

    /// Takes back what was planned and not met.
    pub fn cancel_faults(&self) {
        self.disk.cancel_faults();
    }

    /// Another handle on the same disk.
    pub(crate) fn handle(&self) -> MemoryDisk {
        self.disk.clone()
    }

    /// The stores of an engine that is on this disk.
    pub(crate) fn shelf(&self) -> Shelf {
        self.shelf.clone()
    }

    /// Has something on it rot; what belongs to another replica comes from `other`. `None` if there is
    /// nothing that could.
    pub(crate) fn rot(&mut self, other: &mut MemoryDisk, prng: &mut Prng) -> Option<rot::Done> {
        let done = rot::damage(&mut self.disk, other, prng);
        self.rotten |= done.is_some();
        done
    }

    /// Has something in the store of an engine on it rot. `None` if there is no store.
    pub(crate) fn rot_store(&mut self) -> Option<rot::Done> {
        let done = self.shelf.rot();
        self.rotten |= done;
        let what = "the store of the engine has rotted".to_owned();
        done.then_some(rot::Done { kind: Kind::StoreRotten, what })
    }

    /// Power fails: what was not synced may be lost or torn.
    pub fn crash(&self, prng: &mut Prng) {
        self.disk.crash(prng);
    }

    /// The disk is replaced by an empty one that holds nothing but the view the replica has reached,
    /// which somebody kept elsewhere.
    ///
    /// # Panics
    /// Never: nothing fails on a new disk.
    pub fn replace(&mut self, config: &Config, view: View) {
        *self = Self::new(self.sizes);
        let (mut journal, _) = Journal::open(self, config, &mut { FILES }).expect("a new disk works");
        journal.append(Ticket(1), &Record::Forgot { view });
        journal.write().and_then(|_| journal.sync()).expect("a new disk works");
    }
}

/// The write-ahead log of one life of a process.
#[derive(Debug)]
pub struct Journal {
    wal: Wal<MemoryDisk>,
    /// Record number of ticket 0 in this life.
    base: u64,
    encoded: Vec<u8>,
    /// A sync is under way.
    syncing: bool,
    /// Records before this one may go after the next sync.
    remove_before: Option<Ticket>,
    /// Records before this one go after the sync that is under way.
    removing: Option<Ticket>,
    /// Record by which the replica entered a view after its disk was replaced; 0 if it was not.
    remembers_from: Option<u64>,
}

/// The snapshots of engines in memory.
pub(crate) const FILES: SnapshotFiles = SnapshotFiles { hash_seed: 0, pace: PACE };

fn options(replica: ReplicaId, disk: &Disk) -> Options {
    let Disk { sizes: Sizes { segment: segment_bytes, reserve: reserve_bytes }, used, .. } = *disk;
    Options { segment_bytes, reserve_bytes, may_create: !used, ..Options::new(CLUSTER, replica) }
}

impl Journal {
    /// Opens the log on a disk and reads back the replica's state, the engine's from `states`.
    ///
    /// # Errors
    /// [`DiskTrouble::Stopped`] if the machine stops meanwhile, [`DiskTrouble::Damaged`] if the disk has
    /// rotted.
    ///
    /// # Panics
    /// If what comes back is not what was written: a bug of the log, of the format or of the replica.
    pub fn open<S: States<MemoryDisk>>(
        disk: &mut Disk,
        config: &Config,
        states: &mut S,
    ) -> Result<(Self, Stored<MemoryDisk, S::Engine>), DiskTrouble> {
        let options = options(config.replica, disk);
        let (log, snapshots) = (disk.handle(), disk.handle());
        let opened = Stored::open(config, options, snapshots, log, states, |_| {
            disk.used = true;
        });
        let (wal, stored) = match opened {
            Ok(opened) => opened,
            Err(StoredError::Log(OpenError::Disk(error))) => return Err(WalError::Disk(error).into()),
            Err(StoredError::Snapshot(error)) if error.disk().is_some() => return Err(error.into()),
            Err(error) if error.is_damage() && disk.rotten => return Err(DiskTrouble::Damaged),
            Err(error) => panic!("{} cannot read back what it wrote: {error}", config.replica),
        };
        // All that is left has been read and found right: damage found from now on is nobody's doing.
        disk.rotten = false;
        let RecordNumber(base) = stored.recovery.last;
        let remembers_from = (!stored.restored.is_amnesiac()).then_some(0);
        let journal = Self {
            wal,
            base,
            encoded: Vec::new(),
            syncing: false,
            remove_before: None,
            removing: None,
            remembers_from,
        };
        Ok((journal, stored))
    }

    /// Has the records before this one removed after the next sync: see
    /// [`GroupCommit::remove_before`](syros_wal::GroupCommit::remove_before).
    pub fn remove_before(&mut self, ticket: Ticket) {
        self.remove_before = self.remove_before.max(Some(ticket));
    }

    /// Takes a record.
    ///
    /// # Panics
    /// If the replica's tickets are not consecutive.
    pub fn append(&mut self, ticket: Ticket, record: &Record) {
        self.encoded.clear();
        syros_wire::encode_record(record, &mut self.encoded);
        match self.wal.append(&[&self.encoded]) {
            Ok(RecordNumber(number)) => {
                assert!(number == self.base + ticket.0, "tickets number the records");
                if matches!(record, Record::EnterView { .. }) {
                    self.remembers_from.get_or_insert(number);
                }
            }
            // The process has been told that its disk failed; it may not have looked yet.
            Err(error) => assert!(self.wal.error().is_some(), "the log takes records: {error}"),
        }
    }

    /// True if something waits for the disk and no sync is under way.
    #[must_use]
    pub const fn wants_sync(&self) -> bool {
        let has_work = self.wal.appended().0 > self.wal.persisted().0 || self.remove_before.is_some();
        !self.syncing && self.wal.error().is_none() && has_work
    }

    /// True if all that the replica has promised is on this disk: not while it is a replacement whose
    /// replica has not durably entered a view.
    #[must_use]
    pub fn remembers(&self) -> bool {
        self.remembers_from.is_some_and(|number| number <= self.wal.persisted().0)
    }

    /// Writes what was appended. Returns the last ticket that the next sync covers.
    ///
    /// # Errors
    /// [`DiskTrouble`].
    pub fn write(&mut self) -> Result<Ticket, DiskTrouble> {
        self.syncing = true;
        self.removing = self.remove_before.take();
        self.wal.flush()?;
        Ok(Ticket(self.wal.appended().0 - self.base))
    }

    /// Makes durable what was written, and then removes the records that may go.
    ///
    /// # Errors
    /// [`DiskTrouble`].
    pub fn sync(&mut self) -> Result<(), DiskTrouble> {
        self.syncing = false;
        self.wal.sync()?;
        if let Some(ticket) = self.removing.take() {
            self.wal.remove_before(RecordNumber(self.base + ticket.0))?;
        }
        Ok(())
    }
}
