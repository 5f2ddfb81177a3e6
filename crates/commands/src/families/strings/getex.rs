//! GETEX.

use super::get::Get;
use super::{ROW, put_value};
use crate::access::KeysMut;
use crate::deadline::{Deadline, ExpiryOption, expire};
use crate::encoding::{Field, Key, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::generic::persist;
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions, LookupReply};
use crate::primitive::{Malformed, take_u8};
use crate::words::{Words, is};

/// GETEX with an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetEx<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What happens to its expiry.
    pub change: TtlChange,
}

/// What a GETEX does to the key's expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtlChange {
    /// PERSIST: removes it.
    Persist,
    /// EX, PX, EXAT, PXAT: sets it.
    Until(Deadline),
    /// The expiry is no integer: an error if the key exists. Redis looks at the expiry after it has found the key.
    NotInteger,
    /// The expiry is not positive or too large: an error if the key exists.
    Invalid,
}

/// Kinds of change besides those of [`Deadline`].
mod change_kind {
    pub(super) const PERSIST: u8 = 0;
    pub(super) const NOT_INTEGER: u8 = 3;
    pub(super) const INVALID: u8 = 4;
}

impl<'a> Field<'a> for TtlChange {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        match content {
            Self::Persist => out.push(change_kind::PERSIST),
            Self::NotInteger => out.push(change_kind::NOT_INTEGER),
            Self::Invalid => out.push(change_kind::INVALID),
            Self::Until(deadline) => Deadline::put(out, deadline),
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(match take_u8(input)? {
            change_kind::PERSIST => Self::Persist,
            change_kind::NOT_INTEGER => Self::NotInteger,
            change_kind::INVALID => Self::Invalid,
            kind => Self::Until(Deadline::take_of_kind(kind, input)?),
        })
    }
}

fields!(GetEx<'a> = 38 { key: Key, change: TtlChange });

impl<'a> Definition<'a> for GetEx<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "getex",
        kind: CommandKind::UPDATE,
        arity: -2,
        keys: KeyPositions::ONE,
        key_flags: &[&["RW", "access", "update"]],
        key_notes: "RW and UPDATE because it changes the TTL",
        flags: &["write", "fast"],
        categories: &["@write", "@string", "@fast"],
        since: "6.2.0",
        summary: "Returns the value of a key and optionally changes its expiry.",
        lookup: LookupReply::Value,
        parser: parse,
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn values(&self) -> u32 {
        1
    }
}

fn parse<'a>(name: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let key = words[1];
    let mut persist = false;
    let mut expiry = ExpiryOption::default();
    let mut options = words[2..].iter().copied();
    while let Some(option) = options.next() {
        if is(option, "persist") && expiry.is_none() {
            persist = true;
        } else if persist || !expiry.take(option, &mut options)? {
            return Err(CommandError::Syntax);
        }
    }
    let change = match expiry.deadline(name) {
        Ok(Some(deadline)) => TtlChange::Until(deadline),
        // A key that does not exist has no value, whatever the expiry would have been: only the engine can tell.
        Err(CommandError::NotInteger) => TtlChange::NotInteger,
        Err(CommandError::InvalidExpireTime(_)) => TtlChange::Invalid,
        Err(error) => return Err(error),
        Ok(None) if persist => TtlChange::Persist,
        Ok(None) => return Ok(Get { key }.into()),
    };
    Ok(GetEx { key, change }.into())
}

impl<'a> UpdateCommand<'a> for GetEx<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_value(keys, self.key, reply)?;
        if keys.get(self.key).is_some() {
            match self.change {
                TtlChange::NotInteger => return Err(ExecutionError::NotInteger),
                TtlChange::Invalid => return Err(ExecutionError::InvalidExpireTime),
                TtlChange::Persist | TtlChange::Until(_) => {}
            }
        }
        match self.change {
            TtlChange::Persist => drop(persist(keys, self.key)),
            TtlChange::Until(deadline) => expire(keys, self.key, deadline, now_ms),
            TtlChange::NotInteger | TtlChange::Invalid => {}
        }
        Ok(())
    }
}
