//! The contract of a storage engine, the suite every engine has to pass, and the in-memory engine.
//!
//! An engine is a deterministic state machine: its state is a function of the bodies applied to it and
//! the log times they were applied at. It knows no clock, no randomness and no network.
#![forbid(unsafe_code)]

mod assembly;
mod capture;
pub mod conformance;
mod databases;
mod detached;
mod digest;
mod disk;
mod entries;
mod entry;
mod evaluate;
mod events;
pub mod execution;
mod hash;
mod keyspace;
mod leftovers;
mod listing;
mod memory;
mod memory_store;
mod removals;
mod snapshot;
mod stamp;
mod store;
mod survey;
mod undo;
mod uses;
mod victims;

pub use detached::DetachedRead;
pub use digest::Digest;
pub use disk::{Census, Cut, DiskEngine, DiskLoader, Lane, LoadError, ReadView, Reader, Shared, merged};
pub use entries::{SnapshotEntries, SnapshotEntry};
pub use keyspace::RemovalPace;
pub use memory::{ListedKeys, Loader, LongRead, MemoryEngine};
pub use memory_store::MemoryStore;
pub use snapshot::DamagedSnapshot;
pub use store::{Change, Pressure, Store, StoreCause, StoreError};
pub use survey::{SnapshotContents, SnapshotSurvey};
pub use victims::Victim;

use syros_commands::access::Announcement;
use syros_types::{OpNumber, WallTime};

/// A store of keys, their values and expiries in sixteen [databases](syros_types::Database), which executes the bodies of
/// `syros-commands`.
///
/// **Log time.** Every entry of the consensus log carries the time at which its leader ordered it.
/// The engine's log time is the latest it was told; an earlier one counts as that. A key whose expiry
/// is at or before log time, both in milliseconds, does not exist. So whether a key exists depends on
/// the log alone and is the same on every replica.
///
/// **Equal histories, equal answers.** Two engines of one type to which the same bodies were applied at
/// the same times give the same reply to every body, SCAN's cursors and the order of KEYS included.
/// Engines of different types may order keys differently, but agree in everything else.
///
/// **Snapshots.** A snapshot is the whole state at one moment, in blocks of bytes that are taken one by
/// one while bodies are applied. An engine restored from them is equal to the one that was captured: the
/// same bodies at the same times give the same replies from then on. Taking one changes no answer.
pub trait Engine {
    /// The bodies applied from now on are those of this log entry, which comes after all before. If versions of keys are
    /// recorded, the version of a key says which entry has changed it last
    /// ([`RecordVersions`](syros_commands::families::RecordVersions)); without a call they are not.
    fn begin_entry(&mut self, number: OpNumber);

    /// Moves log time on to `time`, and with it removes what has expired, and executes all operations of `body` in
    /// order, as one: nobody sees the state between them. Appends one encoded reply per operation to
    /// `reply`. An operation that fails answers an error and changes nothing; those after it go on. A
    /// blind operation answers OK, and if it fails, nobody is told.
    ///
    /// A malformed body is answered by a single error and changes nothing but log time.
    ///
    /// Relative expiries count from log time. Reads are allowed, and see the state between operations.
    ///
    /// Once the replies to a body have grown beyond
    /// [`REPLY_BYTES_MAX`](syros_commands::limits::REPLY_BYTES_MAX), an operation that answers anything
    /// but OK is not executed and answers an error instead.
    fn apply(&mut self, time: WallTime, body: &[u8], reply: &mut Vec<u8>);

    /// Executes a body of reads and appends one encoded reply per operation to `reply`. An operation
    /// that is no read answers an error; a malformed body is answered by a single error.
    ///
    /// `now` never decides whether a key exists: that would let two replicas disagree. It only makes
    /// TTL and PTTL, which count from the later of `now` and log time, go down while nothing is
    /// applied; a key that exists has at least 1 ms left. RANDOMKEY also draws its choice from it.
    fn read(&self, now: WallTime, body: &[u8], reply: &mut Vec<u8>);

    /// Appends to `reply` what [`Engine::apply`] would append if the body were applied now or at any later time, as
    /// long as nothing else changes its keys until then. Changes nothing.
    ///
    /// False, and nothing is appended, if the answer depends on that time, because a key of the body will expire, or
    /// on keys that the body does not name.
    fn evaluate(&self, body: &[u8], reply: &mut Vec<u8>) -> bool;

    /// The log time at which the first key of a body expires; `None` if none of them does.
    fn first_expiry(&self, body: &[u8]) -> Option<WallTime>;

    /// Moves log time on to `time`, and with it removes what has expired: no key that has expired exists afterwards for
    /// anybody who asks. The engine may give its memory back later, while log time moves on.
    fn advance(&mut self, time: WallTime);

    /// Collects what bodies do to keys from now on, or does so no longer. Changes no answer.
    fn set_notifying(&mut self, is_on: bool);

    /// What has happened to keys since this was asked last, and what scripts have published, in the order in which it has
    /// happened: what was undone has not, and nobody is told of hidden keys. That a key has expired is told once, when its
    /// record goes.
    fn take_announcements(&mut self) -> Vec<Announcement>;

    /// A hash of what the updates have done that were applied since this was asked last: of what they have returned, and of
    /// the updates that scripts have called. Equal on engines that have applied the same to equal states. Updates
    /// that return no state have no part in it.
    fn take_effects(&mut self) -> u64;

    /// Log time.
    fn time(&self) -> WallTime;

    /// A moment after log time before which no key expires, and [`Engine::advance`] has nothing to do; the
    /// earliest expiry of any key, or earlier, while memory of expired keys is to be given back.
    fn next_expiry(&self) -> Option<WallTime>;

    /// Number of keys that exist, in all databases.
    fn len(&self) -> usize;

    /// True if no key exists.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many bytes of memory the data takes, overhead included; without what a snapshot keeps.
    fn memory_bytes(&self) -> usize;

    /// [`Digest`] of the whole state: databases, keys, values, expiries, versions and log time. Equal, on engines of any
    /// type, if and, but for collisions of 64 bits, only if the states are equal. Takes time
    /// proportional to the data.
    fn digest(&self) -> u64;

    /// Begins a snapshot of the state as it is now: keys in the order of their positions, values,
    /// expiries and log time. One that is under way is abandoned. Copies no data.
    fn begin_snapshot(&mut self);

    /// Appends the next block of the snapshot to `block`: as many records as it takes to reach `bytes`
    /// bytes, at least one, or all that are left. So it exceeds `bytes` by at most one record, a key with
    /// its value, and some framing. Takes time proportional to the block, not to the data.
    ///
    /// An engine can be restored from the blocks in any order. Engines with equal histories capture equal
    /// states, but not in equal blocks: what is in them depends on what was applied between them.
    ///
    /// False if nothing is left after this block: the snapshot is complete and no longer under way. If
    /// none is under way, appends nothing and answers false.
    fn snapshot_block(&mut self, bytes: usize, block: &mut Vec<u8>) -> bool;

    /// About how many bytes of memory are kept only because the snapshot has yet to take them: what was
    /// overwritten or removed since it began. At most as much as the data was when it began; the next
    /// blocks take it first. 0 if none is under way.
    fn snapshot_waiting_bytes(&self) -> usize;

    /// Abandons the snapshot under way, if there is one.
    fn end_snapshot(&mut self);
}
