//! RESTORE.
//!
//! Whether a payload can be restored follows from its bytes alone. A node says so before anything is ordered: so RESTORE
//! with REPLACE always answers OK, and is an overwrite.

use super::{notify_replacement, store_value};
use crate::access::{KeyEvent, KeysMut};
use crate::deadline::{Deadline, ExpiryUnit, future};
use crate::encoding::{Field, Key, Value, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::counts::parse_count;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::payload_error::PayloadError;
use crate::primitive::{Malformed, take_u8};
use crate::rdb::{self, InvalidPayload};
use crate::reply::put_ok;
use crate::words::{Words, integer, is};

/// RESTORE with REPLACE: a key gets the value of a payload, whatever it had.
///
/// Of a payload that is no value, which no node submits, the key goes: what an overwrite does depends on nothing but its
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreReplace<'a> {
    /// The key.
    pub key: &'a [u8],
    /// When it expires; `None` for never.
    pub deadline: Option<Deadline>,
    /// The value as DUMP answers it.
    pub payload: &'a [u8],
}

/// RESTORE without REPLACE: an error if the key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restore<'a> {
    /// The key.
    pub key: &'a [u8],
    /// When it expires; `None` for never.
    pub deadline: Option<Deadline>,
    /// The value as DUMP answers it.
    pub payload: &'a [u8],
}

/// A deadline, or none.
enum OptionalDeadline {}

/// The kind of no deadline, where a deadline has its own.
const NEVER: u8 = 0;

impl<'a> Field<'a> for OptionalDeadline {
    type Content = Option<Deadline>;

    fn put(out: &mut Vec<u8>, content: Option<Deadline>) {
        match content {
            None => out.push(NEVER),
            Some(deadline) => Deadline::put(out, deadline),
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Option<Deadline>, Malformed> {
        match take_u8(input)? {
            NEVER => Ok(None),
            kind => Deadline::take_of_kind(kind, input).map(Some),
        }
    }
}

fields!(RestoreReplace<'a> = 80 { key: Key, deadline: OptionalDeadline, payload: Value });
fields!(Restore<'a> = 319 { key: Key, deadline: OptionalDeadline, payload: Value });

impl<'a> Definition<'a> for RestoreReplace<'a> {
    const SPECS: &'static [CommandSpec] = &[];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> Definition<'a> for Restore<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "restore",
        kind: CommandKind::UPDATE,
        arity: -4,
        keys: KeyPositions::ONE,
        key_flags: &[&["OW", "update"]],
        flags: &["write", "denyoom"],
        categories: &["@keyspace", "@write", "@slow", "@dangerous"],
        since: "2.6.0",
        summary: "Gives a key a value that DUMP has returned.",
        parser: parse,
        ..super::ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse<'a>(name: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let (key, payload) = (words[1], words[3]);
    let (mut replace, mut is_absolute) = (false, false);
    let mut options = words[4..].iter();
    while let Some(option) = options.next() {
        let mut argument = || options.next().ok_or(CommandError::Syntax);
        if is(option, "replace") {
            replace = true;
        } else if is(option, "absttl") {
            is_absolute = true;
        } else if is(option, "idletime") {
            check_number(argument()?, u64::MAX, CommandError::Payload(PayloadError::IdleTime))?;
        } else if is(option, "freq") {
            check_number(argument()?, u64::from(u8::MAX), CommandError::Payload(PayloadError::Frequency))?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let unit = if is_absolute { ExpiryUnit::AtMilliseconds } else { ExpiryUnit::Milliseconds };
    let deadline = match integer(words[2])? {
        ..0 => return Err(CommandError::Payload(PayloadError::TimeToLive)),
        0 => None,
        ms => Some(unit.deadline(name, ms)?),
    };
    rdb::restore(payload).map_err(|error| match error {
        InvalidPayload::VersionOrChecksum => CommandError::Payload(PayloadError::VersionOrChecksum),
        InvalidPayload::Format => CommandError::Payload(PayloadError::Format),
    })?;
    Ok(if replace {
        RestoreReplace { key, deadline, payload }.into()
    } else {
        Restore { key, deadline, payload }.into()
    })
}

/// Looks at what Redis remembers of a key's use, and nobody here does.
fn check_number(word: &[u8], max: u64, error: CommandError) -> Result<(), CommandError> {
    integer(word)?;
    parse_count(word).filter(|number| *number <= max).map(drop).ok_or(error)
}

/// Gives a key the value of a payload, unless its deadline is past: then it goes.
fn restore<K: KeysMut>(keys: &mut K, key: &[u8], deadline: Option<Deadline>, payload: &[u8], now_ms: u64) {
    let expiry = deadline.map(|deadline| future(deadline, now_ms));
    let restored = rdb::restore_checked(payload).map(|mut value| {
        value.drop_due(now_ms, u64::MAX);
        value
    });
    let (value, expiry) = match (restored, expiry) {
        // Each of its fields has expired.
        (Ok(syros_values::Value::Hash(hash)), _) if hash.is_empty() => return keys.delete(key),
        (Ok(value), None) => (value, None),
        (Ok(value), Some(expiry @ Some(_))) => (value, expiry),
        (Ok(_), Some(None)) | (Err(_), _) => return keys.delete(key),
    };
    notify_replacement(keys, key);
    store_value(keys, key, value, expiry);
    keys.notify(KeyEvent::Restore, key);
}

/// Building a value of a payload takes about as long as to fill so many times its bytes.
const BUILDING: usize = 16;

impl<'a> UpdateCommand<'a> for RestoreReplace<'a> {
    fn answers_ok(&self) -> bool {
        true
    }

    fn overwrites_one_key(&self) -> bool {
        true
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        self.payload.len() * BUILDING
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        restore(keys, self.key, self.deadline, self.payload, now_ms);
        put_ok(reply);
        Ok(())
    }
}

impl<'a> UpdateCommand<'a> for Restore<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES
    }

    fn work(&self) -> usize {
        self.payload.len() * BUILDING
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        if keys.get(self.key).is_some() {
            return Err(ExecutionError::BusyKey);
        }
        restore(keys, self.key, self.deadline, self.payload, now_ms);
        put_ok(reply);
        Ok(())
    }
}
