//! Operations as bytes.
//!
//! An operation is an opcode, whose highest bit says "blind", and its fields in the order of their
//! declaration. Opcodes from 128 on are two bytes: [`ESCAPE`], with the bit that says "blind", and what the opcode is
//! above 128. Before an operation in another database than the first stand [`IN_DATABASE`] and a byte, the number of the
//! database. Numbers are little-endian base-128 varints in their shortest form, signed ones
//! zigzagged; byte strings are a varint length and the bytes; lists are a varint count and the strings.
//! Every operation has exactly one encoding. Opcodes are fixed for ever: logs and peers hold them.
//!
//! What is here serves all operations. The opcode and the fields of an operation stand with the operation, most often
//! in one line of [`fields`].

use crate::access::is_hidden;
use crate::arguments::Arguments;
use crate::limits::PATTERN_BYTES_MAX;
use crate::primitive::{
    Malformed, put_bytes, put_signed, take_bytes_up_to, take_signed, take_u8, take_up_to,
};
use syros_types::Database;
use syros_types::limits::{BODY_BYTES_MAX, KEY_BYTES_MAX, KEYS_PER_OPERATION_MAX, VALUE_BYTES_MAX};
use syros_types::varint::{put_varint, take_varint};

/// The bit of an opcode's first byte that marks a blind operation.
pub(crate) const BLIND: u8 = 0x80;

/// The first of the two bytes of an opcode that does not fit into one. It is no opcode itself.
pub(crate) const ESCAPE: u8 = 0x7f;

/// What the encoding of an operation in another database than the first begins with; the number of the database and the
/// operation follow. It is no opcode itself.
pub(crate) const IN_DATABASE: u8 = 94;

/// The first opcode of two bytes.
const LONG_FIRST: u16 = 128;

/// The number that an operation has in its encoding.
pub(crate) type Opcode = u16;

/// True if an opcode can be written.
pub(crate) const fn is_opcode(opcode: Opcode) -> bool {
    (opcode < ESCAPE as Opcode && opcode != IN_DATABASE as Opcode)
        || (LONG_FIRST <= opcode && opcode < LONG_FIRST + 256)
}

/// Appends an opcode.
#[inline]
pub(crate) fn put_opcode(out: &mut Vec<u8>, opcode: Opcode, blind: bool) {
    let blind = if blind { BLIND } else { 0 };
    match opcode.checked_sub(LONG_FIRST) {
        None => out.push(opcode as u8 | blind),
        Some(above) => out.extend_from_slice(&[ESCAPE | blind, above as u8]),
    }
}

/// Appends what is before the fields of an operation: its database, unless that is the first, and its opcode.
#[inline]
pub(crate) fn put_head(out: &mut Vec<u8>, database: Database, opcode: Opcode, blind: bool) {
    if !database.is_first() {
        out.extend_from_slice(&[IN_DATABASE, database.number()]);
    }
    put_opcode(out, opcode, blind);
}

/// Takes an opcode off the front of `input`, and whether the operation is blind.
#[inline]
pub(crate) fn take_opcode(input: &mut &[u8]) -> Result<(Opcode, bool), Malformed> {
    let byte = take_u8(input)?;
    let opcode = match byte & !BLIND {
        ESCAPE => LONG_FIRST + Opcode::from(take_u8(input)?),
        short => Opcode::from(short),
    };
    Ok((opcode, byte & BLIND != 0))
}

/// An operation that can be written as bytes and read from them.
pub(crate) trait Encoding<'a>: Copy {
    /// Its opcode, which no other operation has or has had.
    const OPCODE: Opcode;

    /// The opcode of this one: [`Self::OPCODE`], unless the operation has several forms with opcodes of their own.
    fn opcode(&self) -> Opcode {
        Self::OPCODE
    }

    /// Appends its fields.
    fn encode(&self, out: &mut Vec<u8>);

    /// Takes the fields of an operation with this opcode off the front of `input`.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no fields within the limits; `input` is then unspecified.
    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed>;
}

/// How a field of an operation is written and read: one implementation for each kind of field.
pub(crate) trait Field<'a> {
    /// What the field holds.
    type Content;

    /// Appends a field.
    fn put(out: &mut Vec<u8>, content: Self::Content);

    /// Takes a field off the front of `input`.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no such field, or it is above its limit.
    fn take(input: &mut &'a [u8]) -> Result<Self::Content, Malformed>;
}

/// Implements [`Encoding`] for an operation whose encoding is its fields in this order, each of this kind:
/// `fields!(Append<'a> = 39 { key: Key, value: Value });`.
macro_rules! fields {
    ($name:ident $(<$life:lifetime>)? = $opcode:literal { $($field:ident: $kind:ty),* }) => {
        impl<'a> $crate::encoding::Encoding<'a> for $name $(<$life>)? {
            const OPCODE: $crate::encoding::Opcode = $opcode;

            #[inline]
            fn encode(&self, _out: &mut Vec<u8>) {
                $(<$kind as $crate::encoding::Field<'a>>::put(_out, self.$field);)*
            }

            #[inline]
            fn decode(
                _opcode: $crate::encoding::Opcode,
                _input: &mut &'a [u8],
            ) -> Result<Self, $crate::primitive::Malformed> {
                Ok(Self { $($field: <$kind as $crate::encoding::Field<'a>>::take(_input)?),* })
            }
        }
    };
}
pub(crate) use fields;

/// Implements [`Field`] for an enumeration that is written as a byte, its number; all of it in the order of the numbers, from 0
/// on: `choices!(FieldCondition: Always, IfNone, IfAll);`.
macro_rules! choices {
    ($name:ident: $($choice:ident),*) => {
        impl $name {
            /// All, each at its number.
            const CHOICES: &[Self] = &[$(Self::$choice),*];
        }

        const _: () = {
            let mut number = 0;
            while number < $name::CHOICES.len() {
                assert!($name::CHOICES[number] as usize == number, "the order is that of the numbers");
                number += 1;
            }
        };

        impl $crate::encoding::Field<'_> for $name {
            type Content = Self;

            fn put(out: &mut Vec<u8>, content: Self) {
                out.push(content as u8);
            }

            fn take(input: &mut &[u8]) -> Result<Self, $crate::primitive::Malformed> {
                let number = $crate::primitive::take_u8(input)?;
                let choice = Self::CHOICES.get(usize::from(number)).copied();
                choice.ok_or($crate::primitive::Malformed::Options(number))
            }
        }
    };
}
pub(crate) use choices;

/// The name of a key.
pub(crate) enum Key {}

/// A value, or a part of one.
pub(crate) enum Value {}

/// A pattern that names are compared with.
pub(crate) enum Pattern {}

/// A number with a sign.
pub(crate) enum Signed {}

/// A number without one.
pub(crate) enum Unsigned {}

/// Yes or no: 1 or 0.
pub(crate) enum Flag {}

/// What chance is drawn from: eight bytes, little-endian, so that the length of a body does not depend on chance.
pub(crate) enum Seed {}

/// The number of a database, one byte.
pub(crate) enum DatabaseNumber {}

/// A list of at least one key or, with `STEP` 2, of keys and values in turn.
pub(crate) enum List<const STEP: usize> {}

/// A list of at least one element of a collection or, with `STEP` 2, of elements and their values in turn. An element may
/// be as long as a value.
pub(crate) enum Elements<const STEP: usize> {}

/// The same, or none.
pub(crate) enum OptionalElements {}

/// Implements [`Field`] for byte strings up to a limit.
macro_rules! strings {
    ($($kind:ty: $limit:expr;)*) => {
        $(impl<'a> Field<'a> for $kind {
            type Content = &'a [u8];

            #[inline]
            fn put(out: &mut Vec<u8>, content: &'a [u8]) {
                put_bytes(out, content);
            }

            #[inline]
            fn take(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
                take_bytes_up_to(input, $limit as u64)
            }
        })*
    };
}

strings! {
    Value: VALUE_BYTES_MAX;
    Pattern: PATTERN_BYTES_MAX;
}

impl<'a> Field<'a> for Key {
    type Content = &'a [u8];

    #[inline]
    fn put(out: &mut Vec<u8>, content: &'a [u8]) {
        put_bytes(out, content);
    }

    #[inline]
    fn take(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
        let key = take_bytes_up_to(input, KEY_BYTES_MAX as u64)?;
        if is_hidden(key) { Err(Malformed::HiddenKey) } else { Ok(key) }
    }
}

impl<'a> Field<'a> for Signed {
    type Content = i64;

    #[inline]
    fn put(out: &mut Vec<u8>, content: i64) {
        put_signed(out, content);
    }

    #[inline]
    fn take(input: &mut &'a [u8]) -> Result<i64, Malformed> {
        take_signed(input)
    }
}

impl Field<'_> for Unsigned {
    type Content = u64;

    fn put(out: &mut Vec<u8>, content: u64) {
        put_varint(out, content);
    }

    fn take(input: &mut &[u8]) -> Result<u64, Malformed> {
        Ok(take_varint(input)?)
    }
}

impl Field<'_> for Flag {
    type Content = bool;

    fn put(out: &mut Vec<u8>, content: bool) {
        out.push(u8::from(content));
    }

    fn take(input: &mut &[u8]) -> Result<bool, Malformed> {
        match take_u8(input)? {
            flag @ (0 | 1) => Ok(flag == 1),
            other => Err(Malformed::Options(other)),
        }
    }
}

impl Field<'_> for DatabaseNumber {
    type Content = Database;

    fn put(out: &mut Vec<u8>, content: Database) {
        out.push(content.number());
    }

    fn take(input: &mut &[u8]) -> Result<Database, Malformed> {
        let number = take_u8(input)?;
        Database::new(number).ok_or(Malformed::Database(number))
    }
}

impl Field<'_> for Seed {
    type Content = u64;

    fn put(out: &mut Vec<u8>, content: u64) {
        out.extend_from_slice(&content.to_le_bytes());
    }

    fn take(input: &mut &[u8]) -> Result<u64, Malformed> {
        let (bytes, rest) = input.split_first_chunk().ok_or(Malformed::Truncated)?;
        *input = rest;
        Ok(u64::from_le_bytes(*bytes))
    }
}

impl<'a, const STEP: usize> Field<'a> for List<STEP> {
    type Content = Arguments<'a>;

    fn put(out: &mut Vec<u8>, content: Arguments<'a>) {
        put_varint(out, content.len() as u64);
        content.iter().for_each(|bytes| put_bytes(out, bytes));
    }

    #[inline]
    fn take(input: &mut &'a [u8]) -> Result<Arguments<'a>, Malformed> {
        take_list(input, STEP as u64, Key::take)
    }
}

impl<'a, const STEP: usize> Field<'a> for Elements<STEP> {
    type Content = Arguments<'a>;

    fn put(out: &mut Vec<u8>, content: Arguments<'a>) {
        List::<STEP>::put(out, content);
    }

    fn take(input: &mut &'a [u8]) -> Result<Arguments<'a>, Malformed> {
        take_list(input, STEP as u64, Value::take)
    }
}

impl<'a> Field<'a> for OptionalElements {
    type Content = Arguments<'a>;

    fn put(out: &mut Vec<u8>, content: Arguments<'a>) {
        List::<1>::put(out, content);
    }

    fn take(input: &mut &'a [u8]) -> Result<Arguments<'a>, Malformed> {
        if let [0, rest @ ..] = *input {
            *input = rest;
            return Ok(Arguments::new(&[]));
        }
        Elements::<1>::take(input)
    }
}

/// Takes a list whose first string, and every `step`-th one, is taken by `take`; those between are values.
#[inline]
fn take_list<'a>(
    input: &mut &'a [u8],
    step: u64,
    take: impl Fn(&mut &'a [u8]) -> Result<&'a [u8], Malformed>,
) -> Result<Arguments<'a>, Malformed> {
    let count = take_up_to(input, step * KEYS_PER_OPERATION_MAX as u64)?;
    if count == 0 || !count.is_multiple_of(step) {
        return Err(Malformed::Count(count));
    }
    let start = *input;
    for index in 0..count {
        if index % step == 0 {
            take(input)?
        } else {
            Value::take(input)?
        };
    }
    let bytes = &start[..start.len() - input.len()];
    Ok(Arguments::encoded(count as usize, bytes))
}

/// The most bytes that an operation's opcode, options, counts and numbers take besides its strings and
/// their length prefixes: two bytes each of database and opcode, eight of an owner, six option bytes, and six varints of ten bytes.
const FIXED_BYTES_MAX: usize = 78;

/// A bound on the encoded length of an operation with strings of these lengths: never too low.
pub(crate) fn encoded_length_bound(strings: &[&[u8]]) -> usize {
    // A string within the limits has a length prefix of at most four bytes.
    strings.iter().map(|bytes| bytes.len() + 4).sum::<usize>() + FIXED_BYTES_MAX
}

const _: () = assert!(VALUE_BYTES_MAX < 1 << 28, "a length prefix has at most four bytes");
const _: () = assert!(encoded_length_of_largest() <= BODY_BYTES_MAX, "the largest SET fits into a body");

const fn encoded_length_of_largest() -> usize {
    VALUE_BYTES_MAX + KEY_BYTES_MAX + 8 + FIXED_BYTES_MAX
}
