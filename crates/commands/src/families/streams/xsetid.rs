//! XSETID.

use super::ids::{Id, parse_id};
use super::{FAST_UPDATE, stream_of};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::counts::OptionalCount;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::reply::put_ok;
use crate::stream_error::StreamError;
use crate::words::{Words, integer, is};
use syros_values::{Stream, StreamId};

/// XSETID: answers OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XSetIdParts<'a> {
    /// The key, which has to exist.
    pub key: &'a [u8],
    /// The last id.
    pub last: StreamId,
    /// ENTRIESADDED: how many entries were ever added.
    pub entries_added: Option<u64>,
    /// MAXDELETEDID: the greatest id that was removed; [`StreamId::MIN`] if that is not said.
    pub max_deleted: StreamId,
}

/// The same, read again where it is needed.
pub type XSetId<'a> = Indirect<'a, XSetIdParts<'a>>;

fields!(XSetIdParts<'a> = 345 { key: Key, last: Id, entries_added: OptionalCount, max_deleted: Id });

impl<'a> Definition<'a> for XSetIdParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xsetid",
        arity: -3,
        key_flags: &[&["RW", "update"]],
        flags: &["write", "denyoom", "fast"],
        summary: "Sets the last id of a stream, and what else it knows of entries that are gone.",
        parser: |_, words| Indirect::parse(words, parse),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<XSetIdParts<'_>, CommandError> {
    let last = parse_id(words[2])?;
    let (mut rest, mut entries_added, mut max_deleted) = (&words[3..], None, StreamId::MIN);
    while !rest.is_empty() {
        let [option, argument, behind @ ..] = rest else { return Err(CommandError::Syntax) };
        if is(option, "entriesadded") {
            let added = u64::try_from(integer(argument)?).map_err(|_| StreamError::NegativeEntriesAdded)?;
            entries_added = Some(added);
        } else if is(option, "maxdeletedid") {
            max_deleted = parse_id(argument)?;
            if last < max_deleted {
                return Err(StreamError::SetIdBelowNewDeleted.into());
            }
        } else {
            return Err(CommandError::Syntax);
        }
        rest = behind;
    }
    Ok(XSetIdParts { key: words[1], last, entries_added, max_deleted })
}

impl<'a> UpdateCommand<'a> for XSetIdParts<'a> {
    fn growth(&self, _encoded: usize) -> usize {
        ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let stream = stream_of(found.as_ref())?.ok_or(ExecutionError::NoSuchKey)?;
        if self.last < stream.max_deleted_id() {
            return Err(StreamError::SetIdBelowDeleted.into());
        }
        if let Some(top) = stream.top_id() {
            if self.last < top {
                return Err(StreamError::SetIdBelowTop.into());
            }
            if self.entries_added.is_some_and(|added| added < stream.len()) {
                return Err(StreamError::SetIdBelowLength.into());
            }
        }
        drop(found);
        let max_deleted = Some(self.max_deleted).filter(|id| *id != StreamId::MIN);
        keys.edit_collection(self.key, |stream: &mut Stream| {
            stream.set_counters(self.last, self.entries_added, max_deleted);
        })?;
        keys.notify(KeyEvent::XSetId, self.key);
        put_ok(reply);
        Ok(())
    }
}
