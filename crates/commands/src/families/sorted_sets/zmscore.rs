//! ZMSCORE.

use super::score::put_optional_score;
use super::{FAST_READ, sorted_set_of};
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::elements;
use crate::families::specification::CommandSpec;
use crate::reply::put_array;

/// ZMSCORE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZMScore<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The members whose scores are answered.
    pub members: Arguments<'a>,
}

fields!(ZMScore<'a> = 27 { key: Key, members: Elements<1> });

impl<'a> Definition<'a> for ZMScore<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zmscore",
        arity: -3,
        since: "6.2.0",
        summary: "Returns the scores of several members of a sorted set.",
        parser: |_, words| Ok(ZMScore { key: words[1], members: elements(words, 1)? }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for ZMScore<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let set = sorted_set_of(found.as_ref())?;
        put_array(reply, self.members.len());
        for member in self.members {
            put_optional_score(reply, set.and_then(|set| set.score(member)));
        }
        Ok(())
    }
}
