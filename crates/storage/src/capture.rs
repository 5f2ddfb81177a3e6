//! A snapshot while it is being taken: copy on write, by position.
//!
//! A cursor walks the positions upwards and copies what is there. A key that is about to change or to move
//! before the cursor has reached it is copied first, and its position marked. So what is at a position
//! that is neither passed nor marked is what was there when the snapshot began.

use crate::Digest;
use crate::entry::{ENTRY_BYTES, Entry, Table};
use crate::snapshot::{RECORD_OVERHEAD_MAX, Record, put_end, put_header, put_key};
use core::num::NonZeroU64;
use std::collections::VecDeque;
use syros_types::WallTime;

/// Size of a piece of memory for records that wait: small enough to be given back soon, large enough
/// for the allocator not to matter.
const CHUNK_BYTES: usize = 64 * 1024;

/// A snapshot under way. A clone goes on independently with what its own table holds.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    /// Number of keys when the snapshot began.
    count: usize,
    /// Log time when the snapshot began.
    time: WallTime,
    header_written: bool,
    /// All positions before this one have been copied.
    cursor: usize,
    /// A bit for every position below `count`: its key has been copied ahead of the cursor. Says nothing
    /// about positions before the cursor.
    copied: Vec<u64>,
    /// What has been copied ahead of the cursor.
    waiting: PendingRecords,
    /// The table that a FLUSHALL has taken out of use, if there was one. Nothing changes in it any more.
    frozen: Option<FrozenTable>,
    /// Of the records that blocks have taken.
    digest: Digest,
}

impl Capture {
    /// A snapshot of a table of `count` keys at this log time. The table is not looked at.
    pub(crate) fn new(count: usize, time: WallTime) -> Self {
        Self {
            count,
            time,
            header_written: false,
            cursor: 0,
            copied: vec![0; count.div_ceil(64)],
            waiting: PendingRecords::default(),
            frozen: None,
            digest: Digest::new(time),
        }
    }

    /// True if the key at this position is to be copied.
    fn wants(&self, position: usize) -> bool {
        (self.cursor..self.count).contains(&position)
            && self.copied[position / 64] >> (position % 64) & 1 == 0
    }

    /// Copies the key at `position` of the table in use if that has not been done. To be called before
    /// anything of it changes, its position included.
    pub(crate) fn preserve(&mut self, position: usize, key: &[u8], entry: &Entry) {
        if self.frozen.is_none() && self.wants(position) {
            self.copied[position / 64] |= 1 << (position % 64);
            self.waiting.push(position, key, entry);
        }
    }

    /// Goes on with this table, which is no longer in use.
    pub(crate) fn freeze(&mut self, mut table: Table) {
        if self.frozen.is_some() {
            return;
        }
        let mut bytes = 0;
        for (position, (key, entry)) in table.iter_mut().enumerate() {
            if self.wants(position) {
                bytes += frozen_bytes(key, entry);
            } else {
                entry.give_memory_back();
            }
        }
        self.frozen = Some(FrozenTable { table, bytes });
    }

    /// See [`Engine::snapshot_block`](crate::Engine::snapshot_block); `table` is the one in use.
    pub(crate) fn block(&mut self, table: &Table, bytes: usize, block: &mut Vec<u8>) -> bool {
        let end = block.len().saturating_add(bytes);
        if !self.header_written {
            self.header_written = true;
            put_header(block, self.count as u64, self.time);
        }
        loop {
            // Those that wait come first: they take memory.
            if !self.waiting.pop(block, &mut self.digest) && !self.copy_next(table, block) {
                put_end(block, self.digest.finish());
                return false;
            }
            if block.len() >= end {
                return true;
            }
        }
    }

    /// Copies the next key that has not been; false if there is none.
    fn copy_next(&mut self, table: &Table, block: &mut Vec<u8>) -> bool {
        let table = self.frozen.as_ref().map_or(table, |frozen| &frozen.table);
        // What was removed from the end was copied before.
        let end = self.count.min(table.len());
        while self.cursor < end {
            let wanted = !self.copied[self.cursor / 64] >> (self.cursor % 64);
            if wanted == 0 {
                self.cursor = (self.cursor / 64 + 1) * 64;
                continue;
            }
            self.cursor += wanted.trailing_zeros() as usize;
            break;
        }
        let position = self.cursor;
        // Bits at and above `count` are zeros too.
        let Some((key, entry)) = table.get_index(position).filter(|_| position < end) else { return false };
        put_key(block, position as u64, key, entry.value(), entry.expiry());
        self.digest.add(key, entry.value(), entry.expiry().map(NonZeroU64::get));
        self.cursor += 1;
        if let Some(frozen) = &mut self.frozen
            && let Some((key, entry)) = frozen.table.get_index_mut(position)
        {
            frozen.bytes -= frozen_bytes(key, entry);
            entry.give_memory_back();
        }
        true
    }

    /// See [`Engine::snapshot_waiting_bytes`](crate::Engine::snapshot_waiting_bytes).
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.bytes + self.frozen.as_ref().map_or(0, |frozen| frozen.bytes)
    }
}

/// A table that is no longer in use but for the snapshot.
#[derive(Clone, Debug)]
struct FrozenTable {
    table: Table,
    /// Memory of the keys that are still to be copied.
    bytes: usize,
}

fn frozen_bytes(key: &[u8], entry: &Entry) -> usize {
    ENTRY_BYTES + key.len() + entry.value().len()
}

/// Records that no block has taken yet.
#[derive(Clone, Debug, Default)]
struct PendingRecords {
    /// Whole records each, and none empty.
    chunks: VecDeque<Vec<u8>>,
    /// So many bytes of the first chunk have been taken.
    taken: usize,
    /// Sum of the lengths of the chunks, without what has been taken.
    bytes: usize,
}

impl PendingRecords {
    fn push(&mut self, position: usize, key: &[u8], entry: &Entry) {
        let length_max = RECORD_OVERHEAD_MAX + key.len() + entry.value().len();
        let room = |chunk: &Vec<u8>| chunk.capacity() - chunk.len();
        if self.chunks.back().is_none_or(|chunk| room(chunk) < length_max) {
            self.chunks.push_back(Vec::with_capacity(length_max.max(CHUNK_BYTES)));
        }
        let Some(chunk) = self.chunks.back_mut() else { return };
        let before = chunk.len();
        put_key(chunk, position as u64, key, entry.value(), entry.expiry());
        self.bytes += chunk.len() - before;
    }

    /// Moves the first record to `block` and adds it to `digest`; false if there is none.
    fn pop(&mut self, block: &mut Vec<u8>, digest: &mut Digest) -> bool {
        let Some(chunk) = self.chunks.front() else { return false };
        let start = &chunk[self.taken..];
        let mut rest = start;
        match Record::take(&mut rest) {
            Ok(Record::Key { key, value, expiry, .. }) => digest.add(key, value, expiry.map(NonZeroU64::get)),
            other => unreachable!("only records of keys wait: {other:?}"),
        }
        let length = start.len() - rest.len();
        block.extend_from_slice(&start[..length]);
        self.bytes -= length;
        self.taken += length;
        if rest.is_empty() {
            self.chunks.pop_front();
            self.taken = 0;
        }
        true
    }
}
