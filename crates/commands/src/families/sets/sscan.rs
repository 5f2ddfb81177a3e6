//! SSCAN.

use super::{SLOW_READ, set_of, work_of_members};
use crate::access::Keys;
use crate::encoding::{Key, Unsigned, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::generic::scan::parse_cursor;
use crate::families::scan_options::{ScanOptions, put_no_step};
use crate::families::specification::CommandSpec;
use crate::words::Words;

/// SSCAN: a step of an iteration over the members of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SScan<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where it goes on; 0 at the beginning.
    pub cursor: u64,
    /// What else is asked for.
    pub options: ScanOptions<'a>,
}

fields!(SScan<'a> = 192 { key: Key, cursor: Unsigned, options: ScanOptions<'a> });

impl<'a> Definition<'a> for SScan<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "sscan",
        arity: -3,
        tips: &["nondeterministic_output"],
        since: "2.8.0",
        summary: "Walks through the members of a set, some at a time.",
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
    Ok(SScan { key: words[1], cursor, options }.into())
}

impl ReadCommand for SScan<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let Some(set) = set_of(found.as_ref())? else {
            put_no_step(reply);
            return Ok(());
        };
        let scan = |count| set.scan(self.cursor, count).map(|members| members.map(|member| [member]));
        self.options.read(scan, view, reply)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        self.options.work_on(|count| work_of_members(keys, self.key, count))
    }
}
