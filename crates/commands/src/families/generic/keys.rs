//! KEYS.

use super::ROW;
use crate::access::{self, Names, is_hidden};
use crate::encoding::{Pattern, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec};
use crate::glob::glob_matches;
use crate::words::pattern;
use core::ops::ControlFlow;

/// KEYS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys<'a> {
    /// What the keys must match.
    pub pattern: &'a [u8],
}

fields!(Keys<'a> = 12 { pattern: Pattern });

impl<'a> Definition<'a> for Keys<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "keys",
        kind: CommandKind::READ,
        arity: 2,
        flags: &["readonly"],
        categories: &["@keyspace", "@read", "@slow", "@dangerous"],
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        since: "1.0.0",
        summary: "Returns all keys that match a pattern.",
        parser: |_, words| Ok(Keys { pattern: pattern(words[1])? }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }

    /// Keys, not values, but any number of them.
    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for Keys<'_> {
    fn read<K: access::Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        // Counted first, since the count goes in front.
        let mut matching = Names::default();
        let start = reply.len();
        keys.each(|key| {
            if glob_matches(self.pattern, key) && !is_hidden(key) {
                matching.push(key);
            }
            if start + matching.reply_bytes() > view.reply_end {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        if start + matching.reply_bytes() > view.reply_end {
            return Err(ExecutionError::ReplyTooLong);
        }
        matching.put(reply);
        Ok(())
    }
}
