//! HGET.

use super::{FAST_READ, hash_of};
use crate::access::Keys;
use crate::encoding::{Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::put_optional;
use crate::families::specification::CommandSpec;

/// HGET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HGet<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The field whose value is answered.
    pub field: &'a [u8],
}

fields!(HGet<'a> = 15 { key: Key, field: Value });

impl<'a> Definition<'a> for HGet<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hget",
        arity: 3,
        summary: "Returns the value of a field of a hash.",
        parser: |_, words| Ok(HGet { key: words[1], field: words[2] }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for HGet<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        put_optional(reply, hash_of(keys, found.as_ref())?.and_then(|hash| hash.get(self.field)));
        Ok(())
    }
}
