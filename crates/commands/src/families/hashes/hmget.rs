//! HMGET.

use super::{FAST_READ, hash_of};
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::{LOOKUP_WORK, elements, put_optional};
use crate::families::specification::CommandSpec;
use crate::reply::put_array;

/// HMGET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HMGet<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The fields whose values are answered.
    pub fields: Arguments<'a>,
}

fields!(HMGet<'a> = 16 { key: Key, fields: Elements<1> });

impl<'a> Definition<'a> for HMGet<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hmget",
        arity: -3,
        summary: "Returns the values of several fields of a hash.",
        parser: |_, words| Ok(HMGet { key: words[1], fields: elements(words, 1)? }.into()),
        ..FAST_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn values(&self) -> u32 {
        u32::try_from(self.fields.len()).unwrap_or(u32::MAX)
    }
}

impl ReadCommand for HMGet<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let hash = hash_of(keys, found.as_ref())?;
        put_array(reply, self.fields.len());
        for field in self.fields {
            put_optional(reply, hash.as_ref().and_then(|hash| hash.get(field)));
            if reply.len() > view.reply_end {
                return Err(ExecutionError::ReplyTooLong);
            }
        }
        Ok(())
    }

    fn work_on<K: Keys>(&self, _: &K) -> usize {
        self.fields.len() * LOOKUP_WORK
    }
}
