//! What keys hold.

use crate::output::{Fields, Items, Members, Scores, Text};
use std::fmt;

/// What a key holds, and the lifetime that it has been given, if any.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Value {
    /// The value itself.
    pub content: Content,
    /// Names the lifetime: see [`Input::Lifetime`](crate::history::Input::Lifetime).
    pub lifetime: Option<u32>,
}

/// A value: text, or a collection, which has elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// Bytes, a string in Redis.
    Text(Vec<u8>),
    /// Fields with values.
    Hash(Fields),
    /// Elements in order.
    List(Items),
    /// Members, each of them once.
    Set(Members),
    /// Members with scores.
    SortedSet(Scores),
}

impl Value {
    /// Text that keeps for ever.
    #[must_use]
    pub const fn text(bytes: Vec<u8>) -> Self {
        Self { content: Content::Text(bytes), lifetime: None }
    }

    /// The bytes, if it is text.
    #[must_use]
    pub const fn as_text(&self) -> Option<&Vec<u8>> {
        match &self.content {
            Content::Text(bytes) => Some(bytes),
            Content::Hash(_) | Content::List(_) | Content::Set(_) | Content::SortedSet(_) => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Text(bytes) => Text(bytes).fmt(f)?,
            Content::Hash(fields) => fields.fmt(f)?,
            Content::List(items) => items.fmt(f)?,
            Content::Set(members) => members.fmt(f)?,
            Content::SortedSet(scores) => scores.fmt(f)?,
        }
        self.lifetime.map_or(Ok(()), |lifetime| write!(f, " with lifetime {lifetime}"))
    }
}

/// An integer exactly as an increment writes it: no sign but a minus, no leading zeros.
pub(crate) fn integer(bytes: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == bytes).then_some(number)
}
