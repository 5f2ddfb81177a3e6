//! Elements of one key that are drawn by chance: HRANDFIELD and its like.

use super::definition::{ExecutionResult, View};
use super::elements::LOOKUP_WORK;
use crate::access::Keys;
use crate::encoding::{Field, Signed};
use crate::error::{CommandError, ExecutionError};
use crate::limits::DRAWS_MAX;
use crate::primitive::{Malformed, take_u8};
use crate::reply::{put_array, put_nil, put_pairs};
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

/// [`Draws`] of elements that have no values.
pub(super) enum DrawsOfKeys {}

impl Field<'_> for DrawsOfKeys {
    type Content = Draws;

    fn put(out: &mut Vec<u8>, draws: Draws) {
        Draws::put(out, draws);
    }

    fn take(input: &mut &[u8]) -> Result<Draws, Malformed> {
        match Draws::take(input)? {
            Draws::Many { with_values: true, .. } => Err(Malformed::Options(draws_kind::MANY_WITH_VALUES)),
            draws => Ok(draws),
        }
    }
}

/// A collection of which elements are drawn.
pub(super) trait Ranked {
    /// An element.
    type Element<'a>
    where
        Self: 'a;

    /// Number of elements.
    fn count(&self) -> u64;

    /// The element of this rank.
    fn nth(&self, rank: u64) -> Option<Self::Element<'_>>;

    /// All elements in order.
    fn all(&self) -> impl Iterator<Item = Self::Element<'_>>;

    /// Appends an element, and its value if that is asked for.
    fn put(reply: &mut Vec<u8>, element: Self::Element<'_>, with_value: bool);
}

impl Draws {
    /// What the words behind the key ask for; `with_values` is the word behind the number that asks for pairs.
    pub(super) fn parse(words: Words<'_>, with_values: &str) -> Result<Self, CommandError> {
        match words {
            [] => Ok(Self::One),
            [count, options @ ..] => parse_many(integer(count)?, options, with_values),
        }
    }

    /// The same of a command that knows no word behind the number. Redis counts the words first.
    pub(super) fn parse_of_keys(words: Words<'_>) -> Result<Self, CommandError> {
        match words {
            [] => Ok(Self::One),
            [count] => parse_many(integer(count)?, &[], ""),
            _ => Err(CommandError::Syntax),
        }
    }

    /// The work of drawing from a collection, or from a key that does not exist: each element is looked for by itself.
    pub(super) fn work_on<C: Ranked>(self, found: Option<&C>) -> usize {
        let Self::Many { count, .. } = self else { return 0 };
        let drawn = drawn_of(count, found.map_or(0, C::count));
        usize::try_from(drawn).unwrap_or(usize::MAX).saturating_mul(LOOKUP_WORK)
    }

    /// Appends the answer of a read that draws elements of a collection, or of a key that does not exist. Which elements
    /// does not matter, only that all come equally often. Two of one body differ.
    pub(super) fn read<K: Keys, C: Ranked>(
        self,
        keys: &K,
        found: Option<&C>,
        view: View,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        let mut prng = Prng::new(view.draw ^ reply.len() as u64);
        let length = found.map_or(0, C::count);
        if length > 1 {
            keys.before_draw();
        }
        let Self::Many { count, with_values } = self else {
            match found.and_then(|collection| collection.nth(prng.below(length))) {
                Some(element) => C::put(reply, element, false),
                None => put_nil(reply),
            }
            return Ok(());
        };
        let drawn = drawn_of(count, length);
        let put_head = if with_values { put_pairs } else { put_array };
        put_head(reply, usize::try_from(drawn).unwrap_or(usize::MAX));
        let Some(collection) = found else { return Ok(()) };
        put_many(collection, (count, drawn), &mut prng, |element| {
            C::put(reply, element, with_values);
            if reply.len() > view.reply_end { Err(ExecutionError::ReplyTooLong) } else { Ok(()) }
        })
    }
}

/// Draws so many elements for a count, and gives each to `put`.
fn put_many<'a, C: Ranked>(
    collection: &'a C,
    (count, drawn): (i64, u64),
    prng: &mut Prng,
    put: impl FnMut(C::Element<'a>) -> ExecutionResult,
) -> ExecutionResult {
    let length = collection.count();
    if count < 0 {
        (0..drawn).filter_map(|_| collection.nth(prng.below(length))).try_for_each(put)
    } else if drawn == length {
        collection.all().try_for_each(put)
    } else {
        let ranks = distinct(prng, drawn, length);
        ranks.into_iter().filter_map(|rank| collection.nth(rank)).try_for_each(put)
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
fn drawn_of(count: i64, length: u64) -> u64 {
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
