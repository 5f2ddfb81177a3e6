//! GETDEL.

use super::{ROW, put_value};
use crate::access::KeysMut;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions, LookupReply};

/// GETDEL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetDel<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(GetDel<'a> = 37 { key: Key });

impl<'a> Definition<'a> for GetDel<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "getdel",
        kind: CommandKind::UPDATE,
        arity: 2,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "access", "delete"]],
        flags: &["write", "fast"],
        categories: &["@write", "@string", "@fast"],
        since: "6.2.0",
        summary: "Returns the value of a key and deletes the key.",
        lookup: LookupReply::Value,
        parser: |_, words| Ok(GetDel { key: words[1] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn values(&self) -> u32 {
        1
    }
}

impl<'a> UpdateCommand<'a> for GetDel<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_value(keys, self.key, reply)?;
        keys.delete(self.key);
        Ok(())
    }
}
