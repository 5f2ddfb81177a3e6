//! HSTRLEN.

use super::{FAST_READ, hash_of};
use crate::access::Keys;
use crate::encoding::{Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;

/// HSTRLEN: 0 if there is no such field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HStrLen<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The field whose value is measured.
    pub field: &'a [u8],
}

fields!(HStrLen<'a> = 132 { key: Key, field: Value });

impl<'a> Definition<'a> for HStrLen<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hstrlen",
        arity: 3,
        key_flags: &[&["RO"]],
        since: "3.2.0",
        summary: "Returns the length of the value of a field of a hash.",
        parser: |_, words| Ok(HStrLen { key: words[1], field: words[2] }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for HStrLen<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let value = hash_of(keys, found.as_ref())?.and_then(|hash| hash.get(self.field));
        put_integer(reply, value.map_or(0, <[u8]>::len) as i64);
        Ok(())
    }
}
