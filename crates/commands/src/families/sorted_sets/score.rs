//! Scores as words, as bytes and in replies.

use crate::arguments::Arguments;
use crate::double::parse_double;
use crate::encoding::Field;
use crate::error::{CommandError, ExecutionError};
use crate::primitive::{Malformed, take_fixed};
use crate::reply::{put_bulk, put_double, put_nil};
use syros_values::Score;

/// The number, as eight bytes.
impl<'a> Field<'a> for Score {
    type Content = Self;

    fn put(out: &mut Vec<u8>, score: Self) {
        out.extend_from_slice(&score.value().to_le_bytes());
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Self::new(f64::from_le_bytes(take_fixed(input)?)).ok_or(Malformed::Number)
    }
}

/// The score that a word is.
pub(super) fn parse_score(word: &[u8]) -> Result<Score, CommandError> {
    parse_double(word).and_then(Score::new).ok_or(CommandError::NotFloat)
}

/// Fails if not every second one of these words, from the first, is a score.
pub(super) fn check_scores(pairs: Arguments<'_>) -> Result<(), CommandError> {
    pairs.pairs().try_for_each(|(score, _)| parse_score(score).map(drop))
}

/// The members that follow a score each, with these. Who made the body has checked them.
pub(super) fn scored(pairs: Arguments<'_>) -> Result<Vec<(&[u8], Score)>, ExecutionError> {
    let members = pairs.pairs().map(|(score, member)| match parse_score(score) {
        Ok(score) => Ok((member, score)),
        Err(_) => Err(ExecutionError::NotFloat),
    });
    members.collect()
}

/// Appends a score.
pub(super) fn put_score(reply: &mut Vec<u8>, score: Score) {
    put_double(reply, score.value());
}

/// Appends a score that may be there, or nil.
pub(super) fn put_optional_score(reply: &mut Vec<u8>, score: Option<Score>) {
    match score {
        Some(score) => put_score(reply, score),
        None => put_nil(reply),
    }
}

/// Appends a member, and its score if that is asked for.
pub(super) fn put_member(reply: &mut Vec<u8>, (member, score): (&[u8], Score), with_score: bool) {
    put_bulk(reply, member);
    if with_score {
        put_score(reply, score);
    }
}
