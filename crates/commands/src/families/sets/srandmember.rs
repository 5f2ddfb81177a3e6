//! SRANDMEMBER.

use super::{SLOW_READ, set_of};
use crate::access::Keys;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::draws::{Draws, DrawsOfKeys, Ranked};
use crate::families::specification::CommandSpec;
use crate::reply::put_bulk;
use syros_values::Set;

/// SRANDMEMBER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SRandMember<'a> {
    /// The key.
    pub key: &'a [u8],
    /// How many members are drawn; they have no values.
    pub draws: Draws,
}

fields!(SRandMember<'a> = 191 { key: Key, draws: DrawsOfKeys });

impl<'a> Definition<'a> for SRandMember<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "srandmember",
        arity: -2,
        tips: &["nondeterministic_output"],
        summary: "Returns members of a set that are drawn by chance.",
        parser: |_, words| Ok(SRandMember { key: words[1], draws: Draws::parse_of_keys(&words[2..])? }.into()),
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

impl Ranked for Set {
    type Element<'a> = &'a [u8];

    fn count(&self) -> u64 {
        self.len()
    }

    fn nth(&self, rank: u64) -> Option<&[u8]> {
        self.nth(rank)
    }

    fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.iter()
    }

    fn put(reply: &mut Vec<u8>, member: &[u8], _with_value: bool) {
        put_bulk(reply, member);
    }
}

impl ReadCommand for SRandMember<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        self.draws.read(keys, set_of(found.as_ref())?, view, reply)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        self.draws.work_on(set_of(found.as_ref()).ok().flatten())
    }
}
