//! LINSERT.

use super::{SEARCH_WORK, SLOW_GROWING_UPDATE};
use crate::access::{KeyEvent, KeysMut};
use crate::encoding::{Field, Key, Value, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::primitive::{Malformed, take_u8};
use crate::reply::put_integer;
use crate::words::{Words, is};
use syros_values::{List, ListEnd};

/// LINSERT: answers how many elements the list has then; -1 if it has no such element, 0 if there is no list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LInsertParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// On which side of the other element.
    pub side: InsertSide,
    /// The other element, the first one that is equal to this.
    pub pivot: &'a [u8],
    /// The element that is inserted.
    pub element: &'a [u8],
}

/// A side of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertSide {
    /// On its left.
    Before,
    /// On its right.
    After,
}

const BEFORE: u8 = 0;
const AFTER: u8 = 1;

/// A byte.
impl<'a> Field<'a> for InsertSide {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        out.push(match content {
            Self::Before => BEFORE,
            Self::After => AFTER,
        });
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        match take_u8(input)? {
            BEFORE => Ok(Self::Before),
            AFTER => Ok(Self::After),
            other => Err(Malformed::Options(other)),
        }
    }
}

/// The same, read again where it is needed.
pub type LInsert<'a> = Indirect<'a, LInsertParts<'a>>;

fields!(LInsertParts<'a> = 277 { key: Key, side: InsertSide, pivot: Value, element: Value });

impl<'a> Definition<'a> for LInsertParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "linsert",
        arity: 5,
        key_flags: &[&["RW", "insert"]],
        since: "2.2.0",
        summary: "Inserts an element before or after another element of a list.",
        parser: |_, words| Indirect::parse(words, parse),
        ..SLOW_GROWING_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<LInsertParts<'_>, CommandError> {
    let side = parse_side(words[2])?;
    Ok(LInsertParts { key: words[1], side, pivot: words[3], element: words[4] })
}

fn parse_side(word: &[u8]) -> Result<InsertSide, CommandError> {
    if is(word, "before") {
        Ok(InsertSide::Before)
    } else if is(word, "after") {
        Ok(InsertSide::After)
    } else {
        Err(CommandError::Syntax)
    }
}

impl<'a> UpdateCommand<'a> for LInsertParts<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + ELEMENT_BYTES
    }

    /// It goes through the list, whose length only the key knows.
    fn work(&self) -> usize {
        SEARCH_WORK
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let answer = keys.edit_collection(self.key, |list: &mut List| {
            let pivot = list.ranked_from(ListEnd::Left).find(|(_, element)| *element == self.pivot);
            match pivot {
                Some((rank, _)) => {
                    list.insert(rank + u64::from(self.side == InsertSide::After), self.element);
                    list.len() as i64
                }
                // Only the list of a key that does not exist has no elements.
                None if list.is_empty() => 0,
                None => -1,
            }
        })?;
        if answer > 0 {
            keys.notify(KeyEvent::LInsert, self.key);
        }
        put_integer(reply, answer);
        Ok(())
    }
}
