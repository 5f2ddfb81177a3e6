//! SMISMEMBER.

use super::{FAST_READ, set_of};
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::elements;
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_integer};

/// SMISMEMBER: answers 1 or 0 for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SMIsMember<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The members that are looked for.
    pub members: Arguments<'a>,
}

fields!(SMIsMember<'a> = 190 { key: Key, members: Elements<1> });

impl<'a> Definition<'a> for SMIsMember<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "smismember",
        arity: -3,
        key_flags: &[&["RO", "access"]],
        since: "6.2.0",
        summary: "Says of several members whether a set has them.",
        parser: |_, words| Ok(SMIsMember { key: words[1], members: elements(words, 1)? }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for SMIsMember<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let set = set_of(found.as_ref())?;
        put_array(reply, self.members.len());
        for member in self.members {
            put_integer(reply, i64::from(set.is_some_and(|set| set.contains(member))));
        }
        Ok(())
    }
}
