//! SADD.

use super::FAST_UPDATE;
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::{ELEMENT_BYTES, elements};
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use syros_values::Set;

/// SADD: answers how many of the members are new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SAdd<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// The members.
    pub members: Arguments<'a>,
}

fields!(SAdd<'a> = 58 { key: Key, members: Elements<1> });

impl<'a> Definition<'a> for SAdd<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "sadd",
        arity: -3,
        key_flags: &[&["RW", "insert"]],
        flags: &["write", "denyoom", "fast"],
        summary: "Adds members to a set; creates the key if it does not exist.",
        parser: |_, words| Ok(SAdd { key: words[1], members: elements(words, 1)? }.into()),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for SAdd<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + self.members.len() * ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let new = keys.edit_collection(self.key, |set: &mut Set| {
            self.members.iter().filter(|member| set.insert(member)).count()
        })?;
        if new > 0 {
            keys.notify(KeyEvent::SAdd, self.key);
        }
        put_integer(reply, new as i64);
        Ok(())
    }
}
