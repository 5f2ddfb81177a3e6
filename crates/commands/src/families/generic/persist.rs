//! PERSIST.

use super::{ROW, persist};
use crate::access::KeysMut;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;

/// PERSIST: answers 1 if the key had an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persist<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(Persist<'a> = 47 { key: Key });

impl<'a> Definition<'a> for Persist<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "persist",
        kind: CommandKind::UPDATE,
        arity: 2,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "update"]],
        flags: &["write", "fast"],
        categories: &["@keyspace", "@write", "@fast"],
        since: "2.2.0",
        summary: "Removes the expiry of a key.",
        parser: |_, words| Ok(Persist { key: words[1] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for Persist<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, i64::from(persist(keys, self.key)));
        Ok(())
    }
}
