//! ZINTERCARD.

use super::combination::Sources;
use super::{SLOW_READ, combination};
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{List, Unsigned, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::counts::parse_count;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_smallest;
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::{Words, is};

/// ZINTERCARD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZInterCard<'a> {
    /// The keys.
    pub keys: Arguments<'a>,
    /// Where counting ends; 0 if it does not end before the last member.
    pub limit: u64,
}

fields!(ZInterCard<'a> = 224 { keys: List<1>, limit: Unsigned });

impl<'a> Definition<'a> for ZInterCard<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zintercard",
        arity: -3,
        keys: KeyPositions::NONE,
        key_count: 1,
        flags: &["readonly", "movablekeys"],
        since: "7.0.0",
        summary: "Counts the members that several sorted sets have in common.",
        parser: parse,
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

fn parse<'a>(name: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let (keys, mut options) = combination::parse_keys(name, &words[1..])?;
    let mut limit = 0;
    while let [option, argument, rest @ ..] = options
        && is(option, "limit")
    {
        limit = parse_count(argument).ok_or(CommandError::NegativeLimit)?;
        options = rest;
    }
    if options.is_empty() { Ok(ZInterCard { keys, limit }.into()) } else { Err(CommandError::Syntax) }
}

impl ReadCommand for ZInterCard<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let sources = Sources::of(keys, self.keys)?;
        let limit =
            if self.limit == 0 { usize::MAX } else { usize::try_from(self.limit).unwrap_or(usize::MAX) };
        put_integer(reply, sources.common().take(limit).count() as i64);
        Ok(())
    }

    /// Scores are looked up, too.
    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        work_of_smallest(keys, self.keys.iter()).saturating_mul(2)
    }
}
