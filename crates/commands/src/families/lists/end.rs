//! The ends of a list, in commands and their encodings.

use crate::encoding::Field;
use crate::error::CommandError;
use crate::primitive::{Malformed, take_u8};
use crate::words::is;
use syros_values::ListEnd;

const LEFT: u8 = 0;
const RIGHT: u8 = 1;

/// A byte.
impl<'a> Field<'a> for ListEnd {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        out.push(match content {
            Self::Left => LEFT,
            Self::Right => RIGHT,
        });
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        match take_u8(input)? {
            LEFT => Ok(Self::Left),
            RIGHT => Ok(Self::Right),
            other => Err(Malformed::Options(other)),
        }
    }
}

/// The end that a word names.
pub(in crate::families) fn parse_end(word: &[u8]) -> Result<ListEnd, CommandError> {
    if is(word, "left") {
        Ok(ListEnd::Left)
    } else if is(word, "right") {
        Ok(ListEnd::Right)
    } else {
        Err(CommandError::Syntax)
    }
}
