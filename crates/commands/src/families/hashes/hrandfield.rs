//! HRANDFIELD.

use super::{SLOW_READ, hash_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::draws::{Draws, Ranked};
use crate::families::specification::CommandSpec;
use crate::reply::put_bulk;
use crate::words::Words;
use syros_values::LiveHash;

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

impl<'h> Ranked for LiveHash<'h> {
    type Element<'a>
        = (&'h [u8], &'h [u8])
    where
        Self: 'a;

    fn count(&self) -> u64 {
        self.len()
    }

    fn nth(&self, rank: u64) -> Option<(&'h [u8], &'h [u8])> {
        self.nth(rank)
    }

    fn all(&self) -> impl Iterator<Item = (&'h [u8], &'h [u8])> {
        self.iter()
    }

    fn put(reply: &mut Vec<u8>, (field, value): (&'h [u8], &'h [u8]), with_value: bool) {
        put_bulk(reply, field);
        if with_value {
            put_bulk(reply, value);
        }
    }
}

impl ReadCommand for HRandField<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        self.draws.read(keys, hash_of(keys, found.as_ref())?.as_ref(), view, reply)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        self.draws.work_on(hash_of(keys, found.as_ref()).ok().flatten().as_ref())
    }
}
