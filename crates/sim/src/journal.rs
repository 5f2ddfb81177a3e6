//! A replica's disk, and the real write-ahead log on it.

use crate::adapter::PACE;
use crate::rot;
use crate::sim_stores::SimStores;
use crate::swarm::DiskSettings;
use crate::tally::Occurrence;
use syros_node::data::{
    Data, DataError, OpenNotice, Owner, ReopenError, ReplicaFiles, VIEW_FILE, ViewFile, reopen_log,
};
use syros_node::{DiskState, EntriesJob, EntriesReader, RecordNumbering};
use syros_protocol::record::{Record, Ticket};
use syros_protocol::replica::{Config, EntriesWanted, PlantedBug};
use syros_snapshot::{SnapshotFiles, States, Stored, StoredError};
use syros_types::{ConfigurationId, Prng, View};
use syros_wal::memory_disk::MemoryDisk;
use syros_wal::{
    Cause, Disk as _, DiskError, OpenError, Options, ReadError, RecordNumber, Unneeded, Wal, WalError,
    WriteError,
};

/// The cluster that all simulated logs belong to.
const CLUSTER: u64 = 1;

/// Directories of a disk: the log with its snapshots, the view, a log that is to replace a damaged one, and what is damaged.
const DATA: &str = "data";
const VIEW: &str = "view";
const NEW_LOG: &str = "data.new";
const DAMAGED: &str = "damaged";

/// How a disk operation of a process ended badly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskTrouble {
    /// The machine stopped in the middle of it.
    Stopped,
    /// The disk refused; the log writes nothing any more.
    Failed(DiskState),
    /// What was on it is lost, and there is no other replica that has it.
    Alone,
}

impl From<&DiskError> for DiskTrouble {
    fn from(error: &DiskError) -> Self {
        if error.cause == Cause::Stopped { Self::Stopped } else { Self::Failed(DiskState::after(error)) }
    }
}

impl From<WalError> for DiskTrouble {
    fn from(error: WalError) -> Self {
        match error {
            WalError::Disk(error) => (&error).into(),
            WalError::ThreadPanicked | WalError::Closed => Self::Failed(DiskState::Failed),
        }
    }
}

/// A disk operation that failed before a replica started; an error if it is something else.
fn trouble(error: DataError<DiskError>) -> Result<DiskTrouble, String> {
    Ok(match error {
        DataError::Files(error)
        | DataError::Stored(StoredError::Log(OpenError::Disk(error)))
        | DataError::View(ReadError::Disk(error))
        | DataError::NoteView(WriteError::Disk(error)) => (&error).into(),
        DataError::NewLog(error) => error.into(),
        DataError::Alone { .. } => DiskTrouble::Alone,
        DataError::Stored(StoredError::Snapshot(error)) if error.disk().is_some() => {
            error.disk().map_or(DiskTrouble::Failed(DiskState::Failed), DiskTrouble::from)
        }
        DataError::Stored(error) => return Err(error.to_string()),
        other => return Err(format!("{other:?}")),
    })
}

/// A disk, which outlives the processes that use it.
#[derive(Debug)]
pub struct Disk {
    disk: MemoryDisk,
    /// The stores of an engine that is on disk.
    stores: SimStores,
    sizes: Sizes,
    /// A replica has run with it.
    used: bool,
    /// It has rotted since it was last read: whoever finds it damaged is right.
    rotten: bool,
    /// So has the file of the view, and not the rest.
    is_view_rotten: bool,
    /// How often it has rotted.
    times_rotten: u64,
    /// The files of the log and of the snapshots, as somebody has copied them while no process ran.
    copied: Vec<(String, Vec<u8>)>,
}

/// Sizes of a log's files.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Of a segment, in bytes.
    pub segment: u64,
    /// Of the pieces in which room is made, in bytes.
    pub reserve: u64,
    /// Of what is kept beside the log for those who copy it.
    pub keep: u64,
}

impl Sizes {
    /// Those of the disks of a world.
    pub(crate) const fn of(disk: &DiskSettings) -> Self {
        Self { segment: disk.segment_bytes, reserve: disk.reserve_bytes, keep: disk.keep_bytes }
    }
}

/// Faults about to happen to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFault {
    /// The machine stops at the operation after so many others.
    Stop(u64),
    /// The next append fails after so many bytes.
    Write(usize),
    /// The next append fails after so many bytes, if there is one: the disk is full.
    Append(usize),
    /// The next sync fails.
    Sync,
}

impl Disk {
    /// An empty disk, for a log with such files.
    #[must_use]
    pub fn new(sizes: Sizes) -> Self {
        let (disk, stores) = (MemoryDisk::new(), SimStores::default());
        let (times_rotten, copied) = (0, Vec::new());
        Self { disk, stores, sizes, used: false, rotten: false, is_view_rotten: false, times_rotten, copied }
    }

    /// The sizes of its log's files.
    pub(crate) const fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Has a fault happen. One that is not met is taken back by [`Disk::end_faults`].
    pub fn plan(&self, fault: DiskFault) {
        match fault {
            DiskFault::Stop(after) => self.disk.stop_at(self.disk.operations() + 1 + after),
            DiskFault::Write(written) => self.disk.fail_next_write(Cause::Full, written),
            DiskFault::Append(written) => self.disk.fail_next_append(Cause::Full, written),
            DiskFault::Sync => self.disk.fail_next_sync(Cause::Io),
        }
    }

    /// Ends an operation that faults were planned for. Those that it did not meet are taken back. A machine that stopped
    /// meanwhile has stopped, whatever else the operation met or got over.
    ///
    /// # Errors
    /// That of the operation, or [`DiskTrouble::Stopped`].
    pub fn end_faults<T>(&self, result: Result<T, DiskTrouble>) -> Result<T, DiskTrouble> {
        self.disk.cancel_faults();
        if self.disk.has_stopped() { Err(DiskTrouble::Stopped) } else { result }
    }

    /// Where the log and the snapshots are.
    pub(crate) fn data(&self) -> MemoryDisk {
        self.disk.directory(DATA)
    }

    /// True if a replica has run with it.
    pub(crate) const fn is_used(&self) -> bool {
        self.used
    }

    /// The stores of an engine that is on this disk.
    pub(crate) fn stores(&self) -> SimStores {
        self.stores.clone()
    }

    /// Has something on it rot; what belongs to another replica comes from `other`. `None` if there is
    /// nothing that could.
    pub(crate) fn rot(&mut self, other: &mut MemoryDisk, prng: &mut Prng) -> Option<rot::Done> {
        // With the view gone as well, the replica could never come back: that is its operator's business.
        let is_view = !self.rotten && prng.chance(1, 6);
        if is_view || self.is_view_rotten {
            return self.rot_view(prng);
        }
        self.times_rotten += 1;
        if self.times_rotten.is_multiple_of(2) {
            return self.put_back();
        }
        self.copied = files(&mut self.data()).ok()?;
        let done = rot::damage(&mut self.data(), other, prng);
        self.rotten |= done.is_some();
        done
    }

    /// Somebody puts back the log and the snapshots as they were at another time, and leaves the view.
    fn put_back(&mut self) -> Option<rot::Done> {
        let mut data = self.data();
        for (name, _) in files(&mut data).ok()? {
            data.remove(&name).ok()?;
        }
        data.sync_directory().ok()?;
        self.copied.iter().for_each(|(name, bytes)| data.replace(name, bytes));
        self.rotten = true;
        let what = "log and snapshots are an old copy of them".to_owned();
        Some(rot::Done { occurrence: Occurrence::PutBack, what })
    }

    /// Has the file of the view rot, or go.
    fn rot_view(&mut self, prng: &mut Prng) -> Option<rot::Done> {
        let mut view = self.disk.directory(VIEW);
        let length = view.contents(VIEW_FILE)?.len() as u64;
        self.is_view_rotten = true;
        if prng.chance(1, 4) {
            view.remove(VIEW_FILE).and_then(|()| view.sync_directory()).ok()?;
            return Some(rot::Done {
                occurrence: Occurrence::FileGone,
                what: "the file of the view is gone".to_owned(),
            });
        }
        let (at, bit) = (prng.below(length), prng.below(8));
        view.corrupt(VIEW_FILE, at, 1 << bit);
        let what = format!("bit {bit} of byte {at} of the file of the view is flipped");
        Some(rot::Done { occurrence: Occurrence::BitFlipped, what })
    }

    /// Has something in the store of an engine on it rot. `None` if there is no store.
    pub(crate) fn rot_store(&mut self) -> Option<rot::Done> {
        let done = !self.is_view_rotten && self.stores.rot();
        self.rotten |= done;
        let what = "the store of the engine has rotted".to_owned();
        done.then_some(rot::Done { occurrence: Occurrence::StoreRotten, what })
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
        *self = Self { used: true, rotten: true, ..Self::new(self.sizes) };
        let owner = Owner { cluster: CLUSTER, replica: config.replica };
        let file = ViewFile::open(self.disk.directory(VIEW), owner);
        file.expect("a new disk works").record(view).expect("a new disk works");
    }
}

impl ReplicaFiles for Disk {
    type Disk = MemoryDisk;
    type Error = DiskError;

    fn is_new(&self) -> bool {
        !self.used
    }

    fn view(&mut self) -> Result<MemoryDisk, DiskError> {
        Ok(self.disk.directory(VIEW))
    }

    fn log(&mut self) -> Result<MemoryDisk, DiskError> {
        Ok(self.data())
    }

    fn snapshots(&mut self) -> Result<MemoryDisk, DiskError> {
        Ok(self.data())
    }

    fn new_log(&mut self) -> Result<MemoryDisk, DiskError> {
        self.disk.remove_directory(NEW_LOG)?;
        Ok(self.disk.directory(NEW_LOG))
    }

    fn set_aside(&mut self) -> Result<String, DiskError> {
        self.stores.clear();
        self.disk.rename_directory(DATA, DAMAGED)?;
        self.disk.rename_directory(NEW_LOG, DATA)?;
        self.disk.sync_directory()?;
        // Nobody here wants to look at it.
        self.disk.remove_directory(DAMAGED)?;
        Ok(DAMAGED.to_owned())
    }

    fn on_notice(&mut self, notice: &OpenNotice<'_>) {
        match notice {
            OpenNotice::SetAside { damage, .. } => {
                assert!(
                    self.rotten,
                    "what was written is read back, and this is said to be damaged: {damage}"
                );
            }
            OpenNotice::ViewDamaged(_) | OpenNotice::ViewMissing => {
                assert!(self.is_view_rotten, "the file of the view is read back: {notice:?}");
            }
            OpenNotice::TornTail(_) | OpenNotice::Loaded { .. } => {}
        }
    }
}

/// All files of a directory.
fn files(disk: &mut MemoryDisk) -> Result<Vec<(String, Vec<u8>)>, DiskError> {
    let names = disk.list()?.into_iter();
    Ok(names.filter_map(|name| Some((name.clone(), disk.contents(&name)?))).collect())
}

/// The write-ahead log of one life of a process.
#[derive(Debug)]
pub struct Journal {
    wal: Wal<MemoryDisk>,
    /// How it is opened.
    options: Options,
    /// How often this life has opened it again.
    pub(crate) reopened: u64,
    /// Which record a ticket of the replica is.
    numbering: RecordNumbering,
    /// A sync is under way.
    syncing: bool,
    /// Records before this one may go after the next sync, and all that is kept if the flag is set.
    unneeded: (Option<Ticket>, bool),
    /// The same of the sync that is under way.
    letting_go: (Option<Ticket>, bool),
    /// Record by which the replica entered a view after its disk was replaced; 0 if it was not.
    remembers_from: Option<u64>,
    /// It removes what is kept before it keeps what it needs no more.
    drops_kept_first: bool,
}

/// The snapshots of engines in memory.
pub(crate) const FILES: SnapshotFiles = SnapshotFiles { hash_seed: 0, pace: PACE };

impl Journal {
    /// Opens the log on a disk and reads back the replica's state, the engine's from what `states` makes.
    ///
    /// # Errors
    /// [`DiskTrouble::Stopped`] if the machine stops meanwhile.
    ///
    /// # Panics
    /// If what comes back is not what was written: a bug of the log, of the format or of the replica.
    #[expect(clippy::type_complexity, reason = "four things, each with one name")]
    pub fn open<S: States<MemoryDisk>>(
        disk: &mut Disk,
        config: &Config,
        states: impl Fn() -> S,
    ) -> Result<(Self, Stored<MemoryDisk, S::Engine>, ViewFile<MemoryDisk>, S), DiskTrouble> {
        let Sizes { segment: segment_bytes, reserve: reserve_bytes, keep: keep_bytes } = disk.sizes;
        let options =
            Options { segment_bytes, reserve_bytes, keep_bytes, ..Options::new(CLUSTER, config.replica) };
        let (data, states) = Data::open(config, &options, disk, states).map_err(|error| {
            trouble(error)
                .unwrap_or_else(|error| panic!("{} cannot read back what it wrote: {error}", config.replica))
        })?;
        let Data { wal, stored, view } = data;
        // All that is left has been read and found right: damage found from now on is nobody's doing.
        (disk.used, disk.rotten, disk.is_view_rotten) = (true, false, false);
        let numbering = RecordNumbering::new(stored.recovery.last, Ticket(0));
        let remembers_from = (!stored.restored.is_amnesiac()).then_some(0);
        let journal = Self {
            wal,
            options,
            reopened: 0,
            numbering,
            syncing: false,
            unneeded: (None, false),
            letting_go: (None, false),
            remembers_from,
            drops_kept_first: config.planted == Some(PlantedBug::KeptWithoutRoom),
        };
        Ok((journal, stored, view, states))
    }

    /// Opens the log again: its disk takes writes again, and the process goes on. Returns the last record that it holds.
    ///
    /// # Errors
    /// [`DiskTrouble`].
    ///
    /// # Panics
    /// If the log is not what was written.
    pub(crate) fn reopen(
        &mut self,
        disk: &Disk,
        view: &mut ViewFile<MemoryDisk>,
    ) -> Result<RecordNumber, DiskTrouble> {
        let wal = reopen_log(&self.options, disk.data(), view).map_err(|error| match error {
            ReopenError::NoteView(WriteError::Disk(error)) | ReopenError::Log(OpenError::Disk(error)) => {
                DiskTrouble::from(&error)
            }
            error => panic!("the log is what was written: {error:?}"),
        })?;
        (self.wal, self.syncing) = (wal, false);
        (self.unneeded, self.letting_go) = ((None, false), (None, false));
        self.reopened += 1;
        Ok(self.wal.appended())
    }

    /// From now on tickets are numbered like this.
    pub(crate) const fn renumber(&mut self, numbering: RecordNumbering) {
        self.numbering = numbering;
    }

    /// Has the records before this one removed after the next sync: see
    /// [`GroupCommit::remove_before`](syros_wal::GroupCommit::remove_before).
    pub fn remove_before(&mut self, ticket: Ticket) {
        self.unneeded.0 = self.unneeded.0.max(Some(ticket));
    }

    /// Has what is kept beside the log removed after the next sync.
    pub fn drop_kept(&mut self) {
        self.unneeded.1 = true;
    }

    /// Bytes of what is kept beside the log; none if that is about to be removed, or if the log has failed.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        let goes = self.unneeded.1 || self.letting_go.1 || self.has_stopped();
        if goes { 0 } else { self.wal.kept_bytes() }
    }

    /// What reads this log for those who copy it.
    pub(crate) fn entries_reader(&mut self, config: &Config) -> EntriesReader<MemoryDisk> {
        let (disk, options) = (self.wal.disk_mut().clone(), self.options.clone());
        let mut reader = EntriesReader::new(disk, options, ConfigurationId::FIRST, config.describe);
        reader.plant(config.planted);
        reader
    }

    /// What is to be read of this log.
    pub(crate) fn entries_job(&self, wanted: EntriesWanted) -> EntriesJob {
        EntriesJob { wanted, emitted: self.numbering.record(wanted.ticket), durable: self.wal.persisted() }
    }

    /// Takes a record.
    ///
    /// # Panics
    /// If the replica's tickets are not consecutive.
    pub fn append(&mut self, ticket: Ticket, record: &Record) {
        match self.wal.append_with(|out| syros_wire::encode_record(record, out)) {
            Ok(RecordNumber(number)) => {
                assert!(self.numbering.record(ticket).0 == number, "tickets number the records");
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
        let has_work =
            self.wal.appended().0 > self.wal.persisted().0 || self.unneeded.0.is_some() || self.unneeded.1;
        !self.syncing && self.wal.error().is_none() && has_work
    }

    /// True if nothing becomes durable any more.
    #[must_use]
    pub const fn has_stopped(&self) -> bool {
        self.wal.error().is_some()
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
        self.letting_go = std::mem::take(&mut self.unneeded);
        if self.letting_go.1 {
            self.wal.drop_kept();
        }
        self.wal.flush()?;
        Ok(self.numbering.ticket(self.wal.appended()))
    }

    /// Makes durable what was written, and then removes the records that may go.
    ///
    /// # Errors
    /// [`DiskTrouble`].
    pub fn sync(&mut self) -> Result<(), DiskTrouble> {
        self.syncing = false;
        self.wal.sync()?;
        let (before, kept) = std::mem::take(&mut self.letting_go);
        let before = before.and_then(|ticket| self.numbering.first_needed(ticket));
        let kept = kept && !self.drops_kept_first;
        self.wal.let_go(Unneeded { before, kept })?;
        Ok(())
    }
}
