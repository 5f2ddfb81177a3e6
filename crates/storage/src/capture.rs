//! A snapshot while it is being taken: copy on write, by position.
//!
//! A cursor walks the positions upwards and copies what is there. A key that is about to change or to move
//! before the cursor has reached it is copied first, and its position marked. So what is at a position
//! that is neither passed nor marked is what was there when the snapshot began.

use crate::Digest;
use crate::entry::{Entry, Key, Table};
use crate::removals::Recorded;
use crate::snapshot::{
    RECORD_OVERHEAD_MAX, Record, put_collection_key, put_collection_part, put_end, put_entry, put_header,
    put_key, put_other_databases, put_program, put_recorded, put_removal, tag,
};
use crate::stamp::Stamp;
use std::collections::VecDeque;
use std::sync::Arc;
use syros_commands::Programs;
use syros_types::{Database, WallTime, key_hash};
use syros_values::{Garbage, Value, ValueParts};

/// Size of a piece of memory for records that wait: small enough to be given back soon, large enough
/// for the allocator not to matter.
const CHUNK_BYTES: usize = 64 * 1024;

/// A snapshot under way. A clone goes on independently with what its own table holds.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    /// What the database was when the snapshot began.
    database: Database,
    /// Which other databases had anything then: of the first database.
    others: u16,
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
    /// The large collection of which blocks have taken some parts.
    partial: Option<Partial>,
    /// The table that a FLUSHALL has taken out of use, if there was one. Nothing changes in it any more.
    frozen: Option<FrozenTable>,
    /// The entry that versions are recorded from; 0 if they are not.
    recorded_from: u64,
    /// The entries that have removed keys, the first last; those that blocks have taken are gone.
    removals: Vec<(usize, u64)>,
    /// Records of what is loaded; those that blocks have taken are gone.
    programs: Vec<Vec<u8>>,
    /// Of the records that blocks have taken.
    digest: Digest,
}

impl Capture {
    /// A snapshot of a table of `count` keys at this log time, which is that of this database. The table is not looked at.
    /// That of the first one says which other databases have anything, a bit for each.
    pub(crate) fn new(
        (database, others): (Database, u16),
        count: usize,
        time: WallTime,
        recorded: Option<&Recorded>,
        programs: &Programs,
    ) -> Self {
        let removals = recorded.into_iter().flat_map(|recorded| recorded.removals.iter());
        let mut removals: Vec<_> = removals.collect();
        removals.reverse();
        let mut digest = Digest::new(time);
        digest.enter(database);
        Self {
            database,
            others,
            recorded_from: recorded.map_or(0, |recorded| recorded.from),
            removals,
            programs: programs.records().collect(),
            count,
            time,
            header_written: false,
            cursor: 0,
            copied: vec![0; count.div_ceil(64)],
            waiting: PendingRecords::default(),
            partial: None,
            frozen: None,
            digest,
        }
    }

    /// What the database was when the snapshot began.
    pub(crate) const fn database(&self) -> Database {
        self.database
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

    /// Goes on with this table, which is no longer in use and takes so many bytes.
    pub(crate) fn freeze(&mut self, table: &Arc<Table>, bytes: usize) {
        if self.frozen.is_some() {
            return;
        }
        let bytes_each = bytes / table.len().max(1);
        self.frozen = Some(FrozenTable { table: Arc::clone(table), left: self.left(), bytes_each });
    }

    /// How many keys have not been copied.
    fn left(&self) -> usize {
        let (word, bit) = (self.cursor / 64, self.cursor % 64);
        let ahead = self.copied.iter().skip(word).map(|bits| bits.count_ones() as usize).sum::<usize>();
        let before = self.copied.get(word).map_or(0, |bits| (bits & ((1 << bit) - 1)).count_ones() as usize);
        self.count.saturating_sub(self.cursor) - (ahead - before)
    }

    /// See [`Engine::snapshot_block`](crate::Engine::snapshot_block); `table` is the one in use.
    ///
    /// Large collections that are no longer needed go to `garbage`.
    pub(crate) fn block(
        &mut self,
        table: &Table,
        bytes: usize,
        block: &mut Vec<u8>,
        garbage: &mut Garbage,
    ) -> bool {
        let end = block.len().saturating_add(bytes);
        if !self.header_written {
            self.header_written = true;
            put_header(block, self.count as u64, self.time);
            put_other_databases(block, self.others);
            put_recorded(block, self.recorded_from);
            self.digest.add_recorded(self.recorded_from);
        }
        loop {
            // Those that wait come first: they take memory.
            if !self.go_on(end, block, garbage)
                && !self.take_waiting(block)
                && !self.take_removal(block)
                && !self.take_program(block)
                && !self.copy_next(table, block)
            {
                put_end(block, self.digest.finish());
                return false;
            }
            if block.len() >= end {
                return true;
            }
        }
    }

    /// Adds a part of the large collection under way, as long as the block has room for; false if there is none.
    fn go_on(&mut self, end: usize, block: &mut Vec<u8>, garbage: &mut Garbage) -> bool {
        let Some(partial) = &mut self.partial else { return false };
        let mut elements = Vec::new();
        let rank = partial.parts.rank();
        partial.parts.put_part(end.saturating_sub(block.len()).min(CHUNK_BYTES), &mut elements);
        put_collection_part(block, partial.position as u64, rank, &elements);
        if partial.parts.is_complete()
            && let Some(partial) = self.partial.take()
        {
            self.digest.add_stamped(&partial.key, partial.parts.fingerprint(), partial.stamp);
            garbage.add_parts(partial.parts);
        }
        true
    }

    /// Gives up the large collection under way.
    pub(crate) fn give_up(&mut self, garbage: &mut Garbage) {
        if let Some(partial) = self.partial.take() {
            garbage.add_parts(partial.parts);
        }
    }

    /// Adds the record of an entry that has removed keys; false if there is none.
    fn take_removal(&mut self, block: &mut Vec<u8>) -> bool {
        let Some((part, entry)) = self.removals.pop() else { return false };
        put_removal(block, part, entry);
        self.digest.add_removal(part, entry);
        true
    }

    /// Adds a record of what is loaded; false if there is none.
    fn take_program(&mut self, block: &mut Vec<u8>) -> bool {
        let Some(record) = self.programs.pop() else { return false };
        put_program(block, &record);
        self.digest.add_program(&record);
        true
    }

    /// Adds a record that waits; false if there is none.
    fn take_waiting(&mut self, block: &mut Vec<u8>) -> bool {
        let Some(waiting) = self.waiting.pop(block, &mut self.digest) else { return false };
        if let Some(PendingCollection { position, key, value, stamp }) = waiting {
            let waiting_bytes = collection_bytes(&key, &value);
            self.collection(position, &key, &value, stamp, waiting_bytes, block);
        }
        true
    }

    /// Adds the record of a key with any value, or only the head of that if it has parts.
    fn collection(
        &mut self,
        position: usize,
        key: &[u8],
        value: &Value,
        stamp: Stamp,
        waiting_bytes: usize,
        block: &mut Vec<u8>,
    ) {
        let Some(parts) = ValueParts::of(value) else {
            put_entry(block, position as u64, key, value, stamp);
            return self.digest.add_stamped(key, value.fingerprint(), stamp);
        };
        put_collection_key(block, tag::COLLECTION_HEAD, position as u64, key, stamp);
        parts.put_head(block);
        self.partial = Some(Partial { position, key: Key::from_slice(key), stamp, parts, waiting_bytes });
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
        let mut collection = None;
        if let Ok(string) = entry.value().string() {
            put_key(block, position as u64, key, string, entry.stamp());
            self.digest.add_stamped(key, key_hash(string), entry.stamp());
        } else {
            collection = Some((key.clone(), entry.value().clone(), entry.stamp()));
        }
        self.cursor += 1;
        if let Some(frozen) = &mut self.frozen {
            frozen.left -= 1;
            // Not while a listing reads the table, too.
            let entry = Arc::get_mut(&mut frozen.table).and_then(|table| table.get_index_mut(position));
            entry.into_iter().for_each(|(_, entry)| entry.give_memory_back());
        }
        if let Some((key, value, stamp)) = collection {
            let waiting_bytes = if self.frozen.is_some() { collection_bytes(&key, &value) } else { 0 };
            self.collection(position, &key, &value, stamp, waiting_bytes, block);
        }
        true
    }

    /// See [`Engine::snapshot_waiting_bytes`](crate::Engine::snapshot_waiting_bytes).
    pub(crate) fn waiting_bytes(&self) -> usize {
        let partial = self.partial.as_ref().map_or(0, |partial| partial.waiting_bytes);
        self.waiting.bytes
            + partial
            + self.frozen.as_ref().map_or(0, |frozen| frozen.left * frozen.bytes_each)
    }

    /// About how many bytes are given back when it is dropped: what waits, and what has been taken of a table that is no
    /// longer in use.
    pub(crate) fn held_bytes(&self) -> usize {
        let frozen = self.frozen.as_ref().map_or(0, |frozen| frozen.table.len() * frozen.bytes_each);
        self.waiting_bytes().max(frozen)
    }
}

/// A large collection of which blocks have taken the head and perhaps some parts.
#[derive(Clone, Debug)]
struct Partial {
    position: usize,
    key: Key,
    stamp: Stamp,
    parts: ValueParts,
    /// What it takes only because of the snapshot, at most.
    waiting_bytes: usize,
}

/// A table that is no longer in use but for the snapshot.
#[derive(Clone, Debug)]
struct FrozenTable {
    table: Arc<Table>,
    /// How many keys are still to be copied.
    left: usize,
    /// Memory of a key with its value, on average: to look at all of them would take long.
    bytes_each: usize,
}

/// Records that no block has taken yet.
#[derive(Clone, Debug, Default)]
struct PendingRecords {
    pieces: VecDeque<Pending>,
    /// So many bytes of the first piece have been taken, if that has records.
    taken: usize,
    /// Sum of what the pieces take, without what has been taken.
    bytes: usize,
}

/// Something that no block has taken yet.
#[derive(Clone, Debug)]
enum Pending {
    /// Whole records of keys with strings, at least one.
    Records(Vec<u8>),
    /// A key with a collection, of which this is a clone: as long as nothing is done to the key's own one, the two share
    /// their memory.
    Collection(PendingCollection),
}

/// A key with a collection that no block has taken yet.
#[derive(Clone, Debug)]
struct PendingCollection {
    position: usize,
    key: Key,
    value: Value,
    stamp: Stamp,
}

impl PendingRecords {
    fn push(&mut self, position: usize, key: &[u8], entry: &Entry) {
        let Ok(string) = entry.value().string() else {
            let (value, key) = (entry.value().clone(), Key::from_slice(key));
            self.bytes += collection_bytes(&key, &value);
            let stamp = entry.stamp();
            let collection = PendingCollection { position, key, value, stamp };
            return self.pieces.push_back(Pending::Collection(collection));
        };
        let length_max = RECORD_OVERHEAD_MAX + key.len() + string.len();
        let has_room = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= length_max;
        if !matches!(self.pieces.back(), Some(Pending::Records(chunk)) if has_room(chunk)) {
            let chunk = Vec::with_capacity(length_max.max(CHUNK_BYTES));
            self.pieces.push_back(Pending::Records(chunk));
        }
        let Some(Pending::Records(chunk)) = self.pieces.back_mut() else { return };
        let before = chunk.len();
        put_key(chunk, position as u64, key, string, entry.stamp());
        self.bytes += chunk.len() - before;
    }

    /// Moves the first record to `block` and adds it to `digest`, or hands out the first collection; `None` if there is
    /// nothing.
    fn pop(&mut self, block: &mut Vec<u8>, digest: &mut Digest) -> Option<Option<PendingCollection>> {
        if let Pending::Records(chunk) = self.pieces.front()? {
            let start = &chunk[self.taken..];
            let mut rest = start;
            let Ok(Record::Key { key, value, stamp, .. }) = Record::take(&mut rest) else {
                unreachable!("only records of keys with strings wait");
            };
            digest.add_stamped(key, key_hash(value), stamp);
            let length = start.len() - rest.len();
            block.extend_from_slice(&start[..length]);
            self.bytes -= length;
            self.taken += length;
            if !rest.is_empty() {
                return Some(None);
            }
        }
        self.taken = 0;
        match self.pieces.pop_front()? {
            Pending::Records(_) => Some(None),
            Pending::Collection(collection) => {
                self.bytes -= collection_bytes(&collection.key, &collection.value);
                Some(Some(collection))
            }
        }
    }
}

/// What a collection that waits takes, at most: how much of it is also in the table, nobody knows.
fn collection_bytes(key: &[u8], value: &Value) -> usize {
    size_of::<Pending>() + key.len() + value.memory_bytes()
}
