//! EVAL and EVAL_RO: scripts whose text stands in the operation.

use super::runner::{Program, Run, apply, footprint, read};
use super::{READS, RUNS, ScriptCall};
use crate::access::{Databases, DatabasesMut, Keys, KeysMut};
use crate::encoding::{Flag, Seed, Unsigned, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use crate::families::specification::CommandSpec;
use crate::limits::SCRIPT_FUEL;
use crate::reply::put_error;
use crate::words::Words;
use syros_scripts::Flags;
use syros_types::Database;

/// EVAL: runs a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Eval<'a> {
    /// What is run, and its keys and arguments.
    pub call: ScriptCall<'a>,
    /// What its commands and `math.random` draw from: see [`Operation::seed_mut`](crate::Operation::seed_mut).
    pub seed: u64,
    /// Units that it may use.
    pub fuel: u64,
    /// The script is loaded, too, so that EVALSHA finds it. All keys are its footprint then.
    pub loads: bool,
    /// The script may touch any key, whatever it declares.
    pub owns_everything: bool,
}

fields!(Eval<'a> = 90 {
    call: ScriptCall<'a>, seed: Seed, fuel: Unsigned, loads: Flag, owns_everything: Flag
});

/// EVAL_RO: runs a script that changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalRo<'a> {
    /// What is run, and its keys and arguments.
    pub call: ScriptCall<'a>,
    /// Units that it may use.
    pub fuel: u64,
}

fields!(EvalRo<'a> = 365 { call: ScriptCall<'a>, fuel: Unsigned });

/// True if a script says that it may touch any key. Of one whose first line is wrong, that does not matter.
pub(super) fn owns_everything(text: &[u8]) -> bool {
    text.starts_with(b"#!") && Flags::of_script(text).is_ok_and(|flags| flags.undeclared_keys)
}

/// About how many bytes a script may touch that has a loop, or is not known.
pub(super) const SCRIPT_WORK: usize = 1 << 20;

/// About how many bytes a script may touch: one that has a loop may take long.
pub(super) fn work_of(text: &[u8]) -> usize {
    const SHORT: usize = 32 << 10;
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    if has(b"while") || has(b"for") || has(b"repeat") { SCRIPT_WORK } else { SHORT }
}

impl<'a> Definition<'a> for Eval<'a> {
    const SPECS: &'static [CommandSpec] =
        &[CommandSpec { name: "eval", summary: "Executes a server-side Lua script.", parser: parse, ..RUNS }];

    fn keys(&self) -> KeyNames<'a> {
        let owns_everything = self.loads || self.owns_everything || owns_everything(self.call.subject());
        footprint(owns_everything, self.call.input())
    }

    fn values(&self) -> u32 {
        1
    }
}

fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let call = ScriptCall::parse(words, CommandError::NotInteger)?;
    Ok(Eval { call, seed: 0, fuel: SCRIPT_FUEL, loads: true, owns_everything: false }.into())
}

impl<'a> UpdateCommand<'a> for Eval<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + super::super::definition::KEY_BYTES
    }

    fn seed_mut(&mut self) -> Option<&mut u64> {
        Some(&mut self.seed)
    }

    /// It concerns what is loaded, too: see [`UpdateCommand::apply_to`].
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }

    fn apply_to<D: DatabasesMut>(
        &self,
        databases: &mut D,
        database: Database,
        now_ms: u64,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        let flags = match Flags::of_script(self.call.subject()) {
            Ok(flags) => flags,
            Err(problem) => {
                put_error(reply, problem.as_bytes());
                return Ok(());
            }
        };
        if self.loads && syros_scripts::check(self.call.subject()).is_ok() {
            let mut programs = databases.programs();
            programs.load(self.call.subject());
            databases.set_programs(programs);
        }
        let run = Run {
            program: Program::Script(self.call.subject()),
            called: b"",
            flags,
            input: self.call.input(),
            fuel: self.fuel,
            seed: self.seed,
            owns_everything: self.owns_everything || flags.undeclared_keys,
        };
        apply((databases, database), now_ms, run, reply)
    }
}

impl<'a> Definition<'a> for EvalRo<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "eval_ro",
        summary: "Executes a read-only server-side Lua script.",
        parser: |_, words| {
            let call = ScriptCall::parse(words, CommandError::NotInteger)?;
            Ok(EvalRo { call, fuel: SCRIPT_FUEL }.into())
        },
        ..READS
    }];

    fn keys(&self) -> KeyNames<'a> {
        footprint(owns_everything(self.call.subject()), self.call.input())
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for EvalRo<'_> {
    fn work_on<K: Keys>(&self, _keys: &K) -> usize {
        // A read apart from the engine sees only the keys that it names.
        if owns_everything(self.call.subject()) { 0 } else { work_of(self.call.subject()) }
    }

    /// It concerns what is loaded, too: see [`ReadCommand::read_of`].
    fn read<K: Keys>(&self, _keys: &K, _view: View, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }

    fn read_of<D: Databases>(
        &self,
        databases: &D,
        database: Database,
        view: View,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        let flags = match Flags::of_script(self.call.subject()) {
            Ok(flags) => flags,
            Err(problem) => {
                put_error(reply, problem.as_bytes());
                return Ok(());
            }
        };
        let run = Run {
            program: Program::Script(self.call.subject()),
            called: b"",
            flags,
            input: self.call.input(),
            fuel: self.fuel,
            seed: view.draw,
            owns_everything: flags.undeclared_keys,
        };
        read((databases, database), view, run, reply)
    }
}
