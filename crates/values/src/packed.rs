//! Small hashes: fields and values behind each other in one allocation, in the order in which the fields were added.
//!
//! A byte says how many fields there are; each field and each value follows its length, which is a byte too. A hash
//! without fields has no bytes. Who changes a hash writes a new allocation of the right size: that costs about as much
//! as looking for the field, and leaves no memory unused. A value of the same length is overwritten where it is.

use core::ops::Range;
use std::sync::Arc;

/// Most fields of a packed hash, as in Redis's sample configuration: looking for one passes over all those before it.
pub(crate) const FIELDS_MAX: usize = 128;

/// Longest field and longest value of a packed hash, in bytes, as in Redis.
pub(crate) const STRING_BYTES_MAX: usize = 64;

// A count and a length are a byte each.
const _: () = assert!(FIELDS_MAX <= u8::MAX as usize);
const _: () = assert!(STRING_BYTES_MAX <= u8::MAX as usize);

/// A packed hash. A clone shares the allocation.
#[derive(Clone, Debug)]
pub(crate) struct Packed(Arc<[u8]>);

/// Where a field is that was found.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Of the field's length.
    start: usize,
    /// Of the value's length.
    value: usize,
    /// Behind the value.
    end: usize,
}

impl Default for Packed {
    fn default() -> Self {
        Self(Arc::from(&[][..]))
    }
}

/// True if a packed hash can have this field or value.
pub(crate) const fn fits(string: &[u8]) -> bool {
    string.len() <= STRING_BYTES_MAX
}

impl Packed {
    /// The hash of these fields, of which there are at most [`FIELDS_MAX`], none twice, and all of which [fit](fits).
    pub(crate) fn of(pairs: &[(&[u8], &[u8])]) -> Self {
        let mut bytes = vec![pairs.len() as u8];
        for string in pairs.iter().flat_map(|(field, value)| [field, value]) {
            bytes.push(string.len() as u8);
            bytes.extend_from_slice(string);
        }
        Self(bytes.into())
    }

    /// Number of fields.
    pub(crate) fn len(&self) -> usize {
        self.0.first().map_or(0, |count| usize::from(*count))
    }

    /// Bytes of its allocation.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Fields and values in order.
    pub(crate) fn iter(&self) -> PackedIter<'_> {
        PackedIter { rest: self.0.get(1..).unwrap_or_default(), left: self.len() }
    }

    /// The value of a field.
    pub(crate) fn get(&self, field: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(found, _)| *found == field).map(|(_, value)| value)
    }

    /// Gives a field a value. True if it had none, and `None`, without a change, if there is no room for it. Both
    /// have to [fit](fits).
    pub(crate) fn set(&mut self, field: &[u8], value: &[u8]) -> Option<bool> {
        let Some(place) = self.find(field) else {
            if self.len() == FIELDS_MAX {
                return None;
            }
            let end = self.0.len().max(1);
            let lengths = [[field.len() as u8], [value.len() as u8]];
            self.splice(end..end, self.len() + 1, &[&lengths[0], field, &lengths[1], value]);
            return Some(true);
        };
        let old = place.value + 1..place.end;
        if old.len() == value.len()
            && let Some(bytes) = Arc::get_mut(&mut self.0)
        {
            bytes[old].copy_from_slice(value);
        } else {
            self.splice(place.value..place.end, self.len(), &[&[value.len() as u8], value]);
        }
        Some(false)
    }

    /// Removes a field. False if there is none.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        let Some(place) = self.find(field) else { return false };
        match self.len() - 1 {
            0 => *self = Self::default(),
            left => self.splice(place.start..place.end, left, &[]),
        }
        true
    }

    fn find(&self, field: &[u8]) -> Option<Place> {
        let mut start = 1;
        self.iter().find_map(|(found, value)| {
            let middle = start + 1 + found.len();
            let place = Place { start, value: middle, end: middle + 1 + value.len() };
            start = place.end;
            (found == field).then_some(place)
        })
    }

    /// Replaces a range of bytes behind the count by others, and the count by another one.
    fn splice(&mut self, range: Range<usize>, count: usize, new: &[&[u8]]) {
        let before = self.0.get(1..range.start).unwrap_or_default();
        let after = self.0.get(range.end..).unwrap_or_default();
        let length = 1 + before.len() + new.iter().map(|part| part.len()).sum::<usize>() + after.len();
        // An iterator of known length is collected without another allocation.
        let mut bytes: Arc<[u8]> = core::iter::repeat_n(0, length).collect();
        let mut rest = Arc::get_mut(&mut bytes).expect("nobody else knows the allocation");
        let counted = [count as u8];
        for part in [&counted, before].into_iter().chain(new.iter().copied()).chain([after]) {
            let (target, behind) = rest.split_at_mut(part.len());
            target.copy_from_slice(part);
            rest = behind;
        }
        self.0 = bytes;
    }
}

/// Fields and values of a packed hash.
#[derive(Clone, Debug)]
pub(crate) struct PackedIter<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for PackedIter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut string = || {
            let (length, rest) = self.rest.split_first()?;
            let (string, rest) = rest.split_at_checked(usize::from(*length))?;
            self.rest = rest;
            Some(string)
        };
        let pair = (string()?, string()?);
        self.left -= 1;
        Some(pair)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for PackedIter<'_> {}
