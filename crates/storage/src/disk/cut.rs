//! A snapshot being cut into blocks, on any thread, while the engine goes on.

use super::Shared;
use super::layout::{Space, StoreKey, Stored, data_begin, data_key};
use super::pages::{self, Place};
use crate::Digest;
use crate::snapshot::{
    put_collection_key, put_counted_end, put_database, put_key, put_open_header, put_program, put_recorded,
    put_removal, tag,
};
use crate::store::{Store, StoreError};
use core::fmt;
use core::ops::ControlFlow;
use std::sync::Arc;
use syros_types::{Database, WallTime};

/// The state of an engine as it was at one moment, to be taken in blocks. As long as it is there, the store keeps
/// what was overwritten or removed since.
pub struct Cut<S: Store> {
    shared: Arc<Shared<S>>,
    view: Arc<S::View>,
    /// The databases of which blocks have not taken all keys, the first of them last, and where their keys lie.
    databases: Vec<(Database, Space)>,
    time: WallTime,
    header_written: bool,
    /// Where the next block begins in the store, unless that is where the keys of the next database begin.
    from: Option<StoreKey>,
    count: u64,
    /// The entry that versions are recorded from; 0 if they are not.
    recorded_from: u64,
    /// The entries that have removed keys; those that blocks have taken are gone.
    removals: Vec<(Database, usize, u64)>,
    /// Records of what is loaded; those that blocks have taken are gone.
    programs: Vec<Vec<u8>>,
    digest: Digest,
}

impl<S: Store> fmt::Debug for Cut<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cut").field("time", &self.time).field("count", &self.count).finish_non_exhaustive()
    }
}

impl<S: Store> Cut<S> {
    /// The state as it is now. No lane may be at work, and nothing uncommitted.
    pub fn new(shared: &Arc<Shared<S>>) -> Self {
        let time = shared.time();
        let mut databases: Vec<_> = shared.spaces_in_use().collect();
        databases.reverse();
        let removals =
            |database| shared.removals.iter(database).map(move |(place, entry)| (database, place, entry));
        Self {
            view: Arc::new(shared.store.view()),
            databases,
            from: None,
            time,
            header_written: false,
            count: 0,
            recorded_from: shared.recorded_from(),
            removals: Database::all().rev().flat_map(removals).collect(),
            programs: shared.programs().records().collect(),
            digest: Digest::new(time),
            shared: Arc::clone(shared),
        }
    }

    /// Appends the next block: see [`Engine::snapshot_block`](crate::Engine::snapshot_block).
    ///
    /// # Errors
    /// What the disk says.
    pub fn block(&mut self, bytes: usize, block: &mut Vec<u8>) -> Result<bool, StoreError> {
        let shared = Arc::clone(&self.shared);
        let lost = || Err(shared.failure().cloned().unwrap_or_else(|| StoreError::other("read a page", "")));
        pages::unless_lost(|| self.put_block(bytes, block)).unwrap_or_else(lost)
    }

    fn put_block(&mut self, bytes: usize, block: &mut Vec<u8>) -> Result<bool, StoreError> {
        let Self { shared, view, databases, time, header_written, from, count, digest, .. } = self;
        // A block begins in the first one.
        let mut entered = Database::FIRST;
        let mut enter = |database: Database, digest: &mut Digest, block: &mut Vec<u8>| {
            digest.enter(database);
            if core::mem::replace(&mut entered, database) != database {
                put_database(block, database);
            }
        };
        let end = block.len().saturating_add(bytes);
        if !*header_written {
            *header_written = true;
            put_open_header(block, *time);
            put_recorded(block, self.recorded_from);
            digest.add_recorded(self.recorded_from);
        }
        while let Some((database, place, entry)) = self.removals.pop() {
            enter(database, digest, block);
            put_removal(block, place, entry);
            digest.add_removal(place, entry);
            if block.len() >= end {
                return Ok(true);
            }
        }
        while let Some(record) = self.programs.pop() {
            put_program(block, &record);
            digest.add_program(&record);
            if block.len() >= end {
                return Ok(true);
            }
        }
        while let Some((database, space)) = databases.last().copied() {
            let mut more = false;
            let begin = from.take().unwrap_or_else(|| data_begin(space));
            shared.walk(Some(view), (space, time.as_millis()), &begin, |_, key, value, stamp| {
                enter(database, digest, block);
                let view = || Place::View(Arc::clone(view));
                let paged = value.pages().map(|head| pages::paged(shared, space, head, view()));
                let source = paged.as_ref().map(|paged| &paged.source);
                match value {
                    Stored::String(string) => put_key(block, *count, key, string, stamp),
                    Stored::Collection(encoded) => {
                        put_collection_key(block, tag::COLLECTION, *count, key, stamp);
                        block.extend_from_slice(encoded);
                    }
                    Stored::Paged(..) => {
                        put_collection_key(block, tag::COLLECTION, *count, key, stamp);
                        value.value(source).put(block);
                    }
                }
                digest.add_stamped(key, value.fingerprint_at(source, 0), stamp);
                *count += 1;
                if block.len() >= end {
                    // Nothing is between a key and the same with a zero after it.
                    let mut next = data_key(space, key);
                    next.push(0);
                    *from = Some(next);
                    more = true;
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })?;
            if more {
                return Ok(true);
            }
            databases.pop();
        }
        put_counted_end(block, *count, digest.finish());
        Ok(false)
    }
}
