//! FLUSHALL and FLUSHDB: there is one database.

use crate::access::KeysMut;
use crate::encoding::fields;
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, Parser};
use crate::reply::put_ok;
use crate::words::is;

/// FLUSHALL and FLUSHDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushAll;

fields!(FlushAll = 48 {});

const PARSER: Parser = |_, words| match &words[1..] {
    [] => Ok(FlushAll.into()),
    [mode] if is(mode, "async") || is(mode, "sync") => Ok(FlushAll.into()),
    _ => Err(CommandError::Syntax),
};

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    kind: CommandKind::MERGE,
    arity: -1,
    flags: &["write"],
    categories: &["@keyspace", "@write", "@slow", "@dangerous"],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    since: "1.0.0",
    parser: PARSER,
    ..super::ROW
};

impl<'a> Definition<'a> for FlushAll {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec { name: "flushall", summary: "Deletes all keys.", ..ROW },
        CommandSpec { name: "flushdb", summary: "Deletes all keys: there is one database.", ..ROW },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

impl<'a> UpdateCommand<'a> for FlushAll {
    fn answers_ok(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        keys.clear();
        put_ok(reply);
        Ok(())
    }
}
