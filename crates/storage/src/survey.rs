//! What a snapshot holds, found by reading its blocks once: without an engine, and without memory for its keys.

use crate::DamagedSnapshot;
use crate::snapshot::Record;
use std::collections::BTreeMap;
use syros_types::{Database, mix};

/// Looks through the blocks of a snapshot, which may come in any order, each exactly once.
#[derive(Clone, Debug, Default)]
pub struct SnapshotSurvey {
    /// Keys that were met.
    keys: u64,
    /// Keys that headers and ends promise.
    promised: u64,
    /// Headers that were met.
    headers: u64,
    /// The digest at the end of each database; at the end of all of them, if the engine was on disk.
    ends: BTreeMap<Database, u64>,
    is_of_disk_engine: bool,
}

impl SnapshotSurvey {
    /// Looks through one block.
    ///
    /// # Errors
    /// If it is no block of a snapshot.
    pub fn block(&mut self, block: &[u8]) -> Result<(), DamagedSnapshot> {
        let mut rest = block;
        let mut database = Database::FIRST;
        while !rest.is_empty() {
            match Record::take(&mut rest)? {
                Record::Database { database: next } => database = next,
                Record::Header { count, .. } => {
                    self.promised += count;
                    self.headers += 1;
                }
                Record::OpenHeader { .. } => {
                    self.is_of_disk_engine = true;
                    self.headers += 1;
                }
                Record::End { digest } => self.end(database, digest)?,
                Record::CountedEnd { count, digest } => {
                    self.promised += count;
                    self.end(database, digest)?;
                }
                Record::Key { .. } | Record::Collection { .. } | Record::CollectionHead { .. } => {
                    self.keys += 1;
                }
                Record::CollectionPart { .. }
                | Record::Removal { .. }
                | Record::Recorded { .. }
                | Record::OtherDatabases { .. }
                | Record::Program { .. } => {}
            }
        }
        Ok(())
    }

    fn end(&mut self, database: Database, digest: u64) -> Result<(), DamagedSnapshot> {
        match self.ends.insert(database, digest) {
            None => Ok(()),
            Some(_) => Err(DamagedSnapshot::SecondEnd),
        }
    }

    /// What was found, when all blocks have been looked through.
    ///
    /// # Errors
    /// If blocks are missing.
    pub fn finish(self) -> Result<SnapshotContents, DamagedSnapshot> {
        let Self { keys, promised, headers, ends, is_of_disk_engine } = self;
        if headers == 0 {
            return Err(DamagedSnapshot::NoHeader);
        }
        if ends.len() as u64 != headers {
            return Err(DamagedSnapshot::NoEnd);
        }
        if keys != promised {
            return Err(DamagedSnapshot::Count { found: keys, expected: promised });
        }
        let digest = match ends.values().collect::<Vec<_>>()[..] {
            [digest] => *digest,
            _ => ends.iter().fold(0, |sum: u64, (database, digest)| {
                sum.wrapping_add(mix(digest ^ mix(u64::from(database.number()) + 1)))
            }),
        };
        Ok(SnapshotContents { keys, digest, is_of_disk_engine })
    }
}

/// What a snapshot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotContents {
    /// Number of keys, in all databases.
    pub keys: u64,
    /// The digest of the state, as [`Engine::digest`](crate::Engine::digest) computes it; where an engine in memory had keys
    /// in several databases, made of one digest for each.
    pub digest: u64,
    /// An engine on disk wrote it. The two kinds of engines do not read each other's snapshots.
    pub is_of_disk_engine: bool,
}
