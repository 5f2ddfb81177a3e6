//! SREM.

use super::FAST_UPDATE;
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::elements;
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use syros_values::Set;

/// SREM: answers how many of the members there were. With its last member the key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SRem<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The members.
    pub members: Arguments<'a>,
}

fields!(SRem<'a> = 59 { key: Key, members: Elements<1> });

impl<'a> Definition<'a> for SRem<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "srem",
        arity: -3,
        key_flags: &[&["RW", "delete"]],
        summary: "Removes members of a set, and the key with the last of them.",
        parser: |_, words| Ok(SRem { key: words[1], members: elements(words, 1)? }.into()),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for SRem<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let removed = keys.edit_collection(self.key, |set: &mut Set| {
            self.members.iter().filter(|member| set.remove(member)).count()
        })?;
        if removed > 0 {
            keys.notify_removal(KeyEvent::SRem, self.key);
        }
        put_integer(reply, removed as i64);
        Ok(())
    }
}
