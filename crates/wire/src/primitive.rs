//! Numbers, and the two cursors that everything else is written with.

use crate::error::Malformed;
use syros_types::varint::{put_varint, take_varint};
use syros_types::{ConfigurationEpoch, ConfigurationId, GroupId};

/// Appends fields to the output.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    #[inline]
    pub(crate) const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// One byte.
    #[inline]
    pub(crate) fn byte(self, byte: u8) -> Self {
        self.out.push(byte);
        self
    }

    /// A small number.
    #[inline]
    pub(crate) fn number(self, value: u64) -> Self {
        put_varint(self.out, value);
        self
    }

    /// A number that is usually large.
    #[inline]
    pub(crate) fn fixed(self, value: u64) -> Self {
        self.out.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Bytes without their length.
    #[inline]
    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        self.out.extend_from_slice(bytes);
        self
    }

    /// What `write` appends.
    #[inline]
    pub(crate) fn with(self, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        write(self.out);
        self
    }

    /// A count and that many elements, which take about `element_bytes` bytes each.
    pub(crate) fn list<T>(
        self,
        elements: &[T],
        element_bytes: usize,
        write: impl Fn(Self, &T) -> Self,
    ) -> Self {
        self.out.reserve(elements.len() * element_bytes);
        elements.iter().fold(self.number(elements.len() as u64), write)
    }
}

/// Reads fields off the front of the input.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// One byte.
    pub(crate) const fn byte(&mut self) -> Result<u8, Malformed> {
        let Some((first, rest)) = self.rest.split_first() else { return Err(Malformed::Truncated) };
        self.rest = rest;
        Ok(*first)
    }

    /// A small number.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        Ok(take_varint(&mut self.rest)?)
    }

    /// A number that is usually large.
    pub(crate) const fn fixed(&mut self) -> Result<u64, Malformed> {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else { return Err(Malformed::Truncated) };
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// So many bytes.
    pub(crate) const fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else { return Err(Malformed::Truncated) };
        self.rest = rest;
        Ok(*bytes)
    }

    /// The name of a configuration.
    pub(crate) fn configuration(&mut self) -> Result<ConfigurationId, Malformed> {
        let (group, limit) = (self.number()?, u64::from(u32::MAX));
        let out_of_range = Malformed::OutOfRange { what: "group", value: group, limit };
        let group = GroupId(u32::try_from(group).map_err(|_| out_of_range)?);
        Ok(ConfigurationId { group, epoch: ConfigurationEpoch(self.number()?) })
    }

    /// A number of at most 8 bits.
    pub(crate) fn small(&mut self, what: &'static str) -> Result<u8, Malformed> {
        let value = self.number()?;
        let limit = u64::from(u8::MAX);
        u8::try_from(value).map_err(|_| Malformed::OutOfRange { what, value, limit })
    }

    /// The number of elements of a list, each of which takes `element_bytes_min` bytes or more: no
    /// more than the rest of the input can hold, and so a safe amount to reserve memory for.
    pub(crate) fn count(&mut self, element_bytes_min: usize) -> Result<usize, Malformed> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() / element_bytes_min => Ok(count),
            _ => Err(Malformed::Truncated),
        }
    }

    /// Bytes with their length before them.
    pub(crate) fn bytes(&mut self, what: &'static str, limit: usize) -> Result<&'a [u8], Malformed> {
        let length = self.number()?;
        if length > limit as u64 {
            return Err(Malformed::TooLong { what, length, limit: limit as u64 });
        }
        let Some((bytes, rest)) = self.rest.split_at_checked(length as usize) else {
            return Err(Malformed::Truncated);
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// All bytes that are left.
    pub(crate) fn remainder(&mut self, what: &'static str, limit: usize) -> Result<&'a [u8], Malformed> {
        let bytes = core::mem::take(&mut self.rest);
        if bytes.len() > limit {
            return Err(Malformed::TooLong { what, length: bytes.len() as u64, limit: limit as u64 });
        }
        Ok(bytes)
    }

    /// Refuses whatever follows.
    pub(crate) const fn end(&self) -> Result<(), Malformed> {
        match self.rest.len() {
            0 => Ok(()),
            bytes => Err(Malformed::Trailing { bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        Writer::new(&mut out).number(value);
        out
    }

    #[test]
    fn numbers_have_golden_bytes_and_come_back() {
        let golden: [(u64, &[u8]); 6] = [
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (1 << 63, &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ];
        for (value, bytes) in golden {
            assert_eq!(encoded(value), bytes);
        }
        for shift in 0..64 {
            for value in [1 << shift, (1_u64 << shift) - 1, u64::MAX >> shift] {
                let bytes = encoded(value);
                // With and without room for a word behind it.
                for padding in [0, 7] {
                    let padded = [&bytes[..], &vec![0xff; padding]].concat();
                    let mut reader = Reader::new(&padded);
                    assert_eq!(reader.number(), Ok(value));
                    assert_eq!(reader.rest.len(), padding);
                }
                for length in 0..bytes.len() {
                    assert_eq!(Reader::new(&bytes[..length]).number(), Err(Malformed::Truncated));
                }
            }
        }
    }

    #[test]
    fn needless_and_excessive_bytes_of_a_number_are_refused() {
        for bytes in [
            &[0x80, 0][..],
            &[0xff, 0x80, 0],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
        ] {
            for padding in [0, 7] {
                let padded = [bytes, &vec![0xff; padding]].concat();
                assert_eq!(Reader::new(&padded).number(), Err(Malformed::Number), "{padded:?}");
            }
        }
    }

    #[test]
    fn a_count_that_the_input_cannot_hold_is_refused() {
        assert_eq!(Reader::new(&[3, 0, 0, 0]).count(1), Ok(3));
        assert_eq!(Reader::new(&[3, 0, 0, 0]).count(2), Err(Malformed::Truncated));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f]).count(1), Err(Malformed::Truncated));
    }
}
