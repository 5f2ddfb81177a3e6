//! SPOP.

use super::{FAST_UPDATE, set_of};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Encoding, Field as _, Key, Opcode, Seed, Unsigned};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::draws::distinct;
use crate::families::specification::CommandSpec;
use crate::limits::UPDATE_REPLY_BYTES_MAX;
use crate::number::parse_integer;
use crate::primitive::Malformed;
use crate::reply::{put_bulk, put_nil, put_set};
use crate::words::Words;
use std::collections::BTreeSet;
use syros_types::Prng;
use syros_values::Set;

/// SPOP: answers members that are drawn by chance, and removes them. With its last member the key goes.
///
/// Which members these are follows from the seed and from the order of the set alone: [`Prng`] draws the ranks, without a
/// count one, with a count different ones, and they are answered in their order. So all replicas draw the same, whenever
/// and from whatever blocks they execute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SPop<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What is drawn from: see [`Operation::seed_mut`](crate::Operation::seed_mut).
    pub seed: u64,
    /// How many members are drawn, or all if there are fewer; one, answered by itself, if there is no count.
    pub count: Option<u64>,
}

impl SPop<'_> {
    /// The opcode of one with a count.
    pub(crate) const OPCODE_WITH_COUNT: Opcode = 62;

    /// The ranks of the members that are drawn of so many, of which there is at least one.
    ///
    /// # Errors
    /// If they are so many that the reply is too long even if their strings are as short as can be.
    fn ranks(&self, length: u64) -> Result<BTreeSet<u64>, ExecutionError> {
        let count = self.count.unwrap_or(1).min(length);
        if count > UPDATE_REPLY_BYTES_MAX as u64 / MEMBER_BYTES_MIN {
            return Err(ExecutionError::UpdateReplyTooLong);
        }
        let mut prng = Prng::new(self.seed);
        Ok(if count == length { (0..length).collect() } else { distinct(&mut prng, count, length) })
    }
}

/// What the shortest member takes in a reply: a tag and a length.
const MEMBER_BYTES_MIN: u64 = 2;

impl<'a> Encoding<'a> for SPop<'a> {
    const OPCODE: Opcode = 60;

    fn opcode(&self) -> Opcode {
        if self.count.is_some() { Self::OPCODE_WITH_COUNT } else { Self::OPCODE }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        Seed::put(out, self.seed);
        self.count.into_iter().for_each(|count| Unsigned::put(out, count));
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (key, seed) = (Key::take(input)?, Seed::take(input)?);
        let has_count = opcode == Self::OPCODE_WITH_COUNT;
        Ok(Self { key, seed, count: has_count.then(|| Unsigned::take(input)).transpose()? })
    }
}

impl<'a> Definition<'a> for SPop<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "spop",
        arity: -2,
        key_flags: &[&["RW", "access", "delete"]],
        tips: &["nondeterministic_output"],
        summary: "Returns members of a set that are drawn by chance, and removes them.",
        parser: parse,
        ..FAST_UPDATE
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
    let count = match &words[2..] {
        [] => None,
        [count] => {
            let count = parse_integer(count).and_then(|count| u64::try_from(count).ok());
            Some(count.ok_or(CommandError::CountNotPositive)?)
        }
        _ => return Err(CommandError::Syntax),
    };
    Ok(SPop { key: words[1], seed: 0, count }.into())
}

impl<'a> UpdateCommand<'a> for SPop<'a> {
    fn seed_mut(&mut self) -> Option<&mut u64> {
        Some(&mut self.seed)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let Some(set) = set_of(found.as_ref())? else {
            match self.count {
                None => put_nil(reply),
                Some(_) => put_set(reply, 0),
            }
            return Ok(());
        };
        let length = set.len();
        let ranks = self.ranks(length)?;
        put_drawn(reply, set, &ranks, self.count.is_some())?;
        drop(found);
        if ranks.len() as u64 == length {
            keys.remove(self.key);
        } else if !ranks.is_empty() {
            // From the last one on: the ranks of those before it stay as they are.
            keys.edit_collection(self.key, |set: &mut Set| {
                ranks.iter().rev().for_each(|rank| {
                    set.remove_at(*rank);
                });
            })?;
        }
        if !ranks.is_empty() {
            keys.notify_removal(KeyEvent::SPop, self.key);
        }
        Ok(())
    }
}

/// Appends the members of these ranks, as a set or as the only one.
fn put_drawn(reply: &mut Vec<u8>, set: &Set, ranks: &BTreeSet<u64>, as_set: bool) -> ExecutionResult {
    if as_set {
        put_set(reply, ranks.len());
    }
    let start = reply.len();
    for member in ranks.iter().filter_map(|rank| set.nth(*rank)) {
        put_bulk(reply, member);
        // A member may be as long as the limit, and must not stay for that.
        if ranks.len() > 1 && reply.len() - start > UPDATE_REPLY_BYTES_MAX {
            return Err(ExecutionError::UpdateReplyTooLong);
        }
    }
    Ok(())
}
