//! Reads that take long, apart from the engine: on clones of the few values that they name. A clone of a large collection
//! costs nothing to speak of, and does not see what is done to the key from then on.

use crate::databases::MemoryDatabases;
use crate::entry::Entry;
use core::ops::ControlFlow;
use std::collections::BTreeMap;
use syros_commands::Programs;
use syros_commands::access::{Databases, Keys, Version};
use syros_commands::{execution, operations};
use syros_types::{Database, Prng, WallTime};
use syros_values::Kind;

/// A body of reads with the values of its keys, as they were at one moment.
#[derive(Clone, Debug)]
pub struct DetachedRead {
    databases: NamedDatabases,
    now: WallTime,
    body: Vec<u8>,
}

impl DetachedRead {
    /// The read at `now`, which is not before log time, with what `keys` has.
    pub(crate) fn new(now: WallTime, body: &[u8], all: &MemoryDatabases) -> Self {
        let mut databases = NamedDatabases { programs: all.programs(), ..NamedDatabases::default() };
        for operation in operations(body).flatten() {
            operation.each_key(|key| {
                let all = all.database(key.database);
                let keys = databases.named.entry(key.database).or_default();
                keys.time_ms = all.time_ms();
                if keys.versions.insert(key.name.into(), all.version(key.name)).is_none()
                    && let Some(entry) = all.get(key.name)
                {
                    keys.entries.insert(key.name.into(), entry.clone());
                }
            });
        }
        Self { databases, now, body: body.to_vec() }
    }

    /// Executes it, on any thread: appends one encoded reply per operation to `reply`.
    pub fn put(self, reply: &mut Vec<u8>) {
        execution::read(&self.databases, self.now, &self.body, reply);
    }
}

/// The databases that a body names keys of.
#[derive(Clone, Debug, Default)]
struct NamedDatabases {
    named: BTreeMap<Database, NamedKeys>,
    /// What all others are.
    none: NamedKeys,
    programs: Programs,
}

impl Databases for NamedDatabases {
    type Keys = NamedKeys;

    fn database(&self, database: Database) -> &NamedKeys {
        self.named.get(&database).unwrap_or(&self.none)
    }

    fn programs(&self) -> Programs {
        self.programs.clone()
    }
}

/// The keys of a database that a body names, as far as they exist. No operation asks for others.
#[derive(Clone, Debug, Default)]
struct NamedKeys {
    /// Log time.
    time_ms: u64,
    entries: BTreeMap<Box<[u8]>, Entry>,
    /// Those of keys that do not exist, too.
    versions: BTreeMap<Box<[u8]>, Version>,
}

impl Keys for NamedKeys {
    type EntryRef<'a> = &'a Entry;

    fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    fn time_ms(&self) -> u64 {
        self.time_ms
    }

    fn version(&self, key: &[u8]) -> Version {
        self.versions.get(key).copied().unwrap_or(Version::UNKNOWN)
    }

    fn each(&self, mut visit: impl FnMut(&[u8]) -> ControlFlow<()>) {
        let _ = self.entries.keys().try_for_each(|key| visit(key));
    }

    fn scan(&self, _: u64, _: u64, mut visit: impl FnMut(&[u8], Kind) -> ControlFlow<()>) -> u64 {
        let _ = self.entries.iter().try_for_each(|(key, entry)| visit(key, entry.value().kind()));
        0
    }

    fn random(&self, prng: &mut Prng, visit: impl FnOnce(&[u8])) -> bool {
        let drawn = prng.below(self.entries.len().max(1) as u64) as usize;
        self.entries.keys().nth(drawn).map(|key| visit(key)).is_some()
    }
}
