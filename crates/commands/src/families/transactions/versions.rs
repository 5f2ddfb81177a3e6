//! The versions of keys, which WATCH asks for.

use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{List, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_integer};

/// Answers the version of each key, as an integer: see [`Keys::version`]. No client can send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions<'a> {
    /// The keys.
    pub keys: Arguments<'a>,
}

fields!(Versions<'a> = 290 { keys: List<1> });

impl<'a> Definition<'a> for Versions<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::Every { list: self.keys, step: 1 }
    }
}

impl ReadCommand for Versions<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_array(reply, self.keys.len());
        self.keys.iter().for_each(|key| put_integer(reply, keys.version(key).0.cast_signed()));
        Ok(())
    }
}
