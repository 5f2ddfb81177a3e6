//! WATCH: the keys that the next EXEC depends on, with their versions.

use crate::limits::{TRANSACTION_KEYS_MAX, WATCHED_BYTES_MAX};
use core::fmt;
use std::collections::BTreeMap;
use syros_commands::access::Version;
use syros_commands::families::{RecordVersions, Unchanged, Versions};
use syros_commands::{Arguments, Operation, Reply};
use syros_types::Database;

/// What a watched key takes in a body beside its bytes: two lengths and its version.
/// A condition of its own, for one in each database, takes some bytes more.
const KEY_OVERHEAD: usize = 20;

/// The keys that are watched, with the versions that they had.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// By their databases.
    keys: BTreeMap<Database, BTreeMap<Vec<u8>, Version>>,
    count: usize,
    bytes: usize,
}

/// A WATCH that has not been answered. The connection looks at no further input meanwhile.
#[derive(Debug)]
pub(crate) struct Watching {
    /// The group of what has been asked.
    pub(crate) slot: u64,
    pub(crate) database: Database,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) step: WatchStep,
    /// The client gets no reply.
    pub(crate) is_silent: bool,
}

/// What a WATCH waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchStep {
    /// The versions of the keys. The group may not record any yet.
    First,
    /// The group begins to record versions.
    Recording,
    /// The versions of the keys, now that they are recorded.
    Again,
}

/// There are too many watched keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WatchedTooMany {
    Keys,
    Bytes,
}

impl fmt::Display for WatchedTooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keys => write!(f, "ERR a connection watches at most {TRANSACTION_KEYS_MAX} keys"),
            Self::Bytes => write!(f, "ERR a connection watches keys of at most {WATCHED_BYTES_MAX} bytes"),
        }
    }
}

impl Watched {
    /// How many keys are watched.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Bytes that they take in a body.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Fails if these keys are too many together with those that are watched.
    pub(crate) fn check(&self, keys: &[&[u8]]) -> Result<(), WatchedTooMany> {
        let bytes = keys.iter().map(|key| key.len() + KEY_OVERHEAD).sum::<usize>();
        if self.count + keys.len() > TRANSACTION_KEYS_MAX {
            Err(WatchedTooMany::Keys)
        } else if self.bytes + bytes > WATCHED_BYTES_MAX {
            Err(WatchedTooMany::Bytes)
        } else {
            Ok(())
        }
    }

    /// Adds keys of a database; those that are watched keep the version that they had first.
    pub(crate) fn add(&mut self, database: Database, keys: Vec<Vec<u8>>, versions: &[Version]) {
        let watched = self.keys.entry(database).or_default();
        for (key, version) in keys.into_iter().zip(versions) {
            let bytes = key.len() + KEY_OVERHEAD;
            watched.entry(key).or_insert_with(|| {
                self.bytes += bytes;
                self.count += 1;
                *version
            });
        }
    }

    /// The condition that none of the keys has changed, as an operation for each of their databases; `None` if none is
    /// watched.
    pub(crate) fn condition(&self) -> Option<Vec<u8>> {
        if self.count == 0 {
            return None;
        }
        let mut body = Vec::new();
        for (database, keys) in &self.keys {
            let versions: Vec<[u8; 8]> = keys.values().map(|version| version.to_bytes()).collect();
            let pairs = keys.keys().zip(&versions);
            let words: Vec<&[u8]> = pairs.flat_map(|(key, version)| [key.as_slice(), version]).collect();
            let unchanged = Unchanged { pairs: Arguments::new(&words) };
            Operation::new(unchanged).in_database(*database).encode(&mut body);
        }
        Some(body)
    }
}

impl Watching {
    /// The body that asks for the versions.
    pub(crate) fn question(database: Database, keys: &[Vec<u8>]) -> Vec<u8> {
        let words: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        encoded(&Operation::new(Versions { keys: Arguments::new(&words) }).in_database(database))
    }

    /// The body after which versions are recorded.
    pub(crate) fn recording() -> Vec<u8> {
        encoded(&Operation::new(RecordVersions))
    }

    /// The versions that a reply tells; `None` if none are recorded, or it is no answer.
    pub(crate) fn versions(&self, reply: &[u8]) -> Option<Vec<Version>> {
        let Ok(Reply::Array(replies)) = Reply::decode(&mut { reply }) else { return None };
        let version = |reply: &Reply| match reply {
            Reply::Integer(number) => Some(Version(number.cast_unsigned())),
            _ => None,
        };
        let versions: Option<Vec<Version>> = replies.iter().map(version).collect();
        versions.filter(|all| all.len() == self.keys.len() && !all.contains(&Version::UNKNOWN))
    }
}

fn encoded(operation: &Operation<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    operation.encode(&mut body);
    body
}
