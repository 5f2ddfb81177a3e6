//! The table of keys of the in-memory engine.

use crate::hash::KeyHashBuilder;
use crate::stamp::Stamp;
use indexmap::IndexMap;
use smallvec::SmallVec;
use syros_commands::access::{EntryRef, Expiry};
use syros_types::WallTime;
use syros_values::{Collection, Kind, Moments, Value, WrongType};

/// A key's bytes: short ones lie in the table itself, so that comparing them costs no further cache miss.
pub(crate) type Key = SmallVec<[u8; 24]>;

/// Keys in the order of their positions.
pub(crate) type Table = IndexMap<Key, Entry, KeyHashBuilder>;

/// A key's value and expiry, and which log entry has changed it last.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) expiry: Expiry,
    pub(crate) changed: u64,
}

impl Entry {
    pub(crate) const fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) const fn expiry(&self) -> Expiry {
        self.expiry
    }

    /// When it, or a field of it, is gone.
    #[inline]
    pub(crate) fn moments(&self) -> Moments {
        moments_under(self.expiry, self.value.moments())
    }

    /// When all of it is gone: it expires, or the last of its fields does.
    #[inline]
    pub(crate) fn gone(&self) -> Expiry {
        self.moments().gone
    }

    /// When it, or a field that is there at this time, is gone.
    pub(crate) fn next_change(&self, now_ms: u64) -> Expiry {
        earlier(self.expiry, self.value.next_expiry(now_ms))
    }

    pub(crate) const fn stamp(&self) -> Stamp {
        Stamp { expiry: self.expiry, entry: self.changed }
    }

    /// Drops the value, of which nobody will ask again.
    pub(crate) fn give_memory_back(&mut self) {
        self.value = Value::default();
    }
}

/// What a heap allocation costs besides its bytes: about the allocator's granularity.
pub(crate) const ALLOCATION_BYTES: usize = 16;
/// What a key costs in the table: hash, key, entry, and its slot in the index at the usual load.
pub(crate) const ENTRY_BYTES: usize = size_of::<(u64, Key, Entry)>() + 12 + 2 * ALLOCATION_BYTES;

impl EntryRef for &Entry {
    fn kind(&self) -> Kind {
        self.value.kind()
    }

    fn string(&self) -> Result<&[u8], WrongType> {
        self.value.string()
    }

    fn collection<C: Collection>(&self) -> Result<&C, WrongType> {
        self.value.collection()
    }

    fn to_value(&self) -> Value {
        self.value.clone()
    }

    fn expiry(&self) -> Expiry {
        self.expiry
    }

    fn memory_bytes(&self) -> usize {
        ENTRY_BYTES + self.value.memory_bytes()
    }
}

/// The earlier one of two moments, where there are any.
#[inline]
pub(crate) fn earlier(first: Expiry, second: Expiry) -> Expiry {
    match (first, second) {
        (Some(first), Some(second)) => Some(first.min(second)),
        (first, second) => first.or(second),
    }
}

/// When a key with this expiry is gone, or a field of it, whose value by itself has these moments.
#[inline]
pub(crate) fn moments_under(expiry: Expiry, Moments { first, gone }: Moments) -> Moments {
    Moments { first, gone: earlier(expiry, gone) }
}

/// True if a key with this expiry is due.
pub(crate) fn is_due(expiry: Expiry, time: WallTime) -> bool {
    expiry.is_some_and(|expiry| expiry.get() <= time.as_millis())
}
