//! A [`Store`] on the `lsm-tree` crate: memtables, leveled runs of tables, in Rust alone.
//!
//! **Checkpoints.** The tree has no log. [`Store::seal`] closes its memtable; [`Store::flush`] writes all closed ones
//! into tables, syncs these, and then one new version of the tree that has them all. A tree that is opened again is
//! at the last version, and has nothing else.
//!
//! **Numbers.** Each batch has a number, and so has each version of the tree. The tree would keep every version,
//! with its memtables, for as long as a view is older than the next one: a long view would keep all that is
//! written meanwhile in memory. So versions are numbered apart, below [`FIRST_BATCH`], and count as older than all
//! batches: a view is a number alone, reads through the newest version, and what it sees is kept in there.

use crate::dropped_ranges::{DroppedRanges, Filters};
use crate::version_filter::VersionFilter;
use crate::views::{View, Views};
use core::fmt;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering};
use lsm_tree::compaction::Leveled;
use lsm_tree::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use lsm_tree::{
    AbstractTree, AnyTree, Cache, CompressionType, Config, DescriptorTable, Guard as _, InternalValue,
    Memtable, SeqNo, SequenceNumberCounter, TableId, Tree, UserValue, ValueType,
};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use syros_storage::{Change, Pressure, Store, StoreError};

/// The number of the first batch: above those of all versions of a tree. A version takes longer than a
/// millisecond, so that is months of nothing else.
const FIRST_BATCH: SeqNo = 1 << 40;

/// Whoever reads at this number sees all batches.
const NEWEST: SeqNo = SeqNo::MAX;

/// Longest key: its length is written in 16 bits.
const KEY_BYTES_MAX: usize = u16::MAX as usize;

/// Most runs: their number is written in 8 bits.
const RUNS_MAX: usize = 250;

/// How a store lies on the disk, and what it may take of memory.
#[derive(Clone, Debug)]
pub struct LsmOptions {
    /// Its directory, which has nothing else.
    pub path: PathBuf,
    /// The directory that `path` goes through, if it does so by an open handle (`/proc/self/fd/N`): it stays open for as
    /// long as the store.
    pub keep_open: Option<Arc<File>>,
    /// Bytes of blocks that are kept in memory.
    pub cache_bytes: u64,
    /// Most tables whose files are kept open. Reading from others opens them each time.
    pub open_files: usize,
    /// Bits of a filter per key: each halves, about, the tables that are looked into in vain.
    pub filter_bits: f32,
    /// Bytes of a block, before compression.
    pub block_bytes: u32,
    /// Bytes of a table that compaction writes. Everybody waits while the last of them is synced.
    pub table_bytes: u64,
    /// Tables of the first level that are merged into the next.
    pub l0_tables: u8,
    /// How much larger each level is than the one before it.
    pub level_ratio: f32,
    /// Compress all levels but the first.
    pub compress: bool,
}

impl LsmOptions {
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
            level_ratio: 10.0,
            compress: true,
        }
    }
}

/// A store in a directory.
pub struct LsmStore {
    tree: Tree,
    /// Dropped after the tree, which may remove files by their path when it is dropped.
    options: LsmOptions,
    cache: Arc<Cache>,
    /// The number of the next batch.
    next: AtomicU64,
    views: Arc<Views>,
    dropped_ranges: Arc<DroppedRanges>,
    /// Memtables that were closed and are not in tables.
    sealed: Mutex<Vec<Arc<Memtable>>>,
    /// Flushes come one after the other.
    flushing: Mutex<()>,
    /// Read by whoever writes tables.
    tables: RwLock<()>,
    /// Tables from this one on may be what failed attempts have left.
    leftovers: Mutex<Option<TableId>>,
    /// As long as it is open, no other process opens the directory.
    _lock: File,
}

impl fmt::Debug for LsmStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LsmStore").field("path", &self.options.path).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn io_error(doing: &'static str, error: &io::Error) -> StoreError {
    match error.kind() {
        // It looks for nothing that it has not written, and at no place before the beginning of a file that is whole.
        io::ErrorKind::NotFound
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput => StoreError::damaged(doing, error.to_string()),
        _ => StoreError::io(doing, error),
    }
}

/// An error of the tree, as ours.
fn error(doing: &'static str) -> impl Fn(lsm_tree::Error) -> StoreError {
    move |error| match error {
        lsm_tree::Error::Io(error) => io_error(doing, &error),
        other => StoreError::damaged(doing, format!("{other:?}")),
    }
}

fn damaged(problem: impl Into<String>) -> StoreError {
    StoreError::damaged("open the store", problem)
}

/// Looks at what the tree takes on trust: that its list of tables is the one that was written, and that there is
/// one if there are tables. It deletes tables that are not on the list.
fn check(path: &Path) -> Result<(), StoreError> {
    let doing = "open the store";
    let current = match fs::read(path.join("current")) {
        Ok(current) => current,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let has_tables =
                fs::read_dir(path.join("tables")).is_ok_and(|mut tables| tables.next().is_some());
            return if has_tables { Err(damaged("it has tables and no list of them")) } else { Ok(()) };
        }
        Err(error) => return Err(io_error(doing, &error)),
    };
    let Some((id, checksum)) = current.split_first_chunk::<8>() else {
        return Err(damaged("the name of its list of tables is cut off"));
    };
    let list = path.join(format!("v{}", u64::from_le_bytes(*id)));
    let list = fs::read(list).map_err(|error| io_error(doing, &error))?;
    let expected = xxhash_rust::xxh3::xxh3_128(&list).to_le_bytes();
    if checksum.first_chunk() != Some(&expected) {
        return Err(damaged("its list of tables is not what was written"));
    }
    Ok(())
}

impl LsmStore {
    /// Opens the store in a directory; an empty one if nothing is there. The directory is created if its parent exists.
    ///
    /// # Errors
    /// What the disk says, or that what is there is damaged, or in use by somebody else.
    pub fn open(options: LsmOptions) -> Result<Self, StoreError> {
        let doing = "open the store";
        match fs::create_dir(&options.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_error(doing, &error));
            }
            _ => {}
        }
        let lock = File::create(options.path.join("lock")).map_err(|error| io_error(doing, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::other(doing, "somebody else has opened it"));
            }
            Err(TryLockError::Error(error)) => return Err(io_error(doing, &error)),
        }
        check(&options.path)?;
        let cache = Arc::new(Cache::with_capacity_bytes(options.cache_bytes));
        let views = Arc::new(Views::default());
        let dropped_ranges = Arc::new(DroppedRanges::new(Arc::clone(&views)));
        let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(options.filter_bits));
        let compression = if options.compress { CompressionType::Lz4 } else { CompressionType::None };
        // Counted by the tree alone: the numbers of its versions.
        let (versions, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
        let config = Config::new(&options.path, versions, visible)
            .use_cache(Arc::clone(&cache))
            .use_descriptor_table(Some(Arc::new(DescriptorTable::new(options.open_files))))
            .filter_policy(FilterPolicy::all(filter))
            .data_block_size_policy(BlockSizePolicy::all(options.block_bytes))
            .data_block_compression_policy(CompressionPolicy::new([CompressionType::None, compression]))
            .with_compaction_filter_factory(Some(Arc::new(Filters(Arc::clone(&dropped_ranges)))));
        // It takes some kinds of damage for impossible.
        let opened = catch_unwind(AssertUnwindSafe(|| config.open()));
        let AnyTree::Standard(tree) = opened.map_err(|_| damaged("it panicked"))?.map_err(error(doing))?
        else {
            return Err(damaged("it is of another kind"));
        };
        let next = tree.get_highest_persisted_seqno().map_or(FIRST_BATCH, |highest| highest + 1);
        Ok(Self {
            options,
            tree,
            cache,
            next: AtomicU64::new(next.max(FIRST_BATCH)),
            views,
            dropped_ranges,
            sealed: Mutex::default(),
            flushing: Mutex::default(),
            tables: RwLock::default(),
            leftovers: Mutex::default(),
            _lock: lock,
        })
    }

    /// Does something that writes tables. If it fails, what it has written is deleted as soon as nobody else is
    /// writing any: otherwise attempts on a full disk would keep it full.
    fn writing<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.sweep();
        let first = self.tree.next_table_id();
        let result = {
            let _writing = self.tables.read().unwrap_or_else(PoisonError::into_inner);
            work()
        };
        if result.is_err() {
            let mut leftovers = lock(&self.leftovers);
            *leftovers = Some(leftovers.map_or(first, |old| old.min(first)));
            drop(leftovers);
            self.sweep();
        }
        result
    }

    /// Deletes what failed attempts have left. A table that was merged away since the first of them goes as well,
    /// and with it, if it is unlucky, a walk that has begun before that.
    fn sweep(&self) {
        let mut leftovers = lock(&self.leftovers);
        let Some(first) = *leftovers else { return };
        let Ok(_nobody_writes) = self.tables.try_write() else { return };
        let listed: BTreeSet<TableId> =
            self.tree.current_version().iter_tables().map(lsm_tree::Table::id).collect();
        let Ok(files) = fs::read_dir(self.options.path.join("tables")) else { return };
        for file in files.flatten() {
            let id = file.file_name().to_str().and_then(|name| name.parse::<TableId>().ok());
            if id.is_some_and(|id| id >= first && !listed.contains(&id)) {
                // If not now, when the store is opened again.
                let _ = fs::remove_file(file.path());
            }
        }
        *leftovers = None;
    }

    /// Drops the tables that have nothing but dropped keys.
    fn drop_unseen_ranges(&self) -> Result<(), StoreError> {
        for range in self.dropped_ranges.due() {
            let dropped = self.tree.drop_range(range.from.as_slice()..range.until.as_slice());
            dropped.map_err(error("drop tables"))?;
            self.dropped_ranges.dropped(&range);
        }
        Ok(())
    }

    /// Writes sealed memtables into tables, and the tables into a version.
    fn flush_sealed(&self, sealed: &[Arc<Memtable>]) -> lsm_tree::Result<()> {
        // Views that come later are of later moments than all that was sealed.
        let views = self.views.all();
        let entries = sealed.iter().map(|memtable| memtable.iter().map(Ok)).collect();
        let entries = VersionFilter::new(lsm_tree::merge::Merger::new(entries), views);
        let Some((tables, _)) = self.tree.flush_to_tables(entries)? else { return Ok(()) };
        let sealed: Vec<_> = sealed.iter().map(|memtable| memtable.id()).collect();
        self.tree.register_tables(&tables, None, None, &sealed, FIRST_BATCH)
    }
}

impl Store for LsmStore {
    type Value = UserValue;
    type View = View;

    const PAGED_FROM: usize = crate::PAGED_FROM;

    fn merges(&self) -> bool {
        false
    }

    fn get(&self, key: &[u8]) -> Result<Option<UserValue>, StoreError> {
        self.tree.get(key, NEWEST).map_err(error("read"))
    }

    fn write(&self, changes: impl Iterator<Item = (impl AsRef<[u8]>, Change)>) -> Result<(), StoreError> {
        let number = self.next.fetch_add(1, Ordering::AcqRel);
        // Nobody seals meanwhile: it stays the active one.
        let memtable = self.tree.active_memtable();
        // In order, each finds its place near that of the last.
        let mut changes: Vec<_> = changes.collect();
        changes.sort_unstable_by(|(a, _), (b, _)| a.as_ref().cmp(b.as_ref()));
        for (key, change) in changes {
            let key = key.as_ref();
            let problem = match change {
                _ if key.is_empty() || key.len() > KEY_BYTES_MAX => format!("a key of {} bytes", key.len()),
                Change::Put(value) => {
                    memtable.insert(InternalValue::from_components(key, value, number, ValueType::Value));
                    continue;
                }
                Change::Delete => {
                    memtable.insert(InternalValue::new_tombstone(key, number));
                    continue;
                }
                Change::Merge(_) => "a merge".to_string(),
            };
            return Err(StoreError::other("write", problem));
        }
        Ok(())
    }

    fn view(&self) -> View {
        self.views.open(self.next.load(Ordering::Acquire))
    }

    fn get_in(&self, view: &View, key: &[u8]) -> Result<Option<UserValue>, StoreError> {
        self.tree.get(key, view.moment()).map_err(error("read"))
    }

    fn walk(
        &self,
        view: Option<&View>,
        from: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        for entry in self.tree.range(from.., view.map_or(NEWEST, View::moment), None) {
            let (key, value) = entry.into_inner().map_err(error("read"))?;
            if visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn seal(&self) -> Result<(), StoreError> {
        lock(&self.sealed).extend(self.tree.rotate_memtable());
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        let _flushing = lock(&self.flushing);
        let sealed = lock(&self.sealed).clone();
        if sealed.is_empty() {
            return Ok(());
        }
        let doing = "flush";
        if self.tree.l0_run_count() >= RUNS_MAX {
            return Err(StoreError::other(doing, "too many runs"));
        }
        self.writing(|| self.flush_sealed(&sealed).map_err(error(doing)))?;
        lock(&self.sealed).drain(..sealed.len());
        Ok(())
    }

    fn compact(&self) -> Result<bool, StoreError> {
        self.drop_unseen_ranges()?;
        let before = self.tree.current_version().id();
        let leveled = Leveled::default()
            .with_l0_threshold(self.options.l0_tables)
            .with_table_target_size(self.options.table_bytes)
            .with_level_ratio_policy(vec![self.options.level_ratio]);
        let beginning = self.views.begin();
        // What is older than this goes if it is shadowed, whatever may see it.
        let watermark = if beginning.is_some() { NEWEST } else { FIRST_BATCH };
        self.writing(|| self.tree.compact(Arc::new(leveled), watermark).map_err(error("compact")))?;
        drop(beginning);
        // Or another version has come by a flush meanwhile: then the next time is the last.
        Ok(self.tree.current_version().id() != before)
    }

    fn forget(&self, from: &[u8], until: &[u8]) -> Result<(), StoreError> {
        self.dropped_ranges.add(from, until, self.next.load(Ordering::Acquire));
        self.drop_unseen_ranges()
    }

    fn pressure(&self) -> Pressure {
        let sealed: u64 = lock(&self.sealed).iter().map(|memtable| memtable.size()).sum();
        Pressure {
            unflushed_bytes: sealed + self.tree.active_memtable().size(),
            runs: self.tree.l0_run_count(),
            cache_bytes: self.cache.size(),
        }
    }

    fn approximate_len(&self) -> usize {
        self.tree.approximate_len()
    }

    fn disk_bytes(&self) -> u64 {
        self.tree.disk_space()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree would keep a version per flush, with its memtables, for as long as a view is there.
    #[test]
    fn a_view_keeps_no_memtables() {
        let home = tempfile::tempdir().expect("a directory");
        let store = LsmStore::open(LsmOptions::new(home.path())).expect("an empty store");
        let write = |round: u8| {
            let changes = (0..100u8).map(|number| ([number], Change::Put(vec![round; 100])));
            store.write(changes).expect("a write");
            store.seal().expect("a seal");
            store.flush().expect("a flush");
            store.compact().expect("a step of compaction");
        };
        write(0);
        let view = store.view();
        for round in 1..50 {
            write(round);
        }
        assert!(store.tree.version_free_list_len() <= 1);
        assert_eq!(store.pressure().unflushed_bytes, 0);
        let mut seen = 0;
        let walked = store.walk(Some(&view), b"", |_, value| {
            assert_eq!(value, [0; 100]);
            seen += 1;
            ControlFlow::Continue(())
        });
        walked.expect("a walk");
        assert_eq!(seen, 100);
    }
}
