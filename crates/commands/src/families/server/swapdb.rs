//! SWAPDB.

use super::ROW;
use crate::access::{DatabasesMut, KeyEvent, KeysMut};
use crate::encoding::{DatabaseNumber, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec};
use crate::reply::put_ok;
use crate::words::{checked_database, small_integer};
use syros_types::Database;

/// SWAPDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapDb {
    /// One database.
    pub first: Database,
    /// The other; it may be the same.
    pub second: Database,
}

fields!(SwapDb = 374 { first: DatabaseNumber, second: DatabaseNumber });

impl<'a> Definition<'a> for SwapDb {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "swapdb",
        kind: CommandKind::MERGE,
        arity: 3,
        flags: &["write", "fast"],
        categories: &["@keyspace", "@write", "@fast", "@dangerous"],
        since: "4.0.0",
        summary: "Has two databases change their keys.",
        parser: |_, words| {
            let first = small_integer(words[1]).ok_or(CommandError::InvalidFirstDatabase)?;
            let second = small_integer(words[2]).ok_or(CommandError::InvalidSecondDatabase)?;
            Ok(SwapDb { first: checked_database(first)?, second: checked_database(second)? }.into())
        },
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

impl<'a> UpdateCommand<'a> for SwapDb {
    fn answers_ok(&self) -> bool {
        true
    }

    /// It concerns two databases: see [`UpdateCommand::apply_to`].
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
        databases.swap(self.first, self.second);
        databases.database_mut(Database::FIRST).notify(KeyEvent::Flushed, b"");
        put_ok(reply);
        Ok(())
    }
}
