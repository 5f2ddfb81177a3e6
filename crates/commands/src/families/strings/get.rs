//! GET.

use super::{ROW, put_value};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions, LookupReply};

/// GET; also GETEX without options, which changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Get<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(Get<'a> = 1 { key: Key });

impl<'a> Definition<'a> for Get<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "get",
        kind: CommandKind::READ,
        arity: 2,
        keys: KeyPositions::ONE,
        key_flags: &[&["RO", "access"]],
        flags: &["readonly", "fast"],
        categories: &["@read", "@string", "@fast"],
        since: "1.0.0",
        summary: "Returns the value of a key.",
        lookup: LookupReply::Value,
        parser: |_, words| Ok(Get { key: words[1] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for Get<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_value(keys, self.key, reply)
    }
}
