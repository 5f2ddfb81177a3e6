//! The engine of a node that is on disk: its threads, its checkpoints, and where its stores lie.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mio::Waker;
use rustix::fs::OFlags;
use syros_lsm::{DiskStore, StoreOptions};
use syros_node::{DiskExecutor, PressureLimits};
use syros_snapshot::StoreDirectory;
use syros_storage::{Census, DiskEngine, Shared, Store as _, StoreError};
use syros_types::{Database, OpNumber};
use syros_wal::OpenDirectory;

use crate::config::{EngineConfig, EngineKind};
use crate::directory::{DataDirectory, ENGINE};
use crate::disk_threads::{DiskThreads, ThreadCounts};

/// What the name of a store that is not complete ends with.
const UNFINISHED: &str = ".new";

/// A file that says that what is there is damaged: opening a store does not find everything.
const DAMAGED: &str = "damaged";

/// The directory with the stores of a node: one directory each, named by its number.
///
/// The stores are made, opened and removed through the data directory that this process has open. Another directory may
/// take the place of the data directory while the process runs: nothing is made or removed in that one.
#[derive(Clone, Debug)]
pub(crate) struct StoreFiles {
    pub(crate) data: OpenDirectory,
    pub(crate) options: StoreOptions,
}

impl StoreFiles {
    /// Those of the engine in this data directory.
    pub(crate) fn new(directory: &OpenDirectory, config: &EngineConfig, open_files: usize) -> Self {
        let options = StoreOptions {
            use_rocksdb: config.kind == EngineKind::RocksDb,
            cache_bytes: config.cache_bytes,
            memtable_bytes: config.memtable_bytes,
            open_files,
        };
        Self { data: directory.clone(), options }
    }

    /// Where the stores are, for messages.
    fn path(&self) -> PathBuf {
        self.data.path().join(ENGINE)
    }

    /// The directory of the stores, which is made if it is not in the data directory.
    fn engine(&self) -> Result<OpenDirectory, StoreError> {
        let opened = self.data.create_directory(ENGINE).and_then(|_| self.data.open_directory(ENGINE));
        opened.map_err(error("open the directory of the engine", &self.path()))
    }

    fn names(&self) -> Result<Vec<String>, StoreError> {
        self.engine()?.all_names().map_err(error("look into the directory of the engine", &self.path()))
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.engine()?.sync().map_err(error("sync the directory of the engine", &self.path()))
    }

    /// Makes sure that whoever starts next does not use what is there.
    pub(crate) fn mark_damaged(&self, problem: &str) -> Result<(), StoreError> {
        let opened = self.engine()?.open_file(DAMAGED, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC);
        let written = opened.and_then(|mut file| {
            file.write_all(problem.as_bytes())?;
            file.sync_all()
        });
        written.map_err(error("note that the store is damaged", &self.path().join(DAMAGED)))?;
        self.sync()
    }

    fn remove_directory(&self, name: &str) -> Result<(), StoreError> {
        let removed = self.engine()?.remove_directory(name);
        removed.map_err(error("remove an old store", &self.path().join(name)))
    }

    fn open_store(&self, name: &str) -> Result<DiskStore, StoreError> {
        let engine = self.engine()?;
        DiskStore::open(&engine.lasting_path().join(name), Some(Arc::clone(engine.handle())), &self.options)
    }
}

fn unfinished(number: u64) -> String {
    format!("{number}{UNFINISHED}")
}

fn error(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.display().to_string();
    move |source| {
        let error = StoreError::io(doing, &source);
        StoreError { problem: format!("{path}: {}", error.problem), ..error }
    }
}

impl StoreDirectory for StoreFiles {
    type Store = DiskStore;

    fn list(&mut self) -> Result<Vec<u64>, StoreError> {
        let mut numbers = Vec::new();
        let names = self.names()?;
        if names.iter().any(|name| name == DAMAGED) {
            let problem = self.engine()?.open_file(DAMAGED, OFlags::RDONLY).and_then(io::read_to_string);
            let problem = problem.unwrap_or_default();
            return Err(StoreError::damaged("use the store", problem));
        }
        for name in names {
            match name.parse() {
                Ok(number) => numbers.push(number),
                Err(_) if name.ends_with(UNFINISHED) => self.remove_directory(&name)?,
                // Whatever it is, it is not ours.
                Err(_) => {}
            }
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn open(&mut self, number: u64) -> Result<DiskStore, StoreError> {
        self.open_store(&number.to_string())
    }

    fn create(&mut self) -> Result<(u64, DiskStore), StoreError> {
        // Ones being loaded count, too: two never have one number.
        let number = |name: &String| name.trim_end_matches(UNFINISHED).parse::<u64>().ok();
        let number = self.names()?.iter().filter_map(number).max().map_or(1, |last| last + 1);
        let store = self.open_store(&unfinished(number))?;
        Ok((number, store))
    }

    fn complete(&mut self, number: u64) -> Result<(), StoreError> {
        let from = unfinished(number);
        let renamed = self.engine()?.rename(&from, &number.to_string());
        renamed.map_err(error("give a store its name", &self.path().join(from)))?;
        self.sync()
    }

    fn keep_only(&mut self, number: Option<u64>) -> Result<(), StoreError> {
        let keep = number.map(|number| number.to_string());
        for name in self.names()? {
            if name.parse::<u64>().is_ok() && Some(&name) != keep.as_ref() {
                self.remove_directory(&name)?;
            }
        }
        self.sync()
    }

    fn remove_before(&mut self, number: u64) -> Result<(), StoreError> {
        let mut old = self.names()?;
        old.retain(|name| name.parse().is_ok_and(|other: u64| other < number));
        // After nearly every checkpoint there is none.
        if old.is_empty() {
            return Ok(());
        }
        old.iter().try_for_each(|name| self.remove_directory(name))?;
        self.sync()
    }

    fn remove(&mut self, number: u64) -> Result<(), StoreError> {
        self.remove_directory(&number.to_string())
    }
}

/// What a node needs to know of its engine on disk.
pub(crate) struct DiskEngineSettings {
    pub(crate) files: StoreFiles,
    pub(crate) threads: ThreadCounts,
    pub(crate) limits: PressureLimits,
}

impl DiskEngineSettings {
    /// For the engine in this data directory.
    pub(crate) fn new(directory: &DataDirectory, config: &EngineConfig, open_files: usize) -> Self {
        Self {
            files: StoreFiles::new(directory.open_directory(), config, open_files),
            threads: ThreadCounts { lanes: config.execution_threads, readers: config.read_threads },
            // A checkpoint under way, one that follows, and the same again for bursts.
            limits: PressureLimits {
                checkpoint_bytes: config.memtable_bytes,
                unflushed_bytes: 4 * config.memtable_bytes,
                runs: RUNS_MAX,
            },
        }
    }
}

/// Clients wait when so many runs of the first level wait to be merged: each is one more place to look for a key.
const RUNS_MAX: usize = 20;

/// What executes a node's log on disk: its threads, and where its stores lie.
pub(crate) struct DiskEngineHandle {
    pub(crate) threads: DiskThreads<DiskStore>,
    settings: DiskEngineSettings,
    /// The last census of the keys.
    pub(crate) census: Option<[Census; Database::COUNT]>,
    waker: Arc<Waker>,
}

impl DiskEngineHandle {
    /// Starts the threads of an engine that goes up to `applied`, with what decides for them.
    pub(crate) fn start(
        engine: DiskEngine<DiskStore>,
        applied: OpNumber,
        settings: DiskEngineSettings,
        waker: Arc<Waker>,
    ) -> io::Result<(Self, DiskExecutor<DiskStore>)> {
        let DiskEngineSettings { threads, limits, .. } = settings;
        let shared = engine.into_shared();
        let executor = DiskExecutor::new(Arc::clone(&shared), applied, threads.lanes, limits);
        let threads = ThreadCounts { lanes: executor.lanes(), ..threads };
        let settings = DiskEngineSettings { threads, ..settings };
        let threads = DiskThreads::start(shared, threads, Arc::clone(&waker))?;
        Ok((Self { threads, settings, census: None, waker }, executor))
    }

    /// Starts the threads of an engine that was loaded. Those of the one before are given back: to end them takes its time.
    pub(crate) fn adopt(&mut self, engine: DiskEngine<DiskStore>) -> io::Result<DiskThreads<DiskStore>> {
        let next = DiskThreads::start(engine.into_shared(), self.settings.threads, Arc::clone(&self.waker))?;
        self.census = None;
        Ok(std::mem::replace(&mut self.threads, next))
    }

    /// See [`StoreFiles::mark_damaged`].
    pub(crate) fn mark_damaged(&self, problem: &str) -> Result<(), StoreError> {
        self.settings.files.mark_damaged(problem)
    }

    /// The last census of the keys; what the store guesses if there was none.
    pub(crate) fn census(&self, shared: &Shared<DiskStore>) -> [Census; Database::COUNT] {
        self.census.unwrap_or_else(|| {
            // Most often they are those of the first one.
            let mut all = [Census::default(); Database::COUNT];
            all[0].keys = shared.store().approximate_len() as u64;
            all
        })
    }
}
