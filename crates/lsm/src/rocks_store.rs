//! A [`Store`] on RocksDB, for comparison and for those who trust it more.
//!
//! **Checkpoints.** Nothing is written to RocksDB's log. [`Store::seal`] asks for a flush and does not wait: RocksDB
//! switches to another memtable at once, since nobody writes. [`Store::flush`] waits until no switched one is left.
//! Memtables become durable in their order, so what is found later was sealed, and perhaps not the last flushed
//! but a later one.
//!
//! RocksDB may not flush by itself, then. It would if a memtable were full (its size is out of reach), if all of them
//! were (there is no limit), if a log were full (there is none), when it is closed (an option that only its parser of
//! options knows) and when it recovers from errors in the background, which is switched off but for a full disk:
//! after that it flushes everything. So each memtable has a mark, from its first entry on, that its seal takes away as
//! its last one, and a store in which the mark is found is refused. (It recovers only if as much is free as a memtable
//! might take, which is out of reach, too: after a full disk the store has to be opened again.)

use crate::dropped_ranges::DroppedRanges;
use crate::views::{View, Views};
use core::fmt;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering};
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, Error, ErrorKind, FlushOptions, IteratorMode,
    LiveFile, MergeOperands, Options, ReadOptions, Snapshot, WaitForCompactOptions, WriteBatch, WriteOptions,
};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use syros_storage::{Change, Pressure, Store, StoreError, merged};

/// Far above what is ever unflushed.
const MEMTABLE_BYTES: usize = 32 << 30;

/// As good as no limit.
const MANY: i32 = 1 << 20;

/// A key that is there from each seal on until the next one. No other begins like this.
const UNSEALED: &[u8] = b"\xffunsealed";

/// How long a flush sleeps before it looks again.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// How often it looks while nobody flushes: long enough for a thread to come.
const LOOKS_MAX: u32 = 500;

/// How a store lies on the disk, and what it may take of memory.
#[derive(Clone, Debug)]
pub struct RocksOptions {
    /// Its directory, which has nothing else.
    pub path: PathBuf,
    /// The directory that `path` goes through, if it does so by an open handle (`/proc/self/fd/N`): it stays open for as
    /// long as the store.
    pub keep_open: Option<Arc<File>>,
    /// Bytes of blocks, filters and indexes that are kept in memory.
    pub cache_bytes: usize,
    /// Most tables whose files are kept open.
    pub open_files: usize,
    /// Bits of a filter per key.
    pub filter_bits: f64,
    /// Bytes of a block, before compression.
    pub block_bytes: usize,
    /// Bytes of a table that compaction writes.
    pub table_bytes: u64,
    /// Tables of the first level that are merged into the next.
    pub l0_tables: u8,
    /// Threads for flushes and compactions.
    pub threads: u8,
    /// Compress all levels but the first.
    pub compress: bool,
}

impl RocksOptions {
    /// The usual ones.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            keep_open: None,
            cache_bytes: 64 << 20,
            open_files: 512,
            filter_bits: 10.0,
            block_bytes: 4096,
            table_bytes: 64 << 20,
            l0_tables: 4,
            threads: 2,
            compress: true,
        }
    }

    fn build(&self, cache: &Cache) -> Result<Options, StoreError> {
        // The crate has no functions for these.
        let hidden =
            "avoid_flush_during_shutdown=true;avoid_flush_during_recovery=true;max_bgerror_resume_count=0";
        let mut options =
            Options::default().get_options_from_string(hidden).map_err(error("open the store"))?;
        options.create_if_missing(true);
        options.set_write_buffer_size(MEMTABLE_BYTES);
        options.set_max_write_buffer_number(MANY);
        options.set_max_total_wal_size(u64::MAX);
        options.set_arena_block_size(1 << 20);
        // Whoever writes waits by itself, as long as there is too much to do.
        options.set_level_zero_file_num_compaction_trigger(i32::from(self.l0_tables));
        options.set_level_zero_slowdown_writes_trigger(MANY);
        options.set_level_zero_stop_writes_trigger(MANY);
        options.set_soft_pending_compaction_bytes_limit(0);
        options.set_hard_pending_compaction_bytes_limit(0);
        options.set_max_background_jobs(i32::from(self.threads));
        options.set_target_file_size_base(self.table_bytes);
        options.set_max_bytes_for_level_base(self.table_bytes * u64::from(self.l0_tables));
        options.set_max_open_files(i32::try_from(self.open_files).unwrap_or(i32::MAX));
        options.set_keep_log_file_num(2);
        let deeper = if self.compress { DBCompressionType::Lz4 } else { DBCompressionType::None };
        let levels: Vec<_> = [DBCompressionType::None].into_iter().chain([deeper; 6]).collect();
        options.set_compression_per_level(&levels);
        let mut tables = BlockBasedOptions::default();
        tables.set_block_cache(cache);
        tables.set_block_size(self.block_bytes);
        tables.set_bloom_filter(self.filter_bits, false);
        tables.set_cache_index_and_filter_blocks(true);
        tables.set_pin_l0_filter_and_index_blocks_in_cache(true);
        options.set_block_based_table_factory(&tables);
        let full = |_: &[u8], old: Option<&[u8]>, operands: &MergeOperands| Some(merged(old, operands));
        // What operands do together cannot be said in one of them.
        options.set_merge_operator("syros", full, |_: &[u8], _: Option<&[u8]>, _: &MergeOperands| None);
        Ok(options)
    }
}

/// An error of RocksDB, as ours.
fn error(doing: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| {
        let problem = error.to_string();
        match error.kind() {
            ErrorKind::IOError if problem.contains("No space left") => StoreError::full(doing, problem),
            ErrorKind::Corruption => StoreError::damaged(doing, problem),
            _ => StoreError::other(doing, problem),
        }
    }
}

self_cell::self_cell!(
    /// A snapshot, with the store that it is of.
    struct Held {
        owner: Arc<DB>,
        #[covariant]
        dependent: Snapshot,
    }
);

/// The store as it was at some moment. What was overwritten or removed since is kept, on disk or in memory, until
/// this is dropped.
pub struct RocksView {
    snapshot: Held,
    _view: View,
}

impl fmt::Debug for RocksView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RocksView").field(&self.snapshot.borrow_dependent().sequence_number()).finish()
    }
}

/// A store in a directory.
pub struct RocksStore {
    db: Arc<DB>,
    cache: Cache,
    views: Arc<Views>,
    dropped_ranges: DroppedRanges,
    /// Errors in the background that were told.
    told: AtomicU64,
    /// What writes by itself waits for seals.
    sealing: Mutex<()>,
    /// Dropped after the database, which works by paths.
    _keep_open: Option<Arc<File>>,
}

impl fmt::Debug for RocksStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksStore").field("path", &self.db.path()).finish_non_exhaustive()
    }
}

fn unlogged() -> WriteOptions {
    let mut options = WriteOptions::default();
    options.disable_wal(true);
    options
}

impl RocksStore {
    /// Opens the store in a directory; an empty one if nothing is there.
    ///
    /// # Errors
    /// What the disk says, or that what is there is damaged, or no checkpoint, or in use by somebody else.
    pub fn open(options: &RocksOptions) -> Result<Self, StoreError> {
        let doing = "open the store";
        let cache = Cache::new_hyper_clock_cache(options.cache_bytes, 0);
        let db = DB::open(&options.build(&cache)?, &options.path).map_err(error(doing))?;
        if db.get(UNSEALED).map_err(error(doing))?.is_some() {
            return Err(StoreError::damaged(
                doing,
                "it holds what was not sealed: something went wrong before",
            ));
        }
        db.put_opt(UNSEALED, [], &unlogged()).map_err(error(doing))?;
        let views = Arc::new(Views::default());
        Ok(Self {
            db: Arc::new(db),
            cache,
            dropped_ranges: DroppedRanges::new(Arc::clone(&views)),
            views,
            told: AtomicU64::new(0),
            sealing: Mutex::default(),
            _keep_open: options.keep_open.clone(),
        })
    }

    /// Waits until there is nothing to merge.
    ///
    /// # Errors
    /// What the disk says.
    pub fn wait_for_compaction(&self) -> Result<(), StoreError> {
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(error("compact"))
    }

    fn sealing(&self) -> MutexGuard<'_, ()> {
        self.sealing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self, property: &str) -> u64 {
        self.db.property_int_value(property).ok().flatten().unwrap_or_default()
    }

    /// Deletes the tables that have nothing but dropped keys, under nobody's view.
    fn drop_unseen_ranges(&self) -> Result<(), StoreError> {
        for range in self.dropped_ranges.due() {
            self.db.delete_file_in_range(&range.from, &range.until).map_err(error("drop tables"))?;
            // Those that are just being merged are left out, and so are the youngest: they are dropped later.
            let is_left = |table: &LiveFile| {
                let first = table.start_key.as_ref().is_some_and(|first| *first >= range.from);
                first && table.end_key.as_ref().is_some_and(|last| *last < range.until)
            };
            if !self.db.live_files().map_err(error("list tables"))?.iter().any(is_left) {
                self.dropped_ranges.dropped(&range);
            }
        }
        Ok(())
    }
}

impl Store for RocksStore {
    type Value = Vec<u8>;
    type View = RocksView;

    const PAGED_FROM: usize = crate::PAGED_FROM;

    fn merges(&self) -> bool {
        true
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.db.get(key).map_err(error("read"))
    }

    fn write(&self, changes: impl Iterator<Item = (impl AsRef<[u8]>, Change)>) -> Result<(), StoreError> {
        let mut batch = WriteBatch::default();
        for (key, change) in changes {
            match change {
                Change::Put(value) => batch.put(key, value),
                Change::Delete => batch.delete(key),
                Change::Merge(operands) => operands.iter().for_each(|operand| batch.merge(&key, operand)),
            }
        }
        self.db.write_opt(batch, &unlogged()).map_err(error("write"))
    }

    fn view(&self) -> RocksView {
        let view = self.views.open(self.db.latest_sequence_number());
        RocksView { snapshot: Held::new(Arc::clone(&self.db), |db| db.snapshot()), _view: view }
    }

    fn get_in(&self, view: &RocksView, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let mut options = ReadOptions::default();
        options.set_snapshot(view.snapshot.borrow_dependent());
        self.db.get_opt(key, &options).map_err(error("read"))
    }

    fn walk(
        &self,
        view: Option<&RocksView>,
        from: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut options = ReadOptions::default();
        if let Some(view) = view {
            options.set_snapshot(view.snapshot.borrow_dependent());
        }
        for entry in self.db.iterator_opt(IteratorMode::From(from, Direction::Forward), options) {
            let (key, value) = entry.map_err(error("read"))?;
            if *key != *UNSEALED && visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn seal(&self) -> Result<(), StoreError> {
        let _sealing = self.sealing();
        self.db.delete_opt(UNSEALED, &unlogged()).map_err(error("seal"))?;
        let mut options = FlushOptions::default();
        options.set_wait(false);
        self.db.flush_opt(&options).map_err(error("seal"))?;
        self.db.put_opt(UNSEALED, [], &unlogged()).map_err(error("seal"))
    }

    fn flush(&self) -> Result<(), StoreError> {
        let mut idle = 0;
        while self.number("rocksdb.num-immutable-mem-table") > 0 {
            let errors = self.number("rocksdb.background-errors");
            let failed = self.told.swap(errors, Ordering::AcqRel) != errors;
            idle = if self.number("rocksdb.num-running-flushes") == 0 { idle + 1 } else { 0 };
            if failed || idle > LOOKS_MAX {
                // RocksDB does not say how: most likely the disk is full.
                return Err(StoreError::full("flush", "RocksDB failed in the background"));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn compact(&self) -> Result<bool, StoreError> {
        // RocksDB does by itself what is to be done.
        self.drop_unseen_ranges()?;
        Ok(false)
    }

    fn forget(&self, from: &[u8], until: &[u8]) -> Result<(), StoreError> {
        let mut batch = WriteBatch::default();
        batch.delete_range(from, until);
        let sealing = self.sealing();
        self.db.write_opt(batch, &unlogged()).map_err(error("forget"))?;
        drop(sealing);
        self.dropped_ranges.add(from, until, self.db.latest_sequence_number());
        self.drop_unseen_ranges()
    }

    fn pressure(&self) -> Pressure {
        Pressure {
            unflushed_bytes: self.number("rocksdb.cur-size-all-mem-tables"),
            runs: usize::try_from(self.number("rocksdb.num-files-at-level0")).unwrap_or(usize::MAX),
            cache_bytes: self.cache.get_usage() as u64,
        }
    }

    fn approximate_len(&self) -> usize {
        usize::try_from(self.number("rocksdb.estimate-num-keys")).unwrap_or(usize::MAX)
    }

    fn disk_bytes(&self) -> u64 {
        self.number("rocksdb.total-sst-files-size")
    }
}
