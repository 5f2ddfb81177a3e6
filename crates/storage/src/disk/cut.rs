//! A snapshot being cut into blocks, on any thread, while the engine goes on.

use super::Shared;
use super::layout::{StoreKey, Stored, data_begin, data_key};
use crate::Digest;
use crate::snapshot::{
    put_collection_key, put_counted_end, put_key, put_open_header, put_program, put_recorded, put_removal,
    tag,
};
use crate::store::{Store, StoreError};
use core::fmt;
use core::ops::ControlFlow;
use std::sync::Arc;
use syros_types::WallTime;

/// The state of an engine as it was at one moment, to be taken in blocks. As long as it is there, the store keeps
/// what was overwritten or removed since.
pub struct Cut<S: Store> {
    shared: Arc<Shared<S>>,
    view: S::View,
    generation: u32,
    time: WallTime,
    header_written: bool,
    /// Where the next block begins in the store.
    from: StoreKey,
    count: u64,
    /// The entry that versions are recorded from; 0 if they are not.
    recorded_from: u64,
    /// The entries that have removed keys; those that blocks have taken are gone.
    removals: Vec<(usize, u64)>,
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
        Self {
            view: shared.store.view(),
            generation: shared.generation(),
            from: data_begin(shared.generation()),
            time,
            header_written: false,
            count: 0,
            recorded_from: shared.recorded_from(),
            removals: shared.removals.iter().collect(),
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
        let Self { shared, view, generation, time, header_written, from, count, digest, .. } = self;
        let end = block.len().saturating_add(bytes);
        if !*header_written {
            *header_written = true;
            put_open_header(block, *time);
            put_recorded(block, self.recorded_from);
            digest.add_recorded(self.recorded_from);
        }
        while let Some((part, entry)) = self.removals.pop() {
            put_removal(block, part, entry);
            digest.add_removal(part, entry);
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
        let mut more = false;
        shared.walk(Some(view), (*generation, time.as_millis()), &from.clone(), |_, key, value, stamp| {
            match value {
                Stored::String(string) => put_key(block, *count, key, string, stamp),
                Stored::Collection(encoded) => {
                    put_collection_key(block, tag::COLLECTION, *count, key, stamp);
                    block.extend_from_slice(encoded);
                }
            }
            digest.add_stamped(key, value.fingerprint(), stamp);
            *count += 1;
            if block.len() >= end {
                // Nothing is between a key and the same with a zero after it.
                *from = data_key(*generation, key);
                from.push(0);
                more = true;
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        if !more {
            put_counted_end(block, *count, digest.finish());
        }
        Ok(more)
    }
}
