//! What parsers of commands do with words.

use crate::arguments::Arguments;
use crate::error::CommandError;
use crate::limits::PATTERN_BYTES_MAX;
use crate::number::parse_integer;
use syros_types::Database;

/// The words of a command, its name first.
pub(crate) type Words<'a> = &'a [&'a [u8]];

/// The integer that a word is.
pub(crate) fn integer(word: &[u8]) -> Result<i64, CommandError> {
    parse_integer(word).ok_or(CommandError::NotInteger)
}

/// True if a word is this option, which is given in lower case.
pub(crate) fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}

/// All words behind the name.
pub(crate) fn arguments(words: Words<'_>) -> Arguments<'_> {
    Arguments::new(&words[1..])
}

/// The word, if it is not too long for a pattern.
///
/// # Errors
/// It has more than [`PATTERN_BYTES_MAX`] bytes.
pub fn pattern(word: &[u8]) -> Result<&[u8], CommandError> {
    if word.len() > PATTERN_BYTES_MAX { Err(CommandError::PatternTooLong(word.len())) } else { Ok(word) }
}

/// The integer that a word is, if it has 32 bits.
pub(crate) fn small_integer(word: &[u8]) -> Option<i32> {
    parse_integer(word).and_then(|number| i32::try_from(number).ok())
}

/// The database of this number.
pub(crate) fn checked_database(number: i32) -> Result<Database, CommandError> {
    u8::try_from(number).ok().and_then(Database::new).ok_or(CommandError::DatabaseOutOfRange)
}

/// The database that a word is the number of, as SELECT and MOVE take it.
///
/// # Errors
/// If the word is no integer of 32 bits, or there is no such database.
pub fn database(word: &[u8]) -> Result<Database, CommandError> {
    let number = integer(word)?;
    checked_database(i32::try_from(number).map_err(|_| CommandError::IntegerOutOfRange)?)
}
