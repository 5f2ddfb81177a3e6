//! HRANDFIELD.

use super::{SLOW_READ, hash_of, put_optional};
use crate::access::Keys;
use crate::encoding::{Encoding, Field as _, Key, Opcode, Signed};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::limits::DRAWS_MAX;
use crate::primitive::{Malformed, take_u8};
use crate::reply::{put_array, put_bulk, put_pairs};
use crate::words::{Words, integer, is};
use std::collections::BTreeSet;
use syros_types::Prng;
use syros_values::Hash;

/// HRANDFIELD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HRandField<'a> {
    /// The key.
    pub key: &'a [u8],
    /// How many fields are drawn.
    pub draws: Draws,
}

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

impl<'a> Encoding<'a> for HRandField<'a> {
    const OPCODE: Opcode = 133;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        match self.draws {
            Draws::One => out.push(draws_kind::ONE),
            Draws::Many { count, with_values } => {
                out.push(if with_values { draws_kind::MANY_WITH_VALUES } else { draws_kind::MANY });
                Signed::put(out, count);
            }
        }
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let key = Key::take(input)?;
        let draws = match take_u8(input)? {
            draws_kind::ONE => Draws::One,
            kind @ (draws_kind::MANY | draws_kind::MANY_WITH_VALUES) => {
                let count = Signed::take(input)?;
                if !is_legal(count) {
                    return Err(Malformed::TooLong { length: count.unsigned_abs(), limit: DRAWS_MAX });
                }
                Draws::Many { count, with_values: kind == draws_kind::MANY_WITH_VALUES }
            }
            other => return Err(Malformed::Options(other)),
        };
        Ok(Self { key, draws })
    }
}

impl<'a> Definition<'a> for HRandField<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hrandfield",
        arity: -2,
        tips: &["nondeterministic_output"],
        since: "6.2.0",
        summary: "Returns fields of a hash that are drawn by chance.",
        parser: parse,
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them, if it is not one.
    fn values(&self) -> u32 {
        1
    }
}

fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let draws = match words.get(2) {
        None => Draws::One,
        Some(count) => parse_many(integer(count)?, &words[3..])?,
    };
    Ok(HRandField { key: words[1], draws }.into())
}

/// Redis looks at the number first, then at the word behind it, and then again at the number.
fn parse_many(count: i64, options: Words<'_>) -> Result<Draws, CommandError> {
    if count == i64::MIN {
        return Err(CommandError::CountOutOfRange);
    }
    let with_values = match options {
        [] => false,
        [option] if is(option, "withvalues") => true,
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

impl ReadCommand for HRandField<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        // Which fields does not matter, only that all come equally often. Two of one body differ.
        let mut prng = Prng::new(view.now.0 ^ reply.len() as u64);
        let found = keys.get(self.key);
        let hash = hash_of(found.as_ref())?;
        let length = hash.map_or(0, Hash::len);
        let field = |rank| hash.and_then(|hash| hash.nth(rank));
        if length > 1 {
            keys.before_draw();
        }
        let Draws::Many { count, with_values } = self.draws else {
            let rank = if length > 0 { prng.below(length) } else { 0 };
            put_optional(reply, field(rank).map(|(field, _)| field));
            return Ok(());
        };
        let drawn = count.unsigned_abs();
        let drawn = if length == 0 {
            0
        } else if count < 0 {
            drawn
        } else {
            drawn.min(length)
        };
        let put_head = if with_values { put_pairs } else { put_array };
        put_head(reply, usize::try_from(drawn).unwrap_or(usize::MAX));
        let mut put = |(field, value): (&[u8], &[u8])| {
            put_bulk(reply, field);
            if with_values {
                put_bulk(reply, value);
            }
            if reply.len() > view.reply_end { Err(ExecutionError::ReplyTooLong) } else { Ok(()) }
        };
        if count < 0 {
            (0..drawn).filter_map(|_| field(prng.below(length))).try_for_each(put)
        } else if drawn == length {
            hash.into_iter().flatten().try_for_each(put)
        } else {
            let ranks = distinct(&mut prng, drawn, length);
            ranks.into_iter().filter_map(field).try_for_each(&mut put)
        }
    }
}

/// `count` different numbers below `length`, each as likely as any other (Floyd's algorithm: one draw each).
fn distinct(prng: &mut Prng, count: u64, length: u64) -> BTreeSet<u64> {
    let mut chosen = BTreeSet::new();
    for last in length - count..length {
        let drawn = prng.below(last + 1);
        if !chosen.insert(drawn) {
            chosen.insert(last);
        }
    }
    chosen
}
