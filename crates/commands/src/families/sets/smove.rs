//! SMOVE.

use super::{FAST_UPDATE, set_of};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::reply::put_integer;
use syros_values::Set;

/// SMOVE: answers 1, or 0 if the member is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SMove<'a> {
    /// The set that has the member.
    pub source: &'a [u8],
    /// The set that gets it, and need not exist.
    pub destination: &'a [u8],
    /// The member.
    pub member: &'a [u8],
}

fields!(SMove<'a> = 61 { source: Key, destination: Key, member: Value });

impl<'a> Definition<'a> for SMove<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "smove",
        arity: 4,
        keys: KeyPositions::TWO,
        key_flags: &[&["RW", "access", "delete"], &["RW", "insert"]],
        summary: "Moves a member from one set to another.",
        parser: |_, words| Ok(SMove { source: words[1], destination: words[2], member: words[3] }.into()),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Two(self.source, self.destination)
    }
}

impl<'a> UpdateCommand<'a> for SMove<'a> {
    /// The member is there already, but the destination may be a new key.
    fn growth(&self, _encoded: usize) -> usize {
        self.destination.len() + KEY_BYTES
    }

    /// Without a source the kind of the destination does not matter, as in Redis.
    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.source);
        let Some(source) = set_of(found.as_ref())? else {
            put_integer(reply, 0);
            return Ok(());
        };
        let is_member = source.contains(self.member);
        drop(found);
        set_of(keys.get(self.destination).as_ref())?;
        if is_member && self.source != self.destination {
            keys.edit_collection(self.source, |set: &mut Set| set.remove(self.member))?;
            keys.notify_removal(KeyEvent::SRem, self.source);
            let is_new = keys.edit_collection(self.destination, |set: &mut Set| set.insert(self.member))?;
            if is_new {
                keys.notify(KeyEvent::SAdd, self.destination);
            }
        }
        put_integer(reply, i64::from(is_member));
        Ok(())
    }
}
