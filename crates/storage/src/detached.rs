//! Reads that take long, apart from the engine: on clones of the few values that they name. A clone of a large collection
//! costs nothing to speak of, and does not see what is done to the key from then on.

use crate::entry::Entry;
use crate::keyspace::Keyspace;
use core::ops::ControlFlow;
use std::collections::BTreeMap;
use syros_commands::Programs;
use syros_commands::access::{Keys, Version};
use syros_commands::{execution, operations};
use syros_types::{Prng, WallTime};
use syros_values::Kind;

/// A body of reads with the values of its keys, as they were at one moment.
#[derive(Clone, Debug)]
pub struct DetachedRead {
    keys: NamedKeys,
    now: WallTime,
    body: Vec<u8>,
}

impl DetachedRead {
    /// The read at `now`, which is not before log time, with what `keys` has.
    pub(crate) fn new(now: WallTime, body: &[u8], all: &Keyspace) -> Self {
        let mut keys = NamedKeys { programs: all.programs(), ..NamedKeys::default() };
        for operation in operations(body).flatten() {
            operation.each_key(|key| {
                if keys.versions.insert(key.into(), all.version(key)).is_none()
                    && let Some(entry) = all.get(key)
                {
                    keys.entries.insert(key.into(), entry.clone());
                }
            });
        }
        Self { keys, now, body: body.to_vec() }
    }

    /// Executes it, on any thread: appends one encoded reply per operation to `reply`.
    pub fn put(self, reply: &mut Vec<u8>) {
        execution::read(&self.keys, self.now, &self.body, reply);
    }
}

/// The keys that a body names, as far as they exist. No operation asks for others.
#[derive(Clone, Debug, Default)]
struct NamedKeys {
    entries: BTreeMap<Box<[u8]>, Entry>,
    /// Those of keys that do not exist, too.
    versions: BTreeMap<Box<[u8]>, Version>,
    programs: Programs,
}

impl Keys for NamedKeys {
    type EntryRef<'a> = &'a Entry;

    fn get(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    fn version(&self, key: &[u8]) -> Version {
        self.versions.get(key).copied().unwrap_or(Version::UNKNOWN)
    }

    fn programs(&self) -> Programs {
        self.programs.clone()
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
