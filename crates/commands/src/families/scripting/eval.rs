//! EVAL and EVAL_RO: scripts whose text stands in the operation.

use super::footprint;
use super::{READS, RUNS, ReadBudget, RunTerms, ScriptCall};
use crate::access::{Keys, KeysMut};
use crate::calling_user::CallingUser;
use crate::encoding::{Encoding, Field as _, Flag, Opcode, Seed, Unsigned, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, UpdateCommand, View};
use crate::families::specification::CommandSpec;
use crate::limits::SCRIPT_FUEL;
use crate::primitive::Malformed;
use crate::words::Words;
use syros_scripts::Flags;
use syros_types::varint::{put_varint, take_varint};

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
    /// What the node that has made the operation knows.
    pub terms: RunTerms,
}

fields!(Eval<'a> = 90 {
    call: ScriptCall<'a>, seed: Seed, fuel: Unsigned, loads: Flag, terms: RunTerms
});

/// EVAL_RO: runs a script that changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvalRo<'a> {
    /// What is run, and its keys and arguments.
    pub call: ScriptCall<'a>,
    /// Units that it may use.
    pub fuel: u64,
    /// It may touch any key. Members of builds before wire format 23 know of none that may, unless its first line says so.
    pub owns_everything: bool,
    /// See [`RunTerms::user`].
    pub user: CallingUser,
}

/// Beside the number of the user.
const OWNS_EVERYTHING: u64 = 1 << 48;

impl<'a> Encoding<'a> for EvalRo<'a> {
    const OPCODE: Opcode = 365;

    fn encode(&self, out: &mut Vec<u8>) {
        ScriptCall::put(out, self.call);
        let owns_everything = if self.owns_everything { OWNS_EVERYTHING } else { 0 };
        put_varint(out, ReadBudget::number(self.fuel, self.user) | owns_everything);
    }

    fn decode(_opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let call = ScriptCall::take(input)?;
        let number = take_varint(input)?;
        let (fuel, user) = ReadBudget::of(number & !OWNS_EVERYTHING)?;
        Ok(Self { call, fuel, owns_everything: number & OWNS_EVERYTHING != 0, user })
    }
}

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
        let owns_everything =
            self.loads || self.terms.owns_everything || owns_everything(self.call.subject());
        footprint(owns_everything, self.call.input())
    }

    fn values(&self) -> u32 {
        1
    }
}

fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let call = ScriptCall::parse(words, CommandError::NotInteger)?;
    Ok(Eval { call, seed: 0, fuel: SCRIPT_FUEL, loads: true, terms: RunTerms::default() }.into())
}

impl<'a> UpdateCommand<'a> for Eval<'a> {
    fn growth(&self, encoded: usize) -> usize {
        self.terms.growth(encoded)
    }

    fn seed_mut(&mut self) -> Option<&mut u64> {
        Some(&mut self.seed)
    }

    /// Any command may be called, so it is executed above the families: see `script_execution`.
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }
}

impl<'a> Definition<'a> for EvalRo<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "eval_ro",
        summary: "Executes a read-only server-side Lua script.",
        parser: |_, words| {
            let call = ScriptCall::parse(words, CommandError::NotInteger)?;
            let user = CallingUser::default();
            Ok(EvalRo { call, fuel: SCRIPT_FUEL, owns_everything: false, user }.into())
        },
        ..READS
    }];

    fn keys(&self) -> KeyNames<'a> {
        footprint(self.owns_everything || owns_everything(self.call.subject()), self.call.input())
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for EvalRo<'_> {
    fn work_on<K: Keys>(&self, _keys: &K) -> usize {
        // A read apart from the engine sees only the keys that it names.
        let owns_everything = self.owns_everything || owns_everything(self.call.subject());
        if owns_everything { 0 } else { work_of(self.call.subject()) }
    }

    /// Any command may be called, so it is executed above the families: see `script_execution`.
    fn read<K: Keys>(&self, _keys: &K, _view: View, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }
}
