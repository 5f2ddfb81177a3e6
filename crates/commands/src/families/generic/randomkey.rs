//! RANDOMKEY.

use super::ROW;
use crate::access::{Keys, is_hidden};
use crate::encoding::fields;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec};
use crate::reply::{put_bulk, put_nil};
use syros_types::Prng;

/// How often a key is drawn, as long as those drawn are hidden.
const DRAWS: u32 = 64;

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
        // Hidden keys are few, unless there are hardly any others.
        for _ in 0..DRAWS {
            let mut is_shown = true;
            let found = keys.random(&mut prng, |key| {
                is_shown = !is_hidden(key);
                if is_shown {
                    put_bulk(reply, key);
                }
            });
            if !found {
                break;
            }
            if is_shown {
                return Ok(());
            }
        }
        put_nil(reply);
        Ok(())
    }
}
