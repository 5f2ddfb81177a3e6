//! The keys of a snapshot, found by reading its blocks once: without an engine, and with memory for one large collection at a
//! time, or for those few that an engine has captured side by side.

use crate::DamagedSnapshot;
use crate::assembly::Assembly;
use crate::snapshot::Record;
use crate::stamp::Stamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use syros_commands::Programs;
use syros_commands::access::{Expiry, is_hidden};
use syros_types::Database;
use syros_values::Value;

/// Reads the blocks of a snapshot, which may come in any order, each exactly once. Nothing is known of their digest: whoever needs
/// that asks [`SnapshotSurvey`](crate::SnapshotSurvey).
#[derive(Default)]
pub struct SnapshotEntries {
    /// Large collections that are not complete, by the positions of their keys.
    assemblies: BTreeMap<(Database, u64), Assembly>,
}

/// A key, what is kept of it, and its value.
type Complete = (Box<[u8]>, Stamp, Value);

/// Something that clients have put into a store.
#[derive(Debug)]
pub enum SnapshotEntry {
    /// A key.
    Key {
        /// Where it is.
        database: Database,
        /// Its name.
        key: Box<[u8]>,
        /// The first millisecond in which it is gone: one more than PEXPIRETIME says.
        expiry: Expiry,
        /// Its value.
        value: Value,
    },
    /// The text of a library of functions.
    Library(Arc<[u8]>),
}

impl SnapshotEntries {
    /// Reads one block, and hands on the keys that are complete. No client knows of hidden keys, and `take` does not, either.
    ///
    /// # Errors
    /// If it is no block of a snapshot, and what `take` says.
    pub fn block<E: From<DamagedSnapshot>>(
        &mut self,
        block: &[u8],
        mut take: impl FnMut(SnapshotEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = block;
        let mut database = Database::FIRST;
        let mut key = |database, (key, stamp, value): Complete| {
            if is_hidden(&key) {
                return Ok(());
            }
            take(SnapshotEntry::Key { database, key, expiry: stamp.expiry, value })
        };
        let mut libraries = Vec::new();
        while !rest.is_empty() {
            match Record::take(&mut rest)? {
                Record::Database { database: next } => database = next,
                Record::Key { key: name, value, stamp, .. } => {
                    key(database, (name.into(), stamp, Value::String(value.to_vec())))?;
                }
                Record::Collection { key: name, value, stamp, .. } => {
                    key(database, (name.into(), stamp, value))?;
                }
                Record::CollectionHead { position, key: name, builder, stamp } => {
                    let assembly = self.assemblies.entry((database, position)).or_default();
                    assembly.head(position, (name, stamp), builder)?;
                    if let Some(complete) = self.complete(database, position)? {
                        key(database, complete)?;
                    }
                }
                Record::CollectionPart { position, rank, elements } => {
                    self.assemblies
                        .entry((database, position))
                        .or_default()
                        .part(position, rank, elements)?;
                    if let Some(complete) = self.complete(database, position)? {
                        key(database, complete)?;
                    }
                }
                Record::Program { record } => {
                    let mut program = Programs::NONE;
                    program.add_record(record).map_err(|_| DamagedSnapshot::Program)?;
                    libraries.extend(program.libraries().map(|(_, library)| Arc::clone(&library.text)));
                }
                Record::Header { .. }
                | Record::OpenHeader { .. }
                | Record::End { .. }
                | Record::CountedEnd { .. }
                | Record::Removal { .. }
                | Record::Recorded { .. }
                | Record::OtherDatabases { .. } => {}
            }
        }
        libraries.into_iter().try_for_each(|text| take(SnapshotEntry::Library(text)))
    }

    /// The collection of the key at this position, if nothing of it is missing.
    fn complete(&mut self, database: Database, position: u64) -> Result<Option<Complete>, DamagedSnapshot> {
        if !self.assemblies.get(&(database, position)).is_some_and(Assembly::is_complete) {
            return Ok(None);
        }
        self.assemblies.remove(&(database, position)).map(|assembly| assembly.finish(position)).transpose()
    }

    /// Checks that no collection lacks a part, when all blocks have been read.
    ///
    /// # Errors
    /// If one does.
    pub fn finish(self) -> Result<(), DamagedSnapshot> {
        match self.assemblies.keys().next() {
            Some((_, position)) => Err(DamagedSnapshot::MissingPart(*position)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::body_of;
    use crate::{Engine as _, MemoryEngine};
    use syros_types::WallTime;

    #[test]
    fn keys_of_all_kinds_are_found() {
        let mut engine = MemoryEngine::new();
        let mut apply = |command: &str| {
            let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            engine.apply(WallTime(2_000_000), &body_of(&words), &mut Vec::new());
        };
        apply("SET string value PXAT 5000");
        apply("SADD set a b");
        for n in 0..2_000 {
            apply(&format!("HSET large {n} {n}"));
        }
        engine.begin_snapshot();
        let (mut entries, mut found, mut more) = (SnapshotEntries::default(), Vec::new(), true);
        while more {
            let mut block = Vec::new();
            more = engine.snapshot_block(1000, &mut block);
            let taken = entries.block(&block, |entry| {
                let SnapshotEntry::Key { database, key, expiry, value } = entry else { panic!("{entry:?}") };
                assert!(database.is_first());
                found.push((
                    String::from_utf8_lossy(&key).into_owned(),
                    expiry.map(u64::from),
                    value.fingerprint(),
                ));
                Ok::<(), DamagedSnapshot>(())
            });
            assert_eq!(taken, Ok(()));
            // Whatever is cut off, it is no panic.
            let _ = SnapshotEntries::default()
                .block(&block[..block.len() / 2], |_| Ok::<(), DamagedSnapshot>(()));
        }
        assert_eq!(entries.finish(), Ok(()));
        found.sort();
        let names: Vec<_> = found.iter().map(|(name, expiry, _)| (&name[..], *expiry)).collect();
        assert_eq!(names, [("large", None), ("set", None), ("string", Some(5001))]);
    }

    #[test]
    fn a_missing_part_is_noticed() {
        let mut engine = MemoryEngine::new();
        for n in 0..2_000 {
            let member = n.to_string();
            engine.apply(WallTime(0), &body_of(&[&b"SADD"[..], b"set", member.as_bytes()]), &mut Vec::new());
        }
        engine.begin_snapshot();
        let mut entries = SnapshotEntries::default();
        let mut block = Vec::new();
        assert!(engine.snapshot_block(1000, &mut block));
        assert_eq!(entries.block(&block, |_| Ok::<(), DamagedSnapshot>(())), Ok(()));
        assert_eq!(entries.finish(), Err(DamagedSnapshot::MissingPart(0)));
    }
}
