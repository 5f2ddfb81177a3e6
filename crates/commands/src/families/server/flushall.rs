//! FLUSHALL and FLUSHDB.

use crate::access::{DatabasesMut, KeyEvent, KeysMut};
use crate::encoding::fields;
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec};
use crate::reply::put_ok;
use crate::words::{Words, is};
use syros_types::Database;

/// FLUSHALL: removes the keys of all databases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushAll;

/// FLUSHDB: removes the keys of one database. To older builds, which know one database only, it is FLUSHALL as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushDb;

fields!(FlushAll = 375 {});
fields!(FlushDb = 48 {});

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    kind: CommandKind::MERGE,
    arity: -1,
    flags: &["write"],
    categories: &["@keyspace", "@write", "@slow", "@dangerous"],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    since: "1.0.0",
    ..super::ROW
};

impl<'a> Definition<'a> for FlushAll {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "flushall",
        summary: "Deletes all keys of all databases.",
        parser: |_, words| checked(words, FlushAll.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

impl<'a> Definition<'a> for FlushDb {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "flushdb",
        summary: "Deletes all keys of the database.",
        parser: |_, words| checked(words, FlushDb.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

/// The command, if nothing but a mode follows its name.
fn checked<'a>(words: Words<'_>, command: Command<'a>) -> Result<Command<'a>, CommandError> {
    match &words[1..] {
        [] => Ok(command),
        [mode] if is(mode, "async") || is(mode, "sync") => Ok(command),
        _ => Err(CommandError::Syntax),
    }
}

impl<'a> UpdateCommand<'a> for FlushAll {
    fn answers_ok(&self) -> bool {
        true
    }

    /// It concerns all databases: see [`UpdateCommand::apply_to`].
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::Malformed)
    }

    fn apply_to<D: DatabasesMut>(
        &self,
        databases: &mut D,
        _database: Database,
        _now_ms: u64,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        databases.clear_all();
        databases.database_mut(Database::FIRST).notify(KeyEvent::Flushed, b"");
        put_ok(reply);
        Ok(())
    }
}

impl<'a> UpdateCommand<'a> for FlushDb {
    fn answers_ok(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        keys.clear();
        keys.notify(KeyEvent::Flushed, b"");
        put_ok(reply);
        Ok(())
    }
}
