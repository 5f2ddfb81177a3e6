//! LTRIM.

use super::SLOW_UPDATE;
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, Signed, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::ranks::ranks_of;
use crate::families::specification::CommandSpec;
use crate::reply::put_ok;
use crate::words::integer;
use syros_values::List;

/// LTRIM: answers OK. A key of which nothing is left goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LTrim<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// The index of the first element that stays; negative ones count from the end.
    pub start: i64,
    /// The index of the last element that stays.
    pub stop: i64,
}

fields!(LTrim<'a> = 76 { key: Key, start: Signed, stop: Signed });

impl<'a> Definition<'a> for LTrim<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "ltrim",
        arity: 4,
        key_flags: &[&["RW", "delete"]],
        summary: "Removes all elements of a list but those from one index to another.",
        parser: |_, words| {
            let (start, stop) = (integer(words[2])?, integer(words[3])?);
            Ok(LTrim { key: words[1], start, stop }.into())
        },
        ..SLOW_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

/// Its OK says that the key had no value of another kind: it does not answer the same in every state.
impl<'a> UpdateCommand<'a> for LTrim<'a> {
    fn confirms(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let existed = keys.edit_collection(self.key, |list: &mut List| {
            let existed = !list.is_empty();
            let kept = ranks_of(self.start, self.stop, list.len());
            list.remove_range(kept.end..list.len());
            list.remove_range(0..kept.start);
            existed
        })?;
        if existed {
            keys.notify_removal(KeyEvent::LTrim, self.key);
        }
        put_ok(reply);
        Ok(())
    }
}
