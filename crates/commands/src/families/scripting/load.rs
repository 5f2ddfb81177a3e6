//! SCRIPT, and what SCRIPT LOAD and SCRIPT FLUSH do.

use super::look::ScriptLook;
use super::{ROW, SUBCOMMAND};
use crate::access::{DatabasesMut, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Value, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};
use crate::programs::Programs;
use crate::reply::{put_bulk, put_error, put_ok};
use crate::words::{Words, is};
use syros_scripts::sha1_hex;
use syros_types::Database;

/// SCRIPT LOAD: loads a script, and answers its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLoad<'a> {
    /// The script.
    pub text: &'a [u8],
}

fields!(ScriptLoad<'a> = 368 { text: Value });

/// SCRIPT FLUSH: unloads all scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptFlush;

fields!(ScriptFlush = 369 {});

impl<'a> Definition<'a> for ScriptLoad<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "script",
        kind: CommandKind::UPDATE,
        arity: -2,
        flags: &[],
        categories: &["@slow"],
        summary: "A container for Lua scripts management commands.",
        subcommands: &[
            SubcommandSpec {
                name: "script|exists",
                arity: -3,
                tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
                ..SUBCOMMAND
            },
            SubcommandSpec {
                name: "script|flush",
                arity: -2,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                ..SUBCOMMAND
            },
            SubcommandSpec {
                name: "script|kill",
                flags: &["noscript", "allow_busy"],
                tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
                ..SUBCOMMAND
            },
            SubcommandSpec {
                name: "script|load",
                arity: 3,
                flags: &["noscript", "stale"],
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                ..SUBCOMMAND
            },
            SubcommandSpec { name: "script|show", arity: 3, ..SUBCOMMAND },
        ],
        parser: parse,
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let rest = &words[2..];
    match (words[1], rest) {
        (name, [text]) if is(name, "load") => Ok(ScriptLoad { text }.into()),
        (name, _) if is(name, "load") => Err(CommandError::Arity("script|load")),
        (name, [_, ..]) if is(name, "exists") => {
            Ok(ScriptLook { names: Arguments::new(rest), shows: false }.into())
        }
        (name, _) if is(name, "exists") => Err(CommandError::Arity("script|exists")),
        (name, [_]) if is(name, "show") => Ok(ScriptLook { names: Arguments::new(rest), shows: true }.into()),
        (name, _) if is(name, "show") => Err(CommandError::Arity("script|show")),
        (name, []) if is(name, "flush") => Ok(ScriptFlush.into()),
        (name, [mode]) if is(name, "flush") && (is(mode, "sync") || is(mode, "async")) => {
            Ok(ScriptFlush.into())
        }
        (name, _) if is(name, "flush") => Err(CommandError::ScriptFlushMode),
        (name, []) if is(name, "kill") => Err(CommandError::NothingRuns),
        (name, _) if is(name, "kill") => Err(CommandError::Arity("script|kill")),
        (name, _) => Err(CommandError::unknown_subcommand("script", name)),
    }
}

impl<'a> UpdateCommand<'a> for ScriptLoad<'a> {
    /// It concerns what is loaded: see [`UpdateCommand::apply_to`].
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }

    fn apply_to<D: DatabasesMut>(
        &self,
        databases: &mut D,
        _database: Database,
        _now_ms: u64,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        match syros_scripts::check(self.text) {
            Ok(()) => {
                let mut programs = databases.programs();
                programs.load(self.text);
                databases.set_programs(programs);
                put_bulk(reply, &sha1_hex(self.text));
            }
            Err(problem) => put_error(reply, problem.as_bytes()),
        }
        Ok(())
    }
}

impl<'a> Definition<'a> for ScriptFlush {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

impl<'a> UpdateCommand<'a> for ScriptFlush {
    fn answers_ok(&self) -> bool {
        true
    }

    /// It concerns what is loaded: see [`UpdateCommand::apply_to`].
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }

    fn apply_to<D: DatabasesMut>(
        &self,
        databases: &mut D,
        _database: Database,
        _now_ms: u64,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        let mut programs: Programs = databases.programs();
        programs.flush_scripts();
        databases.set_programs(programs);
        put_ok(reply);
        Ok(())
    }
}
