//! A leaf: elements packed behind each other in one allocation, in the format of [`elements`](crate::elements). An
//! insertion moves what is behind it and needs no allocation while there is slack.

use crate::draft::Draft;
use crate::elements::{Elements, HEADER_BYTES, START_BYTES, used_bytes};
use crate::order::Order;
use core::marker::PhantomData;
use core::ops::Range;
use std::sync::Arc;

/// Most bytes of a block of several elements. With the two reference counts and glibc's own word, a full block is a
/// piece of 1,024 bytes, which is also a class of size of other allocators.
pub(crate) const BLOCK_BYTES_MAX: usize = 1000;

/// Neighbours that fit into a block of this size are merged. Less than the maximum, so that a block that was just
/// merged is not split again by the next insertions.
pub(crate) const MERGED_BYTES_MAX: usize = BLOCK_BYTES_MAX / 4 * 3;

/// What an allocation costs beside its content: two reference counts, and the word before it of most allocators.
pub(crate) const ALLOCATION_BYTES: usize = 24;

/// A block of elements. A clone shares it.
pub(crate) struct Block<O> {
    bytes: Arc<[u8]>,
    order: PhantomData<fn() -> O>,
}

/// What a new block is put together from.
pub(crate) enum Part<'a, O> {
    /// Elements of a block.
    Old(Elements<'a, O>, Range<usize>),
    /// An element that is new.
    New(&'a Draft<'a>),
}

impl<O> Clone for Block<O> {
    fn clone(&self) -> Self {
        Self { bytes: Arc::clone(&self.bytes), order: PhantomData }
    }
}

impl<O: Order> Block<O> {
    /// A block of the given parts, in their order.
    pub(crate) fn compose(parts: &[Part<'_, O>]) -> Self {
        let (count, rest) = parts.iter().fold((0, 0), |(count, rest), part| {
            let (more, longer) = part.size();
            (count + more, rest + longer)
        });
        let used = used_bytes::<O>(count, rest);
        Self::filled(allocation(used), |bytes| write::<O>(bytes, parts, count, rest))
    }

    /// A block of so many bytes, all of them zero until `fill` has written what it has.
    fn filled(length: usize, fill: impl FnOnce(&mut [u8])) -> Self {
        let mut few = [0; BLOCK_BYTES_MAX];
        let mut many = Vec::new();
        let bytes = if length <= BLOCK_BYTES_MAX {
            &mut few[..length]
        } else {
            many.resize(length, 0);
            &mut many[..]
        };
        fill(bytes);
        Self { bytes: Arc::from(&*bytes), order: PhantomData }
    }

    /// A block without elements and as long as a block of several may be, to be filled.
    pub(crate) fn with_room() -> Self {
        Self { bytes: Arc::from([0; BLOCK_BYTES_MAX]), order: PhantomData }
    }

    /// The block that these are the [used bytes](Self::used_bytes) of, and that has so many with its slack. `None` if there is
    /// none.
    pub(crate) fn of_bytes(used: &[u8], allocated: usize) -> Option<Self> {
        if used.len() < HEADER_BYTES || used.len() > allocated {
            return None;
        }
        let elements = Elements::<O>::new(used);
        let (count, rests) = (elements.len(), elements.rests_length());
        let is_large = allocated > BLOCK_BYTES_MAX && count > 1;
        if count == 0 || is_large || used.len() != used_bytes::<O>(count, rests) {
            return None;
        }
        let ascends = elements.start(0) == 0
            && (0..count).all(|index| elements.start(index) <= elements.start(index + 1));
        if !ascends {
            return None;
        }
        Some(Self::filled(allocated, |bytes| bytes[..used.len()].copy_from_slice(used)))
    }

    /// Its bytes without slack.
    pub(crate) fn used_bytes(&self) -> &[u8] {
        &self.bytes[..self.elements().used()]
    }

    /// The elements.
    #[inline]
    pub(crate) fn elements(&self) -> Elements<'_, O> {
        Elements::new(&self.bytes)
    }

    /// Bytes of the allocation, slack included.
    #[inline]
    pub(crate) fn allocated(&self) -> usize {
        self.bytes.len()
    }

    /// Inserts an element before the one at `index`, without an allocation. False, and nothing is changed, if the block
    /// is shared or has no room.
    #[inline]
    pub(crate) fn insert_in_place(&mut self, index: usize, draft: &Draft<'_>) -> bool {
        let elements = self.elements();
        let (count, used) = (elements.len(), elements.used());
        let more = O::FIXED + START_BYTES + draft.rest_length();
        // The block of a single large element may have slack, but gets no second element.
        if used + more > self.bytes.len() || self.bytes.len() > BLOCK_BYTES_MAX {
            return false;
        }
        let rests = elements.rests_at();
        let rest = rests + elements.start(index);
        let Some(bytes) = Arc::get_mut(&mut self.bytes) else { return false };
        let fixed = HEADER_BYTES + index * O::FIXED;
        let start = HEADER_BYTES + count * O::FIXED + index * START_BYTES;
        bytes.copy_within(rest..used, rest + more);
        bytes.copy_within(start..rest, start + O::FIXED + START_BYTES);
        bytes.copy_within(fixed..start, fixed + O::FIXED);
        bytes[fixed..fixed + O::FIXED].copy_from_slice(draft.fixed());
        let start = start + O::FIXED;
        put_u16(bytes, start, rest - rests);
        let moved = rests + O::FIXED + START_BYTES;
        shift(&mut bytes[start + START_BYTES..moved], draft.rest_length() as u16);
        let rest = rest + O::FIXED + START_BYTES;
        draft.write_rest(&mut bytes[rest..rest + draft.rest_length()]);
        put_header(bytes, count + 1, used - rests + draft.rest_length());
        true
    }

    /// Replaces the element at `index`, without an allocation. False, and nothing is changed, if the block is shared,
    /// has no room, or would have too much of it.
    #[inline]
    pub(crate) fn replace_in_place(&mut self, index: usize, draft: &Draft<'_>) -> bool {
        let elements = self.elements();
        let (count, used, rests) = (elements.len(), elements.used(), elements.rests_at());
        let (rest, end) = (rests + elements.start(index), rests + elements.start(index + 1));
        let new_end = rest + draft.rest_length();
        let new_used = used - end + new_end;
        if new_used > self.bytes.len() || has_too_much_slack(self.bytes.len(), new_used) {
            return false;
        }
        let Some(bytes) = Arc::get_mut(&mut self.bytes) else { return false };
        let fixed = HEADER_BYTES + index * O::FIXED;
        bytes[fixed..fixed + O::FIXED].copy_from_slice(draft.fixed());
        if new_end != end {
            bytes.copy_within(end..used, new_end);
            let next = HEADER_BYTES + count * O::FIXED + (index + 1) * START_BYTES;
            shift(&mut bytes[next..rests], (new_end as u16).wrapping_sub(end as u16));
            put_header(bytes, count, new_used - rests);
        }
        draft.write_rest(&mut bytes[rest..new_end]);
        true
    }

    /// Removes the element at `index`, without an allocation. False, and nothing is changed, if the block is shared or
    /// would have too much slack.
    #[inline]
    pub(crate) fn remove_in_place(&mut self, index: usize) -> bool {
        let elements = self.elements();
        let (count, used, rests) = (elements.len(), elements.used(), elements.rests_at());
        let (rest, end) = (rests + elements.start(index), rests + elements.start(index + 1));
        let less = O::FIXED + START_BYTES + end - rest;
        if has_too_much_slack(self.bytes.len(), used - less) {
            return false;
        }
        let Some(bytes) = Arc::get_mut(&mut self.bytes) else { return false };
        let fixed = HEADER_BYTES + index * O::FIXED;
        let start = HEADER_BYTES + count * O::FIXED + index * START_BYTES;
        shift(&mut bytes[start + START_BYTES..rests], ((end - rest) as u16).wrapping_neg());
        bytes.copy_within(fixed + O::FIXED..start, fixed);
        bytes.copy_within(start + START_BYTES..rest, start - O::FIXED);
        bytes.copy_within(end..used, end - less);
        put_header(bytes, count - 1, used - rests - (end - rest));
        true
    }

    /// For tests that damage a block.
    #[cfg(test)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        Arc::make_mut(&mut self.bytes)
    }
}

impl<O: Order> Part<'_, O> {
    /// Number of elements, and bytes of their rests.
    fn size(&self) -> (usize, usize) {
        match self {
            Self::Old(elements, range) => {
                (range.len(), elements.start(range.end) - elements.start(range.start))
            }
            Self::New(draft) => (1, draft.rest_length()),
        }
    }
}

/// How long a block is made that has so many bytes in use: with some slack for the next insertions, and so that
/// allocators, which count in 16 bytes, waste none beside it.
fn allocation(used: usize) -> usize {
    if used > BLOCK_BYTES_MAX {
        return used;
    }
    let wanted = used + used / 8 + 8;
    ((wanted + 7) / 16 * 16 + 8).min(BLOCK_BYTES_MAX)
}

/// True if a block of this length is to be replaced by a shorter one.
#[inline]
pub(crate) fn has_too_much_slack(length: usize, used: usize) -> bool {
    length - used > used / 4 + 64
}

/// Writes the whole block but for its slack.
fn write<O: Order>(bytes: &mut [u8], parts: &[Part<'_, O>], count: usize, rests_length: usize) {
    put_header(bytes, count, rests_length);
    let mut fixed = HEADER_BYTES;
    let mut start = HEADER_BYTES + count * O::FIXED;
    let rests = used_bytes::<O>(count, 0);
    let mut rest = rests;
    for part in parts {
        match part {
            Part::Old(elements, range) => {
                let source = elements.fixed_parts();
                let source = &source[range.start * O::FIXED..range.end * O::FIXED];
                bytes[fixed..fixed + source.len()].copy_from_slice(source);
                fixed += source.len();
                let (from, to) = (elements.start(range.start), elements.start(range.end));
                let source = HEADER_BYTES + elements.len() * O::FIXED;
                let source =
                    &elements.bytes[source + range.start * START_BYTES..source + range.end * START_BYTES];
                let target = &mut bytes[start..start + source.len()];
                target.copy_from_slice(source);
                shift(target, ((rest - rests) as u16).wrapping_sub(from as u16));
                start += source.len();
                let source = &elements.bytes[elements.rests_at() + from..elements.rests_at() + to];
                bytes[rest..rest + source.len()].copy_from_slice(source);
                rest += source.len();
            }
            Part::New(draft) => {
                bytes[fixed..fixed + O::FIXED].copy_from_slice(draft.fixed());
                fixed += O::FIXED;
                put_u16(bytes, start, rest - rests);
                start += START_BYTES;
                draft.write_rest(&mut bytes[rest..rest + draft.rest_length()]);
                rest += draft.rest_length();
            }
        }
    }
}

/// Adds to each of these beginnings, modulo 2^16.
#[inline]
fn shift(starts: &mut [u8], by: u16) {
    for start in starts.chunks_exact_mut(START_BYTES) {
        let moved = u16::from_le_bytes([start[0], start[1]]).wrapping_add(by);
        start.copy_from_slice(&moved.to_le_bytes());
    }
}

#[inline]
fn put_u16(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

#[inline]
fn put_header(bytes: &mut [u8], count: usize, rests_length: usize) {
    put_u16(bytes, 0, count);
    bytes[4..8].copy_from_slice(&(rests_length as u32).to_le_bytes());
}
