//! Commands on strings.

pub(crate) mod append;
pub(crate) mod get;
pub(crate) mod getdel;
pub(crate) mod getex;
pub(crate) mod getrange;
pub(crate) mod incrby;
pub(crate) mod incrbyfloat;
pub(crate) mod lcs;
pub(crate) mod mget;
pub(crate) mod mset;
pub(crate) mod set;
pub(crate) mod setnx;
pub(crate) mod setrange;
pub(crate) mod strlen;

use super::specification::CommandSpec;
use crate::access::{EntryRef, KeyEvent, Keys, KeysMut, Operand};
use crate::error::ExecutionError;
use crate::families::definition::ExecutionResult;
use crate::reply::{put_bulk, put_nil};
use syros_values::WrongType;

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "string", ..CommandSpec::ROW };

/// The string of a key that may have been found.
pub(super) fn string_of<E: EntryRef>(found: Option<&E>) -> Result<Option<&[u8]>, WrongType> {
    found.map(EntryRef::string).transpose()
}

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
    let answer = changed.unwrap_or_else(|| {
        let (value, answer) = operand.begin();
        keys.set(key, &value, None);
        Ok(answer)
    })?;
    let event = match operand {
        Operand::Append(_) => KeyEvent::Append,
        Operand::Add(_) => KeyEvent::IncrBy,
    };
    keys.notify(event, key);
    Ok(answer)
}

/// Changes the string of a key that need not exist. Zeros are added to it first until it has `length` bytes.
pub(super) fn edit_grown<K: KeysMut, R>(
    keys: &mut K,
    key: &[u8],
    length: usize,
    mut change: impl FnMut(&mut [u8]) -> R,
) -> Result<R, WrongType> {
    let changed = keys.edit(key, |value| {
        value.resize(value.len().max(length), 0);
        change(value)
    })?;
    Ok(changed.unwrap_or_else(|| {
        let mut value = vec![0; length];
        let result = change(&mut value);
        keys.set(key, &value, None);
        result
    }))
}
