//! LINDEX.

use super::index::ListIndex;
use super::{SLOW_READ, list_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::put_optional;
use crate::families::specification::CommandSpec;

/// LINDEX: answers the element, or nil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LIndex<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where the element is.
    pub index: ListIndex,
}

fields!(LIndex<'a> = 30 { key: Key, index: ListIndex });

impl<'a> Definition<'a> for LIndex<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "lindex",
        arity: 3,
        summary: "Returns an element of a list by its index.",
        parser: |_, words| Ok(LIndex { key: words[1], index: ListIndex::parse(words[2]) }.into()),
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for LIndex<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let element = match list_of(found.as_ref())? {
            Some(list) => self.index.rank(list.len())?.and_then(|rank| list.nth(rank)),
            None => None,
        };
        put_optional(reply, element);
        Ok(())
    }
}
