//! Ids of entries, as clients write them and in bodies.

use crate::arguments::Arguments;
use crate::encoding::Field;
use crate::error::ExecutionError;
use crate::primitive::{Malformed, take_fixed};
use crate::stream_error::StreamError;
use syros_values::StreamId;

/// Longest word that may be an id, in bytes, as in Redis.
const ID_BYTES_MAX: usize = 127;

/// An id: sixteen bytes, the highest first.
pub(super) enum Id {}

impl Field<'_> for Id {
    type Content = StreamId;

    fn put(out: &mut Vec<u8>, id: StreamId) {
        out.extend_from_slice(&id.to_bytes());
    }

    fn take(input: &mut &[u8]) -> Result<StreamId, Malformed> {
        Ok(StreamId::from_bytes(take_fixed(input)?))
    }
}

/// The number that a word is, as Redis reads it: digits, perhaps behind blanks and a plus.
pub(super) fn parse_number(word: &[u8]) -> Option<u64> {
    let start = word.iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r'))?;
    let digits = &word[start..];
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Both parts of an id; the second one is missing if there is no dash.
pub(super) fn parts(word: &[u8]) -> Option<(u64, Option<&[u8]>)> {
    if word.len() > ID_BYTES_MAX {
        return None;
    }
    match word.iter().position(|byte| *byte == b'-') {
        Some(dash) => Some((parse_number(&word[..dash])?, Some(&word[dash + 1..]))),
        None => Some((parse_number(word)?, None)),
    }
}

/// The id that a word is; `missing` is the second part if it has none.
fn id_or(word: &[u8], missing: u64) -> Option<StreamId> {
    let (ms, sequence) = parts(word)?;
    Some(StreamId::new(ms, sequence.map_or(Some(missing), parse_number)?))
}

/// The id that a word is.
pub(super) fn parse_id(word: &[u8]) -> Result<StreamId, StreamError> {
    id_or(word, 0).ok_or(StreamError::InvalidId)
}

/// The same, or `-` or `+`.
pub(super) fn parse_id_or_end(word: &[u8]) -> Result<StreamId, StreamError> {
    bound(word, 0)
}

fn bound(word: &[u8], missing: u64) -> Result<StreamId, StreamError> {
    match word {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => id_or(word, missing).ok_or(StreamError::InvalidId),
    }
}

/// The word behind the mark that excludes an id.
fn excluded(word: &[u8]) -> Option<&[u8]> {
    word.strip_prefix(b"(").filter(|id| !id.is_empty())
}

/// The first id of an interval.
pub(super) fn parse_start(word: &[u8]) -> Result<StreamId, StreamError> {
    match excluded(word) {
        Some(id) => parse_id(id)?.next().ok_or(StreamError::StartExcluded),
        None => bound(word, 0),
    }
}

/// The last id of an interval.
pub(super) fn parse_end(word: &[u8]) -> Result<StreamId, StreamError> {
    match excluded(word) {
        Some(id) => {
            let id = id_or(id, u64::MAX).ok_or(StreamError::InvalidId)?;
            id.previous().ok_or(StreamError::EndExcluded)
        }
        None => bound(word, u64::MAX),
    }
}

/// All ids of a list.
pub(super) fn parse_ids(words: Arguments<'_>) -> Result<Vec<StreamId>, ExecutionError> {
    words.iter().map(|word| Ok(parse_id(word)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        let id = StreamId::new;
        for (word, expected) in [
            ("5", Some(id(5, 0))),
            ("5-7", Some(id(5, 7))),
            ("005-+7", Some(id(5, 7))),
            (" 5- 7", Some(id(5, 7))),
            ("18446744073709551615-18446744073709551615", Some(StreamId::MAX)),
            ("18446744073709551616", None),
            ("-", None),
            ("+", None),
            ("", None),
            ("5-", None),
            ("-5", None),
            ("5--3", None),
            ("5-7-9", None),
            ("5-*", None),
            ("a", None),
            ("5 ", None),
        ] {
            assert_eq!(parse_id(word.as_bytes()).ok(), expected, "{word}");
        }
        assert_eq!(parse_end(b"5"), Ok(id(5, u64::MAX)));
        assert_eq!(parse_start(b"(5"), Ok(id(5, 1)));
        assert_eq!(parse_end(b"(5-0"), Ok(id(4, u64::MAX)));
        assert_eq!(parse_end(b"(0-0"), Err(StreamError::EndExcluded));
        assert_eq!(
            parse_start(b"(18446744073709551615-18446744073709551615"),
            Err(StreamError::StartExcluded)
        );
        assert_eq!(
            (parse_start(b"("), parse_start(b"(-")),
            (Err(StreamError::InvalidId), Err(StreamError::InvalidId))
        );
    }
}
