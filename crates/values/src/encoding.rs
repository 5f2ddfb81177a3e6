//! Values as bytes: in snapshots, in records on disk, in digests. Fixed for ever, like a file format.
//!
//! | what | bytes |
//! |---|---|
//! | value | the kind's tag, then: |
//! | string | length, bytes |
//! | hash | form (1 packed, 2 tree), number of fields, then each field and its value as strings, in order |
//!
//! Numbers are little-endian base-128 varints in their shortest form. A value is written in one way only, and what is
//! read has to be what a value can be: a packed hash keeps its limits and has no field twice, the fields of a tree are in
//! the order of their hashes, and no collection is empty.

use crate::hash::{Form, Hash, form_tag};
use crate::packed::{FIELDS_MAX, Packed, STRING_BYTES_MAX};
use crate::parts::ValueBuilder;
use crate::primitive::{InvalidValue, put_pair, put_string, take_string, take_u8};
use crate::{Kind, Value};
use std::collections::BTreeSet;
use syros_types::limits::VALUE_BYTES_MAX;
use syros_types::varint::{put_varint, take_varint};

impl Value {
    /// Appends its encoding.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.push(self.kind().tag());
        match self {
            Self::String(bytes) => put_string(out, bytes),
            Self::Hash(hash) => put_hash(out, hash),
        }
    }

    /// Takes a value off the front of `input`, which is left behind it. Whatever the bytes are, memory stays
    /// proportional to their number.
    ///
    /// # Errors
    /// [`InvalidValue`] if the bytes are none; `input` is then unspecified.
    pub fn take(input: &mut &[u8]) -> Result<Self, InvalidValue> {
        let tag = take_u8(input)?;
        match Kind::of_tag(tag).ok_or(InvalidValue::Kind(tag))? {
            Kind::String => Ok(Self::String(take_string(input, VALUE_BYTES_MAX)?.to_vec())),
            Kind::Hash => take_hash(input),
        }
    }
}

fn put_hash(out: &mut Vec<u8>, hash: &Hash) {
    out.push(hash.form_tag());
    put_varint(out, hash.len());
    hash.iter().for_each(|pair| put_pair(out, pair));
}

/// Takes a hash whose kind has been taken.
fn take_hash(input: &mut &[u8]) -> Result<Value, InvalidValue> {
    let tag = take_u8(input)?;
    if tag == form_tag::TREE {
        let mut tree = ValueBuilder::take_count(input)?;
        while !tree.is_complete() {
            tree.element(input)?;
        }
        return Ok(tree.finish());
    }
    if tag != form_tag::PACKED {
        return Err(InvalidValue::Form(tag));
    }
    Ok(Value::Hash(Hash(Form::Packed(take_packed(input)?))))
}

fn take_packed(input: &mut &[u8]) -> Result<Packed, InvalidValue> {
    let count = take_varint(input)?;
    if count == 0 || count > FIELDS_MAX as u64 {
        return Err(InvalidValue::Count(count));
    }
    let (mut pairs, mut fields) = (Vec::with_capacity(count as usize), BTreeSet::new());
    for _ in 0..count {
        let pair = (take_string(input, STRING_BYTES_MAX)?, take_string(input, STRING_BYTES_MAX)?);
        if !fields.insert(pair.0) {
            return Err(InvalidValue::Order);
        }
        pairs.push(pair);
    }
    Ok(Packed::of(&pairs))
}
