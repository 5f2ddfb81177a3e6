//! The store on `lsm-tree`.

mod common;

use std::path::Path;
use syros_lsm::{LsmOptions, LsmStore};
use syros_storage::StoreError;

fn open(path: &Path) -> Result<LsmStore, StoreError> {
    LsmStore::open(LsmOptions::new(path))
}

/// With tables so small that there are several levels.
fn open_small(path: &Path) -> Result<LsmStore, StoreError> {
    let options = LsmOptions {
        cache_bytes: 1 << 20,
        table_bytes: 20_000,
        l0_tables: 2,
        level_ratio: 2.0,
        ..LsmOptions::new(path)
    };
    LsmStore::open(options)
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
    common::damage_is_noticed(open_small, |_| true);
}

/// What lies in the directory and is not its own is refused or left alone.
#[test]
fn garbage_is_refused() {
    let home = common::directory();
    let path = home.path();
    drop(open(path).expect("an empty store"));
    std::fs::write(path.join("notes.txt"), b"hello").expect("a file");
    std::fs::create_dir(path.join("tables/directory")).expect("a directory");
    assert!(open(path).is_err(), "a directory among the tables");
    std::fs::remove_dir(path.join("tables/directory")).expect("a directory");
    std::fs::write(path.join("tables/name"), b"hello").expect("a file");
    assert!(open(path).is_err(), "a file among the tables that is none");
    std::fs::remove_file(path.join("tables/name")).expect("a file");
    // What a crash leaves of a table that was being written.
    std::fs::write(path.join("tables/77"), b"hello").expect("a file");
    drop(open(path).expect("only the notes are left"));
    assert!(!path.join("tables/77").exists());
    assert!(path.join("notes.txt").exists());
}

/// `mount -t tmpfs -o size=48m none /mnt; SMALL_DISK=/mnt cargo test -p syros-lsm -- --ignored full_disk`
#[test]
#[ignore = "needs a small file system"]
fn a_full_disk_is_survived() {
    let small = std::env::var("SMALL_DISK").expect("the path of a small file system");
    common::a_full_disk_is_survived(open_small, Path::new(&small), true);
}
