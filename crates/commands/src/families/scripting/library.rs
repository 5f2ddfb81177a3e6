//! FUNCTION, and what FUNCTION LOAD, FUNCTION DELETE, FUNCTION FLUSH and FUNCTION RESTORE do.

use super::look::{LibraryLook, LibraryQuestion};
use super::{ROW, SUBCOMMAND};
use crate::access::{DatabasesMut, KeysMut};
use crate::encoding::{Unsigned, Value, choices, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};
use crate::limits::SCRIPT_FUEL;
use crate::payload_error::PayloadError;
use crate::programs::{Library, PROGRAM_BYTES_MAX, Programs};
use crate::rdb::{InvalidPayload, restore_libraries};
use crate::reply::{put_bulk, put_error, put_ok};
use crate::words::{Words, is};
use syros_scripts::{Limits, library_name};
use syros_types::Database;

/// Most libraries of a payload: preparing a state for each takes time, and no fuel.
const RESTORED_MAX: usize = 256;

/// What becomes of libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LibraryAction {
    /// One with this text is loaded, if there is none of its name.
    Load,
    /// One with this text is loaded, in place of the one of its name.
    Replace,
    /// The one of this name is removed.
    Delete,
    /// All are removed.
    Flush,
    /// Those of a payload are loaded, if there is none of their names.
    RestoreAppend,
    /// Those of a payload are loaded, in place of those of their names.
    RestoreReplace,
    /// Those of a payload are loaded, in place of all.
    RestoreFlush,
}

choices!(LibraryAction: Load, Replace, Delete, Flush, RestoreAppend, RestoreReplace, RestoreFlush);

/// FUNCTION LOAD, DELETE, FLUSH and RESTORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryChange<'a> {
    /// What happens.
    pub action: LibraryAction,
    /// A text, a name or a payload; of [`LibraryAction::Flush`], nothing.
    pub text: &'a [u8],
    /// Units that loading may use. Libraries of a payload have equal shares.
    pub fuel: u64,
}

fields!(LibraryChange<'a> = 371 { action: LibraryAction, text: Value, fuel: Unsigned });

/// The same of those that change what is loaded.
const CHANGE: SubcommandSpec = SubcommandSpec {
    categories: &["@write", "@slow", "@scripting"],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    ..SUBCOMMAND
};

impl<'a> Definition<'a> for LibraryChange<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "function",
        kind: CommandKind::UPDATE,
        arity: -2,
        flags: &[],
        categories: &["@slow"],
        since: "7.0.0",
        summary: "A container for function commands.",
        subcommands: &[
            SubcommandSpec { name: "function|delete", arity: 3, flags: &["write", "noscript"], ..CHANGE },
            SubcommandSpec { name: "function|dump", ..SUBCOMMAND },
            SubcommandSpec { name: "function|flush", arity: -2, flags: &["write", "noscript"], ..CHANGE },
            SubcommandSpec {
                name: "function|kill",
                flags: &["noscript", "allow_busy"],
                tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
                ..SUBCOMMAND
            },
            SubcommandSpec {
                name: "function|list",
                arity: -2,
                tips: &["nondeterministic_output_order"],
                ..SUBCOMMAND
            },
            SubcommandSpec {
                name: "function|load",
                arity: -3,
                flags: &["write", "denyoom", "noscript"],
                ..CHANGE
            },
            SubcommandSpec {
                name: "function|restore",
                arity: -3,
                flags: &["write", "denyoom", "noscript"],
                ..CHANGE
            },
            SubcommandSpec {
                name: "function|stats",
                flags: &["noscript", "allow_busy"],
                tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
                ..SUBCOMMAND
            },
        ],
        parser: parse,
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let change = |action, text: &'a [u8]| Ok(LibraryChange { action, text, fuel: SCRIPT_FUEL }.into());
    let rest = &words[2..];
    match (words[1], rest) {
        (name, [text]) if is(name, "load") => change(LibraryAction::Load, text),
        (name, [option, text]) if is(name, "load") && is(option, "replace") => {
            change(LibraryAction::Replace, text)
        }
        (name, [option, _, ..]) if is(name, "load") => Err(CommandError::UnknownLoadOption(option.to_vec())),
        (name, _) if is(name, "load") => Err(CommandError::Arity("function|load")),
        (name, [library]) if is(name, "delete") => change(LibraryAction::Delete, library),
        (name, _) if is(name, "delete") => Err(CommandError::Arity("function|delete")),
        (name, []) if is(name, "flush") => change(LibraryAction::Flush, b""),
        (name, [mode]) if is(name, "flush") && (is(mode, "sync") || is(mode, "async")) => {
            change(LibraryAction::Flush, b"")
        }
        (name, [_]) if is(name, "flush") => Err(CommandError::FunctionFlushMode),
        (name, _) if is(name, "flush") => {
            Err(CommandError::SubcommandSyntax { command: "function", name: name.to_vec() })
        }
        (name, []) if is(name, "dump") => {
            Ok(LibraryLook { question: LibraryQuestion::Dump, pattern: b"*" }.into())
        }
        (name, _) if is(name, "dump") => Err(CommandError::Arity("function|dump")),
        (name, [payload]) if is(name, "restore") => restore(LibraryAction::RestoreAppend, payload),
        (name, [payload, policy]) if is(name, "restore") => {
            let action = RESTORE_POLICIES.iter().find(|(name, _)| is(policy, name));
            let (_, action) = action.ok_or(CommandError::Payload(PayloadError::Policy))?;
            restore(*action, payload)
        }
        (name, []) if is(name, "restore") => Err(CommandError::Arity("function|restore")),
        (name, _) if is(name, "restore") => {
            Err(CommandError::SubcommandSyntax { command: "function", name: name.to_vec() })
        }
        (name, []) if is(name, "stats") => {
            Ok(LibraryLook { question: LibraryQuestion::Count, pattern: b"*" }.into())
        }
        (name, _) if is(name, "stats") => Err(CommandError::Arity("function|stats")),
        (name, options) if is(name, "list") => list(options),
        (name, []) if is(name, "kill") => Err(CommandError::NothingRuns),
        (name, _) if is(name, "kill") => Err(CommandError::Arity("function|kill")),
        (name, _) => Err(CommandError::unknown_subcommand("function", name)),
    }
}

/// What becomes of the libraries that there are.
const RESTORE_POLICIES: [(&str, LibraryAction); 3] = [
    ("append", LibraryAction::RestoreAppend),
    ("flush", LibraryAction::RestoreFlush),
    ("replace", LibraryAction::RestoreReplace),
];

/// FUNCTION RESTORE. A damaged payload is refused before anything is ordered.
fn restore(action: LibraryAction, payload: &[u8]) -> Result<Command<'_>, CommandError> {
    restore_libraries(payload).map_err(|error| match error {
        InvalidPayload::VersionOrChecksum => CommandError::Payload(PayloadError::VersionOrChecksum),
        InvalidPayload::Format => CommandError::Payload(PayloadError::NotLibraries),
    })?;
    Ok(LibraryChange { action, text: payload, fuel: SCRIPT_FUEL }.into())
}

/// The options of FUNCTION LIST.
fn list<'a>(mut options: Words<'a>) -> Result<Command<'a>, CommandError> {
    let (mut question, mut pattern) = (LibraryQuestion::List, None);
    loop {
        options = match options {
            [] => break,
            [option, rest @ ..] if is(option, "withcode") && question == LibraryQuestion::List => {
                question = LibraryQuestion::ListWithCode;
                rest
            }
            [option, name, rest @ ..] if is(option, "libraryname") && pattern.is_none() => {
                pattern = Some(crate::words::pattern(name)?);
                rest
            }
            [option] if is(option, "libraryname") && pattern.is_none() => {
                return Err(CommandError::NoLibraryName);
            }
            [option, ..] => return Err(CommandError::UnknownArgument(option.to_vec())),
        };
    }
    Ok(LibraryLook { question, pattern: pattern.unwrap_or(b"*") }.into())
}

impl<'a> UpdateCommand<'a> for LibraryChange<'a> {
    fn answers_ok(&self) -> bool {
        self.action == LibraryAction::Flush
    }

    fn growth(&self, encoded: usize) -> usize {
        if matches!(self.action, LibraryAction::Delete | LibraryAction::Flush) { 0 } else { encoded }
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
        let mut programs = databases.programs();
        let outcome = match self.action {
            LibraryAction::Load | LibraryAction::Replace => {
                let replaces = self.action == LibraryAction::Replace;
                load(self.text, replaces, self.fuel, &mut programs).map(Some)
            }
            LibraryAction::RestoreAppend | LibraryAction::RestoreReplace | LibraryAction::RestoreFlush => {
                self.restore(&mut programs).map(|()| None)
            }
            LibraryAction::Flush => {
                programs.flush_libraries();
                Ok(None)
            }
            LibraryAction::Delete => {
                let name = core::str::from_utf8(self.text).unwrap_or_default();
                let is_known = programs.remove_library(name);
                if is_known { Ok(None) } else { Err("ERR Library not found".to_owned()) }
            }
        };
        match &outcome {
            Ok(Some(name)) => put_bulk(reply, name.as_bytes()),
            Ok(None) => put_ok(reply),
            Err(problem) => put_error(reply, problem.as_bytes()),
        }
        if outcome.is_ok() {
            databases.set_programs(programs);
        }
        Ok(())
    }
}

impl LibraryChange<'_> {
    /// Loads the libraries of a payload.
    fn restore(&self, programs: &mut Programs) -> Result<(), String> {
        let texts = restore_libraries(self.text)
            .map_err(|_| CommandError::Payload(PayloadError::NotLibraries).to_string())?;
        if texts.len() > RESTORED_MAX {
            return Err(format!("ERR {} libraries exceed the maximum of {RESTORED_MAX}", texts.len()));
        }
        if self.action == LibraryAction::RestoreFlush {
            programs.flush_libraries();
        }
        let replaces = self.action == LibraryAction::RestoreReplace;
        let fuel = self.fuel / (texts.len() as u64).max(1);
        texts.iter().try_for_each(|text| {
            let name = library_name(text)?;
            if !replaces && programs.library(&name).is_some() {
                // Without the quotes that it has when one is loaded, as in Redis.
                return Err(format!("ERR Library {name} already exists"));
            }
            load(text, replaces, fuel, programs).map(drop)
        })
    }
}

/// Loads a library; its name.
fn load(text: &[u8], replaces: bool, fuel: u64, programs: &mut Programs) -> Result<String, String> {
    let name = library_name(text)?;
    if !replaces && programs.library(&name).is_some() {
        return Err(format!("ERR Library '{name}' already exists"));
    }
    let functions = syros_scripts::library(text, Limits { fuel, seed: 0, counts_script_alone: false })?;
    for function in &functions {
        let others = programs.libraries().filter(|(other, _)| *other != name);
        let mut taken = others.flat_map(|(_, library)| &library.functions);
        if taken.any(|other| other.name.eq_ignore_ascii_case(&function.name)) {
            return Err(format!("ERR Function {} already exists", function.name));
        }
    }
    if programs.library_bytes() + text.len() > PROGRAM_BYTES_MAX {
        return Err(format!("ERR all libraries together exceed the maximum of {PROGRAM_BYTES_MAX} bytes"));
    }
    programs.set_library(&name, Library { text: text.into(), functions });
    Ok(name)
}
