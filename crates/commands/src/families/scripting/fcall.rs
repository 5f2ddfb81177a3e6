//! FCALL and FCALL_RO: functions of libraries.

use super::runner::{Program, Run, apply, footprint, read};
use super::{READS, RUNS, ScriptInput, input};
use crate::access::{Keys, KeysMut};
use crate::encoding::{Flag, Seed, Unsigned, Value, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use crate::families::specification::CommandSpec;
use crate::limits::SCRIPT_FUEL;
use crate::programs::Programs;
use crate::reply::put_error;
use std::sync::Arc;
use syros_scripts::Flags;

/// FCALL: calls a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FCall<'a> {
    /// The function's name.
    pub name: &'a [u8],
    /// Its keys and arguments.
    pub input: ScriptInput<'a>,
    /// What its commands and `math.random` draw from: see [`Operation::seed_mut`](crate::Operation::seed_mut).
    pub seed: u64,
    /// Units that it may use; loading its library takes some of them.
    pub fuel: u64,
    /// Whoever has made the operation knows that the function may touch any key.
    pub owns_everything: bool,
}

fields!(FCall<'a> = 92 { name: Value, input: ScriptInput<'a>, seed: Seed, fuel: Unsigned, owns_everything: Flag });

/// FCALL_RO: calls a function that changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FCallRo<'a> {
    /// The function's name.
    pub name: &'a [u8],
    /// Its keys and arguments.
    pub input: ScriptInput<'a>,
    /// Units that it may use.
    pub fuel: u64,
    /// See [`FCall::owns_everything`].
    pub owns_everything: bool,
}

fields!(FCallRo<'a> = 367 { name: Value, input: ScriptInput<'a>, fuel: Unsigned, owns_everything: Flag });

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
            let input = input(words, CommandError::BadKeyCount)?;
            Ok(FCall { name: words[1], input, seed: 0, fuel: SCRIPT_FUEL, owns_everything: false }.into())
        },
        ..RUNS
    }];

    fn keys(&self) -> KeyNames<'a> {
        footprint(self.owns_everything, self.input)
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

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let Some((text, name, flags)) = find(&keys.programs(), self.name, reply) else { return Ok(()) };
        let Self { input, fuel, seed, owns_everything, .. } = *self;
        let program = Program::Function(&text, &name);
        let called = self.name;
        apply(keys, now_ms, Run { program, called, flags, input, fuel, seed, owns_everything }, reply)
    }
}

impl<'a> Definition<'a> for FCallRo<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "fcall_ro",
        summary: "Invokes a read-only function.",
        parser: |_, words| {
            let input = input(words, CommandError::BadKeyCount)?;
            Ok(FCallRo { name: words[1], input, fuel: SCRIPT_FUEL, owns_everything: false }.into())
        },
        ..READS
    }];

    fn keys(&self) -> KeyNames<'a> {
        footprint(self.owns_everything, self.input)
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for FCallRo<'_> {
    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let name = core::str::from_utf8(self.name).ok();
        let programs = keys.programs();
        let found = name.and_then(|name| programs.function(name)).filter(|_| !self.owns_everything);
        found.map_or(0, |(library, _)| super::eval::work_of(&library.text))
    }

    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let Some((text, name, flags)) = find(&keys.programs(), self.name, reply) else { return Ok(()) };
        let Self { input, fuel, owns_everything, .. } = *self;
        let program = Program::Function(&text, &name);
        let run = Run { program, called: self.name, flags, input, fuel, seed: view.draw, owns_everything };
        read(keys, view, run, reply)
    }
}
