//! PFMERGE.

use super::sketch::{self, DENSE_BYTES};
use super::{ROW, union};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{List, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_ok;
use crate::words::arguments;

/// PFMERGE. Its OK says that all keys are HyperLogLogs, so it does not answer the same in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfMerge<'a> {
    /// The key that gets the union, which need not exist, and behind it the keys that are added to it.
    pub keys: Arguments<'a>,
}

fields!(PfMerge<'a> = 163 { keys: List<1> });

impl<'a> Definition<'a> for PfMerge<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "pfmerge",
        kind: CommandKind::UPDATE,
        arity: -2,
        keys: KeyPositions::ALL,
        key_flags: &[&["RW", "access", "insert"], &["RO", "access"]],
        flags: &["write", "denyoom"],
        categories: &["@write", "@hyperloglog", "@slow"],
        summary: "Adds HyperLogLogs to another one; creates its key if it does not exist.",
        parser: |_, words| Ok(PfMerge { keys: arguments(words) }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

impl<'a> UpdateCommand<'a> for PfMerge<'a> {
    fn growth(&self, encoded: usize) -> usize {
        DENSE_BYTES + encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        self.keys.len() * DENSE_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let (registers, is_dense) = union(keys, self.keys.iter())?;
        let merged = sketch::encoded(&registers, is_dense);
        let destination = self.keys.iter().next().ok_or(ExecutionError::Malformed)?;
        let existed = keys.edit(destination, |value| value.clone_from(&merged))?.is_some();
        if !existed {
            keys.set(destination, &merged, None);
        }
        keys.notify(KeyEvent::PfAdd, destination);
        put_ok(reply);
        Ok(())
    }
}
