//! SCARD.

use super::{FAST_READ, set_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandSpec, LookupReply};
use crate::reply::put_integer;
use syros_values::Set;

/// SCARD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SCard<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(SCard<'a> = 22 { key: Key });

impl<'a> Definition<'a> for SCard<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "scard",
        arity: 2,
        summary: "Returns the number of members of a set.",
        lookup: LookupReply::Number { miss: 0 },
        parser: |_, words| Ok(SCard { key: words[1] }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for SCard<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, set_of(keys.get(self.key).as_ref())?.map_or(0, Set::len) as i64);
        Ok(())
    }
}
