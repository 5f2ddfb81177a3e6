//! GETBIT.

use super::{FAST_READ, Offset, bit_at, parse_offset};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::families::strings::string_of;
use crate::reply::put_integer;

/// GETBIT: 0 beyond the end of the string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetBit<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Which bit is answered.
    pub offset: u64,
}

fields!(GetBit<'a> = 18 { key: Key, offset: Offset });

impl<'a> Definition<'a> for GetBit<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "getbit",
        arity: 3,
        since: "2.2.0",
        summary: "Returns a bit of the value of a key.",
        parser: |_, words| Ok(GetBit { key: words[1], offset: parse_offset(words[2], 1)? }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for GetBit<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let bytes = string_of(found.as_ref())?.unwrap_or_default();
        put_integer(reply, i64::from(bit_at(bytes, self.offset)));
        Ok(())
    }
}
