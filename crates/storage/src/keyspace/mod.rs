//! The tables of a database of the in-memory engine: keys, and those that expire.
//!
//! A key is *due* if its expiry is at or before log time. A due key does not exist: no command sees it, and the digest of
//! the state leaves it out. Its record goes later, some records with each advance of log time, because the event loop
//! must not stop while a million keys of one second go.
//!
//! Fields of hashes expire likewise: one that is due does not exist, and goes from its hash later. A key all of whose fields
//! expire is due when the last of them is.
//!
//! **Invariant.** Which records are in the tables, and at which positions, is a function of the applied bodies and their
//! log times alone: an advance removes records in the order of expiries and keys, and [`RemovalPace`] computes how many
//! from log time before and after it. So replicas agree on SCAN's cursors and on the memory in use. A snapshot carries
//! the records of due keys with the others, and whoever installs it goes on removing where the captured engine was.

mod eviction;
mod expiry;

use crate::capture::Capture;
use crate::entry::{ALLOCATION_BYTES, ENTRY_BYTES, Entry, Key, Table, is_due, moments_under};
use crate::events::EventLog;
use crate::hash::KeyHashBuilder;
use crate::leftovers::Leftovers;
use crate::listing::Listing;
use crate::removals::{ALL, Recorded, Removals, SWAPPED, part_of};
use crate::stamp::Stamp;
use crate::undo::{Undo, UndoStep};
use crate::uses::UseClocks;
use core::cell::Cell;
use core::hash::BuildHasher as _;
use core::num::NonZeroU64;
use core::ops::ControlFlow;
use indexmap::IndexMap;
use indexmap::map::raw_entry_v1::{RawEntryApiV1, RawEntryMut};
use std::collections::BTreeSet;
use std::sync::Arc;
use syros_commands::Programs;
use syros_commands::access::{Expiry, KeyEvent, Keys, KeysMut, Uses, Version, is_hidden};
use syros_types::{Database, EvictionOrder, EvictionSettings, Prng, SubscriptionKind, WallTime};
use syros_values::{Collection, Garbage, Kind, Moments, Value, WrongType};

/// How many records of due keys go at a time. All replicas of a group must have the same pace.
#[derive(Clone, Copy, Debug)]
pub struct RemovalPace {
    /// Records that go with each operation of an update.
    per_update: u64,
    /// Microseconds of log time after which one more record goes.
    micros_each: u64,
    /// Most records that go because log time has moved on.
    at_once: u64,
    /// So many bytes of a value count as one more record: large values take long to free.
    bytes_each: usize,
}

impl RemovalPace {
    /// The pace of servers: 100,000 keys a second, in steps of a few milliseconds at most, and never fewer than updates
    /// add.
    pub const STANDARD: Self = Self { per_update: 2, micros_each: 10, at_once: 1000, bytes_each: 8 * 1024 };

    /// For tests and simulations: so slow that some keys are due most of the time.
    pub const SLOW: Self = Self { per_update: 0, micros_each: 7_000, at_once: 2, bytes_each: 100 };

    /// How many records go when log time moves on.
    fn records(self, before: WallTime, after: WallTime, updates: usize) -> u64 {
        let passed = after.0 / self.micros_each - before.0 / self.micros_each;
        passed.min(self.at_once) + self.per_update * updates as u64
    }
}

/// While records of due keys are in the tables, log time has to move on about this often, in microseconds.
const REMOVAL_INTERVAL: u64 = 10_000;

/// Keys that become due at one time and are told of one by one, at most: the event loop must not stop for them.
pub(crate) const DUE_TOLD_MAX: usize = 256;

/// How often RANDOMKEY draws a position, before it looks for the next key that is not due.
const DRAWS_MAX: u32 = 64;

/// Keys with their values. Their positions, which SCAN and the order of KEYS show, are determined by
/// the sequence of changes alone, never by hashes.
#[derive(Clone, Debug)]
pub(crate) struct Keyspace {
    /// Which database it is.
    database: Database,
    entries: Table,
    /// The keys that will be gone, the earliest first. Untouched by those that will not.
    expiries: BTreeSet<(NonZeroU64, Box<[u8]>)>,
    /// The hashes of which fields expire, with the moment of the first one that is in memory, the earliest first.
    field_expiries: BTreeSet<(NonZeroU64, Box<[u8]>)>,
    /// Sum of the lengths of all keys and of the memory of all values, and once more of the keys in `expiries` and in
    /// `field_expiries`.
    content_bytes: usize,
    /// Keys that have expired and whose records have gone.
    expired: u64,
    /// Log time.
    time: WallTime,
    /// The log entry whose bodies are applied.
    number: u64,
    /// If versions are recorded.
    recorded: Option<Box<Recorded>>,
    /// Some key may be due.
    has_due: bool,
    /// Some field may be due.
    has_due_fields: bool,
    /// How many expiries are below a bound: what was counted last, kept right since.
    counted: Cell<(NonZeroU64, usize)>,
    pace: RemovalPace,
    /// The snapshot under way. It hears of every key before that changes or moves.
    capture: Option<Box<Capture>>,
    /// The listing of keys under way. It hears of every key before that is removed or moves.
    listing: Option<Box<Listing>>,
    /// Large collections of which nobody will ask again. No answer depends on when their memory goes back.
    garbage: Box<Garbage>,
    /// Tables of which nobody will ask again.
    leftovers: Box<Leftovers>,
    /// How what has been done since a script began can be undone.
    undo: Option<Box<Undo>>,
    /// What has happened to keys, and has not been told.
    events: EventLog,
    /// How much of that there was when what may be undone began.
    events_before_undo: usize,
    /// Which keys go when memory is short, as this engine is told.
    eviction: EvictionSettings,
    /// When and how often keys are used, at their positions, if that policy asks for it.
    clocks: Option<Box<UseClocks>>,
    /// Keys that have gone because memory was short.
    evicted: u64,
}

/// What a key costs in the expiry index, at two thirds load of a B-tree's nodes.
const EXPIRY_BYTES: usize = size_of::<(NonZeroU64, Box<[u8]>)>() * 3 / 2 + ALLOCATION_BYTES;

impl Keyspace {
    pub(crate) fn new(hash_seed: u64, pace: RemovalPace) -> Self {
        let entries = IndexMap::with_hasher(KeyHashBuilder::new(hash_seed));
        Self {
            database: Database::FIRST,
            entries,
            expiries: BTreeSet::new(),
            field_expiries: BTreeSet::new(),
            content_bytes: 0,
            expired: 0,
            time: WallTime(0),
            number: 0,
            recorded: None,
            has_due: false,
            has_due_fields: false,
            counted: Cell::new((NonZeroU64::MIN, 0)),
            pace,
            capture: None,
            listing: None,
            garbage: Box::default(),
            leftovers: Box::default(),
            undo: None,
            events: EventLog::default(),
            events_before_undo: 0,
            eviction: EvictionSettings::DEFAULT,
            clocks: None,
            evicted: 0,
        }
    }

    /// An empty one that is another database of the same engine.
    pub(crate) fn sibling(&self, database: Database) -> Self {
        let mut sibling = Self {
            database,
            entries: IndexMap::with_hasher(*self.entries.hasher()),
            number: self.number,
            ..Self::new(0, self.pace)
        };
        sibling.set_time(self.time);
        sibling.record_from(self.recorded().map(|recorded| recorded.from));
        sibling.events.set(self.events.is_on());
        sibling.set_eviction(self.eviction);
        sibling
    }

    /// Has this one and another database change their keys. What is kept of keys that do not exist stays.
    pub(crate) fn swap(&mut self, other: &mut Self) {
        let has_keys = self.count() > 0 || other.count() > 0;
        core::mem::swap(self, other);
        core::mem::swap(&mut self.database, &mut other.database);
        core::mem::swap(&mut self.recorded, &mut other.recorded);
        for database in [self, other] {
            if let Some(recorded) = database.recorded.as_mut().filter(|_| has_keys) {
                recorded.removals.record(SWAPPED, database.number);
            }
        }
    }

    /// Number of records, those of due keys included.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Log time.
    pub(crate) const fn time(&self) -> WallTime {
        self.time
    }

    /// The bodies applied from now on are those of this log entry.
    pub(crate) const fn begin_entry(&mut self, number: u64) {
        self.number = number;
    }

    /// What a key that is changed now has been changed by, as far as versions are recorded.
    fn entry(&self) -> u64 {
        if self.recorded.is_some() { self.number } else { 0 }
    }

    /// Since when versions are recorded, and which entries have removed keys.
    pub(crate) fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_deref()
    }

    /// Versions are recorded from this entry on, if from any.
    pub(crate) fn record_from(&mut self, from: Option<u64>) {
        self.set_recorded(from.map(|from| Recorded { from, removals: Removals::EMPTY }));
    }

    /// Has versions recorded from the present log entry on, if they are not.
    pub(crate) fn record_versions(&mut self) {
        if self.recorded.is_none() && self.number > 0 {
            self.record_from(Some(self.number));
        }
    }

    /// True if it has anything that a snapshot has to tell.
    pub(crate) fn has_state(&self) -> bool {
        !self.entries.is_empty()
            || self.recorded.as_ref().is_some_and(|recorded| !recorded.removals.is_empty())
    }

    /// Since when versions are recorded, and which entries have removed keys.
    pub(crate) fn set_recorded(&mut self, recorded: Option<Recorded>) {
        self.recorded = recorded.map(Box::new);
    }

    /// A key has been removed, or has got an expiry.
    fn record_removal(&mut self, key: &[u8]) {
        if is_hidden(key) {
            return;
        }
        if let Some(recorded) = &mut self.recorded {
            recorded.removals.record(part_of(self.database, key), self.number);
        }
    }

    /// The key and entry at a position below [`Self::len`].
    pub(crate) fn at(&self, position: usize) -> Option<(&[u8], &Entry)> {
        self.entries.get_index(position).map(|(key, entry)| (key.as_slice(), entry))
    }

    /// Where a key most likely is, if anywhere, from its hash alone: neither it nor its entry are looked at.
    pub(crate) fn likely_position(&self, key: &[u8]) -> Option<usize> {
        let hash = self.entries.hasher().hash_one(key);
        self.entries.raw_entry_v1().index_from_hash(hash, |_| true)
    }

    /// All keys but for those that are due.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        let entries = self.entries.iter().map(|(key, entry)| (key.as_slice(), entry));
        entries.filter(|(_, entry)| !self.is_due(entry))
    }

    /// Adds a key at the end; false, and nothing happens, if it exists.
    pub(crate) fn append(&mut self, key: &[u8], value: Value, stamp: Stamp) -> bool {
        let RawEntryMut::Vacant(slot) = self.entries.raw_entry_mut_v1().from_key(key) else { return false };
        self.content_bytes += key.len() + value.memory_bytes();
        let Stamp { expiry, entry } = stamp;
        let entry = Entry { value, expiry, changed: entry };
        let moments = entry.moments();
        slot.insert(Key::from_slice(key), entry);
        self.add_clock();
        self.index_moments(key, Moments::default(), moments);
        self.note_addition(key);
        true
    }

    /// Removes a key. The last key takes its position: one that SCAN, which counts positions down,
    /// has not visited yet never moves to where it has been.
    fn take(&mut self, key: &[u8]) -> Option<Entry> {
        self.preserve_removed(key);
        let (position, name, entry) = self.entries.swap_remove_full(key)?;
        self.remove_clock(position);
        if let Some(undo) = &mut self.undo {
            undo.removed(position, name, &entry);
        }
        self.content_bytes -= key.len() + entry.value.memory_bytes();
        self.index_moments(key, entry.moments(), Moments::default());
        Some(entry)
    }

    /// Removes a key; its value is given back later if that takes long.
    fn discard(&mut self, key: &[u8]) {
        if let Some(entry) = self.take(key) {
            self.garbage.add(entry.value);
        }
    }

    /// Notes how a key can become again what it is, which is about to change.
    fn note_change(&mut self, key: &[u8]) {
        if let Some(undo) = &mut self.undo
            && undo.wants(key)
            && let Some(entry) = self.entries.get(key)
        {
            undo.changed(key, entry.clone());
        }
    }

    /// Notes that a key has been added at the end.
    fn note_addition(&mut self, key: &[u8]) {
        self.notify(KeyEvent::New, key);
        if let Some(undo) = &mut self.undo {
            undo.added(key);
        }
    }

    /// Undoes one step.
    fn undo_step(&mut self, step: UndoStep) {
        match step {
            UndoStep::Added(key) => self.discard(&key),
            UndoStep::Changed(key, entry) => {
                let Some((position, _, now)) = self.entries.get_full_mut(&key) else { return };
                if let Some(capture) = &mut self.capture {
                    capture.preserve(position, &key, now);
                }
                self.content_bytes =
                    self.content_bytes - now.value.memory_bytes() + entry.value.memory_bytes();
                let before = core::mem::replace(now, entry);
                let moments = now.moments();
                self.index_moments(&key, before.moments(), moments);
                self.garbage.add(before.value);
            }
            UndoStep::Removed(position, key, entry) => {
                // The key at its position had been the last one.
                if let (Some(capture), Some((moved, at))) =
                    (&mut self.capture, self.entries.get_index(position))
                {
                    capture.preserve(position, moved, at);
                }
                if let (Some(listing), Some((moved, at))) =
                    (&mut self.listing, self.entries.get_index(position))
                {
                    listing.preserve(position, moved, at);
                }
                let stamp = entry.stamp();
                self.append(&key, entry.value, stamp);
                let last = self.entries.len() - 1;
                self.entries.swap_indices(position, last);
                if let Some(clocks) = &mut self.clocks {
                    clocks.swap(position, last);
                }
            }
        }
    }

    /// Gives `entry`, taken from another key, to `key`, which keeps its position if it exists: see [`Keys::scan`].
    fn put(&mut self, key: &[u8], entry: Entry) {
        self.remove_due(key);
        self.note_change(key);
        let Some((position, _, old)) = self.entries.get_full_mut(key) else {
            self.append(key, entry.value, Stamp { expiry: entry.expiry, entry: entry.changed });
            return;
        };
        if let Some(capture) = &mut self.capture {
            capture.preserve(position, key, old);
        }
        self.content_bytes += entry.value.memory_bytes();
        let moments = entry.moments();
        let old = core::mem::replace(old, entry);
        self.content_bytes -= old.value.memory_bytes();
        self.index_moments(key, old.moments(), moments);
        self.garbage.add(old.value);
    }

    /// Removes a key, whose entry another key gets.
    pub(crate) fn give(&mut self, key: &[u8]) -> Option<Entry> {
        let entry = self.take(key)?;
        self.record_removal(key);
        Some(entry)
    }

    /// Gives a key the entry that another has had.
    pub(crate) fn receive(&mut self, key: &[u8], mut entry: Entry) {
        if entry.gone().is_some() {
            self.record_removal(key);
        }
        entry.changed = self.entry();
        self.put(key, entry);
    }

    /// Tells the snapshot under way of a key that is about to be removed, and of the last one, which
    /// moves to its position.
    fn preserve_removed(&mut self, key: &[u8]) {
        if self.capture.is_none() && self.listing.is_none() {
            return;
        }
        let Some(position) = self.entries.get_index_of(key) else { return };
        for position in [position, self.entries.len() - 1] {
            if let Some((key, entry)) = self.entries.get_index(position) {
                if let Some(capture) = &mut self.capture {
                    capture.preserve(position, key, entry);
                }
                if let Some(listing) = &mut self.listing {
                    listing.preserve(position, key, entry);
                }
            }
        }
    }

    /// Begins a listing of the keys that match, as they are. One that is under way is abandoned.
    pub(crate) fn begin_listing(&mut self, pattern: &[u8]) {
        self.listing = Some(Box::new(Listing::new(pattern, self.entries.len(), self.time)));
    }

    /// Goes on with the listing under way, by `steps` keys; when it is complete, it is returned.
    pub(crate) fn go_on_listing(&mut self, steps: usize) -> Option<Listing> {
        let has_more = self.listing.as_mut()?.go_on(&self.entries, steps);
        if has_more { None } else { self.listing.take().map(|listing| *listing) }
    }

    /// True if a listing is under way.
    pub(crate) const fn is_listing(&self) -> bool {
        self.listing.is_some()
    }

    /// Abandons the listing under way, if there is one.
    pub(crate) fn end_listing(&mut self) {
        self.listing = None;
    }

    /// Begins a snapshot of the keys as they are. That of the first database says which others have anything, and has what is
    /// loaded.
    pub(crate) fn begin_snapshot(&mut self, others: u16, programs: &Programs) {
        self.end_snapshot();
        let place = (self.database, others);
        let capture = Capture::new(place, self.entries.len(), self.time, self.recorded(), programs);
        self.capture = Some(Box::new(capture));
    }

    /// What the database was when the snapshot under way began, if there is one.
    pub(crate) fn captured(&self) -> Option<Database> {
        self.capture.as_ref().map(|capture| capture.database())
    }

    /// See [`Engine::snapshot_block`](crate::Engine::snapshot_block).
    pub(crate) fn snapshot_block(&mut self, bytes: usize, block: &mut Vec<u8>) -> bool {
        let Some(capture) = &mut self.capture else { return false };
        let more = capture.block(&self.entries, bytes, block, &mut self.garbage);
        if !more {
            self.end_snapshot();
        }
        more
    }

    /// See [`Engine::snapshot_waiting_bytes`](crate::Engine::snapshot_waiting_bytes).
    pub(crate) fn snapshot_waiting_bytes(&self) -> usize {
        self.capture.as_ref().map_or(0, |capture| capture.waiting_bytes())
    }

    /// Ends the snapshot under way, if there is one.
    pub(crate) fn end_snapshot(&mut self) {
        if let Some(mut capture) = self.capture.take() {
            capture.give_up(&mut self.garbage);
            let bytes = capture.held_bytes();
            self.leftovers.add(capture, bytes);
        }
    }

    /// Bytes of memory of collections that nobody needs, and that has not been given back.
    pub(crate) fn garbage_bytes(&self) -> u64 {
        self.garbage.bytes()
    }

    /// See [`MemoryEngine::give_back`](crate::MemoryEngine::give_back).
    pub(crate) fn give_back(&mut self, nodes: usize) -> bool {
        self.garbage.step(nodes)
    }

    /// See [`MemoryEngine::take_leftover`](crate::MemoryEngine::take_leftover).
    pub(crate) fn take_leftover(&mut self) -> Option<Box<dyn Send>> {
        self.leftovers.take()
    }

    /// What has happened to keys.
    pub(crate) const fn events_mut(&mut self) -> &mut EventLog {
        &mut self.events
    }

    /// About how many bytes of memory everything takes; what a value's memory has to spare, at most
    /// as much again, is not counted.
    pub(crate) fn memory_bytes(&self) -> usize {
        let expiries = self.expiries.len() + self.field_expiries.len();
        self.content_bytes + self.entries.len() * ENTRY_BYTES + expiries * EXPIRY_BYTES
    }

    /// Checks what the fields promise of each other, in time proportional to the data.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let entries = || self.entries.iter().map(|(key, entry)| (key.as_slice(), entry));
        let expiring = entries().filter_map(|(key, entry)| Some((entry.gone()?, Box::from(key))));
        assert_eq!(expiring.collect::<BTreeSet<_>>(), self.expiries);
        let first = entries().filter_map(|(key, entry)| Some((entry.moments().first?, Box::from(key))));
        assert_eq!(first.collect::<BTreeSet<_>>(), self.field_expiries);
        let (bound, counted) = self.counted.get();
        assert_eq!(self.expiries.iter().filter(|(expiry, _)| *expiry < bound).count(), counted);
        assert_eq!(self.entries.values().filter(|entry| self.is_due(entry)).count(), self.due_len());
        assert_eq!(self.count(), self.iter().count());
        let values: usize = entries().map(|(key, entry)| key.len() + entry.value.memory_bytes()).sum();
        let is_empty = |entry: &Entry| match &entry.value {
            Value::String(_) => false,
            Value::Hash(hash) => hash.is_empty(),
            Value::List(list) => list.is_empty(),
            Value::Set(set) => set.is_empty(),
            Value::SortedSet(set) => set.is_empty(),
            Value::Stream(stream) => stream.is_untouched(),
        };
        assert!(!entries().any(|(_, entry)| is_empty(entry)), "a collection goes with its last element");
        let keys: usize = self.expiries.iter().chain(&self.field_expiries).map(|(_, key)| key.len()).sum();
        assert_eq!(values + keys, self.content_bytes);
        assert!(self.clocks.as_ref().is_none_or(|clocks| clocks.len() == self.entries.len()));
    }
}

impl Keys for Keyspace {
    type EntryRef<'a> = &'a Entry;

    fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key).filter(|entry| !self.is_due(entry))
    }

    fn time_ms(&self) -> u64 {
        self.time.as_millis()
    }

    fn version(&self, key: &[u8]) -> Version {
        match (&self.recorded, self.get(key)) {
            (None, _) => Version::UNKNOWN,
            (Some(recorded), Some(found)) => found.stamp().version(recorded.removals.swapped()),
            (Some(recorded), None) => Version::of_absent(recorded.removals.of(part_of(self.database, key))),
        }
    }

    fn uses(&self, key: &[u8], now_ms: u64) -> Uses {
        let position = || self.entries.get_index_of(key);
        let Some((clocks, position)) = self.clocks.as_ref().and_then(|clocks| Some((clocks, position()?)))
        else {
            return Uses::Unknown;
        };
        match self.eviction.policy.order() {
            Some(EvictionOrder::Frequency) => Uses::Frequency(clocks.count(position, now_ms)),
            _ => Uses::Idle(clocks.idle_seconds(position, now_ms)),
        }
    }

    fn count(&self) -> usize {
        self.len() - self.due_len()
    }

    fn each(&self, mut visit: impl FnMut(&[u8]) -> ControlFlow<()>) {
        let _ = self.iter().try_for_each(|(key, _)| visit(key));
    }

    /// The cursor is a position, and the keys below it are still to be visited, from the highest down; 0
    /// starts at the end and is also where it ends. New keys are added at the end, a removed key is
    /// replaced by the last one, and a key that gets another value or expiry, also by RENAME of another one, stays where it
    /// is: a key not visited yet only ever moves down. So every key that is there all the time is visited.
    fn scan(&self, cursor: u64, count: u64, mut visit: impl FnMut(&[u8], Kind) -> ControlFlow<()>) -> u64 {
        let length = self.len() as u64;
        let mut position = if cursor == 0 { length } else { cursor.min(length) };
        let last = position.saturating_sub(count);
        while position > last {
            position -= 1;
            if let Some((key, entry)) = self.at(position as usize)
                && !self.is_due(entry)
                && visit(key, entry.value.kind()).is_break()
            {
                break;
            }
        }
        position
    }

    fn random(&self, prng: &mut Prng, visit: impl FnOnce(&[u8])) -> bool {
        let is_lasting = |position: &usize| self.at(*position).is_some_and(|(_, entry)| !self.is_due(entry));
        let length = self.len();
        let mut draw = || prng.below(length as u64) as usize;
        let drawn = (0..DRAWS_MAX).map(|_| draw()).find(is_lasting);
        // Keys that are due go soon; only while they are far more than the others, this takes many steps.
        let has_lasting = || length > self.expiries.len() || self.first_expiry().is_some();
        let found = drawn.or_else(|| {
            let start = draw();
            has_lasting().then(|| (start..length).chain(0..start).find(is_lasting))?
        });
        found.and_then(|position| self.at(position)).map(|(key, _)| visit(key)).is_some()
    }
}

impl KeysMut for Keyspace {
    /// Allocates nothing if the key exists, the new value fits well into the
    /// old one's memory, and neither has an expiry.
    fn set(&mut self, key: &[u8], value: &[u8], expiry: Expiry) {
        self.remove_due(key);
        if expiry.is_some() {
            self.record_removal(key);
        }
        self.note_change(key);
        let changed = self.entry();
        match self.entries.raw_entry_mut_v1().from_key(key) {
            RawEntryMut::Occupied(mut slot) => {
                if let Some(capture) = &mut self.capture {
                    capture.preserve(slot.index(), key, slot.get());
                }
                let entry = slot.get_mut();
                let before = entry.moments();
                self.content_bytes = self.content_bytes - entry.value.memory_bytes() + value.len();
                match &mut entry.value {
                    Value::String(old) => overwrite(old, value),
                    other => {
                        self.garbage.add(core::mem::replace(other, Value::String(value.to_vec())));
                    }
                }
                entry.changed = changed;
                entry.expiry = expiry;
                self.index_moments(key, before, moments_under(expiry, Moments::default()));
            }
            RawEntryMut::Vacant(slot) => {
                let (value, value_bytes) = (Value::String(value.to_vec()), value.len());
                slot.insert(Key::from_slice(key), Entry { value, expiry, changed });
                self.add_clock();
                self.content_bytes += key.len() + value_bytes;
                self.index_expiry(key, None, expiry);
                self.note_addition(key);
            }
        }
    }

    fn set_collection<C: Collection>(&mut self, key: &[u8], collection: C) {
        self.remove_due(key);
        let collection: Value = collection.into();
        if collection.moments().gone.is_some() {
            self.record_removal(key);
        }
        self.note_change(key);
        let changed = self.entry();
        let Some((position, _, entry)) = self.entries.get_full_mut(key) else {
            self.append(key, collection, Stamp { expiry: None, entry: changed });
            return;
        };
        if let Some(capture) = &mut self.capture {
            capture.preserve(position, key, entry);
        }
        let (before, old) = (entry.value.memory_bytes(), entry.moments());
        self.garbage.add(core::mem::replace(&mut entry.value, collection));
        entry.changed = changed;
        entry.expiry = None;
        self.content_bytes = self.content_bytes - before + entry.value.memory_bytes();
        let moments = entry.moments();
        self.index_moments(key, old, moments);
    }

    fn edit<R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> Result<Option<R>, WrongType> {
        self.note_change(key);
        let (time, changed) = (self.time, self.entry());
        let full = self.entries.get_full_mut(key);
        let Some((position, _, entry)) = full.filter(|(_, _, entry)| !is_due(entry.gone(), time)) else {
            return Ok(None);
        };
        entry.value.string()?;
        if let Some(capture) = &mut self.capture {
            capture.preserve(position, key, entry);
        }
        let Value::String(value) = &mut entry.value else { return Err(WrongType) };
        entry.changed = changed;
        let before = value.len();
        let result = change(value);
        self.content_bytes = self.content_bytes - before + value.len();
        Ok(Some(result))
    }

    fn edit_collection<C: Collection, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R, WrongType> {
        self.remove_due(key);
        self.note_change(key);
        let changed = self.entry();
        let Some((position, _, entry)) = self.entries.get_full_mut(key) else {
            let mut collection = C::default();
            let result = change(&mut collection);
            if !collection.is_absent(self.time.as_millis()) {
                let stamp = Stamp { expiry: None, entry: changed };
                let value: Value = collection.into();
                if value.moments().gone.is_some() {
                    self.record_removal(key);
                }
                self.append(key, value, stamp);
            }
            return Ok(result);
        };
        entry.value.collection::<C>()?;
        if let Some(capture) = &mut self.capture {
            capture.preserve(position, key, entry);
        }
        let (before, old) = (entry.value.memory_bytes(), entry.moments());
        let collection = C::of_mut(&mut entry.value).ok_or(WrongType)?;
        let result = change(collection);
        let is_empty = collection.is_absent(self.time.as_millis());
        entry.changed = changed;
        self.content_bytes = self.content_bytes - before + entry.value.memory_bytes();
        let moments = entry.moments();
        if moments != old {
            self.index_moments(key, old, moments);
            if moments.gone.is_some() {
                self.record_removal(key);
            }
        }
        if is_empty {
            self.remove(key);
        }
        Ok(result)
    }

    fn set_expiry(&mut self, key: &[u8], expiry: Expiry) {
        self.note_change(key);
        let (time, changed) = (self.time, self.entry());
        let full = self.entries.get_full_mut(key);
        if let Some((position, _, entry)) = full.filter(|(_, _, entry)| !is_due(entry.gone(), time)) {
            if let Some(capture) = &mut self.capture {
                capture.preserve(position, key, entry);
            }
            entry.changed = changed;
            let old = entry.moments();
            entry.expiry = expiry;
            let moments = entry.moments();
            self.index_moments(key, old, moments);
            if expiry.is_some() {
                self.record_removal(key);
            }
        }
    }

    fn evict(&mut self, key: &[u8]) {
        self.evicted += 1;
        self.notify(KeyEvent::Evicted, key);
        self.remove(key);
    }

    fn remove(&mut self, key: &[u8]) {
        self.remove_due(key);
        self.discard(key);
        self.record_removal(key);
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        if let Some(entry) = self.give(from) {
            self.receive(to, entry);
        }
    }

    fn clear(&mut self) {
        let bytes = self.memory_bytes();
        let empty = IndexMap::with_hasher(*self.entries.hasher());
        let old = Arc::new(core::mem::replace(&mut self.entries, empty));
        if let Some(capture) = &mut self.capture {
            capture.freeze(&old, bytes);
        }
        if let Some(listing) = &mut self.listing {
            listing.freeze(&old);
        }
        let expiries = (core::mem::take(&mut self.expiries), core::mem::take(&mut self.field_expiries));
        // Otherwise one of them goes on with the table, and gives it back.
        match Arc::into_inner(old) {
            Some(old) => self.leftovers.add((old, expiries), bytes),
            None => {
                let bytes = (expiries.0.len() + expiries.1.len()) * EXPIRY_BYTES;
                self.leftovers.add(expiries, bytes);
            }
        }
        if let Some(recorded) = &mut self.recorded {
            recorded.removals.record(ALL, self.number);
        }
        self.counted.set((NonZeroU64::MIN, 0));
        (self.has_due, self.has_due_fields) = (false, false);
        self.content_bytes = 0;
        if let Some(clocks) = &mut self.clocks {
            clocks.clear();
        }
    }

    fn notifies(&self) -> bool {
        self.events.is_on()
    }

    fn notify(&mut self, event: KeyEvent, key: &[u8]) {
        self.events.push(event, (self.database, key), self.number);
    }

    fn publish(&mut self, kind: SubscriptionKind, channel: &[u8], payload: &[u8]) {
        self.events.publish((kind, channel), payload, self.number);
    }

    fn begin_undo(&mut self) {
        self.undo = Some(Box::default());
        self.events_before_undo = self.events.len();
    }

    fn end_undo(&mut self, keeps: bool) {
        let Some(mut undo) = self.undo.take() else { return };
        while let Some(step) = undo.next_back() {
            match step {
                step if !keeps => self.undo_step(step),
                step => step.give_back(&mut self.garbage),
            }
        }
        if !keeps {
            self.events.truncate(self.events_before_undo);
        }
        self.look_for_due();
    }
}

/// The log time at which a key with this expiry is due.
pub(crate) const fn moment(expiry: NonZeroU64) -> WallTime {
    WallTime(expiry.get().saturating_mul(1000))
}

/// Makes `new` the content of `value`, in its memory unless that is too small or far too large.
fn overwrite(value: &mut Vec<u8>, new: &[u8]) {
    const SPARE_BYTES: usize = 64;
    let capacity = value.capacity();
    if capacity < new.len() || capacity > 2 * new.len() + SPARE_BYTES {
        *value = new.to_vec();
    } else {
        value.clear();
        value.extend_from_slice(new);
    }
}
