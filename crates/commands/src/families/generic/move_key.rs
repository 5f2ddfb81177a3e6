//! MOVE.

use super::ROW;
use crate::access::{DatabasesMut, KeyEvent, Keys as _, KeysMut};
use crate::encoding::{DatabaseNumber, Key, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::database;
use syros_types::Database;

/// MOVE: answers 0 if there is no such key, or the other database has one of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move<'a> {
    /// The name of the key, in both databases.
    pub key: &'a [u8],
    /// Where it goes.
    pub to: Database,
}

fields!(Move<'a> = 373 { key: Key, to: DatabaseNumber });

impl<'a> Definition<'a> for Move<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "move",
        kind: CommandKind::UPDATE,
        arity: 3,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "access", "update"]],
        flags: &["write", "fast"],
        categories: &["@keyspace", "@write", "@fast"],
        since: "1.0.0",
        summary: "Moves a key to another database.",
        parser: |_, words| Ok(Move { key: words[1], to: database(words[2])? }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Across { from: self.key, to: self.key, database: self.to }
    }
}

impl<'a> UpdateCommand<'a> for Move<'a> {
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
        if database == self.to {
            return Err(ExecutionError::SameObject);
        }
        let exists = |database| databases.database(database).get(self.key).is_some();
        // Both are looked at: what the answer depends on must not depend on what is found.
        let (is_here, is_there) = (exists(database), exists(self.to));
        let moves = is_here && !is_there;
        if moves {
            databases.move_key(self.key, database, self.to);
            databases.database_mut(database).notify(KeyEvent::MoveFrom, self.key);
            databases.database_mut(self.to).notify(KeyEvent::MoveTo, self.key);
        }
        put_integer(reply, i64::from(moves));
        Ok(())
    }
}
