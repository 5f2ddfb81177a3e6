//! DEL and UNLINK.

use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::encoding::{List, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::arguments;

/// DEL and UNLINK: answers how many of the keys there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Del<'a> {
    /// The keys.
    pub keys: Arguments<'a>,
}

fields!(Del<'a> = 43 { keys: List<1> });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    arity: -2,
    keys: KeyPositions::ALL,
    key_flags: &[&["RM", "delete"]],
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    summary: "Deletes keys.",
    parser: |_, words| Ok(Del { keys: arguments(words) }.into()),
    ..super::ROW
};

impl<'a> Definition<'a> for Del<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "del",
            flags: &["write"],
            categories: &["@keyspace", "@write", "@slow"],
            since: "1.0.0",
            ..ROW
        },
        CommandSpec {
            name: "unlink",
            flags: &["write", "fast"],
            categories: &["@keyspace", "@write", "@fast"],
            since: "4.0.0",
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

impl<'a> UpdateCommand<'a> for Del<'a> {
    fn overwrites_one_key(&self) -> bool {
        self.keys.len() == 1
    }

    fn counts(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let mut removed = 0;
        for key in self.keys {
            if keys.get(key).is_some() {
                keys.delete(key);
                removed += 1;
            }
        }
        put_integer(reply, removed);
        Ok(())
    }
}
