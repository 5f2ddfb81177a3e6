//! Sets: members, each of them once.

use super::{Elements, Operation};
pub use crate::output::Members;
use crate::output::{Output, Text, count};
use crate::value::Content;
use std::fmt;

impl From<Members> for Content {
    fn from(members: Members) -> Self {
        Self::Set(members)
    }
}

impl Elements for Members {
    fn of(content: &Content) -> Option<&Self> {
        if let Content::Set(members) = content { Some(members) } else { None }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An operation on a set.
///
/// SPOP is none of them, as nothing says which member it takes: whoever records a history asks for the removal of the member
/// that it took.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SetOperation {
    /// Reads all members (SMEMBERS). Answer: [`Output::Values`], sorted.
    All,
    /// Counts the members (SCARD). Answer: [`Output::Number`].
    Length,
    /// Asks for a member (SISMEMBER). Answer: [`Output::Flag`].
    Contains(Vec<u8>),
    /// Adds members (SADD). Answer: [`Output::Number`], how many of them are new.
    Add(Vec<Vec<u8>>),
    /// Removes members (SREM). Answer: [`Output::Number`], how many there were.
    Remove(Vec<Vec<u8>>),
    /// Removes all members (SPOP of as many as there can be). Answer: [`Output::Values`], sorted.
    Take,
}

impl Operation for SetOperation {
    type Elements = Members;

    fn is_read(&self) -> bool {
        matches!(self, Self::All | Self::Length | Self::Contains(_))
    }

    fn admits(&self, output: &Output) -> bool {
        matches!(
            (self, output),
            (Self::All | Self::Take, Output::Values(_))
                | (Self::Length | Self::Add(_) | Self::Remove(_), Output::Number(_))
                | (Self::Contains(_), Output::Flag(_))
        )
    }

    fn is_inert(&self, told: &Output) -> bool {
        match (self, told) {
            (Self::Add(_) | Self::Remove(_), Output::Number(number)) => *number == 0,
            (Self::Take, Output::Values(values)) => values.is_empty(),
            _ => false,
        }
    }

    fn may_remove(&self) -> bool {
        matches!(self, Self::Remove(_) | Self::Take)
    }

    fn apply(&self, Members(members): &mut Members) -> Output {
        match self {
            Self::All => Output::Values(members.iter().cloned().map(Some).collect()),
            Self::Length => count(members.len()),
            Self::Contains(member) => Output::Flag(members.contains(member)),
            Self::Add(added) => {
                count(added.iter().filter(|member| members.insert((*member).clone())).count())
            }
            Self::Remove(removed) => count(removed.iter().filter(|member| members.remove(*member)).count()),
            Self::Take => Output::Values(std::mem::take(members).into_iter().map(Some).collect()),
        }
    }
}

impl fmt::Display for SetOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, members: &[Vec<u8>]| {
            members.iter().try_for_each(|member| write!(f, " {}", Text(member)))
        };
        match self {
            Self::All => f.write_str("get all members"),
            Self::Length => f.write_str("count members"),
            Self::Contains(member) => write!(f, "is there member {}", Text(member)),
            Self::Add(members) => f.write_str("add members").and_then(|()| list(f, members)),
            Self::Remove(members) => f.write_str("remove members").and_then(|()| list(f, members)),
            Self::Take => f.write_str("take all members"),
        }
    }
}
