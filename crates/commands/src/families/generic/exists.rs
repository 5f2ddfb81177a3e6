//! EXISTS and TOUCH.

use super::ROW;
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{List, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions, LookupReply};
use crate::reply::put_integer;
use crate::words::arguments;

/// EXISTS, and TOUCH, which answers the same: a key named twice counts twice. Both count as a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exists<'a> {
    /// The keys.
    pub keys: Arguments<'a>,
}

fields!(Exists<'a> = 5 { keys: List<1> });

/// What the rows have in common.
const COUNT: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    arity: -2,
    keys: KeyPositions::ALL,
    key_flags: &[&["RO"]],
    flags: &["readonly", "fast"],
    categories: &["@keyspace", "@read", "@fast"],
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    lookup: LookupReply::Count,
    parser: |_, words| Ok(Exists { keys: arguments(words) }.into()),
    ..ROW
};

impl<'a> Definition<'a> for Exists<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "exists",
            since: "1.0.0",
            summary: "Counts how many of the named keys exist.",
            ..COUNT
        },
        CommandSpec {
            name: "touch",
            since: "3.2.1",
            summary: "Counts how many of the named keys exist, which counts as a use of them.",
            ..COUNT
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

impl ReadCommand for Exists<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, self.keys.iter().filter(|key| keys.get(key).is_some()).count() as i64);
        Ok(())
    }
}
