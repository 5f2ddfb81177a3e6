//! ZCARD.

use super::{FAST_READ, sorted_set_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandSpec, LookupReply};
use crate::reply::put_integer;
use syros_values::SortedSet;

/// ZCARD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZCard<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(ZCard<'a> = 26 { key: Key });

impl<'a> Definition<'a> for ZCard<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zcard",
        arity: 2,
        key_flags: &[&["RO"]],
        summary: "Returns the number of members of a sorted set.",
        lookup: LookupReply::Number { miss: 0 },
        parser: |_, words| Ok(ZCard { key: words[1] }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for ZCard<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, sorted_set_of(keys.get(self.key).as_ref())?.map_or(0, SortedSet::len) as i64);
        Ok(())
    }
}
