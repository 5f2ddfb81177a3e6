//! TYPE.

use super::ROW;
use crate::access::{EntryRef as _, Keys};
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions, LookupReply};
use crate::reply::put_simple;

/// TYPE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(Type<'a> = 6 { key: Key });

impl<'a> Definition<'a> for Type<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "type",
        kind: CommandKind::READ,
        arity: 2,
        keys: KeyPositions::ONE,
        key_flags: &[&["RO"]],
        flags: &["readonly", "fast"],
        categories: &["@keyspace", "@read", "@fast"],
        since: "1.0.0",
        summary: "Returns the type of the value of a key.",
        lookup: LookupReply::Type,
        parser: |_, words| Ok(Type { key: words[1] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for Type<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let name = keys.get(self.key).map_or("none", |found| found.kind().name());
        put_simple(reply, name.as_bytes());
        Ok(())
    }
}
