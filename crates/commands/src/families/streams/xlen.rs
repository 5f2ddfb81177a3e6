//! XLEN.

use super::{SLOW_READ, stream_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandSpec, LookupReply};
use crate::reply::put_integer;
use syros_values::Stream;

/// XLEN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XLen<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(XLen<'a> = 341 { key: Key });

impl<'a> Definition<'a> for XLen<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xlen",
        arity: 2,
        key_flags: &[&["RO"]],
        flags: &["readonly", "fast"],
        categories: &["@read", "@stream", "@fast"],
        lookup: LookupReply::Number { miss: 0 },
        summary: "Returns the number of entries of a stream.",
        parser: |_, words| Ok(XLen { key: words[1] }.into()),
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for XLen<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        put_integer(reply, stream_of(found.as_ref())?.map_or(0, Stream::len) as i64);
        Ok(())
    }
}
