//! HSCAN.

use super::{SLOW_READ, hash_of};
use crate::access::{Keys, Names};
use crate::encoding::{Encoding, Field, Key, Opcode};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::generic::scan::{parse_cursor, put_step};
use crate::families::scan_options::ScanOptions;
use crate::families::specification::CommandSpec;
use crate::glob::glob_matches;
use crate::primitive::Malformed;
use crate::words::Words;
use syros_types::varint::{put_varint, take_varint};

/// HSCAN: a step of an iteration over the fields of a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HScan<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where it goes on; 0 at the beginning.
    pub cursor: u64,
    /// What else is asked for.
    pub options: ScanOptions<'a>,
}

impl<'a> Encoding<'a> for HScan<'a> {
    const OPCODE: Opcode = 134;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        put_varint(out, self.cursor);
        ScanOptions::put(out, self.options);
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (key, cursor) = (Key::take(input)?, take_varint(input)?);
        Ok(Self { key, cursor, options: ScanOptions::take(input)? })
    }
}

impl<'a> Definition<'a> for HScan<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hscan",
        arity: -3,
        tips: &["nondeterministic_output"],
        since: "2.8.0",
        summary: "Walks through the fields of a hash, some at a time.",
        parser: parse,
        ..SLOW_READ
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of them.
    fn values(&self) -> u32 {
        1
    }
}

fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let cursor = parse_cursor(words[2])?;
    let options = ScanOptions::parse(&words[3..])?;
    Ok(HScan { key: words[1], cursor, options }.into())
}

impl ReadCommand for HScan<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let entry = keys.get(self.key);
        let Some(hash) = hash_of(entry.as_ref())? else {
            put_step(reply, 0, &Names::default());
            return Ok(());
        };
        let (pattern, count) = self.options.checked()?;
        let mut found = Names::default();
        let step = hash.scan(self.cursor, count);
        for (field, value) in step.items {
            if pattern.is_none_or(|pattern| glob_matches(pattern, field)) {
                found.push(field);
                found.push(value);
            }
            if reply.len() + found.reply_bytes() > view.reply_end {
                return Err(ExecutionError::ReplyTooLong);
            }
        }
        put_step(reply, step.cursor, &found);
        Ok(())
    }
}
