//! The store that a configuration names.

use crate::{LsmOptions, LsmStore, View};
#[cfg(feature = "rocksdb")]
use crate::{RocksOptions, RocksStore, RocksView};
use core::ops::ControlFlow;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use syros_storage::{Change, Pressure, Store, StoreError};

/// True if [`StoreOptions::use_rocksdb`] is possible.
pub const HAS_ROCKSDB: bool = cfg!(feature = "rocksdb");

/// Which store, and how it is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// RocksDB, if it was built in.
    pub use_rocksdb: bool,
    /// Bytes of blocks that are kept in memory.
    pub cache_bytes: u64,
    /// Bytes that are written between two checkpoints, about.
    pub memtable_bytes: u64,
    /// Most tables whose files are kept open.
    pub open_files: usize,
}

/// Does the same with whichever it is.
macro_rules! either {
    ($store:expr, $inner:ident => $work:expr) => {
        match $store {
            Self::Lsm($inner) => $work,
            #[cfg(feature = "rocksdb")]
            Self::Rocks($inner) => $work,
        }
    };
}

/// One of the stores.
#[derive(Debug)]
pub enum DiskStore {
    /// On the `lsm-tree` crate.
    Lsm(LsmStore),
    /// On RocksDB.
    #[cfg(feature = "rocksdb")]
    Rocks(RocksStore),
}

/// A value that was read from one of the stores.
#[derive(Debug)]
pub enum DiskValue {
    /// On the `lsm-tree` crate.
    Lsm(<LsmStore as Store>::Value),
    /// On RocksDB.
    #[cfg(feature = "rocksdb")]
    Rocks(<RocksStore as Store>::Value),
}

impl AsRef<[u8]> for DiskValue {
    fn as_ref(&self) -> &[u8] {
        either!(self, value => value.as_ref())
    }
}

/// One of the stores as it was at some moment.
pub enum DiskView {
    /// On the `lsm-tree` crate.
    Lsm(View),
    /// On RocksDB.
    #[cfg(feature = "rocksdb")]
    Rocks(RocksView),
}

impl DiskStore {
    /// Opens the store in a directory; an empty one if nothing is there. A directory that `path` goes through by an open
    /// handle is given as `keep_open`: it stays open for as long as the store.
    ///
    /// # Errors
    /// What the disk says, that what is there is damaged or in use, or that the store was not built in.
    pub fn open(
        path: &Path,
        keep_open: Option<Arc<File>>,
        options: &StoreOptions,
    ) -> Result<Self, StoreError> {
        if options.use_rocksdb {
            return Self::open_rocksdb(path, keep_open, options);
        }
        let StoreOptions { cache_bytes, open_files, .. } = *options;
        let options = LsmOptions { keep_open, cache_bytes, open_files, ..LsmOptions::new(path) };
        LsmStore::open(options).map(Self::Lsm)
    }

    #[cfg(feature = "rocksdb")]
    fn open_rocksdb(
        path: &Path,
        keep_open: Option<Arc<File>>,
        options: &StoreOptions,
    ) -> Result<Self, StoreError> {
        let cache_bytes = usize::try_from(options.cache_bytes).unwrap_or(usize::MAX);
        let open_files = options.open_files;
        let options = RocksOptions { keep_open, cache_bytes, open_files, ..RocksOptions::new(path) };
        RocksStore::open(&options).map(Self::Rocks)
    }

    #[cfg(not(feature = "rocksdb"))]
    fn open_rocksdb(_: &Path, _: Option<Arc<File>>, _: &StoreOptions) -> Result<Self, StoreError> {
        Err(StoreError::other("open the store", "RocksDB was not built in"))
    }
}

impl Store for DiskStore {
    type Value = DiskValue;
    type View = DiskView;

    const PAGED_FROM: usize = crate::PAGED_FROM;

    fn merges(&self) -> bool {
        either!(self, store => store.merges())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Self::Value>, StoreError> {
        match self {
            Self::Lsm(store) => Ok(store.get(key)?.map(DiskValue::Lsm)),
            #[cfg(feature = "rocksdb")]
            Self::Rocks(store) => Ok(store.get(key)?.map(DiskValue::Rocks)),
        }
    }

    fn write(&self, changes: impl Iterator<Item = (impl AsRef<[u8]>, Change)>) -> Result<(), StoreError> {
        either!(self, store => store.write(changes))
    }

    fn view(&self) -> Self::View {
        match self {
            Self::Lsm(store) => DiskView::Lsm(store.view()),
            #[cfg(feature = "rocksdb")]
            Self::Rocks(store) => DiskView::Rocks(store.view()),
        }
    }

    fn get_in(&self, view: &Self::View, key: &[u8]) -> Result<Option<Self::Value>, StoreError> {
        match (self, view) {
            (Self::Lsm(store), DiskView::Lsm(view)) => Ok(store.get_in(view, key)?.map(DiskValue::Lsm)),
            #[cfg(feature = "rocksdb")]
            (Self::Rocks(store), DiskView::Rocks(view)) => Ok(store.get_in(view, key)?.map(DiskValue::Rocks)),
            #[cfg(feature = "rocksdb")]
            (Self::Lsm(_) | Self::Rocks(_), _) => unreachable!("the view is of another store"),
        }
    }

    fn walk(
        &self,
        view: Option<&Self::View>,
        from: &[u8],
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        match (self, view) {
            (Self::Lsm(store), None) => store.walk(None, from, visit),
            (Self::Lsm(store), Some(DiskView::Lsm(view))) => store.walk(Some(view), from, visit),
            #[cfg(feature = "rocksdb")]
            (Self::Rocks(store), None) => store.walk(None, from, visit),
            #[cfg(feature = "rocksdb")]
            (Self::Rocks(store), Some(DiskView::Rocks(view))) => store.walk(Some(view), from, visit),
            #[cfg(feature = "rocksdb")]
            (Self::Lsm(_) | Self::Rocks(_), Some(_)) => unreachable!("the view is of another store"),
        }
    }

    fn seal(&self) -> Result<(), StoreError> {
        either!(self, store => store.seal())
    }

    fn flush(&self) -> Result<(), StoreError> {
        either!(self, store => store.flush())
    }

    fn compact(&self) -> Result<bool, StoreError> {
        either!(self, store => store.compact())
    }

    fn forget(&self, from: &[u8], until: &[u8]) -> Result<(), StoreError> {
        either!(self, store => store.forget(from, until))
    }

    fn pressure(&self) -> Pressure {
        either!(self, store => store.pressure())
    }

    fn approximate_len(&self) -> usize {
        either!(self, store => store.approximate_len())
    }

    fn disk_bytes(&self) -> u64 {
        either!(self, store => store.disk_bytes())
    }
}
