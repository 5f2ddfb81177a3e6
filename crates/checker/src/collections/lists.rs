//! Lists: elements in order.

use super::{Elements, Operation};
pub use crate::output::Items;
use crate::output::{Output, Text, count};
use crate::value::Content;
use std::fmt;

impl From<Items> for Content {
    fn from(items: Items) -> Self {
        Self::List(items)
    }
}

impl Elements for Items {
    fn of(content: &Content) -> Option<&Self> {
        if let Content::List(items) = content { Some(items) } else { None }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// One end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Where index 0 is.
    Left,
    /// Where index -1 is.
    Right,
}

/// An operation on a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListOperation {
    /// Reads all elements (LRANGE 0 -1). Answer: [`Output::Values`].
    All,
    /// Counts the elements (LLEN). Answer: [`Output::Number`].
    Length,
    /// Adds elements at an end, one after the other (LPUSH, RPUSH). Answer: [`Output::Number`], how many there are then.
    Push(End, Vec<Vec<u8>>),
    /// Removes the element at an end (LPOP, RPOP). Answer: [`Output::Value`], the element.
    Pop(End),
    /// Removes so many elements at an end, or all (LPOP and RPOP with a count). Answer: [`Output::Values`], the elements.
    PopSome(End, usize),
    /// Moves the element at an end to the other end (LMOVE onto itself). Answer: [`Output::Value`], the element.
    Rotate(End),
}

impl Operation for ListOperation {
    type Elements = Items;

    fn is_read(&self) -> bool {
        matches!(self, Self::All | Self::Length)
    }

    fn admits(&self, output: &Output) -> bool {
        matches!(
            (self, output),
            (Self::All | Self::PopSome(..), Output::Values(_))
                | (Self::Length | Self::Push(..), Output::Number(_))
                | (Self::Pop(_) | Self::Rotate(_), Output::Value(_))
        )
    }

    fn is_inert(&self, told: &Output) -> bool {
        match (self, told) {
            (Self::Pop(_) | Self::Rotate(_), Output::Value(value)) => value.is_none(),
            (Self::PopSome(..), Output::Values(values)) => values.is_empty(),
            _ => false,
        }
    }

    fn may_remove(&self) -> bool {
        matches!(self, Self::Pop(_) | Self::PopSome(..))
    }

    fn apply(&self, Items(items): &mut Items) -> Output {
        match self {
            Self::All => Output::Values(items.iter().cloned().map(Some).collect()),
            Self::Length => count(items.len()),
            Self::Push(end, values) => {
                match end {
                    End::Left => drop(items.splice(0..0, values.iter().rev().cloned())),
                    End::Right => items.extend(values.iter().cloned()),
                }
                count(items.len())
            }
            Self::Pop(end) => Output::Value(pop(items, *end)),
            Self::PopSome(end, count) => {
                let taken = (0..*count).map_while(|_| pop(items, *end)).map(Some);
                Output::Values(taken.collect())
            }
            Self::Rotate(end) => {
                let element = pop(items, *end);
                if let Some(element) = &element {
                    let to = if *end == End::Left { items.len() } else { 0 };
                    items.insert(to, element.clone());
                }
                Output::Value(element)
            }
        }
    }
}

fn pop(items: &mut Vec<Vec<u8>>, end: End) -> Option<Vec<u8>> {
    match end {
        End::Left => (!items.is_empty()).then(|| items.remove(0)),
        End::Right => items.pop(),
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Left { "left" } else { "right" })
    }
}

impl fmt::Display for ListOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("get all elements"),
            Self::Length => f.write_str("count elements"),
            Self::Push(end, values) => {
                write!(f, "push {end}")?;
                values.iter().try_for_each(|value| write!(f, " {}", Text(value)))
            }
            Self::Pop(end) => write!(f, "pop {end}"),
            Self::PopSome(end, count) => write!(f, "pop {count} {end}"),
            Self::Rotate(end) => write!(f, "move from {end} to the other end"),
        }
    }
}
