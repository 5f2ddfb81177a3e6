//! DUMP.

use super::ROW;
use crate::access::{EntryRef as _, Keys};
use crate::encoding::{Key, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_all;
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::rdb;
use crate::reply::{put_bulk, put_nil};

/// DUMP: the value of a key as RESTORE takes it; nil if there is no key. Equal values have equal answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dump<'a> {
    /// The key.
    pub key: &'a [u8],
}

fields!(Dump<'a> = 318 { key: Key });

impl<'a> Definition<'a> for Dump<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "dump",
        kind: CommandKind::READ,
        arity: 2,
        keys: KeyPositions::ONE,
        key_flags: &[&["RO", "access"]],
        flags: &["readonly"],
        categories: &["@keyspace", "@read", "@slow"],
        tips: &["nondeterministic_output"],
        since: "2.6.0",
        summary: "Returns the value of a key in a form that RESTORE takes.",
        parser: |_, words| Ok(Dump { key: words[1] }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for Dump<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let Some(found) = keys.get(self.key) else {
            put_nil(reply);
            return Ok(());
        };
        let bytes_max = view.reply_end.saturating_sub(reply.len());
        let mut value = found.to_value();
        value.drop_due(keys.time_ms(), u64::MAX);
        let payload = rdb::dump(&value, bytes_max).ok_or(ExecutionError::ReplyTooLong)?;
        put_bulk(reply, &payload);
        Ok(())
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        work_of_all(keys, core::iter::once(self.key))
    }
}
