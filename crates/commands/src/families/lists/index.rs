//! Indexes of elements, which Redis looks at only after it has found the list.

use crate::encoding::Field;
use crate::error::ExecutionError;
use crate::families::ranks::rank_of;
use crate::number::parse_integer;
use crate::primitive::{Malformed, put_signed, take_signed, take_u8};

/// The index of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListIndex {
    /// It counts from the first element, or, if negative, from behind the last one.
    At(i64),
    /// It is no integer: an error if the key exists.
    NotInteger,
}

const AT: u8 = 0;
const NOT_INTEGER: u8 = 1;

/// A byte and, for a number, the number.
impl<'a> Field<'a> for ListIndex {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        match content {
            Self::At(index) => {
                out.push(AT);
                put_signed(out, index);
            }
            Self::NotInteger => out.push(NOT_INTEGER),
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        match take_u8(input)? {
            AT => Ok(Self::At(take_signed(input)?)),
            NOT_INTEGER => Ok(Self::NotInteger),
            other => Err(Malformed::Options(other)),
        }
    }
}

impl ListIndex {
    /// The index that a word is.
    pub(super) fn parse(word: &[u8]) -> Self {
        parse_integer(word).map_or(Self::NotInteger, Self::At)
    }

    /// The rank that it means in a list of so many elements; `None` if there is no such element.
    pub(super) fn rank(self, length: u64) -> Result<Option<u64>, ExecutionError> {
        match self {
            Self::At(index) => Ok(rank_of(index, length)),
            Self::NotInteger => Err(ExecutionError::NotInteger),
        }
    }
}
