//! Compares stores under the access pattern of the disk engine. Prints a line of JSON per phase.
//!
//! `compare KIND DIRECTORY [NAME=VALUE ..]`, where KIND is `lsm`, `rocks`, `fjall` (with its own journal, never
//! synced) or `none` (which keeps nothing: what all the others cost as well). Names, with what they usually are:
//! `records` 20000000, `cache_mb` 270, `threads` 1 (2: one that flushes, one that compacts), `table_mb` 64,
//! `l0` 4, `block` 4096, `compress` 1, `checkpoint_mb` 64, `wait_mb` 256, `runs_max` 20, `phases` all.

use core::ops::ControlFlow;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use syros_lsm::{LsmOptions, LsmStore};
use syros_storage::conformance::body_of;
use syros_storage::{Change, DiskEngine, Lane, Pressure, Reader, Shared, Store, StoreError};
use syros_types::{Prng, WallTime};

type PhaseResult = Result<(), Box<dyn Error>>;

const NOW: WallTime = WallTime(1_000_000);
const BATCH: u64 = 1000;

/// The numbers on the command line.
#[derive(Clone)]
struct Settings(BTreeMap<String, String>);

impl Settings {
    fn number(&self, name: &str, usual: u64) -> u64 {
        self.0.get(name).map_or(usual, |value| value.parse().expect("a number"))
    }

    fn runs(&self, phase: &str) -> bool {
        self.0.get("phases").is_none_or(|phases| phases.split(',').any(|chosen| chosen == phase))
    }
}

/// A store that can be waited for.
trait Measured: Store {
    /// Waits until there is nothing to merge.
    fn wait_for_compaction(&self) -> Result<(), StoreError>;

    /// A store has threads of its own.
    const OWN_THREADS: bool;
}

impl Measured for LsmStore {
    const OWN_THREADS: bool = false;

    fn wait_for_compaction(&self) -> Result<(), StoreError> {
        while self.compact()? {}
        Ok(())
    }
}

#[cfg(feature = "rocksdb")]
impl Measured for syros_lsm::RocksStore {
    const OWN_THREADS: bool = true;

    fn wait_for_compaction(&self) -> Result<(), StoreError> {
        Self::wait_for_compaction(self)
    }
}

/// Keeps nothing.
struct Nothing;

impl Store for Nothing {
    type Value = Vec<u8>;
    type View = ();

    const PAGED_FROM: usize = usize::MAX;

    fn merges(&self) -> bool {
        true
    }

    fn get(&self, _: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }

    fn write(&self, changes: impl Iterator<Item = (impl AsRef<[u8]>, Change)>) -> Result<(), StoreError> {
        changes.for_each(drop);
        Ok(())
    }

    fn view(&self) {}

    fn get_in(&self, (): &(), key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(key)
    }

    fn walk(
        &self,
        _: Option<&()>,
        _: &[u8],
        _: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        Ok(())
    }

    fn seal(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn compact(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn forget(&self, _: &[u8], _: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    fn pressure(&self) -> Pressure {
        Pressure::default()
    }

    fn approximate_len(&self) -> usize {
        0
    }

    fn disk_bytes(&self) -> u64 {
        0
    }
}

impl Measured for Nothing {
    const OWN_THREADS: bool = true;

    fn wait_for_compaction(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// fjall as it comes, which does by itself what it does: its checkpoints are none.
struct Fjall {
    database: fjall::Database,
    keyspace: fjall::Keyspace,
}

fn refused(doing: &'static str) -> impl Fn(fjall::Error) -> StoreError {
    move |error| StoreError::other(doing, error.to_string())
}

impl Store for Fjall {
    type Value = fjall::UserValue;
    type View = ();

    const PAGED_FROM: usize = usize::MAX;

    fn merges(&self) -> bool {
        false
    }

    fn get(&self, key: &[u8]) -> Result<Option<fjall::UserValue>, StoreError> {
        self.keyspace.get(key).map_err(refused("read"))
    }

    fn write(&self, changes: impl Iterator<Item = (impl AsRef<[u8]>, Change)>) -> Result<(), StoreError> {
        let mut batch = self.database.batch();
        for (key, change) in changes {
            match change {
                Change::Put(value) => batch.insert(&self.keyspace, key.as_ref(), value),
                Change::Delete | Change::Merge(_) => batch.remove(&self.keyspace, key.as_ref()),
            }
        }
        batch.commit().map_err(refused("write"))
    }

    fn view(&self) {}

    fn get_in(&self, (): &(), key: &[u8]) -> Result<Option<fjall::UserValue>, StoreError> {
        self.get(key)
    }

    fn walk(
        &self,
        _: Option<&()>,
        from: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        for entry in self.keyspace.range(from..) {
            let (key, value) = entry.into_inner().map_err(refused("read"))?;
            if visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn seal(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn compact(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn forget(&self, _: &[u8], _: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }

    fn pressure(&self) -> Pressure {
        Pressure::default()
    }

    fn approximate_len(&self) -> usize {
        self.keyspace.approximate_len()
    }

    fn disk_bytes(&self) -> u64 {
        self.keyspace.disk_space()
    }
}

impl Measured for Fjall {
    const OWN_THREADS: bool = true;

    fn wait_for_compaction(&self) -> Result<(), StoreError> {
        self.keyspace.rotate_memtable_and_wait().map_err(refused("flush"))?;
        let mut quiet = 0;
        while quiet < 20 {
            thread::sleep(Duration::from_millis(50));
            let busy = self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
        }
        Ok(())
    }
}

/// A number out of a file of `/proc`, after a name.
fn proc_number(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Seconds that all threads of this process have computed.
fn cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / 100.0
}

fn directory_bytes(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => directory_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum()
}

/// One phase being measured.
struct Phase<'a> {
    name: &'a str,
    begin: Instant,
    cpu: f64,
    written: u64,
    read: u64,
    waits: Vec<Duration>,
    waited: Duration,
}

impl<'a> Phase<'a> {
    fn new(name: &'a str) -> Self {
        // The highest memory since now.
        let _ = fs::write("/proc/self/clear_refs", "5");
        Self {
            name,
            begin: Instant::now(),
            cpu: cpu_seconds(),
            written: proc_number("/proc/self/io", "write_bytes:"),
            read: proc_number("/proc/self/io", "read_bytes:"),
            waits: Vec::new(),
            waited: Duration::ZERO,
        }
    }

    /// Measures one thing that somebody waits for.
    fn each<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        self.waits.push(begin.elapsed());
        result
    }

    fn end<S: Store>(mut self, bench: &Bench<S>, operations: u64) {
        let (seconds, cpu) = (self.begin.elapsed().as_secs_f64(), cpu_seconds() - self.cpu);
        let written = proc_number("/proc/self/io", "write_bytes:") - self.written;
        let read = proc_number("/proc/self/io", "read_bytes:") - self.read;
        self.waits.sort_unstable();
        let quantile = |part: f64| {
            let index = ((self.waits.len() as f64 * part) as usize).min(self.waits.len().saturating_sub(1));
            self.waits.get(index).map_or(0.0, |wait| wait.as_secs_f64() * 1e3)
        };
        let pressure = bench.shared.store().pressure();
        println!(
            "{{\"kind\":\"{}\",\"phase\":\"{}\",\"seconds\":{seconds:.2},\"operations\":{operations},\
             \"per_second\":{:.0},\"cpu_us\":{:.2},\"waited_s\":{:.2},\"p50_ms\":{:.4},\"p99_ms\":{:.4},\
             \"p999_ms\":{:.4},\"max_ms\":{:.3},\"peak_mb\":{},\"disk_mb\":{},\"written_mb\":{},\"read_mb\":{},\
             \"runs\":{},\"cache_mb\":{}}}",
            bench.kind,
            self.name,
            operations as f64 / seconds,
            cpu * 1e6 / operations.max(1) as f64,
            self.waited.as_secs_f64(),
            quantile(0.5),
            quantile(0.99),
            quantile(0.999),
            quantile(1.0),
            proc_number("/proc/self/status", "VmHWM:") >> 10,
            directory_bytes(&bench.path) >> 20,
            written >> 20,
            read >> 20,
            pressure.runs,
            pressure.cache_bytes >> 20,
        );
    }
}

struct Bench<S: Store> {
    kind: String,
    path: PathBuf,
    settings: Settings,
    records: u64,
    shared: Arc<Shared<S>>,
}

fn key(number: u64) -> [u8; 24] {
    let mut key = *b"user00000000000000000000";
    let mut rest = number;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Half of it can be compressed.
fn value(prng: &mut Prng) -> [u8; 100] {
    let mut value = [b'v'; 100];
    for part in value[..48].chunks_exact_mut(8) {
        part.copy_from_slice(&prng.next_u64().to_le_bytes());
    }
    value
}

impl<S: Measured> Bench<S> {
    /// Waits until there is little enough to do.
    fn wait(&self, phase: &mut Phase<'_>) {
        let begin = Instant::now();
        loop {
            let pressure = self.shared.store().pressure();
            let unflushed_max = self.settings.number("wait_mb", 256) << 20;
            if pressure.unflushed_bytes < unflushed_max
                && pressure.runs as u64 <= self.settings.number("runs_max", 20)
            {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        phase.waited += begin.elapsed();
    }

    /// Runs `work` while other threads flush and compact.
    fn with_others<T>(&self, work: impl FnOnce() -> T) -> T {
        let stop = AtomicBool::new(false);
        let going = || !stop.load(Ordering::Relaxed);
        let idle = || thread::sleep(Duration::from_millis(1));
        thread::scope(|scope| {
            if self.settings.number("threads", 1) == 1 {
                scope.spawn(|| {
                    while going() {
                        self.shared.flush().expect("a flush");
                        if !self.shared.compact().expect("a step of compaction") {
                            idle();
                        }
                    }
                });
            } else {
                scope.spawn(|| {
                    while going() {
                        self.shared.flush().expect("a flush");
                        idle();
                    }
                });
                scope.spawn(|| {
                    while going() {
                        if !self.shared.compact().expect("a step of compaction") {
                            idle();
                        }
                    }
                });
            }
            let result = work();
            stop.store(true, Ordering::Relaxed);
            result
        })
    }

    /// Writes records in batches.
    fn put(&self, name: &str, count: u64, number: impl Fn(u64, &mut Prng) -> u64) -> PhaseResult {
        let mut phase = Phase::new(name);
        let (mut prng, mut lane, mut reply) =
            (Prng::new(count), Lane::new(Arc::clone(&self.shared)), Vec::new());
        let mut unsealed = 0;
        self.with_others(|| -> PhaseResult {
            for batch in 0..count / BATCH {
                let bodies: Vec<_> = (batch * BATCH..(batch + 1) * BATCH)
                    .map(|index| {
                        let key = key(number(index, &mut prng));
                        body_of(&[b"BLIND", b"SET", &key, &value(&mut prng)])
                    })
                    .collect();
                let begin = Instant::now();
                self.write(&mut lane, &bodies, &mut reply);
                unsealed += BATCH * 140;
                self.seal_if_due(&mut unsealed)?;
                self.wait(&mut phase);
                phase.waits.push(begin.elapsed());
            }
            Ok(())
        })?;
        phase.end(self, count);
        Ok(())
    }

    fn write(&self, lane: &mut Lane<S>, bodies: &[Vec<u8>], reply: &mut Vec<u8>) {
        reply.clear();
        for body in bodies {
            lane.execute(NOW, body, reply);
        }
        lane.commit();
        assert!(self.shared.failure().is_none(), "{:?}", self.shared.failure());
    }

    fn seal_if_due(&self, unsealed: &mut u64) -> PhaseResult {
        if *unsealed > self.settings.number("checkpoint_mb", 64) << 20 {
            self.shared.seal(b"head")?;
            *unsealed = 0;
        }
        Ok(())
    }

    fn finish_compaction(&self, name: &str) -> PhaseResult {
        let phase = Phase::new(name);
        self.shared.seal(b"head")?;
        self.shared.flush()?;
        self.shared.store().wait_for_compaction()?;
        phase.end(self, 1);
        Ok(())
    }

    /// Reads records drawn by chance.
    fn get(&self, name: &str, count: u64, threads: u64) {
        let mut phase = Phase::new(name);
        let one = |seed| {
            let (mut prng, mut waits) = (Prng::new(seed), Vec::new());
            let (mut reader, mut reply) = (Reader::new(Arc::clone(&self.shared)), Vec::new());
            for _ in 0..count {
                let body = body_of(&[b"GET", &key(prng.below(self.records))]);
                reply.clear();
                let begin = Instant::now();
                reader.read(NOW, &body, &mut reply);
                waits.push(begin.elapsed());
                assert!(self.kind == "none" || reply.len() > 100, "a record is gone");
            }
            waits
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|seed| scope.spawn(move || one(seed))).collect();
            for thread in threads {
                phase.waits.extend(thread.join().expect("it reads"));
            }
        });
        phase.end(self, count * threads);
    }

    fn scan(&self, name: &str, count: u64) {
        let mut phase = Phase::new(name);
        let (mut prng, mut reader) = (Prng::new(3), Reader::new(Arc::clone(&self.shared)));
        let mut reply = Vec::new();
        for _ in 0..count {
            let cursor = (prng.next_u64() >> 2).to_string();
            let body = body_of(&[b"SCAN", cursor.as_bytes(), b"COUNT", b"100"]);
            reply.clear();
            phase.each(|| reader.read(NOW, &body, &mut reply));
            assert!(self.kind == "none" || reply.len() > 2000, "keys are gone");
        }
        phase.end(self, count);
    }

    /// Three reads for each write.
    fn mix(&self, name: &str, count: u64) -> PhaseResult {
        let mut phase = Phase::new(name);
        let (mut prng, mut lane) = (Prng::new(4), Lane::new(Arc::clone(&self.shared)));
        let (mut reader, mut reply) = (Reader::new(Arc::clone(&self.shared)), Vec::new());
        let mut unsealed = 0;
        self.with_others(|| -> PhaseResult {
            for _ in 0..count / 400 {
                for _ in 0..300 {
                    let body = body_of(&[b"GET", &key(prng.below(self.records))]);
                    reply.clear();
                    phase.each(|| reader.read(NOW, &body, &mut reply));
                }
                let mut body =
                    || body_of(&[b"BLIND", b"SET", &key(prng.below(self.records)), &value(&mut prng)]);
                let bodies: Vec<_> = (0..100).map(|_| body()).collect();
                self.write(&mut lane, &bodies, &mut reply);
                unsealed += 100 * 140;
                self.seal_if_due(&mut unsealed)?;
                self.wait(&mut phase);
            }
            Ok(())
        })?;
        phase.end(self, count);
        Ok(())
    }

    fn run(&self) -> PhaseResult {
        let records = self.records;
        if self.settings.runs("load") {
            self.put("load", records, |index, _| index)?;
            self.finish_compaction("settle after load")?;
        }
        if self.settings.runs("get") {
            self.get("get, first", 200_000, 1);
            self.get("get, 1 thread", 200_000, 1);
            self.get("get, 2 threads", 200_000, 2);
        }
        if self.settings.runs("scan") {
            self.scan("scan of 100", 20_000);
        }
        if self.settings.runs("overwrite") {
            self.put("overwrite", records / 4, |_, prng| prng.below(records))?;
        }
        if self.settings.runs("mix") {
            self.mix("mix 75/25", records / 10)?;
        }
        if self.settings.runs("overwrite") {
            self.finish_compaction("settle after all")?;
        }
        if self.settings.runs("cold") && fs::write("/proc/sys/vm/drop_caches", "1").is_ok() {
            self.get("get, no page cache", 20_000, 1);
        }
        Ok(())
    }
}

fn run<S: Measured>(store: S, kind: String, path: PathBuf, settings: Settings) -> PhaseResult {
    let (engine, _) = DiskEngine::open(store)?;
    let mut settings = settings;
    if S::OWN_THREADS {
        settings.0.insert("threads".into(), "1".into());
    }
    let records = settings.number("records", 20_000_000);
    Bench { kind, path, settings, records, shared: engine.into_shared() }.run()
}

fn main() -> PhaseResult {
    let mut words = std::env::args().skip(1);
    let (Some(kind), Some(path)) = (words.next(), words.next()) else {
        return Err("compare KIND DIRECTORY [NAME=VALUE ..]".into());
    };
    let split =
        |word: String| word.split_once('=').map(|(name, value)| (name.to_string(), value.to_string()));
    let settings = Settings(words.filter_map(split).collect());
    let path = PathBuf::from(path);
    let cache = settings.number("cache_mb", 270) << 20;
    let table_bytes = settings.number("table_mb", 64) << 20;
    let l0_tables = settings.number("l0", 4) as u8;
    let block = settings.number("block", 4096);
    let compress = settings.number("compress", 1) == 1;
    match kind.as_str() {
        "lsm" => {
            let block_bytes = u32::try_from(block)?;
            let options = LsmOptions {
                cache_bytes: cache,
                table_bytes,
                l0_tables,
                block_bytes,
                compress,
                ..LsmOptions::new(&path)
            };
            run(LsmStore::open(options)?, kind, path, settings)
        }
        #[cfg(feature = "rocksdb")]
        "rocks" => {
            let options = syros_lsm::RocksOptions {
                cache_bytes: usize::try_from(cache)?,
                table_bytes,
                l0_tables,
                block_bytes: usize::try_from(block)?,
                compress,
                ..syros_lsm::RocksOptions::new(&path)
            };
            run(syros_lsm::RocksStore::open(&options)?, kind, path, settings)
        }
        "fjall" => {
            let database = fjall::Database::builder(&path)
                .cache_size(cache)
                .worker_threads(2)
                .manual_journal_persist(true)
                .open()?;
            let options = || fjall::KeyspaceCreateOptions::default().manual_journal_persist(true);
            let keyspace = database.keyspace("data", options)?;
            run(Fjall { database, keyspace }, kind, path, settings)
        }
        "none" => run(Nothing, kind, path, settings),
        _ => Err(format!("{kind} is unknown").into()),
    }
}
