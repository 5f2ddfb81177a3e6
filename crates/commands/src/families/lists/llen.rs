//! LLEN.

use super::{ROW, list_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, LookupReply};
use crate::reply::put_integer;
use syros_values::List;

/// LLEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LLen<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(LLen<'a> = 29 { key: Key });

impl<'a> Definition<'a> for LLen<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "llen",
        kind: CommandKind::READ,
        arity: 2,
        key_flags: &[&["RO"]],
        flags: &["readonly", "fast"],
        categories: &["@read", "@list", "@fast"],
        summary: "Returns the number of elements of a list.",
        lookup: LookupReply::Number { miss: 0 },
        parser: |_, words| Ok(LLen { key: words[1] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for LLen<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, list_of(keys.get(self.key).as_ref())?.map_or(0, List::len) as i64);
        Ok(())
    }
}
