//! What modules have written: it is passed over, and named.

use crate::error::RdbError;
use crate::source::Source;
use std::io::Read;

/// The kinds of pieces that a value of a module is made of. Fixed by Redis.
mod piece {
    pub(super) const END: u64 = 0;
    pub(super) const SIGNED: u64 = 1;
    pub(super) const UNSIGNED: u64 = 2;
    pub(super) const FLOAT: u64 = 3;
    pub(super) const DOUBLE: u64 = 4;
    pub(super) const STRING: u64 = 5;
}

/// The letters of names, six bits each.
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Letters of a name.
const NAME_LETTERS: u32 = 9;

/// Bits of an identity behind the name: the version of the encoding.
const VERSION_BITS: u32 = 10;

/// Takes the identity of a module's type: its name.
pub(crate) fn name<R: Read>(source: &mut Source<R>) -> Result<String, RdbError> {
    let identity = source.length()?;
    let letter =
        |place: u32| LETTERS[(identity >> (VERSION_BITS + 6 * (NAME_LETTERS - 1 - place)) & 0x3f) as usize];
    Ok((0..NAME_LETTERS).map(|place| char::from(letter(place))).collect())
}

/// Passes over the pieces of a value, and their end.
pub(crate) fn pass_over<R: Read>(source: &mut Source<R>) -> Result<(), RdbError> {
    loop {
        match source.length()? {
            piece::END => return Ok(()),
            piece::SIGNED | piece::UNSIGNED => drop(source.length()?),
            piece::FLOAT => source.pass(4)?,
            piece::DOUBLE => source.pass(8)?,
            piece::STRING => source.pass_over_string()?,
            other => return Err(source.malformed(format!("a module's value has a piece of kind {other}"))),
        }
    }
}
