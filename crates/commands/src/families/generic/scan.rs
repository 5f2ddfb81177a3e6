//! SCAN.

use super::ROW;
use crate::access::{Keys, Names, is_hidden};
use crate::encoding::{Encoding, Field as _, Opcode, Pattern};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec};
use crate::glob::glob_matches;
use crate::number::write_integer;
use crate::primitive::{Malformed, take_u8};
use crate::reply::{put_array, put_bulk};
use crate::words::{Words, integer, is, pattern};
use core::ops::ControlFlow;
use syros_types::varint::{put_varint, take_varint};

/// The default COUNT, as in Redis.
pub(crate) const COUNT: u64 = 10;

/// Keys that one SCAN looks at, whatever COUNT asks for: some milliseconds' worth, for the event loop of an engine in
/// memory does nothing else meanwhile. A client goes on with the cursor, as with any smaller COUNT.
pub(crate) const KEYS_MAX: u64 = 32_768;

/// SCAN: visits as many keys as it is told to, from the cursor on, in the order of the keys' kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan<'a> {
    /// Where it goes on; 0 at the beginning.
    pub cursor: u64,
    /// What the keys must match. The parser leaves `*` out.
    pub pattern: Option<&'a [u8]>,
    /// About how many keys to look at, at least 1.
    pub count: u64,
    /// The type that the keys' values must have.
    pub only_type: Option<&'a [u8]>,
}

/// Bits of the option byte.
mod option_bit {
    pub(super) const PATTERN: u8 = 1;
    pub(super) const TYPE: u8 = 2;
}

impl<'a> Encoding<'a> for Scan<'a> {
    const OPCODE: Opcode = 11;

    fn encode(&self, out: &mut Vec<u8>) {
        let pattern_bit = if self.pattern.is_some() { option_bit::PATTERN } else { 0 };
        let type_bit = if self.only_type.is_some() { option_bit::TYPE } else { 0 };
        out.push(pattern_bit | type_bit);
        put_varint(out, self.cursor);
        put_varint(out, self.count);
        self.pattern.into_iter().chain(self.only_type).for_each(|bytes| Pattern::put(out, bytes));
    }

    fn decode(_: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let options = take_u8(input)?;
        if options & !(option_bit::PATTERN | option_bit::TYPE) != 0 {
            return Err(Malformed::Options(options));
        }
        let (cursor, count) = (take_varint(input)?, take_varint(input)?);
        if count == 0 {
            return Err(Malformed::Count(count));
        }
        let mut optional = |bit| (options & bit != 0).then(|| Pattern::take(input)).transpose();
        let pattern = optional(option_bit::PATTERN)?;
        let only_type = optional(option_bit::TYPE)?;
        Ok(Self { cursor, pattern, count, only_type })
    }
}

impl<'a> Definition<'a> for Scan<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "scan",
        kind: CommandKind::READ,
        arity: -2,
        flags: &["readonly"],
        categories: &["@keyspace", "@read", "@slow"],
        tips: &["nondeterministic_output", "request_policy:special"],
        since: "2.8.0",
        summary: "Walks through the keys, some at a time.",
        parser: parse,
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }

    /// Keys, not values, but any number of them.
    fn values(&self) -> u32 {
        1
    }
}

fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let cursor = parse_cursor(words[1])?;
    let mut scan = Scan { cursor, pattern: None, count: COUNT, only_type: None };
    let mut options = words[2..].iter().copied();
    while let Some(option) = options.next() {
        let argument = options.next().ok_or(CommandError::Syntax)?;
        if is(option, "count") {
            let value = integer(argument)?;
            scan.count = u64::try_from(value).ok().filter(|count| *count > 0).ok_or(CommandError::Syntax)?;
        } else if is(option, "match") {
            scan.pattern = Some(pattern(argument)?).filter(|pattern| *pattern != b"*");
        } else if is(option, "type") {
            scan.only_type = Some(pattern(argument)?);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(scan.into())
}

/// A cursor is what C's `strtoul` reads: blanks are refused, a sign is not, and `-1` is the largest.
pub(crate) fn parse_cursor(word: &[u8]) -> Result<u64, CommandError> {
    let (negative, digits) = match word {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, word),
    };
    // An empty string is read as 0, up to its end.
    if word.is_empty() {
        return Ok(0);
    }
    if digits.is_empty() {
        return Err(CommandError::InvalidCursor);
    }
    let value = digits.iter().try_fold(0u64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    });
    let value = value.ok_or(CommandError::InvalidCursor)?;
    Ok(if negative { value.wrapping_neg() } else { value })
}

impl Scan<'_> {
    /// It goes through no more keys than this, about.
    pub(crate) fn keys_at_most(&self) -> usize {
        usize::try_from(self.count.min(KEYS_MAX)).unwrap_or(usize::MAX)
    }
}

impl ReadCommand for Scan<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let mut found = Names::default();
        let start = reply.len();
        let next = keys.scan(self.cursor, self.count.min(KEYS_MAX), |key, kind| {
            if self.only_type.is_none_or(|name| name.eq_ignore_ascii_case(kind.name().as_bytes()))
                && self.pattern.is_none_or(|pattern| glob_matches(pattern, key))
                && !is_hidden(key)
            {
                found.push(key);
            }
            if start + found.reply_bytes() > view.reply_end {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        put_step(reply, next, &found);
        Ok(())
    }
}

/// Appends the answer to a step: the cursor of the next one, and what was found.
pub(crate) fn put_step(reply: &mut Vec<u8>, next: u64, found: &Names) {
    let mut cursor = Vec::new();
    write_integer(&mut cursor, next as i64);
    put_array(reply, 2);
    put_bulk(reply, &cursor);
    found.put(reply);
}
