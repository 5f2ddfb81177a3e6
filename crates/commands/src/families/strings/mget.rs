//! MGET.

use super::ROW;
use crate::access::{EntryRef as _, Keys};
use crate::arguments::Arguments;
use crate::encoding::{List, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions, LookupReply};
use crate::reply::{put_array, put_bulk, put_nil};
use crate::words::arguments;

/// MGET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MGet<'a> {
    /// The keys.
    pub keys: Arguments<'a>,
}

fields!(MGet<'a> = 2 { keys: List<1> });

impl<'a> Definition<'a> for MGet<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "mget",
        kind: CommandKind::READ,
        arity: -2,
        keys: KeyPositions::ALL,
        key_flags: &[&["RO", "access"]],
        flags: &["readonly", "fast"],
        categories: &["@read", "@string", "@fast"],
        tips: &["request_policy:multi_shard"],
        since: "1.0.0",
        summary: "Returns the values of several keys.",
        lookup: LookupReply::Value,
        parser: |_, words| Ok(MGet { keys: arguments(words) }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }

    fn values(&self) -> u32 {
        u32::try_from(self.keys.len()).unwrap_or(u32::MAX)
    }
}

impl ReadCommand for MGet<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        /// When the reply has so many bytes, it is worth looking how long the rest will be before more is copied.
        const LONG_BYTES: usize = 1 << 20;
        put_array(reply, self.keys.len());
        let (begin, mut is_long) = (reply.len(), false);
        for (place, key) in self.keys.into_iter().enumerate() {
            // A value of another kind is nil to this command, and to no other.
            match keys.get(key).as_ref().and_then(|found| found.string().ok()) {
                Some(value) => put_bulk(reply, value),
                None => put_nil(reply),
            }
            if reply.len() > view.reply_end {
                return Err(ExecutionError::ReplyTooLong);
            }
            if !is_long && reply.len() - begin > LONG_BYTES {
                is_long = true;
                let rest = self.keys.into_iter().skip(place + 1);
                let length = |key| keys.get(key).and_then(|found| found.string().ok().map(<[u8]>::len));
                let rest: usize = rest.filter_map(length).sum();
                if reply.len() + rest > view.reply_end {
                    return Err(ExecutionError::ReplyTooLong);
                }
            }
        }
        Ok(())
    }
}
