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
mod pages;
mod reader;

pub use census::Census;
pub use cut::Cut;
pub use lane::Lane;
pub use layout::merged;
pub use loader::{DiskLoader, LoadError};
pub use reader::{ReadView, Reader};

use crate::keyspace::DUE_TOLD_MAX;
use crate::memory::moment;
use crate::removals::{PLACES, SharedRemovals};
use crate::stamp::Stamp;
use crate::store::{Change, Store, StoreCause, StoreError};
use crate::{Digest, Engine};
use core::num::NonZeroU64;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use lane::no_changes;
use layout::{
    Space, StoreKey, Stored, data_begin, dead_begin, expiries_from, is_dead_key, is_long, meta_key,
    named_data_key, pages_begin, parse_data_key, parse_expiry_key, parse_record,
};
use pages::{PageState, Place, give_back, paged, record_collection};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use syros_commands::Programs;
use syros_commands::access::{
    Announcement, Databases as _, Expiry, KeyEvent, Keys as _, Notification, is_hidden,
};
use syros_types::varint::{put_varint, take_varint};
use syros_types::{Database, OpNumber, WallTime};

/// The format of stores, in the store itself, as long as all values are strings.
const FORMAT: u8 = 1;

/// The format of stores in which there has been a collection, or a record that says which entry has changed its key.
/// Builds that know of neither refuse it.
const FORMAT_WITH_MARKS: u8 = 2;

/// The format of stores in which another database than the first has been written to, or scripts or libraries are loaded.
/// Builds that know one database, and no scripts, refuse it.
const FORMAT_WITH_DATABASES: u8 = 3;

/// The format of stores in which a collection has been put into pages. Builds that know of none refuse it.
const FORMAT_WITH_PAGES: u8 = 4;

/// Expired keys removed at a time. They are looked up one by one; whoever waits for it waits no longer than
/// for so many reads of the disk.
const PURGED_MAX: usize = 256;

/// Bytes that are written at a time, from which on the rest waits for the next time. Clients wait when some MiB are not on disk,
/// and what is removed should never be why.
const PURGED_BYTES_MAX: usize = 256 << 10;

/// How many fields of a large hash are removed at a time: each lies in pages of its own. Nobody sees the others either.
const FIELDS_DROPPED_MAX: u64 = 64;

/// How many fields that have expired are removed from a hash at a time.
const fn dropped_max(has_pages: bool) -> u64 {
    if has_pages { FIELDS_DROPPED_MAX } else { u64::MAX }
}

/// No key expires.
const NEVER: u64 = u64::MAX;

/// A key that was to expire by now, or a field of it.
struct Due {
    database: Database,
    ms: u64,
    space: Space,
    name: Vec<u8>,
    expiry_key: StoreKey,
    data_key: StoreKey,
}

/// What all threads of a disk engine have in common.
///
/// **Order.** [`Lane`]s execute different keys at the same time. Whatever concerns all keys, and everything here
/// that says so, needs them all to have committed and to wait.
#[derive(Debug)]
pub struct Shared<S: Store> {
    store: S,
    /// Log time of what readers may see.
    time: AtomicU64,
    /// Where the keys of each database lie: see [`Space::to_bits`].
    spaces: [AtomicU64; Database::COUNT],
    /// Records of generations of a slot before this one may be in the store, and in no checkpoint that counts.
    forget_before: [AtomicU32; Database::COUNT],
    /// The generations of the slots in the last checkpoint that was sealed.
    sealed_generations: [AtomicU32; Database::COUNT],
    lacks_room_to_flush: AtomicBool,
    lacks_room_to_compact: AtomicBool,
    /// Another database than the first has been in use, at some time.
    has_databases: AtomicBool,
    /// Twice the number of SWAPDBs that were committed together with other changes, and one more while one is.
    exchanges: AtomicU64,
    /// No key expires before this, in milliseconds, but for those before log time.
    next_expiry: AtomicU64,
    /// No expiry before this one is in the store, in milliseconds.
    purged_before: AtomicU64,
    /// Keys that have expired and whose records have been removed.
    expired: AtomicU64,
    /// It is asked what happens to keys.
    notifies: AtomicBool,
    /// A record with a mark has been written, at some time.
    has_marks: AtomicBool,
    /// The entry that versions are recorded from; 0 if they are not, or that is not committed.
    recorded_from: AtomicU64,
    /// The entries that have removed keys, as far as that is committed.
    removals: SharedRemovals,
    /// What is loaded.
    programs: RwLock<Programs>,
    /// What is known of the pages of collections.
    pages: PageState,
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

    /// The outcome. What comes upon damage, whatever it was to do, has found that nothing on this disk can be relied on: if it was
    /// only tried again, it would fail for ever, and what is merged or sent would not get done.
    fn looked_for_damage<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        outcome.inspect_err(|error| {
            if error.cause == StoreCause::Damaged {
                self.fail(error.clone());
            }
        })
    }

    /// The outcome, unless it is a failure.
    fn succeeded<T>(&self, outcome: Result<T, StoreError>) -> Option<T> {
        outcome.map_err(|error| self.fail(error)).ok()
    }

    /// Log time of what readers may see.
    pub fn time(&self) -> WallTime {
        WallTime(self.time.load(Ordering::Acquire))
    }

    /// Where the keys of a database lie.
    #[inline]
    fn space(&self, database: Database) -> Space {
        Space::from_bits(self.spaces[database.index()].load(Ordering::Acquire))
    }

    /// The same of all databases.
    fn spaces(&self) -> [Space; Database::COUNT] {
        self.spaces.each_ref().map(|space| Space::from_bits(space.load(Ordering::Acquire)))
    }

    /// The databases that have been in use, and where their keys lie.
    fn spaces_in_use(&self) -> impl Iterator<Item = (Database, Space)> {
        let count = if self.has_databases() { Database::COUNT } else { 1 };
        Database::all().zip(self.spaces()).take(count)
    }

    /// True if another database than the first has been in use.
    fn has_databases(&self) -> bool {
        self.has_databases.load(Ordering::Acquire)
    }

    /// Another database than the first is about to be written to. To be called before that can be part of a checkpoint.
    fn record_databases(&self) {
        if !self.has_databases.load(Ordering::Relaxed) {
            self.has_databases.store(true, Ordering::Release);
        }
    }

    /// Lets readers see what was executed at this log time and before.
    ///
    /// Tells, if that is asked, of keys that have expired since: that they have changed, long before their records go; or
    /// that any key may have, if they are many. Of no log entry.
    pub fn advance(&self, time: WallTime) -> Vec<Notification> {
        let before = WallTime(self.time.fetch_max(time.0, Ordering::AcqRel));
        if self.next_expiry.load(Ordering::Acquire) <= self.time().as_millis() {
            self.find_next_expiry();
        }
        let is_due = self.has_expired() && before.as_millis() < self.time().as_millis();
        if is_due && self.notifies() { self.due_since(before) } else { Vec::new() }
    }

    /// What is to be told of keys whose expiry is after this log time and not after the present one, and of hashes of which
    /// fields have expired that are not removed: which of their fields have expired since nobody knows.
    fn due_since(&self, before: WallTime) -> Vec<Notification> {
        let now_ms = self.time().as_millis();
        let mut due = Vec::new();
        for (database, space) in self.spaces_in_use() {
            let from = expiries_from(space, 0);
            let walked = self.store.walk(None, &from, |key, _| {
                let Some((ms, position, name)) = parse_expiry_key(space, key) else {
                    return ControlFlow::Break(());
                };
                if ms > now_ms || due.len() > DUE_TOLD_MAX {
                    return ControlFlow::Break(());
                }
                due.push((ms, database, name.to_vec(), named_data_key(space, position, name)));
                ControlFlow::Continue(())
            });
            self.succeeded(walked);
        }
        if due.len() > DUE_TOLD_MAX {
            let (database, key) = (Database::FIRST, Box::default());
            return vec![Notification { entry: 0, database, key, event: KeyEvent::Flushed }];
        }
        let told = due.into_iter().filter_map(|(ms, database, name, data_key)| {
            let found = self.succeeded(self.store.get(&data_key)).flatten()?;
            let parsed = parse_record(found.as_ref(), is_long(&name));
            let moments = parsed.moments(found.as_ref());
            let has_gone = moments.gone.map(NonZeroU64::get) == Some(ms) && ms > before.as_millis();
            let has_lost = moments.gone.is_none_or(|gone| gone.get() > now_ms)
                && moments.first.is_some_and(|first| first.get() <= now_ms);
            let expired = expiry_of(database, parsed.key(found.as_ref(), &name));
            let told = expired.filter(|_| has_gone || has_lost);
            told.map(|expired| Notification { event: KeyEvent::Changed, ..expired })
        });
        told.collect()
    }

    /// No key expires before this.
    pub fn next_expiry(&self) -> Option<WallTime> {
        self.next_expiry_ms().map(moment)
    }

    /// When something is gone that is there, at the earliest. A hash of which a field is gone says when the next one goes only
    /// once that field has been removed.
    fn next_change_ms(&self) -> Expiry {
        if self.has_expired() {
            return Some(NonZeroU64::MIN.saturating_add(self.time().as_millis()));
        }
        self.next_expiry_ms()
    }

    /// The same as [`next_expiry`](Self::next_expiry) in milliseconds.
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
        for (_, space) in self.spaces_in_use() {
            let from = expiries_from(space, self.time().as_millis() + 1);
            let mut first = None;
            let walked = self.store.walk(None, &from, |key, _| {
                first = parse_expiry_key(space, key).map(|(ms, ..)| ms);
                ControlFlow::Break(())
            });
            self.succeeded(walked);
            if let Some(first) = first {
                self.next_expiry.fetch_min(first, Ordering::AcqRel);
            }
        }
    }

    /// Has lanes collect what they do to keys from now on, or do so no longer.
    pub fn set_notifying(&self, is_on: bool) {
        self.notifies.store(is_on, Ordering::Release);
    }

    /// True if it is asked what happens to keys.
    fn notifies(&self) -> bool {
        self.notifies.load(Ordering::Acquire)
    }

    /// True if there may be something that [`purge`](Self::purge) removes.
    pub fn has_to_purge(&self) -> bool {
        self.has_expired() || self.pages.has_dead.load(Ordering::Acquire)
    }

    /// True if records may be there of keys that have expired.
    pub fn has_expired(&self) -> bool {
        self.purged_before.load(Ordering::Acquire) <= self.time().as_millis()
    }

    /// Removes the records of some keys that have expired, fields that have, and pages that nobody needs. No lane may be at work,
    /// and nothing uncommitted. What has happened to keys, if that is asked: of no log entry.
    pub fn purge(self: &Arc<Self>) -> Vec<Notification> {
        self.succeeded(self.bury_dead());
        if self.has_expired() {
            pages::unless_lost(|| self.purge_expired()).unwrap_or_default()
        } else {
            Vec::new()
        }
    }

    fn purge_expired(self: &Arc<Self>) -> Vec<Notification> {
        let mut expired = Vec::new();
        let now_ms = self.time().as_millis();
        let mut due: Vec<Due> = Vec::new();
        let mut rest = NEVER;
        for (database, space) in self.spaces_in_use() {
            let from = expiries_from(space, 0);
            let walked = self.store.walk(None, &from, |key, _| {
                let Some((ms, position, name)) = parse_expiry_key(space, key) else {
                    return ControlFlow::Break(());
                };
                if ms > now_ms || due.len() == PURGED_MAX {
                    rest = rest.min(ms);
                    return ControlFlow::Break(());
                }
                due.push(Due {
                    ms,
                    database,
                    space,
                    name: name.to_vec(),
                    expiry_key: StoreKey::from_slice(key),
                    data_key: named_data_key(space, position, name),
                });
                ControlFlow::Continue(())
            });
            if self.succeeded(walked).is_none() {
                return expired;
            }
        }
        let mut changes = no_changes();
        let mut bytes = 0;
        let mut gone_pages = Vec::new();
        let mut stripes = 0;
        // Hashes of which fields have been removed: older entries may name them, and wait for the next step.
        let mut trimmed = BTreeSet::new();
        let mut next = NEVER;
        for Due { ms, database, space, name, expiry_key, data_key } in due {
            if bytes > PURGED_BYTES_MAX || trimmed.contains(&data_key) {
                rest = rest.min(ms);
                continue;
            }
            let Some(found) = self.succeeded(self.store.get(&data_key)) else { return expired };
            changes.insert(expiry_key, Change::Delete);
            let Some(found) = found else { continue };
            let record = found.as_ref();
            let parsed = parse_record(record, is_long(&name));
            let moments = parsed.moments(record);
            stripes |= PageState::stripe(parsed.key(record, &name));
            // It may have been set anew since, and got another expiry or none.
            if moments.gone.map(NonZeroU64::get) == Some(ms) {
                if self.notifies() {
                    expired.extend(expiry_of(database, parsed.key(record, &name)));
                }
                if let Stored::Paged(head, encoded) = parsed.value(record) {
                    let old = paged(self, space, head, Place::Now);
                    changes.extend(give_back(space, old, encoded));
                    gone_pages.push((space, parsed.key(record, &name).to_vec()));
                }
                changes.insert(data_key, Change::Delete);
                self.expired.fetch_add(1, Ordering::Relaxed);
            } else if !parsed.is_gone(record, now_ms)
                && moments.first.is_some_and(|first| first.get() <= now_ms)
            {
                let stored = parsed.value(record);
                let old = stored.pages().map(|head| paged(self, space, head, Place::Now));
                let mut value = stored.value(old.as_ref().map(|old| &old.source));
                value.drop_due(now_ms, dropped_max(old.is_some()));
                let key = parsed.key(record, &name);
                if let Some(first) = value.moments().first {
                    next = next.min(first.get());
                    // If fields are left that are due, it may be the entry that has led here.
                    changes.insert(layout::expiry_key(space, first, key), Change::Put(Vec::new()));
                }
                let was_paged = old.is_some();
                let page_set = || self.new_page_set();
                let at = (space, key);
                let recorded = record_collection::<S>(at, parsed.stamp, &value, old, page_set);
                bytes += recorded.pages.iter().map(|(_, change)| change.len()).sum::<usize>();
                bytes += recorded.record.len();
                changes.extend(recorded.pages);
                trimmed.insert(data_key.clone());
                changes.insert(data_key, Change::Put(recorded.record));
                match (was_paged, recorded.is_paged) {
                    (false, true) => self.pages.counts.add(space, key),
                    (true, false) => gone_pages.push((space, key.to_vec())),
                    _ => {}
                }
            }
        }
        if changes.keys().any(|key| is_dead_key(key)) {
            self.pages.has_dead.store(true, Ordering::Release);
        }
        // Readers go on meanwhile.
        let committing = self.pages.committing(stripes);
        self.succeeded(self.store.write(changes.into_iter()));
        drop(committing);
        gone_pages.iter().for_each(|(space, key)| self.pages.counts.subtract(*space, key));
        self.purged_before.store(rest, Ordering::Release);
        if let Some(next) = NonZeroU64::new(next).filter(|_| next < NEVER) {
            self.record_expiry(next);
        }
        expired
    }

    /// How many keys have expired since the store was opened; of those that were set anew meanwhile nobody knows.
    pub fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }

    /// What `look` finds, never in the middle of a commit that moves databases and changes records: these are what one
    /// transaction does, and a record that is in its place may not be in its database yet.
    fn between_exchanges<R>(&self, look: impl Fn() -> R) -> R {
        loop {
            let before = self.exchanges.load(Ordering::Acquire);
            if before.is_multiple_of(2) {
                let found = look();
                fence(Ordering::Acquire);
                if self.exchanges.load(Ordering::Relaxed) == before {
                    return found;
                }
            }
            std::thread::yield_now();
        }
    }

    /// From now on the keys of the databases lie here. No lane may be at work.
    fn set_spaces(&self, spaces: [Space; Database::COUNT]) {
        let before = self.spaces();
        for (place, space) in self.spaces.iter().zip(spaces) {
            place.store(space.to_bits(), Ordering::Release);
            if !before.contains(&space) {
                self.pages.counts.clear(space.slot);
            }
        }
    }

    /// There are no keys. No lane may be at work.
    fn forget_expiries(&self) {
        self.next_expiry.store(NEVER, Ordering::Release);
        self.purged_before.store(NEVER, Ordering::Release);
    }

    /// Ends a checkpoint: what has been executed, with `head`, which comes back from [`DiskEngine::open`]. No lane
    /// may be at work, and nothing uncommitted.
    ///
    /// # Errors
    /// What the disk says.
    pub fn seal(&self, head: &[u8]) -> Result<(), StoreError> {
        let (spaces, programs) = (self.spaces(), self.programs());
        let state = self.state_bytes(&spaces, !programs.is_empty());
        let mut versions = Vec::new();
        put_varint(&mut versions, self.recorded_from());
        for database in Database::all() {
            for (place, entry) in self.removals.iter(database) {
                put_varint(&mut versions, (database.index() * PLACES + place) as u64);
                put_varint(&mut versions, entry);
            }
        }
        let mut changes = vec![("state", state), ("head", head.to_vec())];
        // Where there may be an older one, an empty one takes its place.
        if self.has_databases() || !programs.is_empty() {
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
        if self.has_pages() {
            changes.push(("pages", self.pages.encode()));
        }
        let changes = changes.into_iter().map(|(name, value)| (meta_key(name), Change::Put(value)));
        self.store.write(changes)?;
        self.store.seal()?;
        for space in spaces {
            let sealed = &self.sealed_generations[usize::from(space.slot)];
            sealed.store(space.generation, Ordering::Release);
        }
        Ok(())
    }

    /// What a checkpoint says of the state besides its keys.
    fn state_bytes(&self, spaces: &[Space; Database::COUNT], has_programs: bool) -> Vec<u8> {
        let time = self.time().0.to_le_bytes();
        if self.has_databases() || has_programs || self.has_pages() {
            let mut state = vec![if self.has_pages() { FORMAT_WITH_PAGES } else { FORMAT_WITH_DATABASES }];
            state.extend_from_slice(&time);
            for space in spaces {
                state.push(space.slot);
                state.extend_from_slice(&space.generation.to_le_bytes());
            }
            return state;
        }
        let has_marks = self.has_marks.load(Ordering::Acquire);
        let mut state = vec![if has_marks { FORMAT_WITH_MARKS } else { FORMAT }];
        state.extend_from_slice(&spaces[0].generation.to_le_bytes());
        state.extend_from_slice(&time);
        state
    }

    /// Makes durable what was sealed. Others may go on meanwhile.
    ///
    /// # Errors
    /// What the disk says.
    pub fn flush(&self) -> Result<(), StoreError> {
        let durable = self.sealed_generations.each_ref().map(|sealed| sealed.load(Ordering::Acquire));
        self.looked_for_damage(note_room(&self.lacks_room_to_flush, self.store.flush()))?;
        for (before, durable) in self.forget_before.iter().zip(durable) {
            before.fetch_max(durable, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Gives back the space of what FLUSHDB and FLUSHALL have removed, and merges runs; false if there was nothing to do.
    ///
    /// # Errors
    /// What the disk says.
    pub fn compact(&self) -> Result<bool, StoreError> {
        self.looked_for_damage(note_room(&self.lacks_room_to_compact, self.compact_files()))
    }

    /// True if the disk had no room for what was flushed, or for files that were to be merged, when that was tried last. Other files
    /// on the same disk may have room: a merge needs as much as it merges.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        self.lacks_room_to_flush.load(Ordering::Acquire) || self.lacks_room_to_compact.load(Ordering::Acquire)
    }

    fn compact_files(&self) -> Result<bool, StoreError> {
        for (slot, forget_before) in (0..).zip(&self.forget_before) {
            let before = forget_before.load(Ordering::Acquire);
            if before > 0 {
                let first = Space { slot, generation: 0 };
                let until = Space { slot, generation: before };
                self.store.forget(&data_begin(first), &data_begin(until))?;
                self.store.forget(&expiries_from(first, 0), &expiries_from(until, 0))?;
                self.store.forget(&pages_begin(first), &pages_begin(until))?;
                self.store.forget(&dead_begin(first), &dead_begin(until))?;
                // Unless another generation has ended meanwhile.
                let _ = forget_before.compare_exchange(before, 0, Ordering::AcqRel, Ordering::Acquire);
            }
        }
        self.store.compact()
    }

    /// Visits all records of keys of a space that exist, in the order of positions, in a view or as they are: position, key,
    /// value and stamp.
    fn walk(
        &self,
        view: Option<&S::View>,
        at: (Space, u64),
        from: &[u8],
        mut visit: impl FnMut(u64, &[u8], Stored<'_>, Stamp) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.looked_for_damage(
            self.store.walk(view, from, |key, record| visit_record(at, key, record, &mut visit)),
        )
    }
}

/// Notes whether the disk had room for what was done.
fn note_room<T>(lacks_room: &AtomicBool, result: Result<T, StoreError>) -> Result<T, StoreError> {
    let is_full = matches!(&result, Err(error) if error.cause == StoreCause::Full);
    if is_full || result.is_ok() {
        lacks_room.store(is_full, Ordering::Release);
    }
    result
}

/// What was loaded when this store was sealed last, if that can be of this state.
fn read_programs<S: Store>(store: &S) -> Result<Programs, StoreError> {
    let mut programs = Programs::NONE;
    let state = store.get(&meta_key("state"))?;
    let format = state.as_ref().and_then(|state| state.as_ref().first().copied());
    if !matches!(format, Some(FORMAT_WITH_DATABASES | FORMAT_WITH_PAGES)) {
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

/// What is known of pages in this store, in which there are some.
fn read_pages<S: Store>(store: &S) -> Result<PageState, StoreError> {
    let found = store.get(&meta_key("pages"))?;
    found
        .and_then(|found| PageState::decode(found.as_ref()))
        .ok_or_else(|| StoreError::damaged("read the store", "what it says about pages is damaged"))
}

/// That the key of this record has expired, unless no client knows of it.
fn expiry_of(database: Database, key: &[u8]) -> Option<Notification> {
    (!is_hidden(key)).then(|| Notification { entry: 0, database, key: key.into(), event: KeyEvent::Expired })
}

/// Visits the record of a store's key if it is of a key of this space that exists at this time; breaks off behind the last
/// of the space.
fn visit_record(
    (space, now_ms): (Space, u64),
    key: &[u8],
    record: &[u8],
    visit: &mut impl FnMut(u64, &[u8], Stored<'_>, Stamp) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let Some((position, name)) = parse_data_key(space, key) else {
        return ControlFlow::Break(());
    };
    let parsed = parse_record(record, is_long(name));
    if parsed.is_gone(record, now_ms) {
        return ControlFlow::Continue(());
    }
    visit(position, parsed.key(record, name), parsed.value(record), parsed.stamp)
}

/// What a checkpoint says of the state besides its keys.
struct StoredState {
    spaces: [Space; Database::COUNT],
    time: u64,
    has_marks: bool,
    has_databases: bool,
    has_pages: bool,
}

impl StoredState {
    fn parse(state: Option<&[u8]>) -> Result<Self, StoreError> {
        let mut spaces = [Space::default(); Database::COUNT];
        Database::all().zip(&mut spaces).for_each(|(database, space)| *space = Space::of(database));
        let of_state = |problem: &[u8]| {
            let problem = format!("its state is {problem:?}, which this version does not know");
            StoreError::other("read the store", problem)
        };
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        let generation = |bytes: &[u8]| bytes.try_into().map_or(0, u32::from_le_bytes);
        match state {
            None => Ok(Self { spaces, time: 0, has_marks: false, has_databases: false, has_pages: false }),
            Some([format @ (FORMAT | FORMAT_WITH_MARKS), rest @ ..]) if rest.len() == 4 + 8 => {
                let (first, time) = rest.split_at(4);
                spaces[0].generation = generation(first);
                let has_marks = *format == FORMAT_WITH_MARKS;
                let time = number(time);
                Ok(Self { spaces, time, has_marks, has_databases: false, has_pages: false })
            }
            Some(state @ [FORMAT_WITH_DATABASES | FORMAT_WITH_PAGES, rest @ ..])
                if rest.len() == 8 + 5 * Database::COUNT =>
            {
                let (time, places) = rest.split_at(8);
                let mut slots = 0u16;
                for (space, place) in spaces.iter_mut().zip(places.chunks_exact(5)) {
                    *space = Space { slot: place[0], generation: generation(&place[1..]) };
                    slots |= 1u16.checked_shl(u32::from(space.slot)).unwrap_or(0);
                }
                // Each slot is that of one database.
                let has_pages = state.first() == Some(&FORMAT_WITH_PAGES);
                let state = if slots == u16::MAX { Ok(()) } else { Err(of_state(state)) };
                let time = number(time);
                state.map(|()| Self { spaces, time, has_marks: true, has_databases: true, has_pages })
            }
            Some(other) => Err(of_state(other)),
        }
    }
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
    /// What has happened to keys, and has not been told.
    announcements: Vec<Announcement>,
}

impl<S: Store> DiskEngine<S> {
    /// The engine that was sealed last in this store, with what [`Shared::seal`] was given; an empty one at time 0
    /// if nothing ever was.
    ///
    /// # Errors
    /// What the disk says, or that the store is of a later version.
    pub fn open(store: S) -> Result<(Self, Option<Vec<u8>>), StoreError> {
        Self::open_with(store, None)
    }

    /// The same, where it is known better than in the store what there is of pages.
    fn open_with(store: S, known: Option<PageState>) -> Result<(Self, Option<Vec<u8>>), StoreError> {
        let state = store.get(&meta_key("state"))?;
        let StoredState { spaces, time, has_marks, has_databases, has_pages } =
            StoredState::parse(state.as_ref().map(AsRef::as_ref))?;
        let mut generations = [0; Database::COUNT];
        spaces.iter().for_each(|space| generations[usize::from(space.slot)] = space.generation);
        let head = store.get(&meta_key("head"))?.map(|head| head.as_ref().to_vec());
        let programs = read_programs(&store)?;
        let pages = match known {
            Some(pages) => pages,
            None if has_pages => read_pages(&store)?,
            None => PageState::default(),
        };
        let shared = Arc::new(Shared {
            store,
            time: AtomicU64::new(time),
            spaces: spaces.map(|space| AtomicU64::new(space.to_bits())),
            forget_before: generations.map(AtomicU32::new),
            sealed_generations: generations.map(AtomicU32::new),
            lacks_room_to_flush: AtomicBool::new(false),
            lacks_room_to_compact: AtomicBool::new(false),
            has_databases: AtomicBool::new(has_databases),
            exchanges: AtomicU64::new(0),
            next_expiry: AtomicU64::new(NEVER),
            purged_before: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            notifies: AtomicBool::new(false),
            has_marks: AtomicBool::new(has_marks),
            recorded_from: AtomicU64::new(0),
            removals: SharedRemovals::default(),
            programs: RwLock::new(programs),
            pages,
            failure: OnceLock::new(),
        });
        if let Some(versions) = shared.store.get(&meta_key("versions"))? {
            let mut rest = versions.as_ref();
            shared.recorded_from.store(take_varint(&mut rest).unwrap_or(0), Ordering::Release);
            while let (Ok(number), Ok(entry)) = (take_varint(&mut rest), take_varint(&mut rest)) {
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                if let Some(database) = Database::all().nth(number / PLACES) {
                    shared.removals.record(database, number % PLACES, entry);
                }
            }
        }
        shared.find_next_expiry();
        if let Some(error) = shared.failure() {
            return Err(error.clone());
        }
        let lane = Lane::new(Arc::clone(&shared));
        Ok((Self { shared, lane, cut: None, announcements: Vec::new() }, head))
    }

    /// Begins to restore an engine from the blocks of a snapshot of any engine of this type, in an empty store.
    pub fn loader(store: S) -> DiskLoader<S> {
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
        self.announcements.extend(self.lane.take_announcements());
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
        self.announcements.extend(self.shared.advance(time).into_iter().map(Announcement::KeyEvent));
        while self.shared.has_to_purge() && self.shared.failure().is_none() {
            self.announcements.extend(self.shared.purge().into_iter().map(Announcement::KeyEvent));
        }
    }

    fn set_notifying(&mut self, is_on: bool) {
        self.shared.set_notifying(is_on);
    }

    fn take_announcements(&mut self) -> Vec<Announcement> {
        core::mem::take(&mut self.announcements)
    }

    fn take_effects(&mut self) -> u64 {
        self.lane.take_effects()
    }

    fn time(&self) -> WallTime {
        self.shared.time()
    }

    fn next_expiry(&self) -> Option<WallTime> {
        self.shared.next_expiry()
    }

    fn len(&self) -> usize {
        let count = |(database, _)| self.lane.database(database).count();
        self.shared.spaces_in_use().map(count).sum()
    }

    fn memory_bytes(&self) -> usize {
        let pressure = self.shared.store.pressure();
        usize::try_from(pressure.unflushed_bytes + pressure.cache_bytes).unwrap_or(usize::MAX)
    }

    fn digest(&self) -> u64 {
        let shared = &self.shared;
        let mut digest = Digest::new(shared.time());
        digest.add_recorded(shared.recorded_from());
        shared.programs().records().for_each(|record| digest.add_program(&record));
        let now_ms = shared.time().as_millis();
        for (database, space) in shared.spaces_in_use() {
            digest.enter(database);
            let walked = shared.walk(None, (space, now_ms), &data_begin(space), |_, key, value, stamp| {
                let paged = value.pages().map(|head| paged(shared, space, head, Place::Now));
                let source = paged.as_ref().map(|paged| &paged.source);
                digest.add_stamped(key, value.fingerprint_at(source, now_ms), stamp);
                ControlFlow::Continue(())
            });
            shared.succeeded(walked);
            shared.removals.iter(database).for_each(|(place, entry)| digest.add_removal(place, entry));
        }
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
