//! HDEL.

use super::ROW;
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::elements;
use crate::families::specification::{CommandKind, CommandSpec};
use crate::reply::put_integer;
use syros_values::Hash;

/// HDEL: answers how many of the fields there were. With its last field the key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HDel<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The fields.
    pub fields: Arguments<'a>,
}

fields!(HDel<'a> = 51 { key: Key, fields: Elements<1> });

impl<'a> Definition<'a> for HDel<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hdel",
        kind: CommandKind::UPDATE,
        arity: -3,
        key_flags: &[&["RW", "delete"]],
        flags: &["write", "fast"],
        categories: &["@write", "@hash", "@fast"],
        summary: "Deletes fields of a hash, and the key with the last of them.",
        parser: |_, words| Ok(HDel { key: words[1], fields: elements(words, 1)? }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for HDel<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let removed = keys.edit_collection(self.key, |hash: &mut Hash| {
            self.fields.iter().filter(|field| hash.remove_at(field, now_ms)).count()
        })?;
        if removed > 0 {
            keys.notify_removal(KeyEvent::HDel, self.key);
        }
        put_integer(reply, removed as i64);
        Ok(())
    }
}
