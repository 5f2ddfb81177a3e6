//! ZUNIONSTORE, ZINTERSTORE and ZDIFFSTORE.

use super::combination::{Combination, SetOperation, Sources};
use super::{MEMBER_BYTES, SLOW_UPDATE, store};
use crate::access::KeysMut;
use crate::encoding::{Key, fields};
use crate::error::CommandError;
use crate::families::definition::{
    Definition, ExecutionResult, KEY_BYTES, KeyNames, RESULT_WORK, UpdateCommand,
};
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use crate::words::Words;

/// ZUNIONSTORE, ZINTERSTORE, ZDIFFSTORE: answers how many members the target has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZCombineStoreParts<'a> {
    /// The key that becomes a sorted set, whatever it was.
    pub target: &'a [u8],
    /// What is stored.
    pub combination: Combination<'a>,
}

/// The same, read again where it is needed.
pub type ZCombineStore<'a> = Indirect<'a, ZCombineStoreParts<'a>>;

fields!(ZCombineStoreParts<'a> = 243 { target: Key, combination: Combination<'a> });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    arity: -4,
    key_count: 2,
    key_flags: &[&["OW", "update"], &["RO", "access"]],
    flags: &["write", "denyoom", "movablekeys"],
    since: "2.0.0",
    ..SLOW_UPDATE
};

impl<'a> Definition<'a> for ZCombineStoreParts<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "zdiffstore",
            since: "6.2.0",
            summary: "Stores the members of a sorted set that no other one has in a key.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse("zdiffstore", words, SetOperation::Difference))
            },
            ..ROW
        },
        CommandSpec {
            name: "zinterstore",
            summary: "Stores the members that several sorted sets have in common in a key.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse("zinterstore", words, SetOperation::Intersection))
            },
            ..ROW
        },
        CommandSpec {
            name: "zunionstore",
            summary: "Stores the members of several sorted sets in a key.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse("zunionstore", words, SetOperation::Union))
            },
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::OneAndAll(self.target, self.combination.keys)
    }
}

fn parse<'a>(
    name: &'static str,
    words: Words<'a>,
    operation: SetOperation,
) -> Result<ZCombineStoreParts<'a>, CommandError> {
    let combination = Combination::parse(operation, name, &words[2..], |_| false)?;
    Ok(ZCombineStoreParts { target: words[1], combination })
}

impl<'a> UpdateCommand<'a> for ZCombineStoreParts<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + MEMBER_BYTES
    }

    fn work(&self) -> usize {
        RESULT_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let sources = Sources::of(keys, self.combination.keys)?;
        let members = self.combination.members(&sources)?;
        put_integer(reply, store(keys, self.target, &members, self.combination.stored()));
        Ok(())
    }
}
