//! A thread that executes.

use super::Shared;
use super::layout::{
    Changes, StoreKey, data_key, encode_operand, expiry_key, is_long, merged, record, record_of, value_record,
};
use super::reader::{Read, ReadPoint, each, random, scan};
use crate::hash::KeyHashBuilder;
use crate::removals::{ALL, part_of};
use crate::stamp::Stamp;
use crate::store::{Change, Store};
use core::fmt;
use core::ops::ControlFlow;
use core::sync::atomic::Ordering;
use std::sync::Arc;
use syros_commands::Programs;
use syros_commands::access::{EntryRef as _, Expiry, Keys, KeysMut, Operand, Version};
use syros_commands::execution;
use syros_types::{OpNumber, Prng, WallTime};
use syros_values::{Collection, Kind, WrongType};

/// Executes bodies whose keys no other lane has anything to do with at the same time. What it has executed it sees
/// itself at once, and everybody once it is committed.
pub struct Lane<S: Store> {
    shared: Arc<Shared<S>>,
    now_ms: u64,
    /// The log entry whose bodies it executes.
    number: u64,
    /// The same if versions are recorded, else 0.
    entry: u64,
    /// The entry that versions are recorded from, if that has not been committed.
    recorded_from: Option<u64>,
    /// The parts of the hashes that it has removed keys of, with the entries, and not committed.
    removals: Vec<(usize, u64)>,
    /// What has not been committed.
    changes: Changes,
    /// A FLUSHALL has not been committed: the changes are of the next generation.
    has_cleared: bool,
    /// The earliest expiry among the changes.
    first_expiry: Expiry,
    /// Bytes of the changes, about.
    bytes: usize,
    /// How what has been done since a script began can be undone.
    undo: Option<Undo>,
}

/// What a lane was when a script began.
struct Undo {
    /// Records as they were among the changes, the first one first.
    steps: Vec<UndoStep>,
    first_expiry: Expiry,
    bytes: usize,
}

enum UndoStep {
    /// This record was that, or was not changed.
    Changed(StoreKey, Option<Change>),
    /// All that was changed has been removed with all keys; whether they had been removed before.
    Cleared(Changes, bool),
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
        // Whoever makes keys collide here slows down what they write themselves: the changes are few.
        let changes = Changes::with_hasher(KeyHashBuilder::new(0));
        Self {
            shared,
            now_ms: 0,
            number: 0,
            entry: 0,
            recorded_from: None,
            removals: Vec::new(),
            changes,
            has_cleared: false,
            first_expiry: None,
            bytes: 0,
            undo: None,
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
        execution::apply(self, time, body, reply);
    }

    /// Bytes that have not been committed, about.
    pub const fn uncommitted_bytes(&self) -> usize {
        self.bytes
    }

    /// Lets everybody see what was executed.
    pub fn commit(&mut self) {
        if self.changes.is_empty() && !self.has_cleared && self.recorded_from.is_none() {
            return;
        }
        let written = self.shared.store.write(self.changes.drain(..));
        self.shared.succeeded(written);
        self.bytes = 0;
        // Not before: who reads sees the old generation, or all of the next one.
        if core::mem::take(&mut self.has_cleared) {
            self.shared.clear();
        }
        // Not before: see `Reader::version`.
        if let Some(number) = self.recorded_from.take() {
            self.shared.recorded_from.store(number, Ordering::Release);
        }
        self.removals.drain(..).for_each(|(part, entry)| self.shared.removals.record(part, entry));
        // Not before: whoever looks for the first one would miss it.
        if let Some(expiry) = self.first_expiry.take() {
            self.shared.record_expiry(expiry);
        }
    }

    /// The generation of its keys.
    fn generation(&self) -> u32 {
        self.shared.generation() + u32::from(self.has_cleared)
    }

    fn change(&mut self, key: StoreKey, change: Change) {
        self.note(&key);
        self.bytes += key.len() + if let Change::Put(value) = &change { value.len() } else { 0 };
        self.changes.insert(key, change);
    }

    /// Notes how a record is before it changes.
    fn note(&mut self, key: &StoreKey) {
        if let Some(undo) = &mut self.undo {
            undo.steps.push(UndoStep::Changed(key.clone(), self.changes.get(key).cloned()));
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
        if self.entry > 0 {
            self.removals.push((part_of(key), self.entry));
        }
    }

    /// Gives a key a record and the expiry that is in it.
    fn put(&mut self, key: &[u8], record: Vec<u8>, expiry: Expiry) {
        if expiry.is_some() {
            self.record_removal(key);
        }
        let generation = self.generation();
        if let Some(expiry) = expiry {
            self.change(expiry_key(generation, expiry, key), Change::Put(Vec::new()));
            self.first_expiry = Some(self.first_expiry.map_or(expiry, |first| first.min(expiry)));
        }
        self.change(data_key(generation, key), Change::Put(record));
    }

    /// Gives a key another record, with the same expiry, whose own entry is there already.
    fn replace(&mut self, key: &[u8], record: Vec<u8>) {
        self.change(data_key(self.generation(), key), Change::Put(record));
    }
}

impl<S: Store> Keys for Lane<S> {
    type EntryRef<'a> = Read<Value<'a, S::Value>>;

    fn get(&self, key: &[u8]) -> Option<Read<Value<'_, S::Value>>> {
        let store_key = data_key(self.generation(), key);
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
        Read::new(key, value, self.now_ms)
    }

    fn version(&self, key: &[u8]) -> Version {
        if self.recorded_from.is_none() && self.shared.recorded_from() == 0 {
            return Version::UNKNOWN;
        }
        let here = part_of(key);
        let removed = self.removals.iter().filter(|(part, _)| [here, ALL].contains(part));
        let removed = removed.map(|(_, entry)| *entry).max().unwrap_or(0);
        let absent = Version::of_absent(removed.max(self.shared.removals.of(key)));
        self.get(key).map_or(absent, |found| found.stamp().version())
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

    fn programs(&self) -> Programs {
        self.shared.programs()
    }
}

impl<S: Store> Lane<S> {
    /// The time that decides which keys exist, for what concerns all of them.
    fn now(&self) -> u64 {
        self.now_ms.max(self.shared.time().as_millis())
    }

    /// All keys as they are after what has been executed, committed or not.
    fn read_point(&self) -> ReadPoint<'_, S> {
        ReadPoint {
            view: None,
            changes: Some(&self.changes),
            generation: self.generation(),
            now_ms: self.now(),
        }
    }
}

impl<S: Store> KeysMut for Lane<S> {
    fn set(&mut self, key: &[u8], value: &[u8], expiry: Expiry) {
        self.put(key, record(key, self.stamp(expiry), value), expiry);
    }

    fn set_collection<C: Collection>(&mut self, key: &[u8], collection: C) {
        self.shared.record_mark();
        self.put(key, value_record(key, self.stamp(None), &collection.into()), None);
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

    /// Reads and writes all of the collection: see `layout`.
    fn edit_collection<C: Collection, R>(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&mut C) -> R,
    ) -> Result<R, WrongType> {
        let found = self.get(key);
        let old = found.as_ref().map(|found| (found.to_value(), found.expiry()));
        drop(found);
        let existed = old.is_some();
        let (mut value, expiry) = old.unwrap_or_else(|| (C::default().into(), None));
        let collection = C::of_mut(&mut value).ok_or(WrongType)?;
        let result = change(collection);
        match (collection.is_empty(), existed) {
            (false, _) => {
                self.shared.record_mark();
                self.replace(key, value_record(key, self.stamp(expiry), &value));
            }
            (true, true) => self.remove(key),
            (true, false) => {}
        }
        Ok(result)
    }

    fn merge(&mut self, key: &[u8], now_ms: u64, operand: Operand<'_>) -> bool {
        if is_long(key) {
            return false;
        }
        let key = data_key(self.generation(), key);
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
            drop(found);
            self.put(key, record, expiry);
        }
    }

    fn remove(&mut self, key: &[u8]) {
        self.record_removal(key);
        // Of a key that does not exist a record may be left.
        self.change(data_key(self.generation(), key), Change::Delete);
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        if let Some(found) = self.get(from) {
            let expiry = found.expiry();
            let record = record_of(to, self.stamp(expiry), found.stored());
            drop(found);
            self.remove(from);
            self.put(to, record, expiry);
        }
    }

    fn clear(&mut self) {
        let changes = core::mem::replace(&mut self.changes, Changes::with_hasher(KeyHashBuilder::new(0)));
        if let Some(undo) = &mut self.undo {
            undo.steps.push(UndoStep::Cleared(changes, self.has_cleared));
        }
        self.bytes = 0;
        self.first_expiry = None;
        if self.entry > 0 {
            self.removals.push((ALL, self.entry));
        }
        self.has_cleared = true;
    }

    fn set_programs(&mut self, programs: Programs) {
        self.shared.set_programs(programs);
    }

    fn begin_undo(&mut self) {
        self.undo = Some(Undo { steps: Vec::new(), first_expiry: self.first_expiry, bytes: self.bytes });
    }

    fn end_undo(&mut self, keeps: bool) {
        let Some(Undo { steps, first_expiry, bytes }) = self.undo.take().filter(|_| !keeps) else { return };
        (self.first_expiry, self.bytes) = (first_expiry, bytes);
        for step in steps.into_iter().rev() {
            match step {
                UndoStep::Changed(key, Some(change)) => drop(self.changes.insert(key, change)),
                UndoStep::Changed(key, None) => drop(self.changes.swap_remove(&key)),
                UndoStep::Cleared(changes, had_cleared) => {
                    (self.changes, self.has_cleared) = (changes, had_cleared);
                }
            }
        }
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
