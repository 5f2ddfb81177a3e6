//! Where values begin and end, and their pieces.

use crate::error::RdbError;
use crate::module;
use crate::source::{Source, Taken};
use std::io::Read;
use syros_commands::rdb::type_number as number;

/// A value that is longer is handed on in pieces of about so many bytes: few enough to be sent in one command, with room to
/// spare.
pub const PIECE_BYTES: usize = 8 << 20;

/// A piece that becomes longer than this once it is decompressed ends earlier.
const EXPANDED_BYTES: u64 = 64 << 20;

/// Longest stream, in bytes as they stand in the file: it is one piece.
pub const STREAM_BYTES_MAX: usize = 1 << 30;

/// The number of hashes of which fields expire, as Valkey 9 writes them: a count, and of each field its name, its value, and in 8
/// bytes the last millisecond in which it is there, or -1. They are handed on as Redis 7.4 writes them.
const VALKEY_HASH: u8 = 22;

/// Some of a value, or all of it: a type's number and a value of that type.
#[derive(Debug)]
pub struct Piece {
    /// As `syros_commands::rdb` reads it.
    pub typed: Vec<u8>,
    /// Nothing of the value has come before.
    pub is_first: bool,
    /// Nothing of the value comes later.
    pub is_last: bool,
}

/// What a value ends with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All of it has been handed on.
    Whole,
    /// Syros cannot hold it, for this reason; some of it may have been handed on. The rest was passed over.
    Refused(String),
}

/// A part of an element.
#[derive(Clone, Copy)]
enum Field {
    String,
    Bytes(u64),
    Number,
    /// A score in digits, behind their number.
    Digits,
    /// A field and its value, and when it expires, in Valkey's order.
    Expiring,
}

/// What values of a type are like: so many bytes, a count, and as many elements.
struct Shape {
    head: u64,
    element: &'static [Field],
}

/// The shape of a type whose values have elements.
const fn shape(number: u8) -> Option<Shape> {
    use Field::{Bytes, Digits, Expiring, Number, String};
    let (head, element): (u64, &'static [Field]) = match number {
        number::LIST | number::SET | number::LIST_QUICKLIST => (0, &[String]),
        number::HASH => (0, &[String, String]),
        number::SORTED_SET => (0, &[String, Digits]),
        number::SORTED_SET_BINARY => (0, &[String, Bytes(8)]),
        number::LIST_QUICKLIST_2 => (0, &[Number, String]),
        number::EXPIRING_HASH => (8, &[Number, String, String]),
        VALKEY_HASH => (0, &[Expiring]),
        _ => return None,
    };
    Some(Shape { head, element })
}

/// The bytes before the one string that values of a type are.
const fn head_of_single(number: u8) -> Option<u64> {
    match number {
        number::STRING
        | number::HASH_ZIPMAP
        | number::LIST_ZIPLIST
        | number::SET_INTSET
        | number::SORTED_SET_ZIPLIST
        | number::HASH_ZIPLIST
        | number::HASH_LISTPACK
        | number::SORTED_SET_LISTPACK
        | number::SET_LISTPACK => Some(0),
        number::EXPIRING_HASH_LISTPACK => Some(8),
        _ => None,
    }
}

/// Takes a value of the type with this number, and hands it on.
pub(crate) fn take<R: Read, E: From<RdbError>>(
    source: &mut Source<R>,
    number: u8,
    hand_on: &mut impl FnMut(Piece) -> Result<(), E>,
) -> Result<End, E> {
    if let Some(shape) = shape(number) {
        let mut head = vec![if number == VALKEY_HASH { number::EXPIRING_HASH } else { number }];
        source.copy(shape.head, &mut head)?;
        if number == VALKEY_HASH {
            // What the fields' moments are relative to.
            head.extend_from_slice(&[0; 8]);
        }
        return take_elements(source, &head, &shape, hand_on);
    }
    if let Some(head) = head_of_single(number) {
        let mut typed = vec![number];
        source.copy(head, &mut typed)?;
        return match source.string_into(&mut typed)? {
            Taken::Kept(_) => hand_on(Piece { typed, is_first: true, is_last: true }).map(|()| End::Whole),
            Taken::TooLong(length) => Ok(End::Refused(too_long(length))),
        };
    }
    match number {
        number::STREAM | number::STREAM_WITH_COUNTERS | number::STREAM_WITH_ACTIVITY => {
            let mut stream = StreamTaker { typed: vec![number], problem: None };
            stream.take(source, number)?;
            match stream.problem {
                Some(problem) => Ok(End::Refused(problem)),
                None => {
                    hand_on(Piece { typed: stream.typed, is_first: true, is_last: true }).map(|()| End::Whole)
                }
            }
        }
        number::MODULE_2 => {
            let name = module::name(source)?;
            module::pass_over(source)?;
            Ok(End::Refused(format!("it is of the type {name} of a module")))
        }
        number::MODULE => Err(source
            .malformed("a value of a module, of an age in which nobody else can pass over it")
            .into()),
        other => Err(source.malformed(format!("no value has the type {other}")).into()),
    }
}

fn too_long(length: u64) -> String {
    let limit = crate::source::STRING_BYTES_MAX;
    format!("it has {length} bytes in one piece, and the maximum is {limit}")
}

/// Takes the elements of a value.
fn take_elements<R: Read, E: From<RdbError>>(
    source: &mut Source<R>,
    head: &[u8],
    shape: &Shape,
    hand_on: &mut impl FnMut(Piece) -> Result<(), E>,
) -> Result<End, E> {
    let mut left = source.length()?;
    let mut problem = None;
    let mut is_first = true;
    loop {
        let (mut elements, mut count, mut expanded) = (Vec::new(), 0, 0);
        while left > 0 && elements.len() < PIECE_BYTES && expanded < EXPANDED_BYTES {
            left -= 1;
            count += 1;
            expanded += element(source, shape.element, &mut elements, &mut problem)?;
            if problem.is_some() {
                elements.clear();
            }
        }
        if problem.is_none() {
            let mut typed = head.to_vec();
            put_length(count, &mut typed);
            typed.append(&mut elements);
            hand_on(Piece { typed, is_first, is_last: left == 0 })?;
            is_first = false;
        }
        if left == 0 {
            return Ok(problem.map_or(End::Whole, End::Refused));
        }
    }
}

/// Takes one element; how many bytes its strings have once they are decompressed.
fn element<R: Read>(
    source: &mut Source<R>,
    fields: &[Field],
    out: &mut Vec<u8>,
    problem: &mut Option<String>,
) -> Result<u64, RdbError> {
    /// The lengths of scores that have no digits.
    const WITHOUT_DIGITS: u8 = 253;
    let mut expanded = 0;
    for field in fields {
        match field {
            Field::Bytes(count) => source.copy(*count, out)?,
            Field::Number => drop(source.length_into(out)?),
            Field::Digits => {
                let length = source.byte()?;
                out.push(length);
                if length < WITHOUT_DIGITS {
                    source.copy(u64::from(length), out)?;
                }
            }
            Field::String => expanded += string(source, out, problem)?,
            Field::Expiring => {
                let mut strings = Vec::new();
                expanded += string(source, &mut strings, problem)? + string(source, &mut strings, problem)?;
                let last = i64::from_le_bytes(source.array()?);
                // The first millisecond in which it is gone; 0 for never.
                put_length(u64::try_from(last).map_or(0, |last| last + 1), out);
                out.append(&mut strings);
            }
        }
    }
    Ok(expanded)
}

/// Takes a string of an element; how many bytes it has once it is decompressed.
fn string<R: Read>(
    source: &mut Source<R>,
    out: &mut Vec<u8>,
    problem: &mut Option<String>,
) -> Result<u64, RdbError> {
    match source.string_into(out)? {
        Taken::Kept(length) => Ok(length),
        Taken::TooLong(length) => {
            *problem = Some(too_long(length));
            Ok(0)
        }
    }
}

/// Appends a length as it stands in files.
pub(crate) fn put_length(length: u64, out: &mut Vec<u8>) {
    let bytes = length.to_be_bytes();
    match length {
        0..0x40 => out.push(bytes[7]),
        0x40..0x4000 => out.extend_from_slice(&[bytes[6] | 0x40, bytes[7]]),
        0x4000..0x1_0000_0000 => {
            out.push(0x80);
            out.extend_from_slice(&bytes[4..]);
        }
        _ => {
            out.push(0x81);
            out.extend_from_slice(&bytes);
        }
    }
}

/// A stream that is taken as one piece.
struct StreamTaker {
    typed: Vec<u8>,
    /// Why it is refused; nothing is kept from then on.
    problem: Option<String>,
}

impl StreamTaker {
    fn take<R: Read>(&mut self, source: &mut Source<R>, number: u8) -> Result<(), RdbError> {
        for _ in 0..self.number(source)? {
            self.string(source)?;
            self.string(source)?;
        }
        // The number of entries, and the last id; then the first one, the greatest deleted one, and how many were added.
        let numbers = if number == number::STREAM { 3 } else { 8 };
        for _ in 0..numbers {
            self.number(source)?;
        }
        for _ in 0..self.number(source)? {
            self.group(source, number)?;
        }
        Ok(())
    }

    fn group<R: Read>(&mut self, source: &mut Source<R>, number: u8) -> Result<(), RdbError> {
        self.string(source)?;
        let numbers = if number == number::STREAM { 2 } else { 3 };
        for _ in 0..numbers {
            self.number(source)?;
        }
        for _ in 0..self.number(source)? {
            // The id and the time, and how often it was delivered.
            self.bytes(source, 16 + 8)?;
            self.number(source)?;
        }
        let times = if number == number::STREAM_WITH_ACTIVITY { 16 } else { 8 };
        for _ in 0..self.number(source)? {
            self.string(source)?;
            self.bytes(source, times)?;
            for _ in 0..self.number(source)? {
                self.bytes(source, 16)?;
            }
        }
        Ok(())
    }

    fn number<R: Read>(&mut self, source: &mut Source<R>) -> Result<u64, RdbError> {
        let number = source.length_into(&mut self.typed)?;
        self.check();
        Ok(number)
    }

    fn bytes<R: Read>(&mut self, source: &mut Source<R>, count: u64) -> Result<(), RdbError> {
        source.copy(count, &mut self.typed)?;
        self.check();
        Ok(())
    }

    fn string<R: Read>(&mut self, source: &mut Source<R>) -> Result<(), RdbError> {
        if let Taken::TooLong(length) = source.string_into(&mut self.typed)? {
            self.problem = Some(too_long(length));
        }
        self.check();
        Ok(())
    }

    fn check(&mut self) {
        if self.problem.is_none() && self.typed.len() > STREAM_BYTES_MAX {
            self.problem = Some(format!("it is a stream of more than {STREAM_BYTES_MAX} bytes"));
        }
        if self.problem.is_some() {
            self.typed.clear();
        }
    }
}
