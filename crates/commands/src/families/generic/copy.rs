//! COPY.

use super::store_value;
use crate::access::{EntryRef as _, KeysMut};
use crate::encoding::{Flag, Key, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{
    Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand, VALUE_WORK,
};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::{Words, integer, is};

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

fn parse(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    let (from, to, mut replace) = (words[1], words[2], false);
    let mut options = words[3..].iter();
    while let Some(option) = options.next() {
        if is(option, "replace") {
            replace = true;
        } else if is(option, "db") {
            check_database(options.next().ok_or(CommandError::Syntax)?)?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if from == to { Err(CommandError::SameKey) } else { Ok(Copy { from, to, replace }.into()) }
}

/// There is one database, number 0.
fn check_database(word: &[u8]) -> Result<(), CommandError> {
    match i32::try_from(integer(word)?) {
        Ok(0) => Ok(()),
        Ok(_) => Err(CommandError::DatabaseOutOfRange),
        Err(_) => Err(CommandError::DatabaseNotShort),
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
        let source = keys.get(self.from).map(|found| (found.to_value(), found.expiry()));
        let is_taken = keys.get(self.to).is_some();
        match source {
            Some((value, expiry)) if self.replace || !is_taken => {
                store_value(keys, self.to, value, expiry);
                put_integer(reply, 1);
            }
            _ => put_integer(reply, 0),
        }
        Ok(())
    }
}
