//! Small collections: elements behind each other in one allocation.
//!
//! A byte says how many elements there are. An element is a fixed number of strings, such as a field and its value, each
//! behind its length, which is a byte too. A collection without elements has no bytes. Who changes a collection writes a
//! new allocation of the right size: that costs about as much as looking for the element, and leaves no memory unused. An
//! element that keeps its length is overwritten where it is.

use core::ops::Range;
use std::sync::Arc;

/// Most elements of a packed collection, as in Redis's sample configuration: looking for one passes over all those
/// before it.
pub(crate) const ELEMENTS_MAX: usize = 128;

/// Longest string of a packed collection, in bytes, as in Redis.
pub(crate) const STRING_BYTES_MAX: usize = 64;

// A count and a length are a byte each.
const _: () = assert!(ELEMENTS_MAX <= u8::MAX as usize);
const _: () = assert!(STRING_BYTES_MAX <= u8::MAX as usize);

/// A packed collection whose elements are so many strings each. A clone shares the allocation.
#[derive(Clone, Debug)]
pub(crate) struct Packed<const STRINGS: usize>(Arc<[u8]>);

/// Where an element is: its bytes, from the first length on. Empty where one is to be inserted.
pub(crate) type Place = Range<usize>;

impl<const STRINGS: usize> Default for Packed<STRINGS> {
    fn default() -> Self {
        Self(Arc::from(&[][..]))
    }
}

/// True if a packed collection can have this string.
pub(crate) const fn fits(string: &[u8]) -> bool {
    string.len() <= STRING_BYTES_MAX
}

impl<const STRINGS: usize> Packed<STRINGS> {
    /// The collection of these elements, of which there are at most [`ELEMENTS_MAX`], and whose strings all [fit](fits).
    pub(crate) fn of(elements: &[[&[u8]; STRINGS]]) -> Self {
        if elements.is_empty() {
            return Self::default();
        }
        let mut bytes = vec![elements.len() as u8];
        for string in elements.iter().flatten() {
            bytes.push(string.len() as u8);
            bytes.extend_from_slice(string);
        }
        Self(bytes.into())
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.0.first().map_or(0, |count| usize::from(*count))
    }

    /// Bytes of its allocation.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The elements in order.
    pub(crate) fn iter(&self) -> PackedIter<'_, STRINGS> {
        PackedIter { rest: self.0.get(1..).unwrap_or_default(), left: self.len() }
    }

    /// The elements at these indexes in order. Indexes that no element has are left out.
    pub(crate) fn range(&self, indexes: Range<usize>) -> PackedIter<'_, STRINGS> {
        let mut elements = self.iter();
        elements.by_ref().take(indexes.start).for_each(drop);
        elements.left = elements.left.min(indexes.len());
        elements
    }

    /// The first element that is wanted, and its place.
    pub(crate) fn find(
        &self,
        mut is_wanted: impl FnMut(&[&[u8]; STRINGS]) -> bool,
    ) -> Option<(Place, [&[u8]; STRINGS])> {
        let mut elements = self.iter();
        let place = |elements: &PackedIter<'_, STRINGS>| self.0.len() - elements.rest.len();
        let mut start = place(&elements);
        while let Some(element) = elements.next() {
            let end = place(&elements);
            if is_wanted(&element) {
                return Some((start..end, element));
            }
            start = end;
        }
        None
    }

    /// The place of the element at this index; the [end](Self::end) if there are not so many.
    pub(crate) fn place(&self, index: usize) -> Place {
        let mut before = 0..index;
        let found = if index < self.len() { self.find(|_| before.next().is_none()) } else { None };
        found.map_or_else(|| self.end(), |(place, _)| place)
    }

    /// The place behind the last element.
    pub(crate) fn end(&self) -> Place {
        let end = self.0.len().max(1);
        end..end
    }

    /// Adds an element before the one at this place, or at the [end](Self::end). False, without a change, if there is no
    /// room for it. Its strings have to [fit](fits).
    pub(crate) fn insert(&mut self, place: Place, element: [&[u8]; STRINGS]) -> bool {
        let has_room = self.len() < ELEMENTS_MAX;
        if has_room {
            self.splice(place.start..place.start, self.len() + 1, &element);
        }
        has_room
    }

    /// Replaces the element at this place by another one, whose strings have to [fit](fits).
    pub(crate) fn replace(&mut self, place: Place, element: [&[u8]; STRINGS]) {
        if place.len() == encoded_bytes(&element)
            && let Some(bytes) = Arc::get_mut(&mut self.0)
        {
            put(&mut bytes[place], &element);
        } else {
            self.splice(place, self.len(), &element);
        }
    }

    /// Removes the element at this place.
    pub(crate) fn remove(&mut self, place: Place) {
        match self.len() - 1 {
            0 => *self = Self::default(),
            left => self.splice(place, left, &[]),
        }
    }

    /// Removes the elements at these indexes. Indexes that no element has are left out.
    pub(crate) fn remove_range(&mut self, indexes: Range<usize>) {
        let end = indexes.end.min(self.len());
        let removed = end.saturating_sub(indexes.start);
        if removed == self.len() {
            *self = Self::default();
        } else if removed > 0 {
            let place = self.place(indexes.start).start..self.place(end).start;
            self.splice(place, self.len() - removed, &[]);
        }
    }

    /// Replaces a range of bytes behind the count by others, and the count by another one.
    fn splice(&mut self, range: Range<usize>, count: usize, new: &[&[u8]]) {
        let before = self.0.get(1..range.start).unwrap_or_default();
        let after = self.0.get(range.end..).unwrap_or_default();
        let length = 1 + before.len() + encoded_bytes(new) + after.len();
        // An iterator of known length is collected without another allocation.
        let mut bytes: Arc<[u8]> = core::iter::repeat_n(0, length).collect();
        let rest = Arc::get_mut(&mut bytes).expect("nobody else knows the allocation");
        rest[0] = count as u8;
        let (target, rest) = rest[1..].split_at_mut(before.len());
        target.copy_from_slice(before);
        put(rest, new).copy_from_slice(after);
        self.0 = bytes;
    }
}

/// Bytes that strings take with their lengths.
fn encoded_bytes(strings: &[&[u8]]) -> usize {
    strings.iter().map(|string| 1 + string.len()).sum()
}

/// Writes strings with their lengths; returns what is behind them.
fn put<'a>(mut target: &'a mut [u8], strings: &[&[u8]]) -> &'a mut [u8] {
    for string in strings {
        let (place, rest) = target.split_at_mut(1 + string.len());
        place[0] = string.len() as u8;
        place[1..].copy_from_slice(string);
        target = rest;
    }
    target
}

/// The elements of a packed collection.
#[derive(Clone, Debug)]
pub(crate) struct PackedIter<'a, const STRINGS: usize> {
    rest: &'a [u8],
    left: usize,
}

impl<'a, const STRINGS: usize> Iterator for PackedIter<'a, STRINGS> {
    type Item = [&'a [u8]; STRINGS];

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut element = [&[][..]; STRINGS];
        for string in &mut element {
            let (length, rest) = self.rest.split_first()?;
            (*string, self.rest) = rest.split_at_checked(usize::from(*length))?;
        }
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<const STRINGS: usize> ExactSizeIterator for PackedIter<'_, STRINGS> {}

/// Each step passes over all elements before the last one, of which there are at most [`ELEMENTS_MAX`].
impl<const STRINGS: usize> DoubleEndedIterator for PackedIter<'_, STRINGS> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let last = self.clone().nth(self.left.checked_sub(1)?)?;
        self.left -= 1;
        Some(last)
    }
}
