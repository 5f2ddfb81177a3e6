//! ZRANGESTORE.

use super::selection::{Dialect, Selection};
use super::{MEMBER_BYTES, SLOW_UPDATE, sorted_set_of, store};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Key, fields};
use crate::error::CommandError;
use crate::families::definition::{
    Definition, ExecutionResult, KEY_BYTES, KeyNames, RESULT_WORK, UpdateCommand,
};
use crate::families::indirect::Indirect;
use crate::families::specification::{CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::Words;
use core::convert::Infallible;

/// ZRANGESTORE: answers how many members the target has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZRangeStoreParts<'a> {
    /// The key that becomes a sorted set, whatever it was.
    pub target: &'a [u8],
    /// The key of the sorted set that members are taken from.
    pub source: &'a [u8],
    /// Which members are taken.
    pub selection: Selection<'a>,
}

/// The same, read again where it is needed.
pub type ZRangeStore<'a> = Indirect<'a, ZRangeStoreParts<'a>>;

fields!(ZRangeStoreParts<'a> = 242 { target: Key, source: Key, selection: Selection<'a> });

impl<'a> Definition<'a> for ZRangeStoreParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zrangestore",
        arity: -5,
        keys: KeyPositions::TWO,
        key_flags: &[&["OW", "update"], &["RO", "access"]],
        flags: &["write", "denyoom"],
        since: "6.2.0",
        summary: "Stores members of a sorted set in another key.",
        parser: |_, words| Indirect::parse(words, parse),
        ..SLOW_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Two(self.target, self.source)
    }
}

fn parse(words: Words<'_>) -> Result<ZRangeStoreParts<'_>, CommandError> {
    let dialect = Dialect { kind: None, is_reversed: None, answers: false };
    let (selection, _) = Selection::parse(&words[3..], dialect)?;
    Ok(ZRangeStoreParts { target: words[1], source: words[2], selection })
}

impl<'a> UpdateCommand<'a> for ZRangeStoreParts<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + MEMBER_BYTES
    }

    fn work(&self) -> usize {
        RESULT_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let source = sorted_set_of(keys.get(self.source).as_ref())?.cloned().unwrap_or_default();
        let mut members = Vec::new();
        let Ok(()) = self.selection.try_each(&source, |member| {
            members.push(member);
            Ok::<_, Infallible>(())
        });
        if self.selection.is_reversed {
            members.reverse();
        }
        put_integer(reply, store(keys, self.target, &members, KeyEvent::ZRangeStore));
        Ok(())
    }
}
