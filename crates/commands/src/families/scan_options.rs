//! The options of commands that walk through the elements of one key: HSCAN and its like.

use super::definition::{ExecutionResult, View};
use super::generic::scan::{self, put_step};
use crate::access::Names;
use crate::encoding::{Field, Pattern};
use crate::error::{CommandError, ExecutionError};
use crate::glob::glob_matches;
use crate::primitive::{Malformed, take_u8, take_up_to};
use crate::words::{Words, integer, is, pattern};
use syros_types::varint::put_varint;
use syros_values::Scan;

/// The options of a step of an iteration over one key's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanOptions<'a> {
    /// They are what they should be.
    Valid {
        /// MATCH: what fields must match; `None` for all.
        pattern: Option<&'a [u8]>,
        /// COUNT: how many are looked at, about; at least 1. No step looks at so many as fit in here.
        count: u32,
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

impl<'a> Field<'a> for ScanOptions<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, options: Self) {
        match options {
            ScanOptions::Valid { pattern, count } => {
                out.push(if pattern.is_some() { option_byte::WITH_PATTERN } else { option_byte::VALID });
                put_varint(out, u64::from(count));
                pattern.into_iter().for_each(|pattern| Pattern::put(out, pattern));
            }
            ScanOptions::Syntax => out.push(option_byte::SYNTAX),
            ScanOptions::NotInteger => out.push(option_byte::NOT_INTEGER),
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(match take_u8(input)? {
            kind @ (option_byte::VALID | option_byte::WITH_PATTERN) => {
                let count = take_up_to(input, u64::from(u32::MAX))? as u32;
                if count == 0 {
                    return Err(Malformed::Count(0));
                }
                let has_pattern = kind == option_byte::WITH_PATTERN;
                let pattern = has_pattern.then(|| Pattern::take(input)).transpose()?;
                ScanOptions::Valid { pattern, count }
            }
            option_byte::SYNTAX => ScanOptions::Syntax,
            option_byte::NOT_INTEGER => ScanOptions::NotInteger,
            other => return Err(Malformed::Options(other)),
        })
    }
}

impl<'a> ScanOptions<'a> {
    /// The options that these words are. A key that does not exist has no elements, whatever the options are, so some
    /// mistakes are options too: only the engine can tell.
    pub(super) fn parse(words: Words<'a>) -> Result<Self, CommandError> {
        Self::parse_with_flag(words, None).map(|(options, _)| options)
    }

    /// The same of a command that has one more option, without an argument, and whether it is there.
    pub(super) fn parse_with_flag(
        words: Words<'a>,
        flag: Option<&str>,
    ) -> Result<(Self, bool), CommandError> {
        match parse_valid(words, flag) {
            Err(CommandError::Syntax) => Ok((Self::Syntax, false)),
            Err(CommandError::NotInteger) => Ok((Self::NotInteger, false)),
            other => other,
        }
    }

    /// Appends the answer to a step from a cursor on over the elements of a key that exists: `scan` makes the step, given
    /// about how many elements it has. What is answered of an element are its strings, the first of which is matched.
    pub(super) fn read<const STRINGS: usize, S: AsRef<[u8]>, I: Iterator<Item = [S; STRINGS]>>(
        self,
        scan: impl FnOnce(u64) -> Scan<I>,
        view: View,
        reply: &mut Vec<u8>,
    ) -> ExecutionResult {
        let (pattern, count) = self.checked()?;
        let mut found = Names::default();
        let step = scan(count);
        for strings in step.items {
            let matches = |pattern| strings.first().is_some_and(|name| glob_matches(pattern, name.as_ref()));
            if pattern.is_none_or(matches) {
                strings.iter().for_each(|string| found.push(string.as_ref()));
            }
            if reply.len() + found.reply_bytes() > view.reply_end {
                return Err(ExecutionError::ReplyTooLong);
            }
        }
        put_step(reply, step.cursor, &found);
        Ok(())
    }

    /// The work of a step over so many elements, as `work` tells it. Most steps are short, and need not be looked at.
    pub(super) fn work_on(self, work: impl FnOnce(u64) -> usize) -> usize {
        match self.checked() {
            Ok((_, count)) if count > scan::COUNT => work(count),
            _ => 0,
        }
    }

    /// What elements must match, and how many are looked at, now that the key exists.
    pub(super) fn checked(self) -> Result<(Option<&'a [u8]>, u64), ExecutionError> {
        match self {
            Self::Valid { pattern, count } => Ok((pattern, u64::from(count).min(scan::KEYS_MAX))),
            Self::Syntax => Err(ExecutionError::Syntax),
            Self::NotInteger => Err(ExecutionError::NotInteger),
        }
    }
}

/// Appends the answer to a step over the elements of a key that does not exist.
pub(super) fn put_no_step(reply: &mut Vec<u8>) {
    put_step(reply, 0, &Names::default());
}

fn parse_valid<'a>(options: Words<'a>, flag: Option<&str>) -> Result<(ScanOptions<'a>, bool), CommandError> {
    let (mut matching, mut count, mut has_flag) = (None, scan::COUNT as u32, false);
    let mut options = options.iter().copied();
    while let Some(option) = options.next() {
        if flag.is_some_and(|flag| is(option, flag)) {
            has_flag = true;
            continue;
        }
        let argument = options.next().ok_or(CommandError::Syntax)?;
        if is(option, "count") {
            let value = u64::try_from(integer(argument)?).ok();
            let value = value.filter(|count| *count > 0).ok_or(CommandError::Syntax)?;
            count = u32::try_from(value).unwrap_or(u32::MAX);
        } else if is(option, "match") {
            matching = Some(pattern(argument)?).filter(|pattern| *pattern != b"*");
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok((ScanOptions::Valid { pattern: matching, count }, has_flag))
}
