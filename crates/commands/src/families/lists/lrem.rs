//! LREM.

use super::{SEARCH_WORK, SLOW_UPDATE};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, Signed, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use crate::words::integer;
use syros_values::{List, ListEnd};

/// LREM: answers how many elements it has removed. With its last element the key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LRem<'a> {
    /// The key.
    pub key: &'a [u8],
    /// How many are removed at most: from the left, or, if negative, so many from the right; 0 for all.
    pub count: i64,
    /// What those are equal to that are removed.
    pub element: &'a [u8],
}

fields!(LRem<'a> = 77 { key: Key, count: Signed, element: Value });

impl<'a> Definition<'a> for LRem<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "lrem",
        arity: 4,
        key_flags: &[&["RW", "delete"]],
        summary: "Removes the elements of a list that are equal to one.",
        parser: |_, words| Ok(LRem { key: words[1], count: integer(words[2])?, element: words[3] }.into()),
        ..SLOW_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for LRem<'a> {
    fn counts(&self) -> bool {
        true
    }

    /// It goes through the list, whose length only the key knows.
    fn work(&self) -> usize {
        SEARCH_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let end = if self.count < 0 { ListEnd::Right } else { ListEnd::Left };
        let count_max = if self.count == 0 { u64::MAX } else { self.count.unsigned_abs() };
        let removed = keys
            .edit_collection(self.key, |list: &mut List| list.remove_equal(self.element, end, count_max))?;
        if removed > 0 {
            keys.notify_removal(KeyEvent::LRem, self.key);
        }
        put_integer(reply, removed as i64);
        Ok(())
    }
}
