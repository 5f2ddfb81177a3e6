//! From the blocks of a snapshot to an engine.

use super::DiskEngine;
use super::layout::{Space, StoreKey, data_key, expiry_key, record};
use super::pages::{PageState, record_collection};
use crate::entry::{earlier, moments_under};
use crate::removals::Removals;
use crate::snapshot::Record;
use crate::store::{Change, Store, StoreError};
use crate::{DamagedSnapshot, Digest, Engine as _};
use core::fmt;
use core::num::NonZeroU64;
use core::sync::atomic::Ordering;
use syros_commands::Programs;
use syros_types::{Database, WallTime, key_hash};
use syros_values::Moments;

/// Why a disk engine could not be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The blocks are no snapshot.
    Damaged(DamagedSnapshot),
    /// The disk refused.
    Store(StoreError),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LoadError {}

impl From<DamagedSnapshot> for LoadError {
    fn from(error: DamagedSnapshot) -> Self {
        Self::Damaged(error)
    }
}

impl From<StoreError> for LoadError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The loader flushes when so many bytes are unflushed.
const UNFLUSHED_MAX: u64 = 64 << 20;

/// Makes a [`DiskEngine`] of the blocks of a snapshot, in an empty store. Blocks may come in any order, each
/// exactly once. What it has written counts for nothing before [`DiskLoader::finish`] and the next checkpoint.
#[derive(Debug)]
pub struct DiskLoader<S: Store> {
    store: S,
    time: Option<WallTime>,
    /// Number of keys, and digest of what was captured.
    end: Option<(u64, u64)>,
    digest: Digest,
    count: u64,
    first_expiry: Option<NonZeroU64>,
    has_marks: bool,
    recorded_from: u64,
    removals: [Removals; Database::COUNT],
    /// A record of another database than the first has been read.
    has_databases: bool,
    programs: Programs,
    pages: PageState,
    damage: Option<LoadError>,
}

impl<S: Store> DiskLoader<S> {
    pub(super) fn new(store: S) -> Self {
        Self {
            store,
            time: None,
            end: None,
            digest: Digest::new(WallTime(0)),
            count: 0,
            first_expiry: None,
            has_marks: false,
            recorded_from: 0,
            removals: [const { Removals::EMPTY }; Database::COUNT],
            has_databases: false,
            programs: Programs::NONE,
            pages: PageState::default(),
            damage: None,
        }
    }

    /// Takes in one block.
    ///
    /// # Errors
    /// If it is no block of a snapshot, or the disk refuses. Every later call then fails with the same error.
    pub fn block(&mut self, block: &[u8]) -> Result<(), LoadError> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        self.take(block).inspect_err(|error| self.damage = Some(error.clone()))
    }

    fn take(&mut self, block: &[u8]) -> Result<(), LoadError> {
        let mut changes: Vec<(StoreKey, Change)> = Vec::new();
        let mut rest = block;
        let mut database = Database::FIRST;
        self.digest.enter(database);
        while !rest.is_empty() {
            match Record::take(&mut rest)? {
                Record::Database { database: next } => {
                    database = next;
                    self.has_databases = true;
                    self.digest.enter(database);
                }
                Record::OpenHeader { time } => {
                    if self.time.replace(time).is_some() {
                        return Err(DamagedSnapshot::SecondHeader.into());
                    }
                }
                Record::CountedEnd { count, digest } => {
                    if self.end.replace((count, digest)).is_some() {
                        return Err(DamagedSnapshot::SecondEnd.into());
                    }
                }
                Record::Key { key, value, stamp, .. } => {
                    self.has_marks |= stamp.entry > 0;
                    self.digest.add_stamped(key, key_hash(value), stamp);
                    let record = record(key, stamp, value);
                    let moments = moments_under(stamp.expiry, Moments::default());
                    self.key((database, key), moments, record, &mut changes);
                }
                Record::Collection { key, value, stamp, .. } => {
                    self.has_marks = true;
                    self.digest.add_stamped(key, value.fingerprint(), stamp);
                    let moments = moments_under(stamp.expiry, value.moments());
                    let (space, next) = (Space::of(database), self.pages.next_page_set.get_mut());
                    let page_set = || core::mem::replace(next, *next + 1);
                    let recorded = record_collection::<S>((space, key), stamp, &value, None, page_set);
                    changes.extend(recorded.pages);
                    if recorded.is_paged {
                        self.pages.counts.add(space, key);
                    }
                    self.key((database, key), moments, recorded.record, &mut changes);
                }
                Record::Recorded { from } => {
                    self.has_marks = true;
                    self.digest.add_recorded(from);
                    if core::mem::replace(&mut self.recorded_from, from) > 0 {
                        return Err(DamagedSnapshot::SecondRecorded.into());
                    }
                }
                Record::Removal { part, entry } => {
                    self.digest.add_removal(part, entry);
                    let removals = &mut self.removals[database.index()];
                    if removals.has(part) {
                        return Err(DamagedSnapshot::Removal(part as u64).into());
                    }
                    removals.record(part, entry);
                }
                Record::Program { record } => {
                    self.digest.add_program(record);
                    self.programs.add_record(record).map_err(|_| DamagedSnapshot::Program)?;
                }
                Record::Header { .. }
                | Record::OtherDatabases { .. }
                | Record::End { .. }
                | Record::CollectionHead { .. }
                | Record::CollectionPart { .. } => return Err(DamagedSnapshot::OtherEngine.into()),
            }
        }
        self.store.write(changes.into_iter())?;
        if self.store.pressure().unflushed_bytes > UNFLUSHED_MAX {
            self.store.seal()?;
            self.store.flush()?;
            self.store.compact()?;
        }
        Ok(())
    }

    /// Adds what has to be written for a key.
    fn key(
        &mut self,
        (database, key): (Database, &[u8]),
        moments: Moments,
        record: Vec<u8>,
        changes: &mut Vec<(StoreKey, Change)>,
    ) {
        self.count += 1;
        let space = Space::of(database);
        // Fields may be due: they are removed later.
        self.first_expiry = earlier(self.first_expiry, moments.gone);
        for expiry in [moments.first, moments.gone].into_iter().flatten() {
            changes.push((expiry_key(space, expiry, key), Change::Put(Vec::new())));
        }
        changes.push((data_key(space, key), Change::Put(record)));
    }

    /// The engine that was captured: from here on the two give equal answers to equal bodies.
    ///
    /// # Errors
    /// If the blocks are not all of one snapshot, or one of them was refused.
    pub fn finish(self) -> Result<DiskEngine<S>, LoadError> {
        if let Some(damage) = self.damage {
            return Err(damage);
        }
        let time = self.time.ok_or(DamagedSnapshot::NoHeader)?;
        let (count, expected) = self.end.ok_or(DamagedSnapshot::NoEnd)?;
        if self.count != count {
            return Err(DamagedSnapshot::Count { found: self.count, expected: count }.into());
        }
        let found = self.digest.at(time).finish();
        if found != expected {
            return Err(DamagedSnapshot::Digest { found, expected }.into());
        }
        if let Some(expiry) = self.first_expiry
            && expiry.get() <= time.as_millis()
        {
            return Err(DamagedSnapshot::Expired(expiry.get()).into());
        }
        let (mut engine, _) = DiskEngine::open_with(self.store, Some(self.pages))?;
        if self.has_databases {
            engine.shared().record_databases();
            engine.shared().find_next_expiry();
        }
        if self.has_marks {
            engine.shared().record_mark();
        }
        engine.shared().recorded_from.store(self.recorded_from, Ordering::Release);
        for (database, removals) in Database::all().zip(&self.removals) {
            let shared = engine.shared();
            removals.iter().for_each(|(place, entry)| shared.removals.record(database, place, entry));
        }
        engine.shared().set_programs(self.programs);
        engine.advance(time);
        Ok(engine)
    }
}
