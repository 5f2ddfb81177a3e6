//! HSCAN.

use super::{SLOW_READ, hash_of};
use crate::access::{Keys, Names};
use crate::encoding::{Encoding, Field as _, Key, Opcode, Pattern};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::generic::scan::{self, parse_cursor, put_step};
use crate::families::specification::CommandSpec;
use crate::glob::glob_matches;
use crate::primitive::{Malformed, take_u8};
use crate::words::{Words, integer, is, pattern};
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

/// The options of a step of an iteration over one key's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanOptions<'a> {
    /// They are what they should be.
    Valid {
        /// MATCH: what fields must match; `None` for all.
        pattern: Option<&'a [u8]>,
        /// COUNT: how many are looked at, about; at least 1.
        count: u64,
    },
    /// One is unknown, or a count is not positive: an error if the key exists. Redis looks for the key first.
    Syntax,
    /// The count is no integer: an error if the key exists.
    NotInteger,
}

/// What the byte of options says.
mod option_byte {
    pub(super) const VALID: u8 = 0;
    pub(super) const WITH_PATTERN: u8 = 1;
    pub(super) const SYNTAX: u8 = 2;
    pub(super) const NOT_INTEGER: u8 = 3;
}

impl<'a> Encoding<'a> for HScan<'a> {
    const OPCODE: Opcode = 134;

    fn encode(&self, out: &mut Vec<u8>) {
        Key::put(out, self.key);
        put_varint(out, self.cursor);
        match self.options {
            ScanOptions::Valid { pattern, count } => {
                out.push(if pattern.is_some() { option_byte::WITH_PATTERN } else { option_byte::VALID });
                put_varint(out, count);
                pattern.into_iter().for_each(|pattern| Pattern::put(out, pattern));
            }
            ScanOptions::Syntax => out.push(option_byte::SYNTAX),
            ScanOptions::NotInteger => out.push(option_byte::NOT_INTEGER),
        }
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let (key, cursor) = (Key::take(input)?, take_varint(input)?);
        let options = match take_u8(input)? {
            kind @ (option_byte::VALID | option_byte::WITH_PATTERN) => {
                let count = take_varint(input)?;
                if count == 0 {
                    return Err(Malformed::Count(count));
                }
                let has_pattern = kind == option_byte::WITH_PATTERN;
                let pattern = has_pattern.then(|| Pattern::take(input)).transpose()?;
                ScanOptions::Valid { pattern, count }
            }
            option_byte::SYNTAX => ScanOptions::Syntax,
            option_byte::NOT_INTEGER => ScanOptions::NotInteger,
            other => return Err(Malformed::Options(other)),
        };
        Ok(Self { key, cursor, options })
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
    let options = match parse_options(&words[3..]) {
        // A key that does not exist has no elements, whatever the options are: only the engine can tell.
        Err(CommandError::Syntax) => ScanOptions::Syntax,
        Err(CommandError::NotInteger) => ScanOptions::NotInteger,
        other => other?,
    };
    Ok(HScan { key: words[1], cursor, options }.into())
}

fn parse_options<'a>(options: Words<'a>) -> Result<ScanOptions<'a>, CommandError> {
    let (mut matching, mut count) = (None, scan::COUNT);
    let mut options = options.iter().copied();
    while let Some(option) = options.next() {
        let argument = options.next().ok_or(CommandError::Syntax)?;
        if is(option, "count") {
            let value = u64::try_from(integer(argument)?).ok();
            count = value.filter(|count| *count > 0).ok_or(CommandError::Syntax)?;
        } else if is(option, "match") {
            matching = Some(pattern(argument)?).filter(|pattern| *pattern != b"*");
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(ScanOptions::Valid { pattern: matching, count })
}

impl ReadCommand for HScan<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let entry = keys.get(self.key);
        let Some(hash) = hash_of(entry.as_ref())? else {
            put_step(reply, 0, &Names::default());
            return Ok(());
        };
        let (pattern, count) = match self.options {
            ScanOptions::Valid { pattern, count } => (pattern, count.min(scan::KEYS_MAX)),
            ScanOptions::Syntax => return Err(ExecutionError::Syntax),
            ScanOptions::NotInteger => return Err(ExecutionError::NotInteger),
        };
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
