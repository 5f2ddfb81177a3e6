//! Commands on strings.

pub(crate) mod append;
pub(crate) mod get;
pub(crate) mod getdel;
pub(crate) mod getex;
pub(crate) mod getrange;
pub(crate) mod incrby;
pub(crate) mod incrbyfloat;
pub(crate) mod mget;
pub(crate) mod mset;
pub(crate) mod set;
pub(crate) mod setnx;
pub(crate) mod setrange;
pub(crate) mod strlen;

use super::specification::CommandSpec;
use crate::access::{EntryRef as _, Keys, KeysMut, Operand};
use crate::error::ExecutionError;
use crate::families::definition::ExecutionResult;
use crate::reply::{put_bulk, put_nil};

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "string", ..CommandSpec::ROW };

/// Appends the string of a key, or nil.
fn put_value<K: Keys>(keys: &K, key: &[u8], reply: &mut Vec<u8>) -> ExecutionResult {
    match keys.get(key) {
        Some(found) => put_bulk(reply, found.string()?),
        None => put_nil(reply),
    }
    Ok(())
}

/// The length of the string of a key, 0 if there is none.
fn length<K: Keys>(keys: &K, key: &[u8]) -> Result<i64, ExecutionError> {
    Ok(keys.get(key).map(|found| found.string().map(<[u8]>::len)).transpose()?.unwrap_or(0) as i64)
}

/// Changes the value of a key that need not exist.
fn alter<K: KeysMut>(keys: &mut K, key: &[u8], operand: Operand<'_>) -> Result<i64, ExecutionError> {
    let changed = keys.edit(key, |value| operand.change(value))?;
    changed.unwrap_or_else(|| {
        let (value, answer) = operand.begin();
        keys.set(key, &value, None);
        Ok(answer)
    })
}
