//! Elements of one key that are drawn by chance: HRANDFIELD and its like.

use crate::encoding::{Field, Signed};
use crate::error::CommandError;
use crate::limits::DRAWS_MAX;
use crate::primitive::{Malformed, take_u8};
use crate::words::{Words, integer, is};
use std::collections::BTreeSet;
use syros_types::Prng;

/// How many elements are drawn by chance, and what is answered of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draws {
    /// One; nil if there is none.
    One,
    /// An array of several.
    Many {
        /// So many different ones, or all; if it is negative, so many of which some may be the same, at most
        /// [`DRAWS_MAX`].
        count: i64,
        /// WITHVALUES: pairs.
        with_values: bool,
    },
}

/// What the first byte behind the key says.
mod draws_kind {
    pub(super) const ONE: u8 = 0;
    pub(super) const MANY: u8 = 1;
    pub(super) const MANY_WITH_VALUES: u8 = 2;
}

/// True if no more is drawn with repetitions than may be.
const fn is_legal(count: i64) -> bool {
    count >= 0 || count.unsigned_abs() <= DRAWS_MAX
}

impl Field<'_> for Draws {
    type Content = Self;

    fn put(out: &mut Vec<u8>, draws: Self) {
        match draws {
            Draws::One => out.push(draws_kind::ONE),
            Draws::Many { count, with_values } => {
                out.push(if with_values { draws_kind::MANY_WITH_VALUES } else { draws_kind::MANY });
                Signed::put(out, count);
            }
        }
    }

    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        match take_u8(input)? {
            draws_kind::ONE => Ok(Draws::One),
            kind @ (draws_kind::MANY | draws_kind::MANY_WITH_VALUES) => {
                let count = Signed::take(input)?;
                if !is_legal(count) {
                    return Err(Malformed::TooLong { length: count.unsigned_abs(), limit: DRAWS_MAX });
                }
                Ok(Draws::Many { count, with_values: kind == draws_kind::MANY_WITH_VALUES })
            }
            other => Err(Malformed::Options(other)),
        }
    }
}

impl Draws {
    /// What the words behind the key ask for; `with_values` is the word behind the number that asks for pairs.
    pub(super) fn parse(words: Words<'_>, with_values: &str) -> Result<Self, CommandError> {
        match words {
            [] => Ok(Self::One),
            [count, options @ ..] => parse_many(integer(count)?, options, with_values),
        }
    }
}

/// Redis looks at the number first, then at the word behind it, and then again at the number.
fn parse_many(count: i64, options: Words<'_>, with_values_word: &str) -> Result<Draws, CommandError> {
    if count == i64::MIN {
        return Err(CommandError::CountOutOfRange);
    }
    let with_values = match options {
        [] => false,
        [option] if is(option, with_values_word) => true,
        _ => return Err(CommandError::Syntax),
    };
    if with_values && count.unsigned_abs() > i64::MAX as u64 / 2 {
        return Err(CommandError::PairCountOutOfRange);
    }
    if !is_legal(count) {
        return Err(CommandError::TooManyDraws);
    }
    Ok(Draws::Many { count, with_values })
}

/// How many elements of so many are drawn for a count.
pub(super) fn drawn_of(count: i64, length: u64) -> u64 {
    let drawn = count.unsigned_abs();
    match (length, count) {
        (0, _) => 0,
        (_, ..0) => drawn,
        _ => drawn.min(length),
    }
}

/// `count` different numbers below `length`, each as likely as any other (Floyd's algorithm: one draw each).
pub(super) fn distinct(prng: &mut Prng, count: u64, length: u64) -> BTreeSet<u64> {
    let mut chosen = BTreeSet::new();
    for last in length - count..length {
        let drawn = prng.below(last + 1);
        if !chosen.insert(drawn) {
            chosen.insert(last);
        }
    }
    chosen
}
