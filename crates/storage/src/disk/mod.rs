//! The disk engine: data that need not fit into memory, in a [`Store`].
//!
//! What is shared between threads is [`Shared`]; a thread that executes has a [`Lane`], one that reads a
//! [`Reader`]. [`DiskEngine`] is all of it behind the contract of [`Engine`], for one thread.
//!
//! A key that has expired is gone for everybody at once, because whoever finds it compares its expiry with log time;
//! its record is removed some time later ([`Shared::purge`]).

mod census;
mod cut;
mod lane;
mod layout;
mod loader;
mod overlay;
mod reader;

pub use census::Census;
pub use cut::Cut;
pub use lane::Lane;
pub use layout::merged;
pub use loader::{DiskLoader, LoadError};
pub use reader::{ReadView, Reader};

use crate::memory::moment;
use crate::removals::SharedRemovals;
use crate::stamp::Stamp;
use crate::store::{Change, Store, StoreError};
use crate::{Digest, Engine};
use core::num::NonZeroU64;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use layout::{
    StoreKey, Stored, data_begin, expiries_from, is_long, meta_key, named_data_key, parse_data_key,
    parse_expiry_key, parse_record,
};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use syros_commands::Programs;
use syros_commands::access::{Expiry, Keys as _};
use syros_types::varint::{put_varint, take_varint};
use syros_types::{OpNumber, WallTime};

/// The format of stores, in the store itself, as long as all values are strings.
const FORMAT: u8 = 1;

/// The format of stores in which there has been a collection, or a record that says which entry has changed its key.
/// Builds that know of neither refuse it.
const FORMAT_WITH_MARKS: u8 = 2;

/// The format of stores in which scripts or libraries are loaded. Builds that know of neither refuse it.
const FORMAT_WITH_PROGRAMS: u8 = 3;

/// Expired keys removed at a time. They are looked up one by one; whoever waits for it waits no longer than
/// for so many reads of the disk.
const PURGED_MAX: usize = 256;

/// No key expires.
const NEVER: u64 = u64::MAX;

/// What all threads of a disk engine have in common.
///
/// **Order.** [`Lane`]s execute different keys at the same time. Whatever concerns all keys, and everything here
/// that says so, needs them all to have committed and to wait.
#[derive(Debug)]
pub struct Shared<S: Store> {
    store: S,
    /// Log time of what readers may see.
    time: AtomicU64,
    generation: AtomicU32,
    /// Records of generations before this one may be in the store, and in no checkpoint that counts.
    forget_before: AtomicU32,
    /// The generation of the last checkpoint that was sealed.
    sealed_generation: AtomicU32,
    /// No key expires before this, in milliseconds, but for those before log time.
    next_expiry: AtomicU64,
    /// No expiry before this one is in the store, in milliseconds.
    purged_before: AtomicU64,
    /// Keys that have expired and whose records have been removed.
    expired: AtomicU64,
    /// A record with a mark has been written, at some time.
    has_marks: AtomicBool,
    /// The entry that versions are recorded from; 0 if they are not, or that is not committed.
    recorded_from: AtomicU64,
    /// The entries that have removed keys, as far as that is committed.
    removals: SharedRemovals,
    /// What is loaded.
    programs: RwLock<Programs>,
    failure: OnceLock<StoreError>,
}

impl<S: Store> Shared<S> {
    /// The store.
    pub const fn store(&self) -> &S {
        &self.store
    }

    /// What went wrong first. Nothing that was executed since counts: only the last checkpoint does.
    pub fn failure(&self) -> Option<&StoreError> {
        self.failure.get()
    }

    fn fail(&self, error: StoreError) {
        // Only the first one is of interest: the others may follow from it.
        let _ = self.failure.set(error);
    }

    /// The outcome, unless it is a failure.
    fn succeeded<T>(&self, outcome: Result<T, StoreError>) -> Option<T> {
        outcome.map_err(|error| self.fail(error)).ok()
    }

    /// Log time of what readers may see.
    pub fn time(&self) -> WallTime {
        WallTime(self.time.load(Ordering::Acquire))
    }

    fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// Lets readers see what was executed at this log time and before.
    pub fn advance(&self, time: WallTime) {
        self.time.fetch_max(time.0, Ordering::AcqRel);
        if self.next_expiry.load(Ordering::Acquire) <= self.time().as_millis() {
            self.find_next_expiry();
        }
    }

    /// No key expires before this.
    pub fn next_expiry(&self) -> Option<WallTime> {
        self.next_expiry_ms().map(moment)
    }

    /// The same in milliseconds.
    fn next_expiry_ms(&self) -> Expiry {
        NonZeroU64::new(self.next_expiry.load(Ordering::Acquire)).filter(|ms| ms.get() != NEVER)
    }

    /// The entry that versions are recorded from; 0 if they are not.
    fn recorded_from(&self) -> u64 {
        self.recorded_from.load(Ordering::Acquire)
    }

    /// What is loaded.
    pub(crate) fn programs(&self) -> Programs {
        self.programs.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces what is loaded. No other lane may be at work.
    pub(crate) fn set_programs(&self, programs: Programs) {
        *self.programs.write().unwrap_or_else(PoisonError::into_inner) = programs;
    }

    /// A record with a mark is about to be written. To be called before that can be part of a checkpoint.
    fn record_mark(&self) {
        // Lanes say it with every record: only the first one disturbs the others.
        if !self.has_marks.load(Ordering::Relaxed) {
            self.has_marks.store(true, Ordering::Release);
        }
    }

    /// A key has got this expiry.
    fn record_expiry(&self, expiry: NonZeroU64) {
        self.next_expiry.fetch_min(expiry.get(), Ordering::AcqRel);
        self.purged_before.fetch_min(expiry.get(), Ordering::AcqRel);
    }

    /// Looks up the first expiry after log time.
    fn find_next_expiry(&self) {
        // What is noted meanwhile counts.
        self.next_expiry.store(NEVER, Ordering::Release);
        let generation = self.generation();
        let from = expiries_from(generation, self.time().as_millis() + 1);
        let mut first = None;
        let walked = self.store.walk(None, &from, |key, _| {
            first = parse_expiry_key(generation, key).map(|(ms, ..)| ms);
            ControlFlow::Break(())
        });
        self.succeeded(walked);
        if let Some(first) = first {
            self.next_expiry.fetch_min(first, Ordering::AcqRel);
        }
    }

    /// True if records may be there of keys that have expired.
    pub fn has_expired(&self) -> bool {
        self.purged_before.load(Ordering::Acquire) <= self.time().as_millis()
    }

    /// Removes the records of some keys that have expired. No lane may be at work, and nothing uncommitted.
    pub fn purge(&self) {
        let (generation, now_ms) = (self.generation(), self.time().as_millis());
        let mut due: Vec<(u64, StoreKey, StoreKey)> = Vec::new();
        let mut rest = NEVER;
        let from = expiries_from(generation, 0);
        let walked = self.store.walk(None, &from, |key, _| {
            let Some((ms, position, name)) = parse_expiry_key(generation, key) else {
                return ControlFlow::Break(());
            };
            if ms > now_ms || due.len() == PURGED_MAX {
                rest = ms;
                return ControlFlow::Break(());
            }
            due.push((ms, StoreKey::from_slice(key), named_data_key(generation, position, name)));
            ControlFlow::Continue(())
        });
        if self.succeeded(walked).is_none() {
            return;
        }
        let mut changes = Vec::with_capacity(2 * due.len());
        for (ms, expiry_key, data_key) in due {
            let Some(found) = self.succeeded(self.store.get(&data_key)) else { return };
            // It may have been set anew since, and got another expiry or none.
            let expiry = |found: S::Value| parse_record(found.as_ref(), false).stamp.expiry;
            if found.and_then(expiry).map(NonZeroU64::get) == Some(ms) {
                changes.push((data_key, Change::Delete));
                self.expired.fetch_add(1, Ordering::Relaxed);
            }
            changes.push((expiry_key, Change::Delete));
        }
        self.succeeded(self.store.write(changes.into_iter()));
        self.purged_before.store(rest, Ordering::Release);
    }

    /// How many keys have expired since the store was opened; of those that were set anew meanwhile nobody knows.
    pub fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    /// Begins the next generation, in which there are no keys. No lane may be at work.
    fn clear(&self) {
        let next = self.generation() + 1;
        self.generation.store(next, Ordering::Release);
        self.next_expiry.store(NEVER, Ordering::Release);
        self.purged_before.store(NEVER, Ordering::Release);
    }

    /// Ends a checkpoint: what has been executed, with `head`, which comes back from [`DiskEngine::open`]. No lane
    /// may be at work, and nothing uncommitted.
    ///
    /// # Errors
    /// What the disk says.
    pub fn seal(&self, head: &[u8]) -> Result<(), StoreError> {
        let generation = self.generation();
        let has_marks = self.has_marks.load(Ordering::Acquire);
        let programs = self.programs();
        let mut state = vec![match (programs.is_empty(), has_marks) {
            (false, _) => FORMAT_WITH_PROGRAMS,
            (true, true) => FORMAT_WITH_MARKS,
            (true, false) => FORMAT,
        }];
        state.extend_from_slice(&generation.to_le_bytes());
        state.extend_from_slice(&self.time().0.to_le_bytes());
        let mut versions = Vec::new();
        put_varint(&mut versions, self.recorded_from());
        for (part, entry) in self.removals.iter() {
            put_varint(&mut versions, part as u64);
            put_varint(&mut versions, entry);
        }
        let mut changes = vec![("state", state), ("head", head.to_vec())];
        if !programs.is_empty() {
            let mut records = Vec::new();
            programs.records().for_each(|record| {
                put_varint(&mut records, record.len() as u64);
                records.extend_from_slice(&record);
            });
            changes.push(("programs", records));
        }
        if self.recorded_from() > 0 {
            changes.push(("versions", versions));
        }
        let changes = changes.into_iter().map(|(name, value)| (meta_key(name), Change::Put(value)));
        self.store.write(changes)?;
        self.store.seal()?;
        self.sealed_generation.store(generation, Ordering::Release);
        Ok(())
    }

    /// Makes durable what was sealed. Others may go on meanwhile.
    ///
    /// # Errors
    /// What the disk says.
    pub fn flush(&self) -> Result<(), StoreError> {
        let durable = self.sealed_generation.load(Ordering::Acquire);
        self.store.flush()?;
        self.forget_before.fetch_max(durable, Ordering::AcqRel);
        Ok(())
    }

    /// Gives back the space of what FLUSHALL has removed, and merges runs; false if there was nothing to do.
    ///
    /// # Errors
    /// What the disk says.
    pub fn compact(&self) -> Result<bool, StoreError> {
        let before = self.forget_before.load(Ordering::Acquire);
        if before > 0 {
            self.store.forget(&data_begin(0), &data_begin(before))?;
            self.store.forget(&expiries_from(0, 0), &expiries_from(before, 0))?;
            // Unless another generation has ended meanwhile.
            let _ = self.forget_before.compare_exchange(before, 0, Ordering::AcqRel, Ordering::Acquire);
        }
        self.store.compact()
    }

    /// Visits all records of keys that exist, in the order of positions, in a view or as they are: position, key,
    /// value and stamp.
    fn walk(
        &self,
        view: Option<&S::View>,
        at: (u32, u64),
        from: &[u8],
        mut visit: impl FnMut(u64, &[u8], Stored<'_>, Stamp) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.store.walk(view, from, |key, record| visit_record(at, key, record, &mut visit))
    }
}

/// What was loaded when this store was sealed last. What an older state has left behind does not count.
fn read_programs<S: Store>(store: &S) -> Result<Programs, StoreError> {
    let mut programs = Programs::NONE;
    let state = store.get(&meta_key("state"))?;
    if state.as_ref().and_then(|state| state.as_ref().first().copied()) != Some(FORMAT_WITH_PROGRAMS) {
        return Ok(programs);
    }
    let Some(records) = store.get(&meta_key("programs"))? else { return Ok(programs) };
    let mut rest = records.as_ref();
    while let Ok(length) = take_varint(&mut rest) {
        let taken = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length));
        let added = taken.filter(|(record, _)| programs.add_record(record).is_ok());
        let Some((_, left)) = added else {
            let problem = "what it says about scripts is damaged".to_owned();
            return Err(StoreError::other("read the store", problem));
        };
        rest = left;
    }
    Ok(programs)
}

/// Visits the record of a store's key if it is of a key of this generation that exists at this time; breaks off behind
/// the last of the generation.
fn visit_record(
    (generation, now_ms): (u32, u64),
    key: &[u8],
    record: &[u8],
    visit: &mut impl FnMut(u64, &[u8], Stored<'_>, Stamp) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some((position, name)) = parse_data_key(generation, key) else {
        return ControlFlow::Break(());
    };
    let parsed = parse_record(record, is_long(name));
    if parsed.stamp.expiry.is_some_and(|expiry| expiry.get() <= now_ms) {
        return ControlFlow::Continue(());
    }
    visit(position, parsed.key(record, name), parsed.value(record), parsed.stamp)
}

/// An [`Engine`] whose data lies in a [`Store`]: memory is needed for what the store caches and has not flushed.
///
/// Keys are in the order of a hash, the same in all engines of this type. DBSIZE, KEYS and RANDOMKEY's worst case
/// take time proportional to the data.
#[derive(Debug)]
pub struct DiskEngine<S: Store> {
    shared: Arc<Shared<S>>,
    lane: Lane<S>,
    cut: Option<Cut<S>>,
}

impl<S: Store> DiskEngine<S> {
    /// The engine that was sealed last in this store, with what [`Shared::seal`] was given; an empty one at time 0
    /// if nothing ever was.
    ///
    /// # Errors
    /// What the disk says, or that the store is of a later version.
    pub fn open(store: S) -> Result<(Self, Option<Vec<u8>>), StoreError> {
        let state = store.get(&meta_key("state"))?;
        let (generation, time, has_marks) = match state.as_ref().map(AsRef::as_ref) {
            None => (0, 0, false),
            Some([format @ (FORMAT | FORMAT_WITH_MARKS | FORMAT_WITH_PROGRAMS), rest @ ..])
                if rest.len() == 12 =>
            {
                let (generation, time) = rest.split_at(4);
                let generation = generation.try_into().map_or(0, u32::from_le_bytes);
                let time = time.try_into().map_or(0, u64::from_le_bytes);
                (generation, time, *format != FORMAT)
            }
            Some(other) => {
                let problem = format!("its state is {other:?}, which this version does not know");
                return Err(StoreError::other("read the store", problem));
            }
        };
        let head = store.get(&meta_key("head"))?.map(|head| head.as_ref().to_vec());
        let programs = read_programs(&store)?;
        let shared = Arc::new(Shared {
            store,
            time: AtomicU64::new(time),
            generation: AtomicU32::new(generation),
            forget_before: AtomicU32::new(generation),
            sealed_generation: AtomicU32::new(generation),
            next_expiry: AtomicU64::new(NEVER),
            purged_before: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            has_marks: AtomicBool::new(has_marks),
            recorded_from: AtomicU64::new(0),
            removals: SharedRemovals::default(),
            programs: RwLock::new(programs),
            failure: OnceLock::new(),
        });
        if let Some(versions) = shared.store.get(&meta_key("versions"))? {
            let mut rest = versions.as_ref();
            shared.recorded_from.store(take_varint(&mut rest).unwrap_or(0), Ordering::Release);
            while let (Ok(part), Ok(entry)) = (take_varint(&mut rest), take_varint(&mut rest)) {
                shared.removals.record(usize::try_from(part).unwrap_or(usize::MAX), entry);
            }
        }
        shared.find_next_expiry();
        if let Some(error) = shared.failure() {
            return Err(error.clone());
        }
        let lane = Lane::new(Arc::clone(&shared));
        Ok((Self { shared, lane, cut: None }, head))
    }

    /// Begins to restore an engine from the blocks of a snapshot of any engine of this type, in an empty store.
    pub const fn loader(store: S) -> DiskLoader<S> {
        DiskLoader::new(store)
    }

    /// What all threads of the engine have in common.
    pub const fn shared(&self) -> &Arc<Shared<S>> {
        &self.shared
    }

    /// The same engine for other threads; see [`Lane::new`] and [`Reader::new`].
    #[must_use]
    pub fn into_shared(self) -> Arc<Shared<S>> {
        self.shared
    }
}

impl<S: Store> Engine for DiskEngine<S> {
    fn begin_entry(&mut self, number: OpNumber) {
        self.lane.begin_entry(number);
    }

    fn apply(&mut self, time: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        self.advance(time);
        self.lane.execute(self.shared.time(), body, reply);
        self.lane.commit();
    }

    fn read(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        Reader::new(Arc::clone(&self.shared)).read(now, body, reply);
    }

    fn evaluate(&self, body: &[u8], reply: &mut Vec<u8>) -> bool {
        Reader::new(Arc::clone(&self.shared)).evaluate(self.shared.time(), body, reply)
    }

    fn first_expiry(&self, body: &[u8]) -> Option<WallTime> {
        let mut reader = Reader::new(Arc::clone(&self.shared));
        reader.read(WallTime(0), body, &mut Vec::new());
        reader.first_expiry()
    }

    fn advance(&mut self, time: WallTime) {
        self.shared.advance(time);
        while self.shared.has_expired() && self.shared.failure().is_none() {
            self.shared.purge();
        }
    }

    fn time(&self) -> WallTime {
        self.shared.time()
    }

    fn next_expiry(&self) -> Option<WallTime> {
        self.shared.next_expiry()
    }

    fn len(&self) -> usize {
        self.lane.count()
    }

    fn memory_bytes(&self) -> usize {
        let pressure = self.shared.store.pressure();
        usize::try_from(pressure.unflushed_bytes + pressure.cache_bytes).unwrap_or(usize::MAX)
    }

    fn digest(&self) -> u64 {
        let shared = &self.shared;
        let mut digest = Digest::new(shared.time());
        let (generation, now_ms) = (shared.generation(), shared.time().as_millis());
        let walked =
            shared.walk(None, (generation, now_ms), &data_begin(generation), |_, key, value, stamp| {
                digest.add_stamped(key, value.fingerprint(), stamp);
                ControlFlow::Continue(())
            });
        shared.succeeded(walked);
        digest.add_recorded(shared.recorded_from());
        shared.programs().records().for_each(|record| digest.add_program(&record));
        shared.removals.iter().for_each(|(part, entry)| digest.add_removal(part, entry));
        digest.finish()
    }

    fn begin_snapshot(&mut self) {
        self.cut = Some(Cut::new(&self.shared));
    }

    fn snapshot_block(&mut self, bytes: usize, block: &mut Vec<u8>) -> bool {
        let Some(cut) = &mut self.cut else { return false };
        let more = self.shared.succeeded(cut.block(bytes, block)).unwrap_or(false);
        if !more {
            self.cut = None;
        }
        more
    }

    fn snapshot_waiting_bytes(&self) -> usize {
        0
    }

    fn end_snapshot(&mut self) {
        self.cut = None;
    }
}
