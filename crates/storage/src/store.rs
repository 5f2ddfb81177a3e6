//! What a disk engine needs of a store on disk: an ordered map of byte strings that is written in batches,
//! has no log of its own, and becomes durable at checkpoints only.
//!
//! **Checkpoints.** [`Store::seal`] ends a checkpoint: all that was written before belongs to it, nothing that
//! is written later does. [`Store::flush`] makes what was sealed durable, as one. A store that is opened again
//! holds exactly what it held at a checkpoint: the last one whose flush has returned, or a later one. So
//! whoever writes, with the data, up to which entry of a log it goes, knows after a crash from where to replay.

use core::fmt;
use core::ops::ControlFlow;

/// A disk refused, or what is on it is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// What was being done.
    pub doing: &'static str,
    /// What the store said.
    pub problem: String,
    /// What is to be done about it.
    pub cause: StoreCause,
}

/// What is to be done about a failure of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreCause {
    /// The disk is full: it may take writes again later.
    Full,
    /// What is on disk is not what was written: it can only be had from others.
    Damaged,
    /// Anything else: whoever runs the machine has to look.
    Other,
}

impl StoreError {
    /// The disk is full.
    pub fn full(doing: &'static str, problem: impl Into<String>) -> Self {
        Self { doing, problem: problem.into(), cause: StoreCause::Full }
    }

    /// What is on disk is not what was written.
    pub fn damaged(doing: &'static str, problem: impl Into<String>) -> Self {
        Self { doing, problem: problem.into(), cause: StoreCause::Damaged }
    }

    /// Neither.
    pub fn other(doing: &'static str, problem: impl Into<String>) -> Self {
        Self { doing, problem: problem.into(), cause: StoreCause::Other }
    }

    /// What the system said about a file.
    pub fn io(doing: &'static str, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match error.kind() {
            StorageFull | QuotaExceeded => Self::full(doing, error.to_string()),
            _ => Self::other(doing, error.to_string()),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the disk engine cannot {}: {}", self.doing, self.problem)
    }
}

impl core::error::Error for StoreError {}

/// What becomes of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It gets this value.
    Put(Vec<u8>),
    /// It is removed, if it exists.
    Delete,
    /// [`merged`](crate::merged) is applied to it with these operands, one after the other. Only for stores that merge.
    Merge(Vec<Vec<u8>>),
}

impl Change {
    /// Bytes that it writes besides its key.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Put(value) => value.len(),
            Self::Delete => 0,
            Self::Merge(operands) => operands.iter().map(Vec::len).sum(),
        }
    }
}

/// What a store takes of memory and owes to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pressure {
    /// Bytes that were written and are in memory only, sealed or not.
    pub unflushed_bytes: u64,
    /// Sorted runs that a read of one key may have to look at and that compaction has yet to merge.
    pub runs: usize,
    /// Bytes of cache.
    pub cache_bytes: u64,
}

/// An ordered map of byte strings. Several threads may write at a time if they write different keys; each sees
/// what it wrote itself.
pub trait Store: Send + Sync + 'static {
    /// A value that was read.
    type Value: AsRef<[u8]>;

    /// The store as it was at some moment.
    type View: Send + Sync + 'static;

    /// Bytes of memory from which on a collection lies in pages, one record each, and not in one record. Reading and writing all of
    /// a smaller one should cost less than some pages do.
    const PAGED_FROM: usize;

    /// True if [`Change::Merge`] is understood, because that is cheaper than to read first.
    fn merges(&self) -> bool;

    /// The value of a key.
    ///
    /// # Errors
    /// What the disk says.
    fn get(&self, key: &[u8]) -> Result<Option<Self::Value>, StoreError>;

    /// Carries out changes of keys, no key twice. Not durable.
    ///
    /// # Errors
    /// What the disk says. Nothing can be relied upon any more then but the last checkpoint.
    fn write(&self, changes: impl Iterator<Item = (impl AsRef<[u8]>, Change)>) -> Result<(), StoreError>;

    /// The store as it is now. Of what is being written meanwhile some may be in it.
    fn view(&self) -> Self::View;

    /// The value of a key in a view.
    ///
    /// # Errors
    /// What the disk says.
    fn get_in(&self, view: &Self::View, key: &[u8]) -> Result<Option<Self::Value>, StoreError>;

    /// Visits the pairs from a key on, in order, until `visit` breaks off; in a view, or as they come.
    ///
    /// # Errors
    /// What the disk says.
    fn walk(
        &self,
        view: Option<&Self::View>,
        from: &[u8],
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError>;

    /// Ends a checkpoint. Nobody may write meanwhile. Takes no time to speak of.
    ///
    /// # Errors
    /// What the disk says.
    fn seal(&self) -> Result<(), StoreError>;

    /// Makes durable what was sealed. Others may read and write meanwhile.
    ///
    /// # Errors
    /// What the disk says. What was sealed is still there then, and can be flushed again.
    fn flush(&self) -> Result<(), StoreError>;

    /// Merges runs, if there is something to merge: reads become faster and space is given back. Others may read
    /// and write meanwhile. False if there was nothing to do.
    ///
    /// # Errors
    /// What the disk says. Nothing is lost.
    fn compact(&self) -> Result<bool, StoreError>;

    /// Gives back the space of all keys from `from` on and before `until`, at once and for good: nobody will read
    /// or write them any more, and no checkpoint that may have to be returned to has them. Some may stay.
    ///
    /// # Errors
    /// What the disk says.
    fn forget(&self, from: &[u8], until: &[u8]) -> Result<(), StoreError>;

    /// How much it owes.
    fn pressure(&self) -> Pressure;

    /// About how many keys there are.
    fn approximate_len(&self) -> usize;

    /// Bytes on disk.
    fn disk_bytes(&self) -> u64;
}
