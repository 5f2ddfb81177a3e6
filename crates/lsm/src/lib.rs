//! Stores on disk for the disk engine: trees of sorted runs that have no log and become durable at checkpoints.
#![forbid(unsafe_code)]

mod disk_store;
mod dropped_ranges;
mod lsm_store;
#[cfg(feature = "rocksdb")]
mod rocks_store;
mod version_filter;
mod views;

pub use disk_store::{DiskStore, DiskValue, DiskView, HAS_ROCKSDB, StoreOptions};
pub use lsm_store::{LsmOptions, LsmStore};
#[cfg(feature = "rocksdb")]
pub use rocks_store::{RocksOptions, RocksStore, RocksView};
pub use views::View;

/// See [`PAGED_FROM`](syros_storage::Store::PAGED_FROM): about what three or four pages take.
const PAGED_FROM: usize = 8 << 10;
