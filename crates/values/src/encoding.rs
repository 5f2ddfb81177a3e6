//! Values as bytes: in snapshots, in records on disk, in digests. Fixed for ever, like a file format.
//!
//! | what | bytes |
//! |---|---|
//! | value | the kind's tag, then: |
//! | string | length, bytes |
//! | hash | form (1 packed, 2 tree), number of fields, then each field and its value as strings, in order |
//! | list | form, number of elements, then each element as a string, in order |
//! | set | form, number of members, then each member as a string, in order |
//! | sorted set | form (1 packed, 2 tree), number of members, then each score and its member as strings, in order |
//! | stream | form (2 tree), number of elements, then the elements: its numbers as one string; each entry, which is an id and its packed fields, as two; each record of its groups, which is a key and a value, as two, in order |
//!
//! Numbers are little-endian base-128 varints in their shortest form; a score is a number of floating point of eight bytes,
//! little-endian. A value is written in one way only, and what is read has to be what a value can be: a packed collection
//! keeps its limits and has no element twice, the elements of a tree are in the order of their hashes, a sorted set is in its
//! own order, and no collection is empty but a stream, whose numbers are an element.

use crate::by_hash::{Element, Form};
use crate::hash::Hash;
use crate::list::{self, List};
use crate::packed::{ELEMENTS_MAX, Packed, STRING_BYTES_MAX};
use crate::parts::{ValueBuilder, ValueParts};
use crate::primitive::{InvalidValue, put_string, take_string, take_u8};
use crate::set::Set;
use crate::sorted_set::{self, SortedSet, packed_score_of};
use crate::{Kind, Value, form_tag};
use std::collections::BTreeSet;
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::varint::{put_varint, take_varint};

impl Value {
    /// Appends its encoding.
    pub fn put(&self, out: &mut Vec<u8>) {
        if let Some(mut parts) = ValueParts::of(self) {
            parts.put_head(out);
            return parts.put_part(usize::MAX, out);
        }
        out.push(self.kind().tag());
        match self {
            Self::String(bytes) => put_string(out, bytes),
            Self::Hash(hash) => put_packed(out, hash.iter().map(<[_; 2]>::from)),
            Self::List(list) => put_packed(out, list.iter().map(|element| [element])),
            Self::Set(set) => put_packed(out, set.iter().map(|member| [member])),
            Self::SortedSet(SortedSet(sorted_set::Form::Packed(packed))) => put_packed(out, packed.iter()),
            Self::SortedSet(SortedSet(sorted_set::Form::Tree(_))) | Self::Stream(_) => {
                unreachable!("trees have parts")
            }
        }
    }

    /// Takes a value off the front of `input`, which is left behind it. Whatever the bytes are, memory stays
    /// proportional to their number.
    ///
    /// # Errors
    /// [`InvalidValue`] if the bytes are none; `input` is then unspecified.
    pub fn take(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        let tag = take_u8(input)?;
        let kind = Kind::of_tag(tag).ok_or(InvalidValue::Kind(tag))?;
        if kind == Kind::String {
            return Ok(Self::String(take_string(input, VALUE_BYTES_MAX)?.to_vec()));
        }
        match take_u8(input)? {
            form @ (form_tag::TREE | form_tag::EXPIRING) => take_tree(kind, form, input),
            form_tag::PACKED => take_packed(kind, input),
            other => Err(InvalidValue::Form(other)),
        }
    }
}

/// Appends a packed collection without its kind.
fn put_packed<'a, const STRINGS: usize>(
    out: &mut Vec<u8>,
    elements: impl ExactSizeIterator<Item = [&'a [u8]; STRINGS]>,
) {
    out.push(form_tag::PACKED);
    put_varint(out, elements.len() as u64);
    elements.flatten().for_each(|string| put_string(out, string));
}

/// Takes a tree whose kind and form have been taken.
fn take_tree(kind: Kind, form: u8, input: &mut &[u8]) -> Result<Value, InvalidValue> {
    let mut tree = ValueBuilder::take_behind_tags(kind, form, input)?;
    while !tree.is_complete() {
        tree.element(input)?;
    }
    Ok(tree.finish())
}

/// Takes a packed collection whose kind and form have been taken.
fn take_packed(kind: Kind, input: &mut &[u8]) -> Result<Value, InvalidValue> {
    match kind {
        Kind::String => Err(InvalidValue::Kind(kind.tag())),
        Kind::Hash => Ok(Hash(take_distinct(input)?).into()),
        Kind::List => Ok(Value::List(List(list::Form::Packed(Packed::of(&take_elements(input)?))))),
        Kind::Set => Ok(Set(take_distinct(input)?).into()),
        Kind::SortedSet => take_packed_sorted_set(input),
        Kind::Stream => Err(InvalidValue::Form(form_tag::PACKED)),
    }
}

/// Takes a packed sorted set.
fn take_packed_sorted_set(input: &mut &[u8]) -> Result<Value, InvalidValue> {
    let elements = take_elements(input)?;
    are_distinct(elements.iter().map(|[_, member]| *member))?;
    let mut keys = Vec::with_capacity(elements.len());
    for [score, member] in &elements {
        keys.push((packed_score_of(score).ok_or(InvalidValue::Score)?, *member));
    }
    if !keys.is_sorted() {
        return Err(InvalidValue::Order);
    }
    Ok(SortedSet(sorted_set::Form::Packed(Packed::of(&elements))).into())
}

/// Takes a packed collection whose elements have keys, each another one.
fn take_distinct<const STRINGS: usize, E: Element<STRINGS>>(
    input: &mut &[u8],
) -> Result<Form<STRINGS, E>, InvalidValue> {
    let elements = take_elements(input)?;
    are_distinct(elements.iter().filter_map(|strings| strings.first().copied()))?;
    Ok(Form::Packed(Packed::of(&elements)))
}

/// Takes the number of elements of a packed collection, and the elements.
fn take_elements<'a, const STRINGS: usize>(
    input: &mut &'a [u8],
) -> Result<Vec<[&'a [u8]; STRINGS]>, InvalidValue> {
    let count = take_varint(input)?;
    if count == 0 || count > ELEMENTS_MAX as u64 {
        return Err(InvalidValue::Count(count));
    }
    let mut elements = vec![[&[][..]; STRINGS]; count as usize];
    for string in elements.iter_mut().flatten() {
        *string = take_string(input, STRING_BYTES_MAX)?;
    }
    Ok(elements)
}

/// Fails if a string is there twice.
fn are_distinct<'a>(mut strings: impl Iterator<Item = &'a [u8]>) -> Result<(), InvalidValue> {
    let mut seen = BTreeSet::new();
    if strings.all(|string| seen.insert(string)) { Ok(()) } else { Err(InvalidValue::Order) }
}
