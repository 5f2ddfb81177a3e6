//! What every store on disk has to pass.

use core::ops::ControlFlow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use syros_commands::Reply;
use syros_storage::conformance::{self, Generator};
use syros_storage::{Change, DiskEngine, Engine, Lane, Reader, Store, StoreCause, StoreError};
use syros_types::{OpNumber, Prng, WallTime};
use tempfile::TempDir;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Opens stores of one kind.
pub(crate) trait Opens<S>: Fn(&Path) -> Result<S, StoreError> {}

impl<S, F: Fn(&Path) -> Result<S, StoreError>> Opens<S> for F {}

pub(crate) fn directory() -> TempDir {
    tempfile::tempdir().expect("a directory for a test")
}

/// All files below a directory, with their lengths.
fn files(directory: &Path) -> io::Result<BTreeMap<PathBuf, u64>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.extend(files(&entry.path())?);
        } else {
            found.insert(entry.path(), entry.metadata()?.len());
        }
    }
    Ok(found)
}

fn try_copy(from: &Path, to: &Path) -> io::Result<bool> {
    let before = files(from)?;
    for file in before.keys() {
        let copied = to.join(file.strip_prefix(from).expect("it is in there"));
        fs::create_dir_all(copied.parent().expect("it is in there"))?;
        fs::copy(file, copied)?;
    }
    Ok(files(from)? == before)
}

/// Copies a directory as it is at one moment.
pub(crate) fn copy(from: &Path, to: &Path) {
    // Somebody may be at work in the background.
    while !try_copy(from, to).unwrap_or(false) {
        let _ = fs::remove_dir_all(to);
    }
}

/// All pairs of a store or a view.
pub(crate) fn pairs<S: Store>(store: &S, view: Option<&S::View>, from: &[u8]) -> Result<Map, StoreError> {
    let mut pairs = Map::new();
    store.walk(view, from, |key, value| {
        let last = pairs.last_key_value().map(|(key, _): (&Vec<u8>, _)| key.clone());
        assert!(last.is_none_or(|last| last.as_slice() < key), "keys out of order");
        pairs.insert(key.to_vec(), value.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(pairs)
}

pub(crate) fn put<S: Store>(store: &S, key: &[u8], value: &[u8]) {
    store.write([(key, Change::Put(value.to_vec()))].into_iter()).expect("a write");
}

fn checkpoint<S: Store>(store: &S) {
    store.seal().expect("a seal");
    store.flush().expect("a flush");
}

pub(crate) fn passes_the_conformance_suite<S: Store>(open: impl Opens<S>) {
    let directories = Mutex::new(Vec::new());
    let new = || {
        let directory = directory();
        let store = open(directory.path()).expect("an empty store");
        let mut directories = directories.lock().expect("nothing panicked");
        directories.push(directory);
        store
    };
    let make = || DiskEngine::open(new()).expect("an empty store").0;
    let load = |blocks: &[Vec<u8>]| {
        let mut loader = DiskEngine::loader(new());
        for block in blocks {
            loader.block(block).expect("a block of a snapshot");
        }
        loader.finish().expect("all blocks of a snapshot")
    };
    conformance::test_part(make, load, 8);
}

/// After a crash a store is what it was at the last checkpoint that was flushed, or at one that was sealed later;
/// executing again what came after it leads to the same state and the same answers.
pub(crate) fn a_crash_goes_back_to_a_checkpoint<S: Store>(open: impl Opens<S>) {
    let mut after_flushed = 0;
    for seed in 0..100 {
        let mut prng = Prng::new(seed);
        let mut generator = Generator::new(seed, 1..4000, 1..2_000_000);
        generator.blind = true;
        let home = directory();
        let path = home.path().join("store");
        let store = open(&path).expect("an empty store");
        let (mut engine, head) = DiskEngine::open(store).expect("an empty store");
        assert_eq!(head, None);
        let (mut done, mut sealed, mut flushed) = (Vec::new(), BTreeSet::from([0]), 0);
        for step in 0..100 + prng.below(400) {
            let Some(body) = generator.body() else { continue };
            let time = WallTime(step * 50_000);
            let mut reply = Vec::new();
            engine.apply(time, &body, &mut reply);
            done.push((time, body, reply, engine.digest()));
            match prng.below(40) {
                0 => {
                    engine.shared().seal(&(done.len() as u64).to_le_bytes()).expect("a seal");
                    sealed.insert(done.len());
                }
                1 => {
                    engine.shared().flush().expect("a flush");
                    flushed = sealed.last().copied().unwrap_or_default();
                    while engine.shared().compact().expect("a step of compaction") {}
                }
                _ => {}
            }
        }
        let found = if prng.chance(1, 2) {
            // What is left by a process that is killed.
            let copied = home.path().join("copy");
            copy(&path, &copied);
            open(&copied)
        } else {
            drop(engine);
            open(&path)
        };
        let (mut again, head) = DiskEngine::open(found.expect("what was flushed")).expect("what was flushed");
        let head = head.map_or(0, |head| u64::from_le_bytes(head.try_into().expect("8 bytes"))) as usize;
        assert!(
            head >= flushed && sealed.contains(&head),
            "seed {seed}: {head}, flushed {flushed}, {sealed:?}"
        );
        after_flushed += usize::from(head > flushed);
        if head > 0 {
            assert_eq!(again.digest(), done[head - 1].3, "seed {seed}: not the state that was sealed");
        }
        for (time, body, reply, digest) in &done[head..] {
            let mut answer = Vec::new();
            again.apply(*time, body, &mut answer);
            assert_eq!((answer, again.digest()), (reply.clone(), *digest), "seed {seed}");
        }
    }
    println!("{after_flushed} of 100 went back to a checkpoint that was sealed after the last flush");
}

/// A large collection is read as it was at one moment while it changes and while the store makes checkpoints and merges runs.
pub(crate) fn a_collection_is_read_at_one_moment<S: Store>(open: impl Opens<S>) {
    const FIELDS: usize = 3000;
    let home = directory();
    let path = home.path().join("store");
    let (engine, _) = DiskEngine::open(open(&path).expect("an empty store")).expect("an empty store");
    let shared = engine.into_shared();
    let fields: Vec<Vec<u8>> = (0..FIELDS).map(|number| format!("field:{number}").into_bytes()).collect();
    let set = |lane: &mut Lane<S>, round: u64| {
        let value = round.to_string().repeat(1 + round as usize % 5);
        lane.begin_entry(OpNumber(round));
        for some in fields.chunks(500) {
            let mut command: Vec<&[u8]> = vec![b"HSET", b"hash"];
            some.iter().for_each(|field| command.extend([field.as_slice(), value.as_bytes()]));
            lane.execute(WallTime(0), &conformance::body_of(&command), &mut Vec::new());
        }
        lane.commit();
    };
    let mut lane = Lane::new(Arc::clone(&shared));
    set(&mut lane, 1);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for seed in 0..2 {
            let (shared, is_over, fields) = (Arc::clone(&shared), &is_over, &fields);
            scope.spawn(move || {
                let (mut prng, mut reader) = (Prng::new(seed), Reader::new(shared));
                let mut reads = 0;
                while !is_over.load(Ordering::Relaxed) || reads < 20 {
                    let mut command: Vec<&[u8]> = vec![b"HMGET", b"hash"];
                    command.extend((0..20).map(|_| fields[prng.below(FIELDS as u64) as usize].as_slice()));
                    let mut reply = Vec::new();
                    reader.read(WallTime(0), &conformance::body_of(&command), &mut reply);
                    let Ok(Reply::Array(values)) = Reply::decode(&mut reply.as_slice()) else {
                        panic!("not values: {}", reply.escape_ascii())
                    };
                    let is_bulk = matches!(values.first(), Some(Reply::Bulk(_)));
                    assert!(is_bulk && values.windows(2).all(|pair| pair[0] == pair[1]), "of two moments");
                    reads += 1;
                }
            });
        }
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                shared.flush().expect("a flush");
                while shared.compact().expect("a step of compaction") {}
                thread::yield_now();
            }
        });
        for round in 2..60 {
            set(&mut lane, round);
            if round % 4 == 0 {
                shared.seal(b"head").expect("a seal");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(shared.failure().is_none());
    shared.seal(b"head").expect("a seal");
    shared.flush().expect("a flush");
    drop((lane, shared));
    let (again, _) = DiskEngine::open(open(&path).expect("what was flushed")).expect("what was flushed");
    let mut reply = Vec::new();
    again.read(WallTime(0), &conformance::body_of(&[b"HGET", b"hash", b"field:7"]), &mut reply);
    assert_eq!(Reply::decode(&mut reply.as_slice()), Ok(Reply::Bulk("59".repeat(5).into_bytes())));
}

fn key(number: u64) -> Vec<u8> {
    format!("{:02}-{number:06}", number % 10).into_bytes()
}

/// Random changes, checkpoints, views, crashes; compared with a map. `open` makes stores with small tables.
pub(crate) fn agrees_with_a_map<S: Store>(open: impl Opens<S>, rounds: u64) {
    for seed in 0..rounds {
        let mut prng = Prng::new(seed);
        let home = directory();
        let path = home.path().join("store");
        let mut store = open(&path).expect("an empty store");
        let (mut now, mut sealed, mut flushed) = (Map::new(), vec![Map::new()], Map::new());
        let mut views: Vec<(S::View, Map)> = Vec::new();
        let mut value = vec![b'v'; 100];
        for _ in 0..400 {
            match prng.below(100) {
                0..60 => {
                    let mut changes = BTreeMap::new();
                    for _ in 0..1 + prng.below(200) {
                        let key = key(prng.below(20_000));
                        if prng.chance(1, 4) {
                            now.remove(&key);
                            changes.insert(key, Change::Delete);
                        } else {
                            value[..8].copy_from_slice(&prng.next_u64().to_le_bytes());
                            now.insert(key.clone(), value.clone());
                            changes.insert(key, Change::Put(value.clone()));
                        }
                    }
                    store.write(changes.into_iter()).expect("a write");
                }
                60..68 => {
                    store.seal().expect("a seal");
                    sealed.push(now.clone());
                }
                68..74 => {
                    store.flush().expect("a flush");
                    flushed = sealed.last().expect("there is one").clone();
                    sealed = vec![flushed.clone()];
                }
                74..84 => drop(store.compact().expect("a step of compaction")),
                84..88 => views.push((store.view(), now.clone())),
                88..91 if !views.is_empty() => {
                    let (view, then) = views.swap_remove(prng.below(views.len() as u64) as usize);
                    assert_eq!(pairs(&store, Some(&view), b"").expect("a walk"), then, "seed {seed}: a view");
                }
                91..95 => {
                    let from = key(prng.below(20_000));
                    let expected: Map =
                        now.range(from.clone()..).map(|(k, v)| (k.clone(), v.clone())).collect();
                    assert_eq!(pairs(&store, None, &from).expect("a walk"), expected, "seed {seed}");
                }
                95 => {
                    views.clear();
                    drop(store);
                    store = open(&path).expect("what was flushed");
                    now = pairs(&store, None, b"").expect("a walk");
                    let known = now == flushed || sealed.contains(&now);
                    assert!(known, "seed {seed}: what is found was no checkpoint");
                    (flushed, sealed) = (now.clone(), vec![now.clone()]);
                }
                _ => {
                    let key = key(prng.below(20_000));
                    let found = store.get(&key).expect("a read");
                    let found = found.as_ref().map(AsRef::as_ref);
                    assert_eq!(found, now.get(&key).map(Vec::as_slice), "seed {seed}");
                }
            }
        }
        for (view, then) in views {
            assert_eq!(pairs(&store, Some(&view), b"").expect("a walk"), then, "seed {seed}: a view");
        }
        assert_eq!(pairs(&store, None, b"").expect("a walk"), now, "seed {seed}");
    }
}

/// A view goes on seeing what it saw, while everything is overwritten, flushed and compacted by other threads.
pub(crate) fn views_stay<S: Store>(open: impl Opens<S>) {
    let home = directory();
    let store = open(home.path()).expect("an empty store");
    let write = |round: u64| {
        for first in (0..2000).step_by(100) {
            let value = format!("round {round} {}", "x".repeat(100));
            let changes = (first..first + 100).map(|number| (key(number), Change::Put(value.clone().into())));
            store.write(changes).expect("a write");
        }
    };
    let seen = |view: &S::View| pairs(&store, Some(view), b"").expect("a walk");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                store.flush().expect("a flush");
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if !store.compact().expect("a step of compaction") {
                    thread::yield_now();
                }
            }
        });
        let mut views = Vec::new();
        for round in 0..60 {
            write(round);
            if round % 3 == 0 {
                let view = store.view();
                let then = seen(&view);
                assert_eq!(then.len(), 2000);
                let prefix = format!("round {round} ");
                assert!(then.values().all(|value| value.starts_with(prefix.as_bytes())));
                views.push((view, then));
            }
            if round % 2 == 0 {
                store.seal().expect("a seal");
            }
            if round % 7 == 0 {
                let (view, then) = views.remove(0);
                assert!(seen(&view) == then, "a view of before round {round} has changed");
            }
        }
        for (view, then) in &views {
            assert!(seen(view) == *then, "a view has changed");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// What is forgotten goes from the disk, but not from under a view that was there before; nothing else goes.
pub(crate) fn forgets<S: Store>(open: impl Opens<S>) {
    let home = directory();
    let store = open(home.path()).expect("an empty store");
    let fill = |prefix: char| {
        let mut prng = Prng::new(u64::from(u32::from(prefix)));
        for first in 0..40u64 {
            let changes = (0..500).map(|number| {
                let value: Vec<u8> = (0..20).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
                (format!("{prefix}{:06}", number * 40 + first).into_bytes(), Change::Put(value))
            });
            store.write(changes).expect("a write");
            if first % 10 == 9 {
                checkpoint(&store);
                while store.compact().expect("a step of compaction") {}
            }
        }
    };
    ['a', 'b', 'c'].into_iter().for_each(fill);
    let before = store.disk_bytes();
    let view = store.view();
    let then = pairs(&store, Some(&view), b"").expect("a walk");
    assert_eq!(then.len(), 60_000);
    put(&store, b"b-is-forgotten", b"");
    store.forget(b"a", b"c").expect("a range is forgotten");
    fill('d');
    assert!(pairs(&store, Some(&view), b"").expect("a walk") == then, "a view has changed");
    drop(view);
    fill('e');
    checkpoint(&store);
    while store.compact().expect("a step of compaction") {}
    let left = pairs(&store, None, b"c").expect("a walk");
    assert_eq!(left.len(), 60_000);
    // Three of five ranges are left instead of three of three, and something of what was forgotten may be.
    let enough = |after| after < before + before / 2;
    // Somebody may be at work in the background.
    for _ in 0..600 {
        if enough(store.disk_bytes()) {
            break;
        }
        thread::sleep(Duration::from_millis(100));
        store.compact().expect("a step of compaction");
    }
    let after = store.disk_bytes();
    println!("{before} bytes before, {after} after");
    assert!(enough(after), "{before} bytes before, {after} after");
    drop(store);
    let store = open(home.path()).expect("a store");
    assert!(pairs(&store, None, b"c").expect("a walk") == left, "something was lost");
}

/// A directory that is open already is refused.
pub(crate) fn is_opened_once<S: Store>(open: impl Opens<S>) {
    let home = directory();
    let store = open(home.path()).expect("an empty store");
    assert!(open(home.path()).is_err());
    drop(store);
    open(home.path()).expect("nobody has it");
}

/// Files that were cut off, changed, or removed: the store says so, or has everything; it does not panic.
/// `matters` says of which files every change is noticed.
pub(crate) fn damage_is_noticed<S: Store>(open: impl Opens<S>, matters: impl Fn(&str) -> bool) {
    let home = directory();
    let path = home.path().join("store");
    let mut prng = Prng::new(1);
    {
        let store = open(&path).expect("an empty store");
        for round in 0..6u64 {
            let changes = (0..1000).map(|number| {
                let value: Vec<u8> = (0..5).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
                (key(number * 6 + round), Change::Put(value))
            });
            store.write(changes).expect("a write");
            checkpoint(&store);
            store.compact().expect("a step of compaction");
        }
    }
    let expected = pairs(&open(&path).expect("a store"), None, b"").expect("a walk");
    let (mut refused, mut unnoticed) = (0, 0);
    for file in files(&path).expect("a directory").into_keys() {
        let name = file.strip_prefix(&path).expect("it is in there").to_string_lossy().into_owned();
        let bytes = fs::read(&file).expect("a file");
        for attempt in 0..40 {
            let copied = home.path().join("copy");
            copy(&path, &copied);
            let victim = copied.join(&name);
            let what = if attempt == 0 {
                fs::remove_file(&victim).expect("a file that goes");
                "is gone".to_string()
            } else if bytes.is_empty() {
                break;
            } else if attempt < 10 {
                let length = prng.below(bytes.len() as u64);
                fs::write(&victim, &bytes[..length as usize]).expect("a file that is cut off");
                format!("has {length} of {} bytes", bytes.len())
            } else {
                let at = prng.below(bytes.len() as u64) as usize;
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << prng.below(8);
                fs::write(&victim, &bytes).expect("a file that changes");
                format!("has changed at {at} of {}", bytes.len())
            };
            let found = open(&copied).and_then(|store| {
                for (key, value) in expected.iter().step_by(37) {
                    let found = store.get(key)?;
                    let right = found.is_some_and(|found| found.as_ref() == value);
                    assert!(right || !matters(&name), "{name} {what}: a value is wrong");
                }
                pairs(&store, None, b"")
            });
            match found {
                Err(_) => refused += 1,
                Ok(found) if found == expected => unnoticed += 1,
                Ok(found) => assert!(
                    !matters(&name),
                    "{name} {what}: {} pairs of {} are found, and no error",
                    found.len(),
                    expected.len()
                ),
            }
            fs::remove_dir_all(&copied).expect("the copy goes");
        }
    }
    println!("{refused} times refused, {unnoticed} times nothing was lost");
    assert!(refused > 50);
}

/// A full disk is told as such; nothing is lost, nothing that failed is left behind, and it goes on once there is
/// room; at the latest, unless it `recovers`, when it is opened again. In a directory on a file system of 48 MiB that
/// has nothing else.
pub(crate) fn a_full_disk_is_survived<S: Store>(open: impl Opens<S>, small: &Path, recovers: bool) {
    let path = small.join("store");
    let _ = fs::remove_dir_all(&path);
    let store = open(&path).expect("an empty store");
    let write = |round: u64| {
        let changes = (0..1000).map(|number| {
            let mut value = vec![b'v'; 1000];
            let mut prng = Prng::new(round * 1000 + number);
            value.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&prng.next_u64().to_le_bytes()));
            (key(number * 100 + round), Change::Put(value))
        });
        store.write(changes).expect("a write");
    };
    fs::write(small.join("ballast"), vec![7; 24 << 20]).expect("a file that takes room");
    let mut rounds = 0;
    let error = loop {
        write(rounds);
        rounds += 1;
        store.seal().expect("a seal");
        if let Err(error) = store.flush().and_then(|()| store.compact()) {
            break error;
        }
        assert!(rounds < 100, "the disk does not fill up");
    };
    println!("{rounds} MB written, then: {error}");
    assert_eq!(error.cause, StoreCause::Full, "{error}");
    // However often it is tried.
    for _ in 0..20 {
        let _ = store.flush();
        let _ = store.compact();
    }
    fs::remove_file(small.join("ballast")).expect("a file that takes room");
    if !recovers {
        drop(store);
        let store = open(&path).expect("what was flushed");
        let found = pairs(&store, None, b"").expect("a walk").len() as u64;
        // The last round was not flushed.
        assert!(found == rounds * 1000 || found == (rounds - 1) * 1000, "{found} pairs, {rounds} rounds");
        return;
    }
    store.flush().expect("a flush");
    while store.compact().expect("a step of compaction") {}
    assert_eq!(pairs(&store, None, b"").expect("a walk").len() as u64, rounds * 1000);
    checkpoint(&store);
    drop(store);
    let store = open(&path).expect("what was flushed");
    assert_eq!(pairs(&store, None, b"").expect("a walk").len() as u64, rounds * 1000);
    drop(store);
    fs::remove_dir_all(&path).expect("the store goes");
}
