//! Numbers of elements that a command need not give.

use crate::encoding::Field;
use crate::number::parse_integer;
use crate::primitive::Malformed;
use syros_types::varint::{put_varint, take_varint};

/// A number of elements, if one was given. It is written as 0 if none was, and otherwise as one more than it is.
pub(super) enum OptionalCount {}

impl<'a> Field<'a> for OptionalCount {
    type Content = Option<u64>;

    fn put(out: &mut Vec<u8>, content: Option<u64>) {
        put_varint(out, content.map_or(0, |count| count + 1));
    }

    fn take(input: &mut &'a [u8]) -> Result<Option<u64>, Malformed> {
        Ok(take_varint(input)?.checked_sub(1))
    }
}

/// The number of elements that a word is, if it is not negative.
pub(super) fn parse_count(word: &[u8]) -> Option<u64> {
    parse_integer(word).and_then(|count| u64::try_from(count).ok())
}
