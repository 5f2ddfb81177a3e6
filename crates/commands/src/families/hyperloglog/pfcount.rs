//! PFCOUNT.

use super::estimate::estimate;
use super::sketch::DENSE_BYTES;
use super::{ROW, union};
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{List, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::arguments;

/// PFCOUNT: about how many distinct elements were added to the keys. It changes nothing, unlike Redis's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfCount<'a> {
    /// The keys.
    pub keys: Arguments<'a>,
}

fields!(PfCount<'a> = 142 { keys: List<1> });

impl<'a> Definition<'a> for PfCount<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "pfcount",
        kind: CommandKind::READ,
        arity: -2,
        keys: KeyPositions::ALL,
        key_flags: &[&["RW", "access"]],
        key_notes: "RW because it may change the internal representation of the key, and propagate to replicas",
        flags: &["readonly"],
        categories: &["@read", "@hyperloglog", "@slow"],
        summary: "Returns about how many distinct elements were added to HyperLogLogs together.",
        parser: |_, words| Ok(PfCount { keys: arguments(words) }.into()),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

impl ReadCommand for PfCount<'_> {
    fn work(&self) -> usize {
        self.keys.len() * DENSE_BYTES
    }

    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let (registers, _) = union(keys, self.keys.iter())?;
        put_integer(reply, estimate(&registers) as i64);
        Ok(())
    }
}
