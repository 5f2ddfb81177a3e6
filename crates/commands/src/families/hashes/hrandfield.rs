//! HRANDFIELD.

use super::{SLOW_READ, hash_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::draws::{Draws, distinct, drawn_of};
use crate::families::elements::put_optional;
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_bulk, put_pairs};
use crate::words::Words;
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

fields!(HRandField<'a> = 133 { key: Key, draws: Draws });

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
    let draws = Draws::parse(&words[2..], "withvalues")?;
    Ok(HRandField { key: words[1], draws }.into())
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
        let drawn = drawn_of(count, length);
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
