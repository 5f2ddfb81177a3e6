//! What commands need of all databases of a store.

use super::{Keys, KeysMut};
use crate::effects::Effects;
use crate::programs::Programs;
use syros_types::Database;

/// The databases of a store, to be read.
pub trait Databases {
    /// The keys of a database.
    type Keys: Keys;

    /// The keys of this database. The caller is done with them before it asks for another: an engine may have one place for
    /// all of them.
    fn database(&self, database: Database) -> &Self::Keys;

    /// The scripts and libraries that are loaded.
    fn programs(&self) -> Programs;
}

/// The databases of a store, whose keys can be changed.
pub trait DatabasesMut: Databases<Keys: KeysMut> {
    /// The keys of this database, to be changed.
    fn database_mut(&mut self, database: Database) -> &mut Self::Keys;

    /// Gives value and expiry of a key that exists to the key of the same name in another database, which may exist.
    fn move_key(&mut self, name: &[u8], from: Database, to: Database);

    /// Has two databases, which may be the same, change their keys.
    fn swap(&mut self, first: Database, second: Database);

    /// Removes all keys of all databases.
    fn clear_all(&mut self);

    /// Replaces what is loaded. Only operations on all keys do that.
    fn set_programs(&mut self, programs: Programs);

    /// Has versions of the keys of all databases recorded from the present log entry on, if they are not.
    fn record_versions(&mut self);

    /// Where the effects of updates are collected; `None` if nobody compares them.
    fn effects_mut(&mut self) -> Option<&mut Effects>;
}
