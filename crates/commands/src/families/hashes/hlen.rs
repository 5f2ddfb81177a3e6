//! HLEN.

use super::{FAST_READ, hash_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandSpec, LookupReply};
use crate::reply::put_integer;

/// HLEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HLen<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(HLen<'a> = 130 { key: Key });

impl<'a> Definition<'a> for HLen<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hlen",
        arity: 2,
        key_flags: &[&["RO"]],
        summary: "Returns the number of fields of a hash.",
        lookup: LookupReply::Number { miss: 0 },
        parser: |_, words| Ok(HLen { key: words[1] }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for HLen<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, hash_of(keys, keys.get(self.key).as_ref())?.map_or(0, |hash| hash.len()) as i64);
        Ok(())
    }
}
