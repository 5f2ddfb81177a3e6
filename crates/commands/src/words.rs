//! What parsers of commands do with words.

use crate::arguments::Arguments;
use crate::error::CommandError;
use crate::limits::PATTERN_BYTES_MAX;
use crate::number::parse_integer;

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
pub(crate) fn pattern(word: &[u8]) -> Result<&[u8], CommandError> {
    if word.len() > PATTERN_BYTES_MAX { Err(CommandError::PatternTooLong(word.len())) } else { Ok(word) }
}
