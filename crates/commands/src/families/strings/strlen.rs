//! STRLEN.

use super::{ROW, length};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions, LookupReply};
use crate::reply::put_integer;

/// STRLEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StrLen<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(StrLen<'a> = 3 { key: Key });

impl<'a> Definition<'a> for StrLen<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "strlen",
        kind: CommandKind::READ,
        arity: 2,
        keys: KeyPositions::ONE,
        key_flags: &[&["RO"]],
        flags: &["readonly", "fast"],
        categories: &["@read", "@string", "@fast"],
        since: "2.2.0",
        summary: "Returns the length of the value of a key.",
        lookup: LookupReply::Number { miss: 0 },
        parser: |_, words| Ok(StrLen { key: words[1] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for StrLen<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, length(keys, self.key)?);
        Ok(())
    }
}
