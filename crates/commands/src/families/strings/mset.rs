//! MSET and MSETNX.

use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{List, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::{put_integer, put_ok};
use crate::words::{Words, arguments};

/// MSET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MSet<'a> {
    /// Keys and values alternate.
    pub pairs: Arguments<'a>,
}

/// MSETNX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MSetNx<'a> {
    /// Keys and values alternate.
    pub pairs: Arguments<'a>,
}

fields!(MSet<'a> = 34 { pairs: List<2> });
fields!(MSetNx<'a> = 35 { pairs: List<2> });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    arity: -3,
    keys: KeyPositions::PAIRS,
    flags: &["write", "denyoom"],
    categories: &["@write", "@string", "@slow"],
    since: "1.0.1",
    ..super::ROW
};

impl<'a> Definition<'a> for MSet<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "mset",
        kind: CommandKind::MERGE,
        key_flags: &[&["OW", "update"]],
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        summary: "Sets several keys, all at once.",
        parser: |name, words| Ok(MSet { pairs: parse(name, words)? }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.pairs, step: 2 }
    }
}

impl<'a> Definition<'a> for MSetNx<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "msetnx",
        kind: CommandKind::UPDATE,
        key_flags: &[&["OW", "insert"]],
        tips: &["request_policy:multi_shard", "response_policy:agg_min"],
        summary: "Sets several keys, all at once, if none of them exists.",
        parser: |name, words| Ok(MSetNx { pairs: parse(name, words)? }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.pairs, step: 2 }
    }
}

fn parse<'a>(name: &'static str, words: Words<'a>) -> Result<Arguments<'a>, CommandError> {
    if words.len().is_multiple_of(2) {
        return Err(CommandError::Arity(name));
    }
    Ok(arguments(words))
}

impl<'a> UpdateCommand<'a> for MSet<'a> {
    fn answers_ok(&self) -> bool {
        true
    }

    fn overwrites_one_key(&self) -> bool {
        self.pairs.len() == 2
    }

    fn growth(&self, encoded: usize) -> usize {
        growth(self.pairs, encoded)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        set_all(keys, self.pairs);
        put_ok(reply);
        Ok(())
    }
}

impl<'a> UpdateCommand<'a> for MSetNx<'a> {
    fn growth(&self, encoded: usize) -> usize {
        growth(self.pairs, encoded)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let free = self.pairs.pairs().all(|(key, _)| keys.get(key).is_none());
        if free {
            set_all(keys, self.pairs);
        }
        put_integer(reply, i64::from(free));
        Ok(())
    }
}

const fn growth(pairs: Arguments<'_>, encoded: usize) -> usize {
    encoded + pairs.len() / 2 * KEY_BYTES
}

fn set_all<K: KeysMut>(keys: &mut K, pairs: Arguments<'_>) {
    for (key, value) in pairs.pairs() {
        keys.set(key, value, None);
        keys.notify(KeyEvent::Set, key);
    }
}
