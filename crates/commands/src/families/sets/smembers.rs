//! SMEMBERS.

use super::{SLOW_READ, put_members, set_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_all;
use crate::families::specification::CommandSpec;
use crate::reply::put_set;

/// SMEMBERS: in the order of the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SMembers<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(SMembers<'a> = 21 { key: Key });

impl<'a> Definition<'a> for SMembers<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "smembers",
        arity: 2,
        tips: &["nondeterministic_output_order"],
        summary: "Returns all members of a set.",
        parser: |_, words| Ok(SMembers { key: words[1] }.into()),
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for SMembers<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        match set_of(found.as_ref())? {
            Some(set) => put_members(reply, set, view),
            None => {
                put_set(reply, 0);
                Ok(())
            }
        }
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        work_of_all(keys, core::iter::once(self.key))
    }
}
