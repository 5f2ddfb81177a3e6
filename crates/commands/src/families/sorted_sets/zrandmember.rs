//! ZRANDMEMBER.

use super::score::put_member;
use super::{SLOW_READ, sorted_set_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::draws::{Draws, Ranked};
use crate::families::specification::CommandSpec;
use syros_values::{Score, SortedSet};

/// ZRANDMEMBER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZRandMember<'a> {
    /// The key.
    pub key: &'a [u8],
    /// How many members are drawn.
    pub draws: Draws,
}

fields!(ZRandMember<'a> = 221 { key: Key, draws: Draws });

impl<'a> Definition<'a> for ZRandMember<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zrandmember",
        arity: -2,
        tips: &["nondeterministic_output"],
        since: "6.2.0",
        summary: "Returns members of a sorted set that are drawn by chance.",
        parser: |_, words| {
            let draws = Draws::parse(&words[2..], "withscores")?;
            Ok(ZRandMember { key: words[1], draws }.into())
        },
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them, if it is not one.
    fn values(&self) -> u32 {
        1
    }
}

impl Ranked for SortedSet {
    type Element<'a> = (&'a [u8], Score);

    fn count(&self) -> u64 {
        self.len()
    }

    fn nth(&self, rank: u64) -> Option<Self::Element<'_>> {
        self.nth(rank)
    }

    fn all(&self) -> impl Iterator<Item = Self::Element<'_>> {
        self.iter()
    }

    fn put(reply: &mut Vec<u8>, member: Self::Element<'_>, with_value: bool) {
        put_member(reply, member, with_value);
    }
}

impl ReadCommand for ZRandMember<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        self.draws.read(keys, sorted_set_of(found.as_ref())?, view, reply)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        self.draws.work_on(sorted_set_of(found.as_ref()).ok().flatten())
    }
}
