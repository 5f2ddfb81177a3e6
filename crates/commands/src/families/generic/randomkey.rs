//! RANDOMKEY.

use super::ROW;
use crate::access::Keys;
use crate::encoding::fields;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec};
use crate::reply::{put_bulk, put_nil};
use syros_types::Prng;

/// RANDOMKEY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomKey;

fields!(RandomKey = 13 {});

impl<'a> Definition<'a> for RandomKey {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "randomkey",
        kind: CommandKind::READ,
        arity: 1,
        flags: &["readonly"],
        categories: &["@keyspace", "@read", "@slow"],
        tips: &["request_policy:all_shards", "nondeterministic_output"],
        since: "1.0.0",
        summary: "Returns some key.",
        parser: |_, _| Ok(RandomKey.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

impl ReadCommand for RandomKey {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let mut prng = Prng::new(view.draw ^ reply.len() as u64);
        let start = reply.len();
        if !keys.random(&mut prng, |key| put_bulk(reply, key)) {
            reply.truncate(start);
            put_nil(reply);
        }
        Ok(())
    }
}
