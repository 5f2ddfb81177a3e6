//! COPY, within a database and to another one.

use super::{notify_replacement, store_value};
use crate::access::{DatabasesMut, EntryRef as _, Expiry, KeyEvent, Keys, KeysMut};
use crate::encoding::{DatabaseNumber, Flag, Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{
    Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand, VALUE_WORK,
};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::{Words, database, is};
use syros_types::Database;
use syros_values::Value;

/// COPY: answers 1 if the target has value and expiry of the source now; 0, without a change, if there is no source, or a
/// target that is not to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy<'a> {
    /// The key that is copied.
    pub from: &'a [u8],
    /// The key that the copy gets.
    pub to: &'a [u8],
    /// REPLACE: whatever the target was.
    pub replace: bool,
}

fields!(Copy<'a> = 315 { from: Key, to: Key, replace: Flag });

impl<'a> Definition<'a> for Copy<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "copy",
        kind: CommandKind::UPDATE,
        arity: -3,
        keys: KeyPositions::TWO,
        key_flags: &[&["RO", "access"], &["OW", "update"]],
        flags: &["write", "denyoom"],
        categories: &["@keyspace", "@write", "@slow"],
        since: "6.2.0",
        summary: "Copies the value of a key to another key.",
        parser: |_, words| parse(words),
        ..super::ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Two(self.from, self.to)
    }
}

/// COPY with DB, which names the database of the target. It may be that of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyAcross<'a> {
    /// The key that is copied.
    pub from: &'a [u8],
    /// The key that the copy gets.
    pub to: &'a [u8],
    /// The database of that.
    pub database: Database,
    /// REPLACE: whatever the target was.
    pub replace: bool,
}

fields!(CopyAcross<'a> = 329 { from: Key, to: Key, database: DatabaseNumber, replace: Flag });

impl<'a> Definition<'a> for CopyAcross<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Across { from: self.from, to: self.to, database: self.database }
    }
}

fn parse(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    let (from, to, mut replace, mut other) = (words[1], words[2], false, None);
    let mut options = words[3..].iter();
    while let Some(option) = options.next() {
        if is(option, "replace") {
            replace = true;
        } else if is(option, "db") {
            other = Some(database(options.next().ok_or(CommandError::Syntax)?)?);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    match other {
        Some(database) => Ok(CopyAcross { from, to, database, replace }.into()),
        None if from == to => Err(CommandError::SameKey),
        None => Ok(Copy { from, to, replace }.into()),
    }
}

impl<'a> UpdateCommand<'a> for Copy<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        VALUE_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let copy = copy_of(keys, self.from);
        put_copy(keys, self.to, copy, self.replace, reply);
        Ok(())
    }
}

impl<'a> UpdateCommand<'a> for CopyAcross<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        VALUE_WORK
    }

    /// It concerns two databases: see [`UpdateCommand::apply_to`].
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::SameObject)
    }

    fn apply_to<D: DatabasesMut>(
        &self,
        databases: &mut D,
        database: Database,
        _now_ms: u64,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        if database == self.database && self.from == self.to {
            return Err(ExecutionError::SameObject);
        }
        let copy = copy_of(databases.database(database), self.from);
        put_copy(databases.database_mut(self.database), self.to, copy, self.replace, reply);
        Ok(())
    }
}

/// A clone of a key's value, and its expiry, if it exists.
fn copy_of<K: Keys>(keys: &K, key: &[u8]) -> Option<(Value, Expiry)> {
    keys.get(key).map(|found| (found.to_value(), found.expiry()))
}

/// Gives a key the copy, if there is one and it may. The key is looked at in any case: what the answer depends on must not
/// depend on what is found.
fn put_copy<K: KeysMut>(
    keys: &mut K,
    key: &[u8],
    copy: Option<(Value, Expiry)>,
    replace: bool,
    reply: &mut Vec<u8>,
) {
    let is_taken = keys.get(key).is_some();
    match copy {
        Some((value, expiry)) if replace || !is_taken => {
            notify_replacement(keys, key);
            store_value(keys, key, value, expiry);
            keys.notify(KeyEvent::CopyTo, key);
            put_integer(reply, 1);
        }
        _ => put_integer(reply, 0),
    }
}
