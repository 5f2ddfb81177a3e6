//! FCALL and FCALL_RO: functions of libraries.

use super::eval::SCRIPT_WORK;
use super::runner::{Program, Run, apply, footprint, read};
use super::{READS, RUNS, ScriptCall};
use crate::access::{Databases, DatabasesMut, Keys, KeysMut};
use crate::encoding::{Flag, Seed, Unsigned, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use crate::families::specification::CommandSpec;
use crate::limits::SCRIPT_FUEL;
use crate::programs::Programs;
use crate::reply::put_error;
use std::sync::Arc;
use syros_scripts::Flags;
use syros_types::Database;

/// FCALL: calls a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FCall<'a> {
    /// What is run, and its keys and arguments.
    pub call: ScriptCall<'a>,
    /// What its commands and `math.random` draw from: see [`Operation::seed_mut`](crate::Operation::seed_mut).
    pub seed: u64,
    /// Units that it may use; loading its library takes some of them.
    pub fuel: u64,
    /// Whoever has made the operation knows that the function may touch any key.
    pub owns_everything: bool,
}

fields!(FCall<'a> = 92 { call: ScriptCall<'a>, seed: Seed, fuel: Unsigned, owns_everything: Flag });

/// FCALL_RO: calls a function that changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FCallRo<'a> {
    /// What is run, and its keys and arguments.
    pub call: ScriptCall<'a>,
    /// Units that it may use.
    pub fuel: u64,
    /// See [`FCall::owns_everything`].
    pub owns_everything: bool,
}

fields!(FCallRo<'a> = 367 { call: ScriptCall<'a>, fuel: Unsigned, owns_everything: Flag });

/// The text of the library with this function, the function's name and flags.
fn find(programs: &Programs, name: &[u8], reply: &mut Vec<u8>) -> Option<(Arc<[u8]>, String, Flags)> {
    let name = core::str::from_utf8(name).ok();
    let Some((library, function)) = name.and_then(|name| programs.function(name)) else {
        put_error(reply, b"ERR Function not found");
        return None;
    };
    Some((Arc::clone(&library.text), function.name.clone(), function.flags()))
}

impl<'a> Definition<'a> for FCall<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "fcall",
        since: "7.0.0",
        summary: "Invokes a function.",
        parser: |_, words| {
            let call = ScriptCall::parse(words, CommandError::BadKeyCount)?;
            Ok(FCall { call, seed: 0, fuel: SCRIPT_FUEL, owns_everything: false }.into())
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

impl<'a> UpdateCommand<'a> for FCall<'a> {
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
        let Some((text, name, flags)) = find(&databases.programs(), self.call.subject(), reply) else {
            return Ok(());
        };
        let Self { fuel, seed, owns_everything, .. } = *self;
        let input = self.call.input();
        let program = Program::Function(&text, &name);
        let called = self.call.subject();
        apply(
            (databases, database),
            now_ms,
            Run { program, called, flags, input, fuel, seed, owns_everything },
            reply,
        )
    }
}

impl<'a> Definition<'a> for FCallRo<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "fcall_ro",
        summary: "Invokes a read-only function.",
        parser: |_, words| {
            let call = ScriptCall::parse(words, CommandError::BadKeyCount)?;
            Ok(FCallRo { call, fuel: SCRIPT_FUEL, owns_everything: false }.into())
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

impl ReadCommand for FCallRo<'_> {
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
        let Some((text, name, flags)) = find(&databases.programs(), self.call.subject(), reply) else {
            return Ok(());
        };
        let Self { fuel, owns_everything, .. } = *self;
        let input = self.call.input();
        let program = Program::Function(&text, &name);
        let run = Run {
            program,
            called: self.call.subject(),
            flags,
            input,
            fuel,
            seed: view.draw,
            owns_everything,
        };
        read((databases, database), view, run, reply)
    }
}
