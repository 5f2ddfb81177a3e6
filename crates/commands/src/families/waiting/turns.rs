//! Whose turn it is.

use super::action::length_of;
use super::queue::{Standing, turns_of};
use crate::access::Keys;
use crate::encoding::{Flag, Key, Seed, Unsigned, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_integer};

/// Answers how many of this owner wait for elements of a key, and then the numbers of those whose turn it is, as an array.
/// No client can send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns<'a> {
    /// The node, in one of its lives: see [`WaiterId::owner`](super::WaiterId::owner).
    pub owner: u64,
    /// Members, a bit for each, that the node has lost: who waits there does not count.
    pub absent: u64,
    /// True if elements of a list are waited for, false if members of a sorted set.
    pub is_list: bool,
    /// The key.
    pub key: &'a [u8],
}

fields!(Turns<'a> = 330 { owner: Seed, absent: Unsigned, is_list: Flag, key: Key });

impl<'a> Definition<'a> for Turns<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for Turns<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let now_ms = view.now.as_millis();
        let has_gone = |one: Standing| one.has_gone(now_ms, self.absent, self.owner);
        let length = length_of(keys, self.key, self.is_list).unwrap_or(0);
        let (standing, turns) = turns_of(keys, (self.key, self.is_list), has_gone, (self.owner, length));
        put_array(reply, 1 + turns.len());
        put_integer(reply, standing.cast_signed());
        turns.iter().for_each(|sequence| put_integer(reply, sequence.cast_signed()));
        Ok(())
    }
}
