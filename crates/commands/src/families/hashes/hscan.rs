//! HSCAN.

use super::{SLOW_READ, hash_of, work_of_fields};
use crate::access::Keys;
use crate::encoding::{Key, Unsigned, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::generic::scan::parse_cursor;
use crate::families::scan_options::{ScanOptions, put_no_step};
use crate::families::specification::CommandSpec;
use crate::words::Words;

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

/// HSCAN with NOVALUES, which Valkey 8 has: the same, without the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HScanFields<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Where it goes on; 0 at the beginning.
    pub cursor: u64,
    /// What else is asked for.
    pub options: ScanOptions<'a>,
}

fields!(HScan<'a> = 134 { key: Key, cursor: Unsigned, options: ScanOptions<'a> });
fields!(HScanFields<'a> = 322 { key: Key, cursor: Unsigned, options: ScanOptions<'a> });

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
    let (options, without_values) = ScanOptions::parse_with_flag(&words[3..], Some("novalues"))?;
    Ok(if without_values {
        HScanFields { key: words[1], cursor, options }.into()
    } else {
        HScan { key: words[1], cursor, options }.into()
    })
}

impl<'a> Definition<'a> for HScanFields<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// Any number of fields.
    fn values(&self) -> u32 {
        1
    }
}

impl ReadCommand for HScan<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let Some(hash) = hash_of(keys, found.as_ref())? else {
            put_no_step(reply);
            return Ok(());
        };
        let scan = |count| hash.scan(self.cursor, count).map(|fields| fields.map(<[_; 2]>::from));
        self.options.read(scan, view, reply)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        self.options.work_on(|count| work_of_fields(keys, self.key, count))
    }
}

impl ReadCommand for HScanFields<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let Some(hash) = hash_of(keys, found.as_ref())? else {
            put_no_step(reply);
            return Ok(());
        };
        let scan = |count| hash.scan(self.cursor, count).map(|fields| fields.map(|(field, _)| [field]));
        self.options.read(scan, view, reply)
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        self.options.work_on(|count| work_of_fields(keys, self.key, count))
    }
}
