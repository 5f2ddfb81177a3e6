//! PFADD.

use super::ROW;
use super::registers::{Rank, Registers};
use super::sketch::{self, DENSE_BYTES};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Field, Key, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::elements;
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::families::strings::string_of;
use crate::primitive::Malformed;
use crate::reply::put_integer;

/// PFADD: answers 1 if the estimate may be another one than before, or the key is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfAdd<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// What is added: nothing, too, which creates the key.
    pub elements: Arguments<'a>,
}

fields!(PfAdd<'a> = 55 { key: Key, elements: AnyElements });

/// A list of elements, of which there may be none.
enum AnyElements {}

impl<'a> Field<'a> for AnyElements {
    type Content = Arguments<'a>;

    fn put(out: &mut Vec<u8>, content: Arguments<'a>) {
        Elements::<1>::put(out, content);
    }

    fn take(input: &mut &'a [u8]) -> Result<Arguments<'a>, Malformed> {
        match input {
            [0, rest @ ..] => {
                *input = rest;
                Ok(Arguments::new(&[]))
            }
            _ => Elements::<1>::take(input),
        }
    }
}

impl<'a> Definition<'a> for PfAdd<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "pfadd",
        kind: CommandKind::UPDATE,
        arity: -2,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "insert"]],
        flags: &["write", "denyoom", "fast"],
        categories: &["@write", "@hyperloglog", "@fast"],
        summary: "Adds elements to a HyperLogLog; creates the key if it does not exist.",
        parser: |_, words| Ok(PfAdd { key: words[1], elements: elements(words, 1)? }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> UpdateCommand<'a> for PfAdd<'a> {
    fn counts(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        DENSE_BYTES + encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        DENSE_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, _now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let has_changed = self.add(keys)?;
        if has_changed {
            keys.notify(KeyEvent::PfAdd, self.key);
        }
        put_integer(reply, i64::from(has_changed));
        Ok(())
    }
}

impl PfAdd<'_> {
    fn add<K: KeysMut>(&self, keys: &mut K) -> Result<bool, ExecutionError> {
        let ranks = self.elements.iter().map(Rank::of);
        let found = keys.get(self.key);
        let Some(bytes) = string_of(found.as_ref())? else {
            drop(found);
            let mut registers = Registers::new();
            ranks.for_each(|rank| registers.raise(rank));
            keys.set(self.key, &sketch::encoded(&registers, false), None);
            return Ok(true);
        };
        // Most often there are none, and nothing is written.
        let raising = sketch::raising(bytes, ranks)?;
        drop(found);
        if !raising.is_empty() {
            keys.edit(self.key, |value| sketch::raise(value, &raising))?.transpose()?;
        }
        Ok(!raising.is_empty())
    }
}
