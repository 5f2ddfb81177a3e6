//! Whether a stream has something for those who wait for its entries.

use super::{put_id, stream_of};
use crate::access::Keys;
use crate::encoding::{Flag, Key, Value, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::reply::{put_integer, put_nil};

/// Asks what a stream has for those who wait. No client can send it.
///
/// Without a group it answers the id of the last entry, or nil if there is none. Of a group it answers [`NONE`](Self::NONE),
/// [`ENTRIES`](Self::ENTRIES) or [`NO_GROUP`](Self::NO_GROUP).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XNews<'a> {
    /// The key.
    pub key: &'a [u8],
    /// True if they wait for what has not been delivered to a group.
    pub of_group: bool,
    /// The group.
    pub group: &'a [u8],
}

fields!(XNews<'a> = 353 { key: Key, of_group: Flag, group: Value });

impl XNews<'_> {
    /// All entries have been delivered to the group.
    pub const NONE: i64 = 0;
    /// Some have not.
    pub const ENTRIES: i64 = 1;
    /// There is no such group, or no stream: those who wait for its entries are to be told.
    pub const NO_GROUP: i64 = 2;
}

impl<'a> Definition<'a> for XNews<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for XNews<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        // Whoever waits for entries does not mind a value of another kind, but the consumers of a group do.
        let stream = stream_of(found.as_ref()).unwrap_or(None);
        let top = stream.and_then(syros_values::Stream::top_id);
        if self.of_group {
            let group = stream.and_then(|stream| stream.group(self.group));
            put_integer(
                reply,
                match group {
                    None => Self::NO_GROUP,
                    Some(group) if top.is_some_and(|top| top > group.last) => Self::ENTRIES,
                    Some(_) => Self::NONE,
                },
            );
        } else {
            match top {
                Some(top) => put_id(reply, top),
                None => put_nil(reply),
            }
        }
        Ok(())
    }
}
