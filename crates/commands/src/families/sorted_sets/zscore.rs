//! ZSCORE.

use super::score::put_optional_score;
use super::{FAST_READ, sorted_set_of};
use crate::access::Keys;
use crate::encoding::{Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;

/// ZSCORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZScore<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The member whose score is answered.
    pub member: &'a [u8],
}

fields!(ZScore<'a> = 23 { key: Key, member: Value });

impl<'a> Definition<'a> for ZScore<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zscore",
        arity: 3,
        summary: "Returns the score of a member of a sorted set.",
        parser: |_, words| Ok(ZScore { key: words[1], member: words[2] }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for ZScore<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        put_optional_score(reply, sorted_set_of(found.as_ref())?.and_then(|set| set.score(self.member)));
        Ok(())
    }
}
