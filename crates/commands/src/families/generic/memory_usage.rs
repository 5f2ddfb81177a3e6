//! MEMORY USAGE, and the row of MEMORY, whose other subcommands the connection answers.

use super::ROW;
use crate::access::{EntryRef as _, Keys};
use crate::encoding::{Key, fields};
use crate::error::CommandError;
use crate::families::counts::parse_count;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};
use crate::families::{Command, ConnectionCommand};
use crate::reply::{put_integer, put_nil};
use crate::words::{Words, integer, is};

/// MEMORY USAGE: about how many bytes a key and its value take at the member that answers; nil if there is no key. It adds up
/// what is known of each block and guesses nothing, so SAMPLES changes nothing. What every member executes is told an estimate
/// instead, which follows from the value alone: a script may keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUsage<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(MemoryUsage<'a> = 317 { key: Key });

const SUBCOMMANDS: &[SubcommandSpec] = &[
    SubcommandSpec {
        name: "memory|doctor",
        arity: 2,
        flags: &[],
        categories: &["@slow"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    },
    SubcommandSpec {
        name: "memory|help",
        arity: 2,
        flags: &["loading", "stale"],
        categories: &["@slow"],
        tips: &[],
    },
    SubcommandSpec {
        name: "memory|malloc-stats",
        arity: 2,
        flags: &[],
        categories: &["@slow"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    },
    SubcommandSpec {
        name: "memory|purge",
        arity: 2,
        flags: &[],
        categories: &["@slow"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    },
    SubcommandSpec {
        name: "memory|stats",
        arity: 2,
        flags: &[],
        categories: &["@slow"],
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
    },
    SubcommandSpec {
        name: "memory|usage",
        arity: -3,
        flags: &["readonly"],
        categories: &["@read", "@slow"],
        tips: &[],
    },
];

impl<'a> Definition<'a> for MemoryUsage<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "memory",
        kind: CommandKind::READ,
        arity: -2,
        categories: &["@slow"],
        subcommand_keys: &[&[], &[], &[], &[], &[], &["RO"]],
        since: "4.0.0",
        group: "server",
        summary: "Tells how much memory a key and its value take.",
        subcommands: SUBCOMMANDS,
        local: Some(ConnectionCommand::Memory),
        parser: |_, words| parse(words),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    if !is(words[1], "usage") {
        return Err(CommandError::unknown_subcommand("memory", words[1]));
    }
    let (key, options) = words[2..].split_first().ok_or(CommandError::Arity("memory|usage"))?;
    for option in options.chunks(2) {
        let [option, samples] = option else { return Err(CommandError::Syntax) };
        if !is(option, "samples") {
            return Err(CommandError::Syntax);
        }
        integer(samples)?;
        parse_count(samples).ok_or(CommandError::Syntax)?;
    }
    Ok(MemoryUsage { key }.into())
}

impl ReadCommand for MemoryUsage<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        match keys.get(self.key) {
            Some(found) => {
                let bytes = if view.is_of_member {
                    found.memory_bytes()
                } else {
                    found.element_bytes(keys.time_ms())
                };
                put_integer(reply, (self.key.len() + bytes) as i64);
            }
            None => put_nil(reply),
        }
        Ok(())
    }
}
