//! XDEL.

use super::ids::parse_ids;
use super::{FAST_UPDATE, stream_of};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::elements;
use crate::families::specification::CommandSpec;
use crate::reply::put_integer;
use syros_values::Stream;

/// XDEL: answers how many entries it removed. The stream stays without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XDel<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The ids, which are looked at if there is a stream.
    pub ids: Arguments<'a>,
}

fields!(XDel<'a> = 343 { key: Key, ids: Elements<1> });

impl<'a> Definition<'a> for XDel<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "xdel",
        arity: -3,
        key_flags: &[&["RW", "delete"]],
        summary: "Removes entries from a stream.",
        parser: |_, words| Ok(XDel { key: words[1], ids: elements(words, 1)? }.into()),
        ..FAST_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for XDel<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let exists = stream_of(found.as_ref())?.is_some();
        drop(found);
        if !exists {
            put_integer(reply, 0);
            return Ok(());
        }
        let ids = parse_ids(self.ids)?;
        let removed = keys.edit_collection(self.key, |stream: &mut Stream| {
            ids.iter().filter(|id| stream.remove(**id)).count()
        })?;
        if removed > 0 {
            keys.notify(KeyEvent::XDel, self.key);
        }
        put_integer(reply, removed as i64);
        Ok(())
    }
}
