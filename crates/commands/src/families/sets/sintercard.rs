//! SINTERCARD.

use super::{SLOW_READ, with_sets};
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{List, Unsigned, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::counts::parse_count;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_smallest;
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::number::parse_integer;
use crate::reply::put_integer;
use crate::words::{Words, is};
use syros_values::Set;

/// SINTERCARD: answers how many members all of several sets have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SInterCard<'a> {
    /// At which number counting ends; 0 for none.
    pub limit: u64,
    /// The keys. One that does not exist is an empty set.
    pub keys: Arguments<'a>,
}

fields!(SInterCard<'a> = 196 { limit: Unsigned, keys: List<1> });

impl<'a> Definition<'a> for SInterCard<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "sintercard",
        arity: -3,
        keys: KeyPositions::NONE,
        key_count: 1,
        flags: &["readonly", "movablekeys"],
        since: "7.0.0",
        summary: "Counts the members that all of several sets have.",
        parser: parse,
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let count = parse_integer(words[1]).and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count > 0).ok_or(CommandError::NumKeysNotPositive)?;
    let (keys, mut options) = words[2..].split_at_checked(count).ok_or(CommandError::MoreKeysThanWords)?;
    let mut limit = 0;
    while let [option, rest @ ..] = options {
        let [value, rest @ ..] = rest else { return Err(CommandError::Syntax) };
        if !is(option, "limit") {
            return Err(CommandError::Syntax);
        }
        limit = parse_count(value).ok_or(CommandError::NegativeLimit)?;
        options = rest;
    }
    Ok(SInterCard { limit, keys: Arguments::new(keys) }.into())
}

impl ReadCommand for SInterCard<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let limit = if self.limit == 0 { u64::MAX } else { self.limit };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let count = with_sets(keys, self.keys.iter(), |sets| Set::intersection(sets).take(limit).count())?;
        put_integer(reply, count as i64);
        Ok(())
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        work_of_smallest(keys, self.keys.iter())
    }
}
