//! Commands on streams.

pub(crate) mod xack;
pub(crate) mod xadd;
pub(crate) mod xautoclaim;
pub(crate) mod xawait;
pub(crate) mod xclaim;
pub(crate) mod xdel;
pub(crate) mod xgroup;
pub(crate) mod xhelp;
pub(crate) mod xinfo;
pub(crate) mod xlen;
pub(crate) mod xnews;
pub(crate) mod xpending;
pub(crate) mod xrange;
pub(crate) mod xread;
pub(crate) mod xreadgroup;
pub(crate) mod xsetid;
pub(crate) mod xtrim;

pub(crate) mod trim;

mod claims;
mod ids;
mod now;
mod sources;

use super::definition::ExecutionResult;
use super::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::access::{EntryRef, KeyEvent, KeysMut};
use crate::error::ExecutionError;
use crate::reply::{put_array, put_bulk, put_error, put_nil_array};
use syros_values::{Fields, Stream, StreamId};

/// What the rows of this family have in common.
const ROW: CommandSpec =
    CommandSpec { group: "stream", keys: KeyPositions::ONE, since: "5.0.0", ..CommandSpec::ROW };

/// What the rows of reads have in common that may look at many entries.
const SLOW_READ: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly"],
    categories: &["@read", "@stream", "@slow"],
    ..ROW
};

/// What the rows of updates have in common that look at a few entries only, and make nothing grow.
const FAST_UPDATE: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    flags: &["write", "fast"],
    categories: &["@write", "@stream", "@fast"],
    ..ROW
};

/// The stream of a key that may have been found.
fn stream_of<E: EntryRef>(found: Option<&E>) -> Result<Option<&Stream>, ExecutionError> {
    Ok(found.map(EntryRef::stream).transpose()?)
}

/// Appends an id.
fn put_id(reply: &mut Vec<u8>, id: StreamId) {
    put_bulk(reply, id.to_string().as_bytes());
}

/// Appends an entry: its id and its fields; no array in the place of the fields if it is not there any more.
fn put_entry(reply: &mut Vec<u8>, id: StreamId, fields: Option<Fields<'_>>) {
    put_array(reply, 2);
    put_id(reply, id);
    match fields {
        Some(fields) => {
            put_array(reply, fields.len());
            fields.for_each(|string| put_bulk(reply, string));
        }
        None => put_nil_array(reply),
    }
}

/// Bytes of an entry in a reply, at most, but for those of its fields with their lengths: heads, and an id of two numbers.
const ENTRY_HEAD_BYTES: usize = 64;

/// Answers that there is no such group, where Redis does not say which of both is missing.
fn put_no_key_or_group(reply: &mut Vec<u8>, key: &[u8], group: &[u8], end: &str) -> ExecutionResult {
    let text = [b"NOGROUP No such key '", c_string(key), b"' or consumer group '", c_string(group), b"'"];
    put_error(reply, &[&text.concat(), end.as_bytes()].concat());
    Ok(())
}

/// Answers that a stream has no such group.
fn put_no_group(reply: &mut Vec<u8>, key: &[u8], group: &[u8]) -> ExecutionResult {
    let text =
        [b"NOGROUP No such consumer group '", c_string(group), b"' for key name '", c_string(key), b"'"];
    put_error(reply, &text.concat());
    Ok(())
}

/// What Redis prints of a string: what is before the first zero.
fn c_string(string: &[u8]) -> &[u8] {
    string.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Tells that a consumer is about to be created, because its group does not know it.
fn notify_consumer<K: KeysMut>(keys: &mut K, key: &[u8], group: &[u8], consumer: &[u8]) {
    if !keys.notifies() {
        return;
    }
    let found = keys.get(key);
    let stream = stream_of(found.as_ref()).ok().flatten();
    let is_new = stream.is_some_and(|stream| {
        stream.group(group).is_some_and(|group| stream.consumer(&group, consumer).is_none())
    });
    drop(found);
    if is_new {
        keys.notify(KeyEvent::XGroupCreateConsumer, key);
    }
}
