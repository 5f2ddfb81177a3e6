//! LSET.

use super::SLOW_GROWING_UPDATE;
use super::index::ListIndex;
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, Value, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::specification::CommandSpec;
use crate::reply::put_ok;
use syros_values::List;

/// LSET: answers OK, or an error if there is no such element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LSet<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where the element is.
    pub index: ListIndex,
    /// The element that replaces it.
    pub element: &'a [u8],
}

fields!(LSet<'a> = 78 { key: Key, index: ListIndex, element: Value });

impl<'a> Definition<'a> for LSet<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "lset",
        arity: 4,
        key_flags: &[&["RW", "update"]],
        summary: "Replaces an element of a list by its index.",
        parser: |_, words| {
            Ok(LSet { key: words[1], index: ListIndex::parse(words[2]), element: words[3] }.into())
        },
        ..SLOW_GROWING_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for LSet<'a> {
    fn confirms(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        keys.edit_collection(self.key, |list: &mut List| {
            if list.is_empty() {
                return Err(ExecutionError::NoSuchKey);
            }
            let rank = self.index.rank(list.len())?.ok_or(ExecutionError::IndexOutOfRange)?;
            list.set(rank, self.element);
            Ok(())
        })??;
        keys.notify(KeyEvent::LSet, self.key);
        put_ok(reply);
        Ok(())
    }
}
