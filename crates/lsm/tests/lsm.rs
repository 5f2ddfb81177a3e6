//! The store on `lsm-tree`.

mod common;

use std::path::Path;
use std::sync::Arc;
use syros_lsm::{LsmOptions, LsmStore};
use syros_storage::{DiskEngine, Lane, Store, StoreCause, StoreError, conformance};
use syros_types::{OpNumber, WallTime};

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

/// What a merge finds to be damaged is damage as much as what a read finds: nobody else may ever look there. (The engine tried again
/// for ever. With too many files that could not be merged, its node stopped reading clients.)
#[test]
fn damage_that_a_merge_finds_fails_the_engine() {
    let home = common::directory();
    let path = home.path().join("store");
    {
        let (engine, _) =
            DiskEngine::open(open_small(&path).expect("an empty store")).expect("an empty store");
        let shared = Arc::clone(engine.shared());
        let mut lane = Lane::new(Arc::clone(&shared));
        for round in 1..=6 {
            lane.begin_entry(OpNumber(round));
            for number in 0..100 {
                let key = format!("key:{}", number * 6 + round).into_bytes();
                let body = conformance::body_of(&[b"SET", &key, &[b'v'; 100]]);
                lane.execute(WallTime(0), &body, &mut Vec::new());
            }
            lane.commit();
            shared.seal(b"head").expect("a seal");
            shared.flush().expect("a flush");
        }
    }
    let mut tables = 0;
    for table in std::fs::read_dir(path.join("tables")).expect("tables") {
        let table = table.expect("a table").path();
        let mut bytes = std::fs::read(&table).expect("a table");
        // Among the records: what is needed to open it is behind them.
        let middle = bytes.len() / 4;
        bytes[middle] ^= 1;
        std::fs::write(&table, bytes).expect("a table that changes");
        tables += 1;
    }
    assert!(tables > 2);
    let (engine, _) = DiskEngine::open(open_small(&path).expect("it opens")).expect("it opens");
    let shared = engine.shared();
    assert_eq!(shared.failure(), None);
    let error = (0..100).find_map(|_| shared.compact().err()).expect("what is to be merged is damaged");
    assert_eq!(error.cause, StoreCause::Damaged, "{error}");
    assert_eq!(shared.failure(), Some(&error));
}

/// As a file system leaves a file whose contents were not written before power failed.
#[test]
fn a_table_without_a_byte_is_damage() {
    let home = common::directory();
    let store = open(home.path()).expect("an empty store");
    common::put(&store, b"key", b"value");
    store.seal().expect("a seal");
    store.flush().expect("a flush");
    drop(store);
    let table = std::fs::read_dir(home.path().join("tables")).expect("tables").next().expect("a table");
    std::fs::write(table.expect("a table").path(), b"").expect("a table that is emptied");
    let error =
        open(home.path()).and_then(|store| store.get(b"key").map(|_| ())).expect_err("it is not whole");
    assert_eq!(error.cause, StoreCause::Damaged, "{error}");
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
