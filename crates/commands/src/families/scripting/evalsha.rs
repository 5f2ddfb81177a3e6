//! EVALSHA and EVALSHA_RO: scripts that have been loaded.

use super::eval::SCRIPT_WORK;
use super::runner::{Program, Run, apply, footprint, read};
use super::{READS, RUNS, ScriptCall};
use crate::access::{Databases, DatabasesMut, Keys, KeysMut};
use crate::encoding::{Flag, Seed, Unsigned, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use crate::families::specification::CommandSpec;
use crate::limits::SCRIPT_FUEL;
use crate::programs::{Programs, ScriptName};
use crate::reply::put_error;
use std::sync::Arc;
use syros_scripts::Flags;
use syros_types::Database;

/// EVALSHA: runs a script that has been loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalSha<'a> {
    /// What is run, and its keys and arguments.
    pub call: ScriptCall<'a>,
    /// What its commands and `math.random` draw from: see [`Operation::seed_mut`](crate::Operation::seed_mut).
    pub seed: u64,
    /// Units that it may use.
    pub fuel: u64,
    /// Whoever has made the operation knows that the script may touch any key.
    pub owns_everything: bool,
}

fields!(EvalSha<'a> = 91 { call: ScriptCall<'a>, seed: Seed, fuel: Unsigned, owns_everything: Flag });

/// EVALSHA_RO: runs a script that has been loaded and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalShaRo<'a> {
    /// What is run, and its keys and arguments.
    pub call: ScriptCall<'a>,
    /// Units that it may use.
    pub fuel: u64,
    /// See [`EvalSha::owns_everything`].
    pub owns_everything: bool,
}

fields!(EvalShaRo<'a> = 366 { call: ScriptCall<'a>, fuel: Unsigned, owns_everything: Flag });

/// The script that a client calls so.
pub(super) fn script_name(name: &[u8]) -> Option<ScriptName> {
    let digit = |digit: u8| Some(char::from(digit).to_digit(16)? as u8);
    let mut bytes = ScriptName::default();
    let (pairs, []) = name.as_chunks::<2>() else { return None };
    if pairs.len() != bytes.len() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

/// The text of the script that a client calls so, and what it says about itself.
fn find(programs: &Programs, name: &[u8], reply: &mut Vec<u8>) -> Option<(Arc<[u8]>, Flags)> {
    let found = script_name(name).and_then(|name| programs.script(&name));
    let Some(text) = found else {
        put_error(reply, b"NOSCRIPT No matching script. Please use EVAL.");
        return None;
    };
    match Flags::of_script(&text) {
        Ok(flags) => Some((text, flags)),
        Err(problem) => {
            put_error(reply, problem.as_bytes());
            None
        }
    }
}

impl<'a> Definition<'a> for EvalSha<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "evalsha",
        key_notes: "",
        summary: "Executes a server-side Lua script by SHA1 digest.",
        parser: |_, words| {
            let call = ScriptCall::parse(words, CommandError::NotInteger)?;
            Ok(EvalSha { call, seed: 0, fuel: SCRIPT_FUEL, owns_everything: false }.into())
        },
        ..RUNS
    }];

    fn keys(&self) -> KeyNames<'a> {
        footprint(self.owns_everything, self.call.input())
    }

    fn values(&self) -> u32 {
        1
    }
}

impl<'a> UpdateCommand<'a> for EvalSha<'a> {
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
        let Some((text, flags)) = find(&databases.programs(), self.call.subject(), reply) else {
            return Ok(());
        };
        let (called, input) = (self.call.subject(), self.call.input());
        let Self { fuel, seed, owns_everything, .. } = *self;
        let run = Run { program: Program::Script(&text), called, flags, input, fuel, seed, owns_everything };
        apply((databases, database), now_ms, run, reply)
    }
}

impl<'a> Definition<'a> for EvalShaRo<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "evalsha_ro",
        key_notes: "",
        summary: "Executes a read-only server-side Lua script by SHA1 digest.",
        parser: |_, words| {
            let call = ScriptCall::parse(words, CommandError::NotInteger)?;
            Ok(EvalShaRo { call, fuel: SCRIPT_FUEL, owns_everything: false }.into())
        },
        ..READS
    }];

    fn keys(&self) -> KeyNames<'a> {
        footprint(self.owns_everything, self.call.input())
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for EvalShaRo<'_> {
    fn work_on<K: Keys>(&self, _keys: &K) -> usize {
        // A read apart from the engine sees only the keys that it names.
        if self.owns_everything { 0 } else { SCRIPT_WORK }
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
        let Some((text, flags)) = find(&databases.programs(), self.call.subject(), reply) else {
            return Ok(());
        };
        let (called, input) = (self.call.subject(), self.call.input());
        let Self { fuel, owns_everything, .. } = *self;
        let program = Program::Script(&text);
        let run = Run { program, called, flags, input, fuel, seed: view.draw, owns_everything };
        read((databases, database), view, run, reply)
    }
}
