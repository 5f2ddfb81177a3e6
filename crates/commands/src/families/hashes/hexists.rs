//! HEXISTS.

use super::{FAST_READ, hash_of};
use crate::access::Keys;
use crate::encoding::{Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;

/// HEXISTS: answers 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HExists<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The field that is looked for.
    pub field: &'a [u8],
}

fields!(HExists<'a> = 131 { key: Key, field: Value });

impl<'a> Definition<'a> for HExists<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hexists",
        arity: 3,
        key_flags: &[&["RO"]],
        summary: "Says whether a hash has a field.",
        parser: |_, words| Ok(HExists { key: words[1], field: words[2] }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for HExists<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let exists = hash_of(keys, found.as_ref())?.is_some_and(|hash| hash.get(self.field).is_some());
        put_integer(reply, i64::from(exists));
        Ok(())
    }
}
