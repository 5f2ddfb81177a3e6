//! Databases of the twin.

use super::{Contents, Twin, error, one_if};
use syros_commands::families::{CopyAcross, Move, SwapDb};
use syros_commands::{Command, Operation, Reply};
use syros_types::Database;

impl Twin {
    /// Executes what concerns several databases; `None` of all else.
    pub(super) fn update_databases(&mut self, operation: &Operation<'_>) -> Option<Reply> {
        Some(match operation.command {
            Command::FlushAll(_) => {
                self.keys.clear();
                self.others.clear();
                Reply::Ok
            }
            Command::SwapDb(SwapDb { first, second }) => {
                let keys = std::mem::take(self.of(first));
                let others = std::mem::replace(self.of(second), keys);
                if first == second {
                    // Both were taken from one place.
                    return Some(Reply::Ok);
                }
                *self.of(first) = others;
                Reply::Ok
            }
            Command::Move(Move { to, .. }) if to == operation.database => {
                error("ERR source and destination objects are the same")
            }
            Command::Move(Move { key, to }) => {
                let is_free = !self.of(to).contains_key(key);
                let moved = if is_free { self.of(operation.database).remove(key) } else { None };
                let has_moved = moved.is_some();
                moved.map(|moved| self.of(to).insert(key.to_vec(), moved));
                one_if(has_moved)
            }
            Command::CopyAcross(CopyAcross { from, to, database, .. })
                if database == operation.database && from == to =>
            {
                error("ERR source and destination objects are the same")
            }
            Command::CopyAcross(CopyAcross { from, to, database, replace }) => {
                let copy = self.of(operation.database).get(from).cloned();
                let is_free = replace || !self.of(database).contains_key(to);
                let copy = copy.filter(|_| is_free);
                let is_copied = copy.is_some();
                copy.map(|copy| self.of(database).insert(to.to_vec(), copy));
                one_if(is_copied)
            }
            _ => return None,
        })
    }

    /// The keys of a database.
    fn of(&mut self, database: Database) -> &mut Contents {
        if database.is_first() { &mut self.keys } else { self.others.entry(database).or_default() }
    }

    /// Has the keys of this database change places with those of the first; doing it again undoes it.
    pub(super) fn exchange(&mut self, database: Database) {
        if !database.is_first() {
            let first = std::mem::take(&mut self.keys);
            self.keys = self.others.insert(database, first).unwrap_or_default();
        }
    }

    /// The keys of all databases.
    pub(super) fn all(&self) -> impl Iterator<Item = (Database, &Contents)> {
        let others = self.others.iter().map(|(database, keys)| (*database, keys));
        std::iter::once((Database::FIRST, &self.keys)).chain(others)
    }
}
