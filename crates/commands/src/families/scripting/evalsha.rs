//! EVALSHA and EVALSHA_RO: scripts that have been loaded.

use super::eval::SCRIPT_WORK;
use super::footprint;
use super::{READS, RUNS, ScriptCall};
use crate::access::{Keys, KeysMut};
use crate::encoding::{Flag, Seed, Unsigned, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use crate::families::specification::CommandSpec;
use crate::limits::SCRIPT_FUEL;
use crate::programs::ScriptName;

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
pub(crate) fn script_name(name: &[u8]) -> Option<ScriptName> {
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

    /// Any command may be called, so it is executed above the families: see `script_execution`.
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
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

    /// Any command may be called, so it is executed above the families: see `script_execution`.
    fn read<K: Keys>(&self, _keys: &K, _view: View, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }
}
