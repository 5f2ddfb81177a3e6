//! LRANGE.

use super::{SLOW_READ, list_of};
use crate::access::Keys;
use crate::encoding::{Key, Signed, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::work_of_some;
use crate::families::ranks::ranks_of;
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_bulk};
use crate::words::integer;

/// LRANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LRange<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The index of the first element; negative ones count from the end.
    pub start: i64,
    /// The index of the last element.
    pub stop: i64,
}

fields!(LRange<'a> = 28 { key: Key, start: Signed, stop: Signed });

impl<'a> Definition<'a> for LRange<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "lrange",
        arity: 4,
        summary: "Returns the elements of a list from one index to another.",
        parser: |_, words| {
            let (start, stop) = (integer(words[2])?, integer(words[3])?);
            Ok(LRange { key: words[1], start, stop }.into())
        },
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for LRange<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let list = list_of(found.as_ref())?;
        let elements = list.map(|list| list.range(ranks_of(self.start, self.stop, list.len())));
        put_array(reply, elements.as_ref().map_or(0, ExactSizeIterator::len));
        for element in elements.into_iter().flatten() {
            put_bulk(reply, element);
            if reply.len() > view.reply_end {
                return Err(ExecutionError::ReplyTooLong);
            }
        }
        Ok(())
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        let found = keys.get(self.key);
        let Ok(Some(list)) = list_of(found.as_ref()) else { return 0 };
        let ranks = ranks_of(self.start, self.stop, list.len());
        work_of_some(ranks.end - ranks.start, list.len(), list.element_bytes())
    }
}
