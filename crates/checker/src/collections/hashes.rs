//! Hashes: fields with values.

use super::{Elements, Operation};
pub use crate::output::Fields;
use crate::output::{Output, Text, count};
use crate::value::{Content, integer};
use std::fmt;

impl From<Fields> for Content {
    fn from(fields: Fields) -> Self {
        Self::Hash(fields)
    }
}

impl Elements for Fields {
    fn of(content: &Content) -> Option<&Self> {
        if let Content::Hash(fields) = content { Some(fields) } else { None }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An operation on a hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HashOperation {
    /// Reads the value of a field (HGET). Answer: [`Output::Value`].
    Get(Vec<u8>),
    /// Reads the values of several fields (HMGET). Answer: [`Output::Values`].
    GetMany(Vec<Vec<u8>>),
    /// Reads all fields and values (HGETALL). Answer: [`Output::Fields`].
    GetAll,
    /// Counts the fields (HLEN). Answer: [`Output::Number`].
    Length,
    /// Gives fields values, from left to right (HSET). Answer: [`Output::Number`], how many of the fields are new.
    Set(Vec<(Vec<u8>, Vec<u8>)>),
    /// Gives a field a value if it has none (HSETNX). Answer: [`Output::Flag`], true if it did.
    SetIfAbsent(Vec<u8>, Vec<u8>),
    /// Removes fields (HDEL). Answer: [`Output::Number`], how many there were.
    Remove(Vec<Vec<u8>>),
    /// Adds to the integer of a field (HINCRBY). Answer: [`Output::Number`], the sum, or [`Output::Error`].
    Increment(Vec<u8>, i64),
}

impl Operation for HashOperation {
    type Elements = Fields;

    fn is_read(&self) -> bool {
        matches!(self, Self::Get(_) | Self::GetMany(_) | Self::GetAll | Self::Length)
    }

    fn admits(&self, output: &Output) -> bool {
        match (self, output) {
            (Self::Get(_), Output::Value(_))
            | (Self::GetAll, Output::Fields(_))
            | (Self::Length | Self::Set(_) | Self::Remove(_), Output::Number(_))
            | (Self::Increment(..), Output::Number(_) | Output::Error)
            | (Self::SetIfAbsent(..), Output::Flag(_)) => true,
            (Self::GetMany(fields), Output::Values(values)) => fields.len() == values.len(),
            _ => false,
        }
    }

    fn is_inert(&self, told: &Output) -> bool {
        matches!(
            (self, told),
            (Self::SetIfAbsent(..), Output::Flag(false))
                | (Self::Remove(_), Output::Number(0))
                | (Self::Increment(..), Output::Error)
        )
    }

    fn may_remove(&self) -> bool {
        matches!(self, Self::Remove(_))
    }

    fn apply(&self, Fields(fields): &mut Fields) -> Output {
        match self {
            Self::Get(field) => Output::Value(fields.get(field).cloned()),
            Self::GetMany(asked) => {
                Output::Values(asked.iter().map(|field| fields.get(field).cloned()).collect())
            }
            Self::GetAll => Output::Fields(Fields(fields.clone())),
            Self::Length => count(fields.len()),
            Self::Set(pairs) => {
                let before = fields.len();
                fields.extend(pairs.iter().cloned());
                count(fields.len() - before)
            }
            Self::SetIfAbsent(field, value) => {
                let is_absent = !fields.contains_key(field);
                if is_absent {
                    fields.insert(field.clone(), value.clone());
                }
                Output::Flag(is_absent)
            }
            Self::Remove(named) => {
                count(named.iter().filter(|field| fields.remove(*field).is_some()).count())
            }
            Self::Increment(field, delta) => {
                let old = fields.get(field).map_or(Some(0), |value| integer(value));
                let Some(sum) = old.and_then(|old| old.checked_add(*delta)) else { return Output::Error };
                fields.insert(field.clone(), sum.to_string().into_bytes());
                Output::Number(sum)
            }
        }
    }
}

impl fmt::Display for HashOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |fields: &[Vec<u8>]| {
            let fields = fields.iter().map(|field| Text(field).to_string());
            fields.collect::<Vec<_>>().join(" ")
        };
        match self {
            Self::Get(field) => write!(f, "get field {}", Text(field)),
            Self::GetMany(fields) => write!(f, "get fields {}", list(fields)),
            Self::GetAll => f.write_str("get all fields"),
            Self::Length => f.write_str("count fields"),
            Self::Set(pairs) => {
                f.write_str("set fields")?;
                pairs.iter().try_for_each(|(field, value)| write!(f, " {} {}", Text(field), Text(value)))
            }
            Self::SetIfAbsent(field, value) => {
                write!(f, "set-if-absent field {} {}", Text(field), Text(value))
            }
            Self::Remove(fields) => write!(f, "remove fields {}", list(fields)),
            Self::Increment(field, delta) => write!(f, "increment field {} {delta}", Text(field)),
        }
    }
}
