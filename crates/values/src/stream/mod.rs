//! Streams: entries in the order of their ids, and consumer groups, which deliver each entry to one of their consumers.
//!
//! A stream may be there without entries: it goes only when its key is removed. It has one form: trees, of however few
//! elements.

mod builder;
mod counters;
mod fields;
mod groups;
mod id;
mod record;

pub(crate) use builder::StreamBuilder;
pub use fields::Fields;
pub use id::StreamId;
pub use record::{Consumer, Group, Pending};

use crate::fingerprint::Fingerprint;
use crate::{ALLOCATION_BYTES, Kind, form_tag};
use core::ops::ControlFlow;
use syros_tree::{Dictionary, Iter, Log};

/// Entries in the order of their ids, with consumer groups. A clone shares all memory but some words.
#[derive(Clone, Debug, Default)]
pub struct Stream(pub(crate) Box<State>);

/// What a stream is.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// The packed fields of each entry, by its id.
    pub(crate) entries: Log,
    /// The groups: see [`record`].
    pub(crate) records: Dictionary,
    /// What follows from the records, to be found by the numbers of consumers.
    pub(crate) index: Dictionary,
    /// The id of the last entry that was added, or what a client has said of it.
    last: StreamId,
    /// The greatest id of the entries that were removed by their ids.
    max_deleted: StreamId,
    /// How many entries were ever added.
    added: u64,
    /// Groups and consumers that were ever created: the last of their numbers.
    numbers: u64,
    /// False until it is changed: then no key has it.
    exists: bool,
}

impl Stream {
    /// Number of entries.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.0.entries.len()
    }

    /// True if there are no entries.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if nothing has ever been done to it. Of anything else a key may be the value.
    #[must_use]
    pub const fn is_untouched(&self) -> bool {
        !self.0.exists
    }

    /// The id of the last entry that was added.
    #[must_use]
    pub const fn last_id(&self) -> StreamId {
        self.0.last
    }

    /// The greatest id of the entries that were removed by their ids; [`StreamId::MIN`] if none was.
    #[must_use]
    pub const fn max_deleted_id(&self) -> StreamId {
        self.0.max_deleted
    }

    /// How many entries were ever added.
    #[must_use]
    pub const fn entries_added(&self) -> u64 {
        self.0.added
    }

    /// The id of the first entry that there is; [`StreamId::MIN`] if there is none.
    #[must_use]
    pub fn first_id(&self) -> StreamId {
        self.0.entries.first().map_or(StreamId::MIN, |(id, _)| StreamId::of_number(id))
    }

    /// The id of the last entry that there is, if there is any.
    #[must_use]
    pub fn top_id(&self) -> Option<StreamId> {
        self.0.entries.last().map(|(id, _)| StreamId::of_number(id))
    }

    /// The fields of an entry, in O(log n).
    #[must_use]
    pub fn get(&self, id: StreamId) -> Option<Fields<'_>> {
        self.0.entries.get(id.number()).map(Fields::unpack)
    }

    /// The entries from one id to another one, which is included, in order, from either end. Nothing is looked up before the
    /// first one is asked for, which takes O(log n).
    #[must_use]
    pub fn range(&self, from: StreamId, to: StreamId) -> StreamIter<'_> {
        let entries = &self.0.entries;
        let start = entries.count_before(from.number());
        let end = to.next().map_or(entries.len(), |behind| entries.count_before(behind.number()));
        StreamIter(entries.range(start..end.max(start)))
    }

    /// How many entries have a lower id, in O(log n).
    #[must_use]
    pub fn count_before(&self, id: StreamId) -> u64 {
        self.0.entries.count_before(id.number())
    }

    /// Adds an entry of so many strings: fields and values in turn. Its id has to be greater than the last one.
    ///
    /// # Panics
    /// If it is not.
    pub fn append<'s>(&mut self, id: StreamId, strings: usize, each: impl Iterator<Item = &'s [u8]>) {
        assert!(id > self.last_id(), "{id} is not behind the last entry, {}", self.last_id());
        let state = self.state_mut();
        state.entries.insert(id.number(), &Fields::pack(strings, each));
        state.last = id;
        state.added = state.added.saturating_add(1);
    }

    /// Removes an entry. False if there is none.
    pub fn remove(&mut self, id: StreamId) -> bool {
        let state = self.state_mut();
        let removed = state.entries.remove(id.number());
        if removed {
            state.max_deleted = state.max_deleted.max(id);
        }
        removed
    }

    /// Removes the first so many entries.
    pub fn trim(&mut self, count: u64) {
        drop(self.state_mut().entries.remove_range(..count));
    }

    /// What a client knows better: the last id, and perhaps how many entries were added, and the greatest id that was
    /// removed.
    pub fn set_counters(&mut self, last: StreamId, added: Option<u64>, max_deleted: Option<StreamId>) {
        let state = self.state_mut();
        state.last = last;
        state.added = added.unwrap_or(state.added);
        state.max_deleted = max_deleted.unwrap_or(state.max_deleted);
    }

    /// See [`Value::memory_bytes`](crate::Value::memory_bytes).
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let State { entries, records, index, .. } = &*self.0;
        let bytes = entries.bytes() + records.bytes() + index.bytes();
        ALLOCATION_BYTES + size_of::<State>() + usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// See [`Value::element_bytes`](crate::Value::element_bytes).
    #[must_use]
    pub fn element_bytes(&self) -> usize {
        let State { entries, records, index, .. } = &*self.0;
        let bytes = entries.element_bytes() + records.element_bytes() + index.element_bytes();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// See [`Value::fingerprint`](crate::Value::fingerprint): all elements in their order.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut fingerprint = Fingerprint::new(Kind::Stream, form_tag::TREE);
        let _ = self.each_element_from(0, |strings| {
            fingerprint.add(strings);
            ControlFlow::Continue(())
        });
        fingerprint.finish()
    }

    /// The state, which is about to be changed.
    fn state_mut(&mut self) -> &mut State {
        self.0.exists = true;
        &mut self.0
    }
}

/// What a stream is equal in shows: its elements.
impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        let elements = |stream: &Self| {
            let mut all = Vec::new();
            let _ = stream.each_element_from(0, |strings| {
                all.push(strings.iter().map(|string| string.to_vec()).collect::<Vec<_>>());
                ControlFlow::Continue(())
            });
            all
        };
        elements(self) == elements(other)
    }
}

impl Eq for Stream {}

/// Entries in order, from either end.
pub struct StreamIter<'a>(Iter<'a, syros_tree::ById>);

fn item((id, fields): (u128, &[u8])) -> (StreamId, Fields<'_>) {
    (StreamId::of_number(id), Fields::unpack(fields))
}

impl<'a> Iterator for StreamIter<'a> {
    type Item = (StreamId, Fields<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for StreamIter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(item)
    }
}

impl ExactSizeIterator for StreamIter<'_> {}
