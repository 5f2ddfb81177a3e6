//! LMOVE, and RPOPLPUSH, which moves from the right to the left.

use super::end::parse_end;
use super::pop::{pop_one, popped, pushed};
use super::{SLOW_GROWING_UPDATE, list_of};
use crate::access::KeysMut;
use crate::encoding::{Key, fields};
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::{ELEMENT_BYTES, put_optional};
use crate::families::specification::{CommandSpec, KeyPositions};
use syros_values::{List, ListEnd};

/// LMOVE and RPOPLPUSH: takes an element from one list, adds it to another one or to the same, and answers it; nil if there
/// is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LMove<'a> {
    /// The key whose list the element is taken from.
    pub from: &'a [u8],
    /// The key whose list it is added to, which need not exist.
    pub to: &'a [u8],
    /// Where it is taken from.
    pub from_end: ListEnd,
    /// Where it is added.
    pub to_end: ListEnd,
}

fields!(LMove<'a> = 79 { from: Key, to: Key, from_end: ListEnd, to_end: ListEnd });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    keys: KeyPositions::TWO,
    key_flags: &[&["RW", "access", "delete"], &["RW", "insert"]],
    ..SLOW_GROWING_UPDATE
};

impl<'a> Definition<'a> for LMove<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "lmove",
            arity: 5,
            since: "6.2.0",
            summary: "Moves an element from an end of a list to an end of another one and returns it.",
            parser: |_, words| {
                let (from_end, to_end) = (parse_end(words[3])?, parse_end(words[4])?);
                Ok(LMove { from: words[1], to: words[2], from_end, to_end }.into())
            },
            ..ROW
        },
        CommandSpec {
            name: "rpoplpush",
            arity: 3,
            since: "1.2.0",
            summary: "Moves the last element of a list to the left of another one and returns it.",
            parser: |_, words| {
                let (from_end, to_end) = (ListEnd::Right, ListEnd::Left);
                Ok(LMove { from: words[1], to: words[2], from_end, to_end }.into())
            },
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Two(self.from, self.to)
    }

    fn values(&self) -> u32 {
        1
    }
}

impl<'a> UpdateCommand<'a> for LMove<'a> {
    fn growth(&self, _encoded: usize) -> usize {
        self.to.len() + KEY_BYTES + ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        // If there is nothing to be moved, any kind of value may be where it would go.
        if list_of(keys.get(self.from).as_ref())?.is_some() {
            list_of(keys.get(self.to).as_ref())?;
        }
        let moved = keys.edit_collection(self.from, |list: &mut List| {
            let moved = pop_one(list, self.from_end);
            // A list of one element must not go in between: its expiry would go with it.
            if self.from == self.to {
                moved.iter().for_each(|element| list.push(self.to_end, element));
            }
            moved
        })?;
        if self.from != self.to
            && let Some(element) = &moved
        {
            keys.edit_collection(self.to, |list: &mut List| list.push(self.to_end, element))?;
        }
        if moved.is_some() {
            keys.notify(pushed(self.to_end), self.to);
            keys.notify_removal(popped(self.from_end), self.from);
        }
        put_optional(reply, moved.as_deref());
        Ok(())
    }
}
