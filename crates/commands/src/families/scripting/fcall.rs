//! FCALL and FCALL_RO: functions of libraries.

use super::eval::SCRIPT_WORK;
use super::footprint;
use super::{READS, RUNS, ScriptCall};
use crate::access::{Keys, KeysMut};
use crate::encoding::{Flag, Seed, Unsigned, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use crate::families::specification::CommandSpec;
use crate::limits::SCRIPT_FUEL;

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

    /// Any command may be called, so it is executed above the families: see `script_execution`.
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
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

    /// Any command may be called, so it is executed above the families: see `script_execution`.
    fn read<K: Keys>(&self, _keys: &K, _view: View, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }
}
