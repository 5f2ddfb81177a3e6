//! RENAME and RENAMENX.

use super::notify_replacement;
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::{put_integer, put_ok};

/// RENAME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename<'a> {
    /// The old name.
    pub from: &'a [u8],
    /// The new name.
    pub to: &'a [u8],
}

/// RENAMENX: answers 0 if there is a key with the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenameNx<'a> {
    /// The old name.
    pub from: &'a [u8],
    /// The new name.
    pub to: &'a [u8],
}

fields!(Rename<'a> = 44 { from: Key, to: Key });
fields!(RenameNx<'a> = 45 { from: Key, to: Key });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    arity: 3,
    keys: KeyPositions::TWO,
    since: "1.0.0",
    ..super::ROW
};

impl<'a> Definition<'a> for Rename<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "rename",
        key_flags: &[&["RW", "access", "delete"], &["OW", "update"]],
        flags: &["write"],
        categories: &["@keyspace", "@write", "@slow"],
        summary: "Renames a key, over one that has the new name.",
        parser: |_, words| Ok(Rename { from: words[1], to: words[2] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Two(self.from, self.to)
    }
}

impl<'a> Definition<'a> for RenameNx<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "renamenx",
        key_flags: &[&["RW", "access", "delete"], &["OW", "insert"]],
        flags: &["write", "fast"],
        categories: &["@keyspace", "@write", "@fast"],
        summary: "Renames a key if none has the new name.",
        parser: |_, words| Ok(RenameNx { from: words[1], to: words[2] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Two(self.from, self.to)
    }
}

impl<'a> UpdateCommand<'a> for Rename<'a> {
    fn growth(&self, _encoded: usize) -> usize {
        growth(self.from, self.to)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        rename(keys, self.from, self.to, true)?;
        put_ok(reply);
        Ok(())
    }
}

impl<'a> UpdateCommand<'a> for RenameNx<'a> {
    fn growth(&self, _encoded: usize) -> usize {
        growth(self.from, self.to)
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, i64::from(rename(keys, self.from, self.to, false)?));
        Ok(())
    }
}

/// The key may get a longer name.
const fn growth(from: &[u8], to: &[u8]) -> usize {
    to.len().saturating_sub(from.len())
}

/// True if the key has its new name; false if that was taken and `replace` is false.
fn rename<K: KeysMut>(keys: &mut K, from: &[u8], to: &[u8], replace: bool) -> Result<bool, ExecutionError> {
    if keys.get(from).is_none() {
        return Err(ExecutionError::NoSuchKey);
    }
    if !replace && keys.get(to).is_some() {
        return Ok(false);
    }
    // Renamed to itself, a key keeps its position.
    if from != to {
        notify_replacement(keys, to);
        keys.rename(from, to);
        keys.notify(KeyEvent::RenameFrom, from);
        keys.notify(KeyEvent::RenameTo, to);
    }
    Ok(true)
}
