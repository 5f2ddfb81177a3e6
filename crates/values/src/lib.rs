//! Values of keys: strings, and the collections that Redis calls data types.
//!
//! **Small and large.** A small collection is *packed*: one allocation, searched from the front. Once it has more or
//! longer elements than its limits allow, it becomes a tree (`syros-tree`), and stays one however much of it is
//! removed, as in Redis. Which of the two it is shows in the order of its elements, so it belongs to the state.
//!
//! **Clones.** A clone of a collection costs nothing to speak of, and neither sees what is done to the other from then
//! on: snapshots and evaluations hold clones. A clone of a string copies its bytes.
//!
//! **Bytes.** Every value has one encoding (`encoding`), and equal values have equal ones, on every replica and whatever
//! led to them. A value that was read back is the value that was written: its elements have the same order, and it is
//! packed if that was.
#![forbid(unsafe_code)]

mod algebra;
mod by_hash;
mod encoding;
mod field_expiries;
mod fingerprint;
mod form_tag;
mod garbage;
mod hash;
mod list;
mod packed;
mod paged;
mod parts;
mod primitive;
mod set;
mod sorted_set;
mod stream;

pub use by_hash::Scan;
pub use garbage::Garbage;
pub use hash::{Hash, HashIter, LiveFields, LiveHash, Moments};
pub use list::{List, ListEnd, ListIter};
pub use paged::{Paged, PagedHead, put_paged, take_paged};
pub use parts::{ValueBuilder, ValueParts};
pub use primitive::InvalidValue;
pub use set::{Set, SetIter};
pub use sorted_set::{SortedSet, SortedSetIter};
pub use stream::{Consumer, Fields, Group, Pending, Stream, StreamId, StreamIter};
pub use syros_tree::{Edge, Pages, Saved, Score, Source, Subtree};

use core::fmt;
use core::num::NonZeroU64;

/// What an allocation costs besides its bytes: counts of references, and the allocator's granularity.
pub(crate) const ALLOCATION_BYTES: usize = 24;

/// What kind of value a key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Bytes.
    String = 0,
    /// Fields with values.
    Hash = 1,
    /// Elements where they were put.
    List = 2,
    /// Members.
    Set = 3,
    /// Members with scores.
    SortedSet = 4,
    /// Entries in the order of their ids, and consumer groups.
    Stream = 5,
}

impl Kind {
    /// What TYPE calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "zset",
            Self::Stream => "stream",
        }
    }

    /// The byte that its values begin with where they are written. Fixed for ever.
    #[must_use]
    pub const fn tag(self) -> u8 {
        self as u8
    }

    /// The kind with this tag.
    #[must_use]
    pub const fn of_tag(tag: u8) -> Option<Self> {
        match tag {
            0 => Some(Self::String),
            1 => Some(Self::Hash),
            2 => Some(Self::List),
            3 => Some(Self::Set),
            4 => Some(Self::SortedSet),
            5 => Some(Self::Stream),
            _ => None,
        }
    }
}

/// The key has a value of another kind than the one that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key has a value of another kind")
    }
}

impl core::error::Error for WrongType {}

/// The value of a key.
#[derive(Clone, Debug)]
pub enum Value {
    /// Bytes.
    String(Vec<u8>),
    /// Fields with values.
    Hash(Hash),
    /// Elements where they were put.
    List(List),
    /// Members.
    Set(Set),
    /// Members with scores.
    SortedSet(SortedSet),
    /// Entries in the order of their ids, and consumer groups.
    Stream(Stream),
}

/// Every key has a value in the table: what is longer than a string's three words has to go elsewhere.
const _: () = assert!(size_of::<Value>() == size_of::<Vec<u8>>());

impl Default for Value {
    /// The empty string, which has no allocation.
    fn default() -> Self {
        Self::String(Vec::new())
    }
}

impl Value {
    /// What kind it is.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::String(_) => Kind::String,
            Self::Hash(_) => Kind::Hash,
            Self::List(_) => Kind::List,
            Self::Set(_) => Kind::Set,
            Self::SortedSet(_) => Kind::SortedSet,
            Self::Stream(_) => Kind::Stream,
        }
    }

    /// The bytes of a string.
    ///
    /// # Errors
    /// If it is none.
    pub const fn string(&self) -> Result<&[u8], WrongType> {
        match self {
            Self::String(bytes) => Ok(bytes.as_slice()),
            Self::Hash(_) | Self::List(_) | Self::Set(_) | Self::SortedSet(_) | Self::Stream(_) => {
                Err(WrongType)
            }
        }
    }

    /// The collection that it is.
    ///
    /// # Errors
    /// If it is a value of another kind.
    pub fn collection<C: Collection>(&self) -> Result<&C, WrongType> {
        C::of(self).ok_or(WrongType)
    }

    /// Bytes of memory that it takes besides its own size; what a string's memory has to spare is not counted. Of a
    /// tree this depends on how it came about, and on a clone's it counts what both share.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::String(bytes) => bytes.len(),
            Self::Hash(hash) => hash.memory_bytes(),
            Self::List(list) => list.memory_bytes(),
            Self::Set(set) => set.memory_bytes(),
            Self::SortedSet(set) => set.memory_bytes(),
            Self::Stream(stream) => stream.memory_bytes(),
        }
    }

    /// About how many bytes its elements are that are there at this time. Unlike its memory this follows from what is in it
    /// alone, so replicas agree in it.
    #[must_use]
    pub fn element_bytes(&self, now_ms: u64) -> usize {
        match self {
            Self::String(bytes) => bytes.len(),
            Self::Hash(hash) => hash.at(now_ms).element_bytes(),
            Self::List(list) => list.element_bytes(),
            Self::Set(set) => set.element_bytes(),
            Self::SortedSet(set) => set.element_bytes(),
            Self::Stream(stream) => stream.element_bytes(),
        }
    }

    /// When something of it expires: fields of a hash.
    #[must_use]
    #[inline]
    pub fn moments(&self) -> Moments {
        if let Self::Hash(hash) = self { hash.moments() } else { Moments::default() }
    }

    /// The first moment after this one at which a field of it expires.
    #[must_use]
    pub fn next_expiry(&self, now_ms: u64) -> Option<NonZeroU64> {
        if let Self::Hash(hash) = self { hash.next_expiry(now_ms) } else { None }
    }

    /// Removes fields that are gone at this time, at most so many. How many.
    pub fn drop_due(&mut self, now_ms: u64, most: u64) -> u64 {
        if let Self::Hash(hash) = self { hash.drop_due(now_ms, most) } else { 0 }
    }

    /// A hash of all that it is at this time: as [`fingerprint`](Self::fingerprint), but for what is gone.
    #[must_use]
    pub fn fingerprint_at(&self, now_ms: u64) -> u64 {
        if let Self::Hash(hash) = self { hash.fingerprint_at(now_ms) } else { self.fingerprint() }
    }

    /// A hash of all that it is, with fields that have expired and were not removed. Equal values have equal ones.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        match self {
            Self::String(bytes) => syros_types::key_hash(bytes),
            Self::Hash(hash) => hash.fingerprint(),
            Self::List(list) => list.fingerprint(),
            Self::Set(set) => set.fingerprint(),
            Self::SortedSet(set) => set.fingerprint(),
            Self::Stream(stream) => stream.fingerprint(),
        }
    }
}

/// A value that is made of elements. A key has none without elements: it goes with its last one. A stream alone may be there
/// without entries, once something has been done to it.
pub trait Collection: Default + Into<Value> {
    /// The collection in a value, if it is one of this kind.
    fn of(value: &Value) -> Option<&Self>;

    /// The same, to be changed.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;

    /// True if no key has it at this time: there are no elements, or it is a stream to which nothing has been done.
    fn is_absent(&self, now_ms: u64) -> bool;
}

/// Says of a collection which variant of a value it is.
macro_rules! collections {
    ($($kind:ident: $is_absent:expr,)*) => {
        $(impl Collection for $kind {
            fn of(value: &Value) -> Option<&Self> {
                if let Value::$kind(collection) = value { Some(collection) } else { None }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                if let Value::$kind(collection) = value { Some(collection) } else { None }
            }

            fn is_absent(&self, now_ms: u64) -> bool {
                let is_absent: fn(&Self, u64) -> bool = $is_absent;
                is_absent(self, now_ms)
            }
        }

        impl From<$kind> for Value {
            fn from(collection: $kind) -> Self {
                Self::$kind(collection)
            }
        })*
    };
}

collections! {
    Hash: |hash, now_ms| hash.at(now_ms).is_empty(),
    List: |list, _| list.is_empty(),
    Set: |set, _| set.is_empty(),
    SortedSet: |set, _| set.is_empty(),
    Stream: |stream, _| stream.is_untouched(),
}
