//! Replies as values and as bytes.
//!
//! A reply is a tag and its content: nothing for nil, no array and OK, a zigzag varint for an integer, a varint
//! length and bytes for strings and errors, eight little-endian bytes for a double, a varint count and that many replies for an array and for a set, a varint count
//! and twice as many replies for a map, for pairs and for keyed replies. The replies to a body are concatenated in the order of its operations.

use crate::primitive::{Malformed, put_bytes, put_signed, take_bytes, take_fixed, take_signed, take_u8};
use core::fmt;
use syros_types::varint::{put_varint, take_varint};

mod tag {
    pub(super) const NIL: u8 = 0;
    pub(super) const OK: u8 = 1;
    pub(super) const INTEGER: u8 = 2;
    pub(super) const BULK: u8 = 3;
    pub(super) const SIMPLE: u8 = 4;
    pub(super) const ARRAY: u8 = 5;
    pub(super) const ERROR: u8 = 6;
    pub(super) const MAP: u8 = 7;
    pub(super) const PAIRS: u8 = 8;
    pub(super) const SET: u8 = 9;
    pub(super) const NIL_ARRAY: u8 = 11;
    pub(super) const DOUBLE: u8 = 10;
    pub(super) const DECIMAL: u8 = 12;
    pub(super) const KEYED: u8 = 20;
    pub(super) const WAITS: u8 = 21;
    pub(super) const BOOLEAN: u8 = 22;
    pub(super) const BIG_NUMBER: u8 = 23;
    pub(super) const VERBATIM: u8 = 24;
}

/// Deepest nesting of arrays, maps, pairs and sets. Only scripts answer anything deeper than seven, which XINFO STREAM FULL
/// needs.
const DEPTH_MAX: usize = 64;

/// A number of floating point, told from others by its bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Double([u8; 8]);

impl Double {
    /// The double of this value.
    #[must_use]
    pub const fn new(value: f64) -> Self {
        Self(value.to_le_bytes())
    }

    /// Its value.
    #[must_use]
    pub const fn value(self) -> f64 {
        f64::from_le_bytes(self.0)
    }
}

impl fmt::Debug for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// An owned reply. The hot paths write replies with the `put_` functions and read them as
/// [`ReplyRef`]; this is for everybody else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// No value.
    Nil,
    /// The simple string `OK`.
    Ok,
    /// An integer.
    Integer(i64),
    /// A string of any bytes.
    Bulk(Vec<u8>),
    /// A short status without line breaks, such as the answer of TYPE.
    Simple(Vec<u8>),
    /// A number of floating point: in RESP2 a string.
    Double(Double),
    /// The same, written with up to seventeen decimals.
    Decimal(Double),
    /// Several replies as one.
    Array(Vec<Reply>),
    /// An error: its code and message, such as `ERR no such key`.
    Error(Vec<u8>),
    /// Names with values: in RESP2 an array in which they alternate.
    Map(Vec<(Reply, Reply)>),
    /// Several pairs: in RESP3 an array of arrays of two, in RESP2 one array.
    Pairs(Vec<(Reply, Reply)>),
    /// Several names with what belongs to them: in RESP3 a map, in RESP2 an array of arrays of two.
    Keyed(Vec<(Reply, Reply)>),
    /// No array where there could be one: RESP2 tells it from [`Reply::Nil`].
    NilArray,
    /// Several replies that are members of a set: in RESP2 an array.
    Set(Vec<Reply>),
    /// There is nothing yet, and the command waits. No client gets to see it.
    Waits,
    /// Yes or no: in RESP2 an integer.
    Boolean(bool),
    /// An integer of any length, as decimal digits: in RESP2 a string.
    BigNumber(Vec<u8>),
    /// A string, and behind it three letters that say of what kind it is: in RESP2 only the string.
    Verbatim(Vec<u8>, Vec<u8>),
}

impl Reply {
    /// Appends the reply's encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nil => put_nil(out),
            Self::Ok => put_ok(out),
            Self::Integer(value) => put_integer(out, *value),
            Self::Double(value) => put_double(out, value.value()),
            Self::Decimal(value) => put_decimal(out, value.value()),
            Self::Bulk(bytes) => put_bulk(out, bytes),
            Self::Simple(text) => put_simple(out, text),
            Self::NilArray => put_nil_array(out),
            Self::Waits => put_waits(out),
            Self::Boolean(flag) => put_boolean(out, *flag),
            Self::BigNumber(digits) => put_big_number(out, digits),
            Self::Verbatim(text, kind) => put_verbatim(out, kind, text),
            Self::Array(replies) | Self::Set(replies) => {
                let put_head = if matches!(self, Self::Set(_)) { put_set } else { put_array };
                put_head(out, replies.len());
                replies.iter().for_each(|reply| reply.encode(out));
            }
            Self::Error(text) => put_error(out, text),
            Self::Map(pairs) | Self::Pairs(pairs) | Self::Keyed(pairs) => {
                let put_head = match self {
                    Self::Map(_) => put_map,
                    Self::Pairs(_) => put_pairs,
                    _ => put_keyed,
                };
                put_head(out, pairs.len());
                for (first, second) in pairs {
                    first.encode(out);
                    second.encode(out);
                }
            }
        }
    }

    /// Takes one reply off the front of `input`, which is left behind it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no reply.
    pub fn decode(input: &mut &[u8]) -> Result<Self, Malformed> {
        ReplyRef::decode(input).map(ReplyRef::to_owned)
    }

    /// All of the concatenated replies to a body.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are anything but whole replies.
    pub fn decode_all(mut input: &[u8]) -> Result<Vec<Self>, Malformed> {
        let mut replies = Vec::new();
        while !input.is_empty() {
            replies.push(Self::decode(&mut input)?);
        }
        Ok(replies)
    }
}

/// Appends the encoding of [`Reply::Nil`].
pub fn put_nil(out: &mut Vec<u8>) {
    out.push(tag::NIL);
}

/// Appends the encoding of [`Reply::NilArray`].
pub fn put_nil_array(out: &mut Vec<u8>) {
    out.push(tag::NIL_ARRAY);
}

/// True if this encoded reply is [`Reply::NilArray`].
#[must_use]
pub const fn is_nil_array(reply: &[u8]) -> bool {
    matches!(reply, [tag::NIL_ARRAY])
}

/// Appends the encoding of [`Reply::Waits`].
pub fn put_waits(out: &mut Vec<u8>) {
    out.push(tag::WAITS);
}

/// True if this encoded reply is [`Reply::Waits`].
#[must_use]
pub const fn is_waits(reply: &[u8]) -> bool {
    matches!(reply, [tag::WAITS])
}

/// Appends the encoding of [`Reply::Ok`].
pub fn put_ok(out: &mut Vec<u8>) {
    out.push(tag::OK);
}

/// Appends the encoding of [`Reply::Integer`].
pub fn put_integer(out: &mut Vec<u8>, value: i64) {
    out.push(tag::INTEGER);
    put_signed(out, value);
}

/// Appends the encoding of [`Reply::Double`].
pub fn put_double(out: &mut Vec<u8>, value: f64) {
    out.push(tag::DOUBLE);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends the encoding of [`Reply::Decimal`].
pub fn put_decimal(out: &mut Vec<u8>, value: f64) {
    out.push(tag::DECIMAL);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends the encoding of [`Reply::Bulk`].
pub fn put_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(tag::BULK);
    put_bytes(out, bytes);
}

/// Appends the encoding of [`Reply::Simple`].
pub fn put_simple(out: &mut Vec<u8>, text: &[u8]) {
    out.push(tag::SIMPLE);
    put_bytes(out, text);
}

/// Appends the encoding of [`Reply::Boolean`].
pub fn put_boolean(out: &mut Vec<u8>, flag: bool) {
    out.extend_from_slice(&[tag::BOOLEAN, u8::from(flag)]);
}

/// Appends the encoding of [`Reply::BigNumber`].
pub fn put_big_number(out: &mut Vec<u8>, digits: &[u8]) {
    out.push(tag::BIG_NUMBER);
    put_bytes(out, digits);
}

/// Appends the encoding of [`Reply::Verbatim`].
pub fn put_verbatim(out: &mut Vec<u8>, kind: &[u8], text: &[u8]) {
    out.push(tag::VERBATIM);
    put_bytes(out, kind);
    put_bytes(out, text);
}

/// Appends the head of a [`Reply::Array`]; `count` replies must follow.
pub fn put_array(out: &mut Vec<u8>, count: usize) {
    out.push(tag::ARRAY);
    put_varint(out, count as u64);
}

/// Appends the head of a [`Reply::Map`]; `count` names, each with its value, must follow.
pub fn put_map(out: &mut Vec<u8>, count: usize) {
    out.push(tag::MAP);
    put_varint(out, count as u64);
}

/// Appends the head of [`Reply::Pairs`]; twice `count` replies must follow.
pub fn put_pairs(out: &mut Vec<u8>, count: usize) {
    out.push(tag::PAIRS);
    put_varint(out, count as u64);
}

/// Appends the head of [`Reply::Keyed`]; twice `count` replies must follow.
pub fn put_keyed(out: &mut Vec<u8>, count: usize) {
    out.push(tag::KEYED);
    put_varint(out, count as u64);
}

/// Appends the head of a [`Reply::Set`]; `count` members must follow.
pub fn put_set(out: &mut Vec<u8>, count: usize) {
    out.push(tag::SET);
    put_varint(out, count as u64);
}

/// Appends the encoding of [`Reply::Error`].
pub fn put_error(out: &mut Vec<u8>, text: &[u8]) {
    out.push(tag::ERROR);
    put_bytes(out, text);
}

/// A reply whose bytes are borrowed from its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyRef<'a> {
    /// See [`Reply::Nil`].
    Nil,
    /// See [`Reply::Ok`].
    Ok,
    /// See [`Reply::Integer`].
    Integer(i64),
    /// See [`Reply::Double`].
    Double(Double),
    /// See [`Reply::Decimal`].
    Decimal(Double),
    /// See [`Reply::Bulk`].
    Bulk(&'a [u8]),
    /// See [`Reply::Simple`].
    Simple(&'a [u8]),
    /// See [`Reply::Array`].
    Array(ArrayRef<'a>),
    /// See [`Reply::Error`].
    Error(&'a [u8]),
    /// See [`Reply::Map`].
    Map(PairsRef<'a>),
    /// See [`Reply::Pairs`].
    Pairs(PairsRef<'a>),
    /// See [`Reply::Keyed`].
    Keyed(PairsRef<'a>),
    /// See [`Reply::NilArray`].
    NilArray,
    /// See [`Reply::Set`].
    Set(ArrayRef<'a>),
    /// See [`Reply::Waits`].
    Waits,
    /// See [`Reply::Boolean`].
    Boolean(bool),
    /// See [`Reply::BigNumber`].
    BigNumber(&'a [u8]),
    /// See [`Reply::Verbatim`]; the letters come first.
    Verbatim(&'a [u8], &'a [u8]),
}

/// How a reply of many parts begins, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// An array of so many replies.
    Array(usize),
    /// A map of so many names with values.
    Map(usize),
    /// So many pairs.
    Pairs(usize),
    /// So many names, each with what belongs to it.
    Keyed(usize),
    /// A set of so many members.
    Set(usize),
}

impl<'a> ReplyRef<'a> {
    /// Takes one reply off the front of `input`, which is left behind it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no reply; an array's elements are checked too.
    pub fn decode(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Self::decode_at(input, 0)
    }

    /// Takes the head of an array, a map, pairs or a set off the front of `input`; `None`, and nothing is taken, if none of them
    /// begins there. For whoever decodes the elements of a long one step by step.
    pub fn take_head(input: &mut &'a [u8]) -> Option<Head> {
        let (first, mut rest) = input.split_first()?;
        let head = match *first {
            tag::ARRAY => Head::Array,
            tag::MAP => Head::Map,
            tag::PAIRS => Head::Pairs,
            tag::KEYED => Head::Keyed,
            tag::SET => Head::Set,
            _ => return None,
        };
        let count = usize::try_from(take_varint(&mut rest).ok()?).ok()?;
        *input = rest;
        Some(head(count))
    }

    fn decode_at(input: &mut &'a [u8], depth: usize) -> Result<Self, Malformed> {
        Ok(match take_u8(input)? {
            tag::NIL => Self::Nil,
            tag::OK => Self::Ok,
            tag::INTEGER => Self::Integer(take_signed(input)?),
            tag::DOUBLE => Self::Double(Double(take_fixed(input)?)),
            tag::DECIMAL => Self::Decimal(Double(take_fixed(input)?)),
            tag::BULK => Self::Bulk(take_bytes(input)?),
            tag::SIMPLE => Self::Simple(take_bytes(input)?),
            tag::ARRAY | tag::MAP | tag::PAIRS | tag::KEYED | tag::SET if depth == DEPTH_MAX => {
                return Err(Malformed::TooDeep);
            }
            tag::ARRAY => Self::Array(Self::decode_parts(input, 1, depth)?),
            tag::MAP => Self::Map(PairsRef(Self::decode_parts(input, 2, depth)?)),
            tag::PAIRS => Self::Pairs(PairsRef(Self::decode_parts(input, 2, depth)?)),
            tag::KEYED => Self::Keyed(PairsRef(Self::decode_parts(input, 2, depth)?)),
            tag::SET => Self::Set(Self::decode_parts(input, 1, depth)?),
            tag::ERROR => Self::Error(take_bytes(input)?),
            tag::NIL_ARRAY => Self::NilArray,
            tag::WAITS => Self::Waits,
            tag::BOOLEAN => match take_u8(input)? {
                flag @ (0 | 1) => Self::Boolean(flag == 1),
                other => return Err(Malformed::Options(other)),
            },
            tag::BIG_NUMBER => Self::BigNumber(take_bytes(input)?),
            tag::VERBATIM => Self::Verbatim(take_bytes(input)?, take_bytes(input)?),
            other => return Err(Malformed::Tag(other)),
        })
    }

    /// Takes a count, and `each` times as many replies.
    fn decode_parts(input: &mut &'a [u8], each: u64, depth: usize) -> Result<ArrayRef<'a>, Malformed> {
        let count = take_varint(input)?.checked_mul(each).ok_or(Malformed::Number)?;
        let start = *input;
        for _ in 0..count {
            Self::decode_at(input, depth + 1)?;
        }
        let bytes = &start[..start.len() - input.len()];
        Ok(ArrayRef { count: count as usize, bytes })
    }

    /// The reply with its own copy of the bytes.
    #[must_use]
    pub fn to_owned(self) -> Reply {
        match self {
            Self::Nil => Reply::Nil,
            Self::Ok => Reply::Ok,
            Self::Integer(value) => Reply::Integer(value),
            Self::Double(value) => Reply::Double(value),
            Self::Decimal(value) => Reply::Decimal(value),
            Self::Bulk(bytes) => Reply::Bulk(bytes.to_vec()),
            Self::Simple(text) => Reply::Simple(text.to_vec()),
            Self::Array(array) => Reply::Array(array.map(ReplyRef::to_owned).collect()),
            Self::Error(text) => Reply::Error(text.to_vec()),
            Self::Map(pairs) => Reply::Map(pairs.to_owned()),
            Self::Pairs(pairs) => Reply::Pairs(pairs.to_owned()),
            Self::Keyed(pairs) => Reply::Keyed(pairs.to_owned()),
            Self::NilArray => Reply::NilArray,
            Self::Waits => Reply::Waits,
            Self::Boolean(flag) => Reply::Boolean(flag),
            Self::BigNumber(digits) => Reply::BigNumber(digits.to_vec()),
            Self::Verbatim(kind, text) => Reply::Verbatim(text.to_vec(), kind.to_vec()),
            Self::Set(members) => Reply::Set(members.map(ReplyRef::to_owned).collect()),
        }
    }
}

/// The replies in a map or in pairs: an iterator over the pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairsRef<'a>(ArrayRef<'a>);

impl<'a> PairsRef<'a> {
    /// The replies one by one: each name before its value.
    #[must_use]
    pub const fn flat(self) -> ArrayRef<'a> {
        self.0
    }

    fn to_owned(self) -> Vec<(Reply, Reply)> {
        self.map(|(first, second)| (first.to_owned(), second.to_owned())).collect()
    }
}

impl<'a> Iterator for PairsRef<'a> {
    type Item = (ReplyRef<'a>, ReplyRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.0.next()?, self.0.next()?))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.count / 2, Some(self.0.count / 2))
    }
}

impl ExactSizeIterator for PairsRef<'_> {}

/// The replies in an array or in a set: an iterator over them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ArrayRef<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Iterator for ArrayRef<'a> {
    type Item = ReplyRef<'a>;

    fn next(&mut self) -> Option<ReplyRef<'a>> {
        self.count = self.count.checked_sub(1)?;
        // Checked, to this depth, when the array was decoded.
        ReplyRef::decode(&mut self.bytes).ok()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for ArrayRef<'_> {}

impl fmt::Debug for ArrayRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_golden_bytes() {
        let pairs =
            || vec![(Reply::Bulk(b"f".to_vec()), Reply::Nil), (Reply::Ok, Reply::Array(vec![Reply::Ok]))];
        let golden: [(Reply, &[u8]); 20] = [
            (Reply::Boolean(true), &[22, 1]),
            (Reply::BigNumber(b"12".to_vec()), &[23, 2, b'1', b'2']),
            (Reply::Verbatim(b"v".to_vec(), b"txt".to_vec()), &[24, 3, b't', b'x', b't', 1, b'v']),
            (Reply::Nil, &[0]),
            (Reply::Ok, &[1]),
            (Reply::Integer(0), &[2, 0]),
            (Reply::Integer(-1), &[2, 1]),
            (Reply::Integer(64), &[2, 0x80, 1]),
            (Reply::Bulk(b"ab".to_vec()), &[3, 2, b'a', b'b']),
            (Reply::Simple(b"none".to_vec()), &[4, 4, b'n', b'o', b'n', b'e']),
            (Reply::Array(vec![Reply::Nil, Reply::Array(vec![Reply::Ok])]), &[5, 2, 0, 5, 1, 1]),
            (Reply::Error(b"E".to_vec()), &[6, 1, b'E']),
            (Reply::Map(pairs()), &[7, 2, 3, 1, b'f', 0, 1, 5, 1, 1]),
            (Reply::Pairs(pairs()), &[8, 2, 3, 1, b'f', 0, 1, 5, 1, 1]),
            (Reply::Keyed(pairs()), &[20, 2, 3, 1, b'f', 0, 1, 5, 1, 1]),
            (Reply::Set(vec![Reply::Bulk(b"m".to_vec()), Reply::Nil]), &[9, 2, 3, 1, b'm', 0]),
            (Reply::Double(Double::new(1.5)), &[10, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f]),
            (Reply::Double(Double::new(-0.0)), &[10, 0, 0, 0, 0, 0, 0, 0, 0x80]),
            (Reply::NilArray, &[11]),
            (Reply::Decimal(Double::new(1.5)), &[12, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f]),
        ];
        let (mut all, mut replies) = (Vec::new(), Vec::new());
        for (reply, bytes) in golden {
            let mut out = Vec::new();
            reply.encode(&mut out);
            assert_eq!(out, bytes, "{reply:?}");
            all.extend_from_slice(bytes);
            replies.push(reply);
        }
        assert_eq!(Reply::decode_all(&all), Ok(replies));
    }

    #[test]
    fn a_bulk_is_borrowed() {
        let mut out = Vec::new();
        put_bulk(&mut out, b"value");
        let mut input = &out[..];
        let Ok(ReplyRef::Bulk(bytes)) = ReplyRef::decode(&mut input) else { panic!("no bulk") };
        assert!(std::ptr::eq(bytes, &raw const out[2..]));
        assert!(input.is_empty());
    }

    #[test]
    fn bad_replies_are_refused() {
        for (bytes, error) in [
            (&[][..], Malformed::Truncated),
            (&[13], Malformed::Tag(13)),
            (&[9, 2, 1], Malformed::Truncated),
            (&[7, 1, 0], Malformed::Truncated),
            (&[7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Malformed::Number),
            (&[3, 2, b'a'], Malformed::Truncated),
            (&[2, 0x80, 0], Malformed::Number),
            (&[5, 2, 1], Malformed::Truncated),
            (&[5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Malformed::Truncated),
            (&[10, 0, 0], Malformed::Truncated),
            (&[22, 2], Malformed::Options(2)),
            (&[24, 1, b'k'], Malformed::Truncated),
            (&[5, 1].repeat(65)[..], Malformed::TooDeep),
            (&[9, 1].repeat(65)[..], Malformed::TooDeep),
        ] {
            assert_eq!(ReplyRef::decode(&mut { bytes }), Err(error), "{bytes:?}");
        }
    }
}
