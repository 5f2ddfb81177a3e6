//! XACK.

use super::ids::parse_ids;
use super::{FAST_UPDATE, stream_of};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, Value, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use crate::words::Words;
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::Stream;

/// XACK: answers how many of the entries were pending in the group, and are not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XAckParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The group.
    pub group: &'a [u8],
    /// The ids, which are looked at if there is a group.
    pub ids: Arguments<'a>,
}

/// The same, read again where it is needed.
pub type XAck<'a> = Indirect<'a, XAckParts<'a>>;

fields!(XAckParts<'a> = 88 { key: Key, group: Value, ids: Elements<1> });

impl<'a> Definition<'a> for XAckParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xack",
        arity: -4,
        key_flags: &[&["RW", "update"]],
        summary: "Acknowledges entries that were delivered to a consumer of a group.",
        parser: |_, words| Indirect::parse(words, parse),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<XAckParts<'_>, CommandError> {
    let ids = &words[3..];
    if ids.len() > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyElements(ids.len()));
    }
    Ok(XAckParts { key: words[1], group: words[2], ids: Arguments::new(ids) })
}

impl<'a> UpdateCommand<'a> for XAckParts<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let group = stream_of(found.as_ref())?.and_then(|stream| stream.group(self.group));
        drop(found);
        let Some(group) = group else {
            put_integer(reply, 0);
            return Ok(());
        };
        let ids = parse_ids(self.ids)?;
        let acknowledged = keys.edit_collection(self.key, |stream: &mut Stream| {
            ids.iter().filter(|id| stream.settle(&group, **id)).count()
        })?;
        if acknowledged > 0 {
            keys.notify(KeyEvent::Changed, self.key);
        }
        put_integer(reply, acknowledged as i64);
        Ok(())
    }
}
