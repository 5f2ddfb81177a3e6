//! A thread that executes.

use super::layout::{
    Changes, Space, StoreKey, Stored, data_key, encode_operand, expiry_key, is_dead_key, is_long, merged,
    parse_record, record, record_of,
};
use super::pages::{PageState, Place, give_back, is_paged, paged, record_collection, reply_unless_lost};
use super::reader::{Read, ReadPoint, each, random, scan};
use super::{Shared, dropped_max};
use crate::entry::{earlier, moments_under};
use crate::events::{EventLog, without_turns};
use crate::hash::KeyHashBuilder;
use crate::removals::{ALL, SWAPPED, part_of};
use crate::stamp::Stamp;
use crate::store::{Change, Store};
use core::cell::Cell;
use core::fmt;
use core::num::NonZeroU64;
use core::ops::ControlFlow;
use core::sync::atomic::Ordering;
use std::sync::Arc;
use syros_commands::access::{
    Announcement, Databases, DatabasesMut, EntryRef as _, Expiry, KeyEvent, Keys, KeysMut, Operand, Version,
    is_hidden,
};
use syros_commands::{Effects, Programs, execution};
use syros_types::{Database, OpNumber, Prng, SubscriptionKind, WallTime};
use syros_values::{Collection, Kind, Moments, Paged, WrongType};

/// Executes bodies whose keys no other lane has anything to do with at the same time. What it has executed it sees
/// itself at once, and everybody once it is committed.
pub struct Lane<S: Store> {
    shared: Arc<Shared<S>>,
    /// The one that its keys are of.
    database: Cell<Database>,
    now_ms: u64,
    /// The log entry whose bodies it executes.
    number: u64,
    /// The same if versions are recorded, else 0.
    entry: u64,
    /// The entry that versions are recorded from, if that has not been committed.
    recorded_from: Option<u64>,
    /// The parts of the hashes that it has removed keys of, with the entries, and not committed.
    removals: Vec<(Database, usize, u64)>,
    /// What has not been committed, but for pages.
    changes: Changes,
    /// The same of pages. Collections that have been read and are still looked at have it as it was.
    pages: Arc<Changes>,
    /// Among them are pages that nobody needs, nor anything below them.
    has_dead: bool,
    /// The stripes of the keys of these pages.
    page_stripes: u64,
    /// Keys that have got pages, or have none any more, and that is not committed.
    page_counts: Vec<PageCount>,
    /// Where the keys of the databases lie, if that has changed and is not committed.
    spaces: Option<Box<[Space; Database::COUNT]>>,
    /// Databases have been swapped, and that is not committed.
    has_swapped: bool,
    /// All keys there were have been removed, and that is not committed.
    has_cleared: bool,
    /// The earliest expiry among the changes.
    first_expiry: Expiry,
    /// Bytes of the changes, about.
    bytes: usize,
    /// How what has been done since a script began can be undone.
    undo: Option<Undo>,
    /// What has happened to keys, and has not been told.
    events: EventLog,
    /// What the updates since [`Self::take_effects`] have done.
    effects: Effects,
}

/// What a lane was when a script began. No script removes all keys.
struct Undo {
    /// Records as they were among the changes, the first one first; `None` if a record was not changed.
    steps: Vec<(StoreKey, Option<Change>)>,
    /// The same of pages.
    page_steps: Vec<(StoreKey, Option<Change>)>,
    page_counts: usize,
    first_expiry: Expiry,
    bytes: usize,
    events: usize,
}

/// A key has got pages, or has none any more.
struct PageCount {
    space: Space,
    key: Vec<u8>,
    has_pages: bool,
}

/// Without changes.
pub(super) fn no_changes() -> Changes {
    // Whoever makes keys collide here slows down what they write themselves: the changes are few.
    Changes::with_hasher(KeyHashBuilder::new(0))
}

impl<S: Store> fmt::Debug for Lane<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").field("changes", &self.changes.len()).finish_non_exhaustive()
    }
}

/// The record of a key: changed, or as the store has it.
#[derive(Debug)]
pub enum Value<'a, V> {
    /// Changed.
    Changed(&'a [u8]),
    /// Changed by merges of what the store has.
    Merged(Vec<u8>),
    /// As the store has it.
    Stored(V),
}

impl<V: AsRef<[u8]>> AsRef<[u8]> for Value<'_, V> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Changed(bytes) => bytes,
            Self::Merged(bytes) => bytes,
            Self::Stored(value) => value.as_ref(),
        }
    }
}

impl<S: Store> Lane<S> {
    /// Executes for this engine.
    pub fn new(shared: Arc<Shared<S>>) -> Self {
        Self {
            shared,
            database: Cell::new(Database::FIRST),
            now_ms: 0,
            number: 0,
            entry: 0,
            recorded_from: None,
            removals: Vec::new(),
            changes: no_changes(),
            pages: Arc::new(no_changes()),
            has_dead: false,
            page_stripes: 0,
            page_counts: Vec::new(),
            spaces: None,
            has_swapped: false,
            has_cleared: false,
            first_expiry: None,
            bytes: 0,
            undo: None,
            events: EventLog::default(),
            effects: Effects::default(),
        }
    }

    /// The bodies executed from now on are those of this log entry.
    pub fn begin_entry(&mut self, number: OpNumber) {
        self.number = number.0;
        let is_recorded = self.recorded_from.is_some() || self.shared.recorded_from() > 0;
        self.entry = if is_recorded { number.0 } else { 0 };
    }

    /// Executes a body at this log time, and appends its replies: see [`Engine::apply`](crate::Engine::apply).
    pub fn execute(&mut self, time: WallTime, body: &[u8], reply: &mut Vec<u8>) {
        self.now_ms = time.as_millis();
        self.events.set(self.shared.notifies());
        let _ = reply_unless_lost(reply, |reply| execution::apply(self, time, body, reply));
    }

    /// Bytes that have not been committed, about.
    pub const fn uncommitted_bytes(&self) -> usize {
        self.bytes
    }

    /// What clients are told of since this was asked last: of keys as far as it is asked, see [`Shared::set_notifying`].
    pub fn take_announcements(&mut self) -> Vec<Announcement> {
        without_turns(self.events.take())
    }

    /// See [`Engine::take_effects`](crate::Engine::take_effects).
    pub const fn take_effects(&mut self) -> u64 {
        self.effects.take()
    }

    /// Lets everybody see what was executed.
    pub fn commit(&mut self) {
        // An undone script may have recorded removals, and changed nothing.
        let has_records = self.recorded_from.is_some() || !self.removals.is_empty();
        if self.changes.is_empty() && self.spaces.is_none() && !has_records {
            return;
        }
        let exchanges = self.has_swapped && !self.changes.is_empty();
        if exchanges {
            self.shared.exchanges.fetch_add(1, Ordering::AcqRel);
        }
        self.write_changes();
        self.bytes = 0;
        // Not before: who reads sees the old generation, or all of the next one.
        if let Some(spaces) = self.spaces.take() {
            self.shared.set_spaces(*spaces);
        }
        self.has_swapped = false;
        for PageCount { space, key, has_pages } in self.page_counts.drain(..) {
            let counts = &self.shared.pages.counts;
            if has_pages { counts.add(space, &key) } else { counts.subtract(space, &key) }
        }
        if exchanges {
            self.shared.exchanges.fetch_add(1, Ordering::AcqRel);
        }
        if core::mem::take(&mut self.has_cleared) {
            self.shared.forget_expiries();
        }
        // Not before: see `Reader::version`.
        if let Some(number) = self.recorded_from.take() {
            self.shared.recorded_from.store(number, Ordering::Release);
        }
        self.removals.drain(..).for_each(|(database, place, entry)| {
            self.shared.removals.record(database, place, entry);
        });
        // Not before: whoever looks for the first one would miss it.
        if let Some(expiry) = self.first_expiry.take() {
            self.shared.record_expiry(expiry);
        }
    }

    fn write_changes(&mut self) {
        let shared = Arc::clone(&self.shared);
        if self.pages.is_empty() {
            shared.succeeded(shared.store.write(self.changes.drain(..)));
            return;
        }
        let pages = core::mem::replace(&mut self.pages, Arc::new(no_changes()));
        let _committing = shared.pages.committing(core::mem::take(&mut self.page_stripes));
        let pages = Arc::unwrap_or_clone(pages).into_iter();
        shared.succeeded(shared.store.write(self.changes.drain(..).chain(pages)));
        if core::mem::take(&mut self.has_dead) {
            shared.pages.has_dead.store(true, Ordering::Release);
        }
    }

    /// Where its keys lie.
    fn space(&self) -> Space {
        self.space_of(self.database.get())
    }

    /// Where the keys of a database lie.
    fn space_of(&self, database: Database) -> Space {
        match &self.spaces {
            None => self.shared.space(database),
            Some(spaces) => spaces[database.index()],
        }
    }

    /// Where the keys of the databases lie, to be changed.
    fn spaces_mut(&mut self) -> &mut [Space; Database::COUNT] {
        let shared = &self.shared;
        self.spaces.get_or_insert_with(|| Box::new(shared.spaces()))
    }

    /// Notes something at a place of the removals of a database.
    fn record_at(&mut self, database: Database, place: usize) {
        if self.entry > 0 {
            self.removals.push((database, place, self.entry));
        }
    }

    fn change(&mut self, key: StoreKey, change: Change) {
        self.note(&key);
        self.bytes += key.len() + change.len();
        self.changes.insert(key, change);
    }

    /// Notes how a record is before it changes.
    fn note(&mut self, key: &StoreKey) {
        if let Some(undo) = &mut self.undo {
            undo.steps.push((key.clone(), self.changes.get(key).cloned()));
        }
    }

    /// What is kept of a key that is changed now.
    fn stamp(&self, expiry: Expiry) -> Stamp {
        if self.entry > 0 {
            self.shared.record_mark();
        }
        Stamp { expiry, entry: self.entry }
    }

    /// A key has been removed, or has got an expiry.
    fn record_removal(&mut self, key: &[u8]) {
        // The part of a hidden key may belong to another lane, which would see an entry that it has not come to.
        if is_hidden(key) {
            return;
        }
        let database = self.database.get();
        self.record_at(database, part_of(database, key));
    }

    /// Gives a key a record that is gone at these moments, whatever it had.
    fn put(&mut self, key: &[u8], record: Vec<u8>, moments: Moments) {
        self.give_back_pages(key);
        self.put_head(key, record, moments);
    }

    /// The same, of a key that has no pages, or keeps them.
    fn put_head(&mut self, key: &[u8], record: Vec<u8>, moments: Moments) {
        self.notify_addition(key);
        if moments.gone.is_some() {
            self.record_removal(key);
        }
        let space = self.space();
        // A field that is gone already is still to be removed.
        let soon = NonZeroU64::MIN.saturating_add(self.now_ms);
        let first = moments.first.map(|first| first.max(soon));
        for expiry in [first, moments.gone].into_iter().flatten() {
            self.change(expiry_key(space, expiry, key), Change::Put(Vec::new()));
            self.first_expiry = earlier(self.first_expiry, Some(expiry));
        }
        self.change(data_key(space, key), Change::Put(record));
    }

    /// Tells what becomes of a key that is about to get a record: one that is not there is new, and one that has expired has
    /// done so now at the latest.
    fn notify_addition(&mut self, key: &[u8]) {
        if self.events.is_on() && self.get(key).is_none() {
            self.notify_expiry(key);
            self.notify(KeyEvent::New, key);
        }
    }

    /// Tells that a key has expired, if there is a record of it that is about to go.
    fn notify_expiry(&mut self, key: &[u8]) {
        if self.events.is_on() && self.get(key).is_none() && self.get_at(key, 0).is_some() {
            self.notify(KeyEvent::Expired, key);
        }
    }

    /// The record of a key that does not expire before this time, in milliseconds, or later.
    fn get_at(&self, key: &[u8], now_ms: u64) -> Option<Read<Value<'_, S::Value>>> {
        let store_key = data_key(self.space(), key);
        let stored = || self.shared.succeeded(self.shared.store.get(&store_key)).flatten();
        let value = match self.changes.get(&store_key) {
            Some(Change::Put(record)) => Value::Changed(record),
            Some(Change::Delete) => return None,
            Some(Change::Merge(operands)) => {
                let old = stored();
                Value::Merged(merged(old.as_ref().map(AsRef::as_ref), operands.iter().map(Vec::as_slice)))
            }
            None => Value::Stored(stored()?),
        };
        Read::new(key, value, now_ms, |head| {
            paged(&self.shared, self.space(), head, Place::Uncommitted(Arc::clone(&self.pages)))
        })
    }

    /// False if a key has no pages, expired or not.
    fn may_have_pages(&self, key: &[u8]) -> bool {
        self.shared.has_pages()
            && match self.changes.get(&data_key(self.space(), key)) {
                Some(Change::Put(record)) => is_paged(key, record),
                Some(Change::Delete | Change::Merge(_)) => false,
                None => self.shared.pages.counts.may_have(self.space(), key),
            }
    }

    /// Nobody needs the pages of a key any more, if it has any.
    fn give_back_pages(&mut self, key: &[u8]) {
        if !self.shared.has_pages() {
            return;
        }
        let store_key = data_key(self.space(), key);
        let stored;
        let record = match self.changes.get(&store_key) {
            Some(Change::Put(record)) => record.as_slice(),
            None if self.shared.pages.counts.may_have(self.space(), key) => {
                stored = self.shared.succeeded(self.shared.store.get(&store_key)).flatten();
                stored.as_ref().map_or(&[][..], AsRef::as_ref)
            }
            Some(Change::Delete | Change::Merge(_)) | None => return,
        };
        if let Stored::Paged(head, encoded) = parse_record(record, is_long(key)).value(record) {
            let place = Place::Uncommitted(Arc::clone(&self.pages));
            let old = paged(&self.shared, self.space(), head, place);
            let changes = give_back(self.space(), old, encoded);
            self.change_pages(key, changes);
            self.count_pages(key, true, false);
        }
    }

    fn change_pages(&mut self, key: &[u8], changes: Vec<(StoreKey, Change)>) {
        self.page_stripes |= PageState::stripe(key);
        let pages = Arc::make_mut(&mut self.pages);
        for (key, change) in changes {
            if let Some(undo) = &mut self.undo {
                undo.page_steps.push((key.clone(), pages.get(&key).cloned()));
            }
            self.bytes += key.len() + change.len();
            self.has_dead |= is_dead_key(&key);
            pages.insert(key, change);
        }
    }

    /// Notes that a key has pages now, or none any more, if that has changed.
    fn count_pages(&mut self, key: &[u8], had_pages: bool, has_pages: bool) {
        if had_pages != has_pages {
            self.page_counts.push(PageCount { space: self.space(), key: key.to_vec(), has_pages });
        }
    }

    /// Removes a key that has no pages, or whose pages are another's from now on.
    fn remove_head(&mut self, key: &[u8]) {
        self.notify_expiry(key);
        self.record_removal(key);
        // Of a key that does not exist a record may be left.
        self.change(data_key(self.space(), key), Change::Delete);
    }

    /// Gives a key a collection, whatever it had.
    fn put_collection(&mut self, key: &[u8], expiry: Expiry, value: syros_values::Value) {
        self.give_back_pages(key);
        let (record, moments) = self.put_pages(key, expiry, value, None);
        self.put_head(key, record, moments);
    }

    /// Puts a collection into pages if it is large, those that it has if it has some. The record of the key, and when it is gone.
    fn put_pages(
        &mut self,
        key: &[u8],
        expiry: Expiry,
        value: syros_values::Value,
        old: Option<Paged>,
    ) -> (Vec<u8>, Moments) {
        self.shared.record_mark();
        let moments = moments_under(expiry, value.moments());
        let had_pages = old.is_some();
        let (at, stamp, shared) = ((self.space(), key), self.stamp(expiry), &self.shared);
        let page_set = || shared.new_page_set();
        let recorded = record_collection::<S>(at, stamp, &value, old, page_set);
        // As long as it is there, what has been written is copied before it changes.
        drop(value);
        self.change_pages(key, recorded.pages);
        self.count_pages(key, had_pages, recorded.is_paged);
        (recorded.record, moments)
    }

    /// Gives a key another record, with the same expiry, whose own entry is there already.
    fn replace(&mut self, key: &[u8], record: Vec<u8>) {
        self.change(data_key(self.space(), key), Change::Put(record));
    }
}

impl<S: Store> Databases for Lane<S> {
    type Keys = Self;

    fn database(&self, database: Database) -> &Self {
        self.database.set(database);
        self
    }

    fn programs(&self) -> Programs {
        self.shared.programs()
    }
}

impl<S: Store> DatabasesMut for Lane<S> {
    fn effects_mut(&mut self) -> Option<&mut Effects> {
        Some(&mut self.effects)
    }

    fn set_programs(&mut self, programs: Programs) {
        self.shared.set_programs(programs);
    }

    fn database_mut(&mut self, database: Database) -> &mut Self {
        self.database.set(database);
        if !database.is_first() {
            // Builds that know one database must not go on with this store.
            self.shared.record_databases();
        }
        self
    }

    fn move_key(&mut self, name: &[u8], from: Database, to: Database) {
        self.database_mut(from);
        let Some(found) = self.get(name) else { return };
        if found.paged().is_some() {
            // Pages stay where they are: it gets others.
            let (value, expiry) = (found.to_value(), found.expiry());
            drop(found);
            self.remove(name);
            return self.database_mut(to).put_collection(name, expiry, value);
        }
        let moments = found.moments();
        let record = record_of(name, self.stamp(found.expiry()), found.stored());
        drop(found);
        self.remove(name);
        self.database_mut(to).put(name, record, moments);
    }

    fn swap(&mut self, first: Database, second: Database) {
        if first == second {
            return;
        }
        self.shared.record_databases();
        if !self.database(first).is_empty() || !self.database(second).is_empty() {
            self.record_at(first, SWAPPED);
            self.record_at(second, SWAPPED);
        }
        self.spaces_mut().swap(first.index(), second.index());
        self.has_swapped = true;
    }

    fn clear_all(&mut self) {
        let in_use: Vec<Database> = self.shared.spaces_in_use().map(|(database, _)| database).collect();
        for database in in_use {
            // What has no keys stays as it is, like what has never been in use.
            if database.is_first() || !self.database(database).is_empty() {
                self.record_at(database, ALL);
            }
        }
        self.changes.clear();
        self.clear_pages();
        self.bytes = 0;
        self.first_expiry = None;
        self.spaces_mut().iter_mut().for_each(|space| *space = space.next());
        self.has_cleared = true;
    }

    fn record_versions(&mut self) {
        if self.number > 0 && self.recorded_from.is_none() && self.shared.recorded_from() == 0 {
            // Builds that record no versions must not go on with this store.
            self.shared.record_mark();
            self.recorded_from = Some(self.number);
            self.entry = self.number;
        }
    }
}

impl<S: Store> Keys for Lane<S> {
    type EntryRef<'a> = Read<Value<'a, S::Value>>;

    fn get(&self, key: &[u8]) -> Option<Read<Value<'_, S::Value>>> {
        self.get_at(key, self.now_ms)
    }

    fn time_ms(&self) -> u64 {
        self.now_ms
    }

    fn version(&self, key: &[u8]) -> Version {
        if self.recorded_from.is_none() && self.shared.recorded_from() == 0 {
            return Version::UNKNOWN;
        }
        let database = self.database.get();
        let uncommitted = |places: [usize; 2]| {
            let here = |at: &&(Database, usize, u64)| at.0 == database && places.contains(&at.1);
            self.removals.iter().filter(here).map(|(_, _, entry)| *entry).max().unwrap_or(0)
        };
        let removals = &self.shared.removals;
        let part = part_of(database, key);
        let swapped = uncommitted([SWAPPED; 2]).max(removals.swapped(database));
        let removed = uncommitted([part, ALL]).max(removals.of(database, part)).max(swapped);
        let absent = Version::of_absent(removed);
        self.get(key).map_or(absent, |found| found.stamp().version(swapped))
    }

    fn each(&self, visit: impl FnMut(&[u8]) -> ControlFlow<()>) {
        each(&self.shared, &self.read_point(), visit);
    }

    fn scan(&self, cursor: u64, count: u64, visit: impl FnMut(&[u8], Kind) -> ControlFlow<()>) -> u64 {
        scan(&self.shared, &self.read_point(), cursor, count, visit)
    }

    fn random(&self, prng: &mut Prng, visit: impl FnOnce(&[u8])) -> bool {
        random(&self.shared, &self.read_point(), prng, visit)
    }
}

impl<S: Store> Lane<S> {
    /// The time that decides which keys exist, for what concerns all of them.
    fn now(&self) -> u64 {
        self.now_ms.max(self.shared.time().as_millis())
    }

    /// All keys as they are after what has been executed, committed or not.
    fn read_point(&self) -> ReadPoint<'_, S> {
        ReadPoint { view: None, changes: Some(&self.changes), space: self.space(), now_ms: self.now() }
    }
}

impl<S: Store> KeysMut for Lane<S> {
    fn set(&mut self, key: &[u8], value: &[u8], expiry: Expiry) {
        let moments = moments_under(expiry, Moments::default());
        self.put(key, record(key, self.stamp(expiry), value), moments);
    }

    fn set_collection<C: Collection>(&mut self, key: &[u8], collection: C) {
        self.put_collection(key, None, collection.into());
    }

    fn edit<R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> Result<Option<R>, WrongType> {
        let Some(found) = self.get(key) else { return Ok(None) };
        let (mut value, expiry) = (found.string()?.to_vec(), found.expiry());
        drop(found);
        let result = change(&mut value);
        self.replace(key, record(key, self.stamp(expiry), &value));
        Ok(Some(result))
    }

    /// Reads and writes all of a small collection, and of a large one the pages that are looked at: see `layout`.
    fn edit_collection<C: Collection, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R, WrongType> {
        let found = self.get(key);
        let old = found.as_ref().map(|found| (found.to_value(), found.expiry(), found.paged().cloned()));
        drop(found);
        let existed = old.is_some();
        let (mut value, expiry, paged) = old.unwrap_or_else(|| (C::default().into(), None, None));
        // All of a small one is written anyway.
        value.drop_due(self.now_ms, dropped_max(paged.is_some()));
        let collection = C::of_mut(&mut value).ok_or(WrongType)?;
        let result = change(collection);
        match (collection.is_absent(self.now_ms), existed) {
            (false, _) => {
                self.notify_addition(key);
                if !existed {
                    // It may have expired and still be there.
                    self.give_back_pages(key);
                }
                let (record, moments) = self.put_pages(key, expiry, value, paged);
                if moments.first.is_some() {
                    self.put_head(key, record, moments);
                } else {
                    self.replace(key, record);
                }
            }
            (true, true) => self.remove(key),
            (true, false) => {}
        }
        Ok(result)
    }

    fn merge(&mut self, key: &[u8], now_ms: u64, operand: Operand<'_>) -> bool {
        if is_long(key) || self.events.is_on() || self.may_have_pages(key) {
            return false;
        }
        let key = data_key(self.space(), key);
        self.note(&key);
        if self.entry > 0 {
            self.shared.record_mark();
        }
        let operand = encode_operand(now_ms, self.entry, operand);
        match self.changes.get_mut(&key) {
            Some(Change::Put(record)) => *record = merged(Some(record), [operand.as_slice()]),
            Some(change @ Change::Delete) => *change = Change::Put(merged(None, [operand.as_slice()])),
            Some(Change::Merge(operands)) if self.shared.store.merges() => {
                self.bytes += operand.len();
                operands.push(operand);
            }
            None if self.shared.store.merges() => {
                self.bytes += key.len() + operand.len();
                self.changes.insert(key, Change::Merge(vec![operand]));
            }
            Some(Change::Merge(_)) | None => return false,
        }
        true
    }

    fn set_expiry(&mut self, key: &[u8], expiry: Expiry) {
        if let Some(found) = self.get(key) {
            let record = record_of(key, self.stamp(expiry), found.stored());
            let moments = moments_under(expiry, found.stored().moments());
            drop(found);
            self.put_head(key, record, moments);
        }
    }

    fn remove(&mut self, key: &[u8]) {
        self.give_back_pages(key);
        self.remove_head(key);
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        if let Some(found) = self.get(from) {
            let (moments, has_pages) = (found.moments(), found.paged().is_some());
            let record = record_of(to, self.stamp(found.expiry()), found.stored());
            drop(found);
            self.count_pages(from, has_pages, false);
            self.remove_head(from);
            self.put(to, record, moments);
            self.count_pages(to, false, has_pages);
            // Pages that were changed under the old name are read under the new one.
            self.page_stripes |= PageState::stripe(to);
        }
    }

    fn clear(&mut self) {
        let database = self.database.get();
        self.record_at(database, ALL);
        let space = self.space();
        self.spaces_mut()[database.index()] = space.next();
        if self.shared.has_databases() {
            // The others keep theirs.
            self.changes.retain(|key, _| !space.has(key));
            Arc::make_mut(&mut self.pages).retain(|key, _| !space.has(key));
            self.page_counts.retain(|count| count.space != space);
        } else {
            self.changes.clear();
            self.clear_pages();
            self.bytes = 0;
            self.first_expiry = None;
            self.has_cleared = true;
        }
    }

    fn notifies(&self) -> bool {
        self.events.is_on()
    }

    fn notify(&mut self, event: KeyEvent, key: &[u8]) {
        self.events.push(event, (self.database.get(), key), self.number);
    }

    fn publish(&mut self, kind: SubscriptionKind, channel: &[u8], payload: &[u8]) {
        self.events.publish((kind, channel), payload, self.number);
    }

    fn begin_undo(&mut self) {
        // The steps of all databases are one list.
        let (first_expiry, bytes, events) = (self.first_expiry, self.bytes, self.events.len());
        let page_counts = self.page_counts.len();
        let (steps, page_steps) = (Vec::new(), Vec::new());
        self.undo.get_or_insert(Undo { steps, page_steps, page_counts, first_expiry, bytes, events });
    }

    fn end_undo(&mut self, keeps: bool) {
        let undo = self.undo.take().filter(|_| !keeps);
        let Some(Undo { steps, page_steps, page_counts, first_expiry, bytes, events }) = undo else { return };
        self.events.truncate(events);
        self.page_counts.truncate(page_counts);
        (self.first_expiry, self.bytes) = (first_expiry, bytes);
        go_back(&mut self.changes, steps);
        if !page_steps.is_empty() {
            go_back(Arc::make_mut(&mut self.pages), page_steps);
        }
    }
}

/// Takes steps back, the last one first.
fn go_back(changes: &mut Changes, steps: Vec<(StoreKey, Option<Change>)>) {
    for (key, before) in steps.into_iter().rev() {
        match before {
            Some(change) => drop(changes.insert(key, change)),
            None => drop(changes.swap_remove(&key)),
        }
    }
}

impl<S: Store> Lane<S> {
    /// There are no pages any more.
    fn clear_pages(&mut self) {
        Arc::make_mut(&mut self.pages).clear();
        self.page_counts.clear();
    }

    /// True if its keys are none.
    fn is_empty(&self) -> bool {
        let mut is_empty = true;
        self.each(|_| {
            is_empty = false;
            ControlFlow::Break(())
        });
        is_empty
    }
}
