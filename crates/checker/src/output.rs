//! What clients are told, and how it is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Longest value, in bytes, that is printed in full; of a longer one only the beginning is.
const PRINTED_BYTES_MAX: usize = 60;

/// Fields with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fields(pub BTreeMap<Vec<u8>, Vec<u8>>);

/// Elements of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Items(pub Vec<Vec<u8>>);

/// Members of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Members(pub BTreeSet<Vec<u8>>);

/// Members of a sorted set with their scores.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scores(pub BTreeMap<Vec<u8>, i64>);

/// What the client was told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// The update is done, and nothing more: the answer to SET, and to any update asked for blindly.
    /// It says nothing about the state, not even that the update did not fail on the value it found.
    Done,
    /// A value, or none.
    Value(Option<Vec<u8>>),
    /// Several values, in the order of the keys asked for; or all that a collection has.
    Values(Vec<Option<Vec<u8>>>),
    /// A length, a sum or a number of keys.
    Number(i64),
    /// The keys that have a value, in order.
    Keys(Vec<u32>),
    /// Whether the update found what it needed.
    Flag(bool),
    /// The increment failed: not an integer, or overflow. Or there was nothing to be moved.
    Error,
    /// Nothing happened: the key holds a value of another type than the operation is about.
    WrongType,
    /// All fields of a hash with their values.
    Fields(Fields),
    /// One answer for every part of a batch.
    Batch(Vec<Output>),
}

impl Output {
    /// Of an answer to a read of a collection, whether it shows that the key holds something, or that it does not; `None`
    /// if it does not tell.
    #[must_use]
    pub fn shows_a_collection(&self) -> Option<bool> {
        match self {
            Self::Value(value) => value.is_some().then_some(true),
            Self::Values(values) if values.is_empty() => Some(false),
            Self::Values(values) => values.iter().any(Option::is_some).then_some(true),
            Self::Number(number) => Some(*number > 0),
            Self::Fields(fields) => Some(!fields.0.is_empty()),
            Self::WrongType => Some(true),
            _ => None,
        }
    }
}

/// A count as an answer.
pub(crate) fn count(count: usize) -> Output {
    Output::Number(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Bytes as people read them: escaped, in quotes, cut when long.
pub(crate) struct Text<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(PRINTED_BYTES_MAX)];
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if shown.len() < self.0.len() {
            write!(f, ".. ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

/// A value or none, as people read it.
struct MaybeText<'a>(Option<&'a [u8]>);

impl fmt::Display for MaybeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) => Text(bytes).fmt(f),
            None => f.write_str("nothing"),
        }
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.0.iter().map(|(field, value)| format!("{}: {}", Text(field), Text(value)));
        write!(f, "{{{}}}", fields.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.0.iter().map(|item| Text(item).to_string());
        write!(f, "[{}]", items.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.0.iter().map(|member| Text(member).to_string());
        write!(f, "{{{}}}", members.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scores = self.0.iter().map(|(member, score)| format!("{}: {score}", Text(member)));
        write!(f, "{{{}}}", scores.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Value(value) => MaybeText(value.as_deref()).fmt(f),
            Self::Values(values) => {
                let values: Vec<String> =
                    values.iter().map(|value| MaybeText(value.as_deref()).to_string()).collect();
                f.write_str(&values.join(" "))
            }
            Self::Number(number) => number.fmt(f),
            Self::Keys(keys) => {
                let keys: Vec<String> = keys.iter().map(|key| format!("k{key}")).collect();
                f.write_str(if keys.is_empty() { "no key".to_owned() } else { keys.join(" ") }.as_str())
            }
            Self::Flag(flag) => flag.fmt(f),
            Self::Error => f.write_str("error"),
            Self::WrongType => f.write_str("wrong type"),
            Self::Fields(fields) => fields.fmt(f),
            Self::Batch(outputs) => {
                let outputs: Vec<String> = outputs.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", outputs.join("; "))
            }
        }
    }
}
