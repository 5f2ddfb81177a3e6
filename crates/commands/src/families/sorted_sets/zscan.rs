//! ZSCAN.

use super::{SLOW_READ, sorted_set_of, work_of_members};
use crate::access::Keys;
use crate::double::write_double;
use crate::encoding::{Key, Unsigned, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::generic::scan::parse_cursor;
use crate::families::scan_options::{ScanOptions, put_no_step};
use crate::families::specification::CommandSpec;
use crate::number::write_integer;
use crate::words::Words;
use std::borrow::Cow;
use syros_values::{Score, SortedSet};

/// The largest number that Redis takes for an integer.
const INTEGER_MAX: f64 = (1_u64 << 62) as f64;

/// ZSCAN: a step of an iteration over the members of a sorted set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZScan<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where it goes on; 0 at the beginning.
    pub cursor: u64,
    /// What else is asked for.
    pub options: ScanOptions<'a>,
}

/// ZSCAN with NOSCORES, which Valkey 8.1 has: the same, without the scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZScanMembers<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where it goes on; 0 at the beginning.
    pub cursor: u64,
    /// What else is asked for.
    pub options: ScanOptions<'a>,
}

fields!(ZScan<'a> = 222 { key: Key, cursor: Unsigned, options: ScanOptions<'a> });
fields!(ZScanMembers<'a> = 323 { key: Key, cursor: Unsigned, options: ScanOptions<'a> });

impl<'a> Definition<'a> for ZScan<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "zscan",
        arity: -3,
        tips: &["nondeterministic_output"],
        since: "2.8.0",
        summary: "Walks through the members of a sorted set and their scores, some at a time.",
        parser: |_, words| parse(words),
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

fn parse(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    let cursor = parse_cursor(words[2])?;
    let (options, without_scores) = ScanOptions::parse_with_flag(&words[3..], Some("noscores"))?;
    Ok(if without_scores {
        ZScanMembers { key: words[1], cursor, options }.into()
    } else {
        ZScan { key: words[1], cursor, options }.into()
    })
}

impl<'a> Definition<'a> for ZScanMembers<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of members.
    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for ZScan<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let Some(set) = sorted_set_of(found.as_ref())? else {
            put_no_step(reply);
            return Ok(());
        };
        let strings = |(member, score): (_, Score)| [Cow::Borrowed(member), Cow::Owned(text_of(score, set))];
        let scan = |count| set.scan(self.cursor, count).map(|members| members.map(strings));
        self.options.read(scan, view, reply)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        self.options.work_on(|count| work_of_members(keys, self.key, count))
    }
}

impl ReadCommand for ZScanMembers<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let Some(set) = sorted_set_of(found.as_ref())? else {
            put_no_step(reply);
            return Ok(());
        };
        let scan = |count| set.scan(self.cursor, count).map(|members| members.map(|(member, _)| [member]));
        self.options.read(scan, view, reply)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        self.options.work_on(|count| work_of_members(keys, self.key, count))
    }
}

/// The text of a score. Redis keeps integers as such in small sorted sets, and writes all their digits.
fn text_of(score: Score, set: &SortedSet) -> Vec<u8> {
    let (value, mut text) = (score.value(), Vec::new());
    if set.is_packed() && value.trunc() == value && value.abs() <= INTEGER_MAX {
        write_integer(&mut text, value as i64);
    } else {
        write_double(&mut text, value);
    }
    text
}
