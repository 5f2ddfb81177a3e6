//! The store on RocksDB.
#![cfg(feature = "rocksdb")]

mod common;

use std::path::Path;
use syros_lsm::{RocksOptions, RocksStore};
use syros_storage::StoreError;

fn open(path: &Path) -> Result<RocksStore, StoreError> {
    RocksStore::open(&RocksOptions { cache_bytes: 8 << 20, ..RocksOptions::new(path) })
}

/// With tables so small that there are several levels.
fn open_small(path: &Path) -> Result<RocksStore, StoreError> {
    let options =
        RocksOptions { cache_bytes: 1 << 20, table_bytes: 20_000, l0_tables: 2, ..RocksOptions::new(path) };
    RocksStore::open(&options)
}

#[test]
fn passes_the_conformance_suite() {
    common::passes_the_conformance_suite(open);
}

#[test]
fn a_crash_goes_back_to_a_checkpoint() {
    common::a_crash_goes_back_to_a_checkpoint(open);
}

#[test]
fn agrees_with_a_map() {
    common::agrees_with_a_map(open_small, 20);
}

#[test]
fn views_stay() {
    common::views_stay(open_small);
}

#[test]
fn a_collection_is_read_at_one_moment() {
    common::a_collection_is_read_at_one_moment(open_small);
}

#[test]
fn forgets() {
    common::forgets(open_small);
}

#[test]
fn is_opened_once() {
    common::is_opened_once(open);
}

#[test]
fn damage_is_noticed() {
    common::damage_is_noticed(open_small, |name| name.ends_with(".sst") || name.starts_with("MANIFEST"));
}

/// `mount -t tmpfs -o size=48m none /mnt; SMALL_DISK=/mnt cargo test -p syros-lsm -- --ignored full_disk`
#[test]
#[ignore = "needs a small file system"]
fn a_full_disk_is_survived() {
    let small = std::env::var("SMALL_DISK").expect("the path of a small file system");
    common::a_full_disk_is_survived(open_small, Path::new(&small), false);
}
