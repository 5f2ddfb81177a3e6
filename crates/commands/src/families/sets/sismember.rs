//! SISMEMBER.

use super::{FAST_READ, set_of};
use crate::access::Keys;
use crate::encoding::{Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;

/// SISMEMBER: answers 1 or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SIsMember<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The member that is looked for.
    pub member: &'a [u8],
}

fields!(SIsMember<'a> = 20 { key: Key, member: Value });

impl<'a> Definition<'a> for SIsMember<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "sismember",
        arity: 3,
        summary: "Says whether a set has a member.",
        parser: |_, words| Ok(SIsMember { key: words[1], member: words[2] }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for SIsMember<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let is_member = set_of(found.as_ref())?.is_some_and(|set| set.contains(self.member));
        put_integer(reply, i64::from(is_member));
        Ok(())
    }
}
