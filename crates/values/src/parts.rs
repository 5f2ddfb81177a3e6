//! Large collections in parts: for whoever must not take long over one, and reads or writes it a part at a time.
//!
//! A *head* says what the collection is and how many elements it has; a part has some of them, in order, from a rank on.
//! The head and all parts behind each other are the collection's encoding.

use crate::hash::{Fingerprint, Form, Hash, form_tag};
use crate::primitive::{InvalidValue, put_pair, take_string, take_u8};
use crate::{Kind, Value};
use syros_tree::{Builder, ByHash, Map, Pairs};
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::varint::{put_varint, take_varint};

/// A collection that is being written. It is a clone: what is done to the original is not seen.
#[derive(Clone, Debug)]
pub struct ValueParts {
    tree: Map,
    /// How many elements have been written.
    written: u64,
    fingerprint: Fingerprint,
}

impl ValueParts {
    /// The parts of a value; `None` if it is so small that it should be written as one.
    #[must_use]
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Hash(Hash(Form::Tree(tree))) => Some(Self {
                tree: (**tree).clone(),
                written: 0,
                fingerprint: Fingerprint::new(form_tag::TREE),
            }),
            Value::Hash(Hash(Form::Packed(_))) | Value::String(_) => None,
        }
    }

    /// Appends the head.
    pub fn put_head(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[Kind::Hash.tag(), form_tag::TREE]);
        put_varint(out, self.tree.len());
    }

    /// The rank of the element that comes next.
    #[must_use]
    pub const fn rank(&self) -> u64 {
        self.written
    }

    /// True if all elements have been written.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.written == self.tree.len()
    }

    /// Appends elements until `out` has `bytes` bytes more, at least one, or all that are left.
    pub fn put_part(&mut self, bytes: usize, out: &mut Vec<u8>) {
        let end = out.len().saturating_add(bytes);
        for pair in self.tree.range(self.written..) {
            put_pair(out, pair);
            self.fingerprint.add(pair);
            self.written += 1;
            if out.len() >= end {
                break;
            }
        }
    }

    /// The fingerprint of the value, once all elements have been written.
    #[must_use]
    pub const fn fingerprint(&self) -> u64 {
        self.fingerprint.finish()
    }
}

/// A collection that is being read.
pub struct ValueBuilder {
    builder: Builder<ByHash<Pairs>>,
    /// How many elements it will have.
    count: u64,
}

impl ValueBuilder {
    /// Takes a head off the front of `input`.
    ///
    /// # Errors
    /// [`InvalidValue`] if there is none.
    pub fn take_head(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        let (kind, form) = (take_u8(input)?, take_u8(input)?);
        if kind != Kind::Hash.tag() {
            return Err(InvalidValue::Kind(kind));
        }
        if form != form_tag::TREE {
            return Err(InvalidValue::Form(form));
        }
        Self::take_count(input)
    }

    /// Takes what is behind the tags of a head.
    pub(crate) fn take_count(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        match take_varint(input)? {
            0 => Err(InvalidValue::Count(0)),
            count => Ok(Self { builder: Builder::new(), count }),
        }
    }

    /// The rank of the element that comes next.
    #[must_use]
    pub fn rank(&self) -> u64 {
        self.builder.len()
    }

    /// True if all elements are there.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.builder.len() == self.count
    }

    /// Adds the elements of a part, which has to begin with the one that comes next.
    ///
    /// # Errors
    /// [`InvalidValue`] if the bytes are no elements, or too many, or not in order.
    pub fn part(&mut self, mut bytes: &[u8]) -> Result<(), InvalidValue> {
        while !bytes.is_empty() {
            self.element(&mut bytes)?;
        }
        Ok(())
    }

    /// Takes an element off the front of `input`.
    pub(crate) fn element(&mut self, input: &mut &[u8]) -> Result<(), InvalidValue> {
        if self.is_complete() {
            return Err(InvalidValue::Count(self.count + 1));
        }
        let field = take_string(input, VALUE_BYTES_MAX)?;
        let value = take_string(input, VALUE_BYTES_MAX)?;
        self.builder.push(&<Map>::draft(field, value)).map_err(|_| InvalidValue::Order)
    }

    /// The collection. All elements have to be there.
    #[must_use]
    pub fn finish(self) -> Value {
        Value::Hash(Hash(Form::Tree(Box::new(self.builder.finish()))))
    }
}
