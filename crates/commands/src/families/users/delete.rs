//! ACL DELUSER.

use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::encoding::{Elements, fields};
use crate::error::ExecutionError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;

/// ACL DELUSER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserDelete<'a> {
    /// The users.
    pub names: Arguments<'a>,
}

fields!(UserDelete<'a> = 378 { names: Elements<1> });

impl<'a> Definition<'a> for UserDelete<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    /// Users are no keys. What runs as one of them may name any.
    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

impl<'a> UpdateCommand<'a> for UserDelete<'a> {
    /// Users are more than operations know of keys, so it is executed above the families: see `user_execution`.
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }
}
