//! HSET, and HMSET, which is its old name with another answer.

use super::GROWING_UPDATE;
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Encoding, Field as _, Key, Opcode};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::{ELEMENT_BYTES, elements};
use crate::families::specification::CommandSpec;
use crate::primitive::Malformed;
use crate::reply::{put_integer, put_ok};
use crate::words::Words;
use syros_values::Hash;

/// HSET: answers how many of the fields are new. HMSET: answers OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HSet<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// Fields and their values in turn. Of a field that is named twice the last value counts.
    pub pairs: Arguments<'a>,
    /// True for HMSET.
    pub says_ok: bool,
}

impl HSet<'_> {
    /// The opcode of HMSET.
    pub(crate) const OPCODE_SAYS_OK: Opcode = 50;
}

impl<'a> Encoding<'a> for HSet<'a> {
    const OPCODE: Opcode = 49;

    fn opcode(&self) -> Opcode {
        if self.says_ok { Self::OPCODE_SAYS_OK } else { Self::OPCODE }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        Elements::<2>::put(out, self.pairs);
    }

    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let says_ok = opcode == Self::OPCODE_SAYS_OK;
        Ok(Self { key: Key::take(input)?, pairs: Elements::<2>::take(input)?, says_ok })
    }
}

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec { arity: -4, key_flags: &[&["RW", "update"]], ..GROWING_UPDATE };

impl<'a> Definition<'a> for HSet<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "hmset",
            summary: "Sets fields of a hash; the old name of HSET.",
            parser: |name, words| Ok(HSet { says_ok: true, ..parse(name, words)? }.into()),
            ..ROW
        },
        CommandSpec {
            name: "hset",
            summary: "Sets fields of a hash; creates the key if it does not exist.",
            parser: |name, words| Ok(parse(name, words)?.into()),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse<'a>(name: &'static str, words: Words<'a>) -> Result<HSet<'a>, CommandError> {
    if !words.len().is_multiple_of(2) {
        return Err(CommandError::Arity(name));
    }
    Ok(HSet { key: words[1], pairs: elements(words, 2)?, says_ok: false })
}

/// HMSET's OK says that the key had no value of another kind: neither of the two answers the same in every state.
impl<'a> UpdateCommand<'a> for HSet<'a> {
    fn counts(&self) -> bool {
        !self.says_ok
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + self.pairs.len() / 2 * ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let new = keys.edit_collection(self.key, |hash: &mut Hash| {
            self.pairs.pairs().filter(|(field, value)| hash.set_at(field, value, now_ms)).count()
        })?;
        keys.notify(KeyEvent::HSet, self.key);
        if self.says_ok {
            put_ok(reply);
        } else {
            put_integer(reply, new as i64);
        }
        Ok(())
    }
}
