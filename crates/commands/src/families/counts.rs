//! Numbers of elements and keys that commands name.

use crate::arguments::Arguments;
use crate::encoding::Field;
use crate::error::CommandError;
use crate::number::parse_integer;
use crate::primitive::Malformed;
use crate::words::{Words, is};
use syros_types::varint::{put_varint, take_varint};

/// A number of elements, if one was given. It is written as 0 if none was, and otherwise as one more than it is.
pub(super) enum OptionalCount {}

impl<'a> Field<'a> for OptionalCount {
    type Content = Option<u64>;

    fn put(out: &mut Vec<u8>, content: Option<u64>) {
        put_varint(out, content.map_or(0, |count| count + 1));
    }

    fn take(input: &mut &'a [u8]) -> Result<Option<u64>, Malformed> {
        Ok(take_varint(input)?.checked_sub(1))
    }
}

/// The number of elements that a word is, if it is not negative.
pub(super) fn parse_count(word: &[u8]) -> Option<u64> {
    parse_integer(word).and_then(|count| u64::try_from(count).ok())
}

/// So many of these words as keys, and the words behind them.
pub(super) fn take_keys(words: Words<'_>, count: u64) -> Result<(Arguments<'_>, Words<'_>), CommandError> {
    let count = usize::try_from(count).map_err(|_| CommandError::Syntax)?;
    let (keys, rest) = words.split_at_checked(count).ok_or(CommandError::Syntax)?;
    Ok((Arguments::new(keys), rest))
}

/// The words of LMPOP or ZMPOP: the keys behind their number, at which end elements are taken away, and how many.
pub(super) fn parse_pop<'a, E>(
    words: Words<'a>,
    parse_end: impl FnOnce(&[u8]) -> Result<E, CommandError>,
) -> Result<(Arguments<'a>, E, Option<u64>), CommandError> {
    let count = parse_count(words[1]).filter(|count| *count > 0).ok_or(CommandError::NumKeysNotPositive)?;
    let (keys, rest) = take_keys(&words[2..], count)?;
    let (end, options) = rest.split_first().ok_or(CommandError::Syntax)?;
    let end = parse_end(end)?;
    let count = match options {
        [] => None,
        [option, count, rest @ ..] if is(option, "count") => {
            let count = parse_count(count).filter(|count| *count > 0).ok_or(CommandError::CountBelowOne)?;
            if rest.is_empty() { Some(count) } else { return Err(CommandError::Syntax) }
        }
        _ => return Err(CommandError::Syntax),
    };
    Ok((keys, end, count))
}
