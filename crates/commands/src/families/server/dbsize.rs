//! DBSIZE.

use super::ROW;
use crate::access::Keys;
use crate::encoding::fields;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec};
use crate::reply::put_integer;

/// DBSIZE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbSize;

fields!(DbSize = 14 {});

impl<'a> Definition<'a> for DbSize {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "dbsize",
        kind: CommandKind::READ,
        arity: 1,
        flags: &["readonly", "fast"],
        categories: &["@keyspace", "@read", "@fast"],
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        since: "1.0.0",
        summary: "Returns the number of keys.",
        parser: |_, _| Ok(DbSize.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

impl ReadCommand for DbSize {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, keys.count() as i64);
        Ok(())
    }
}
