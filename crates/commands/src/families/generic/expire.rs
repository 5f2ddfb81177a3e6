//! EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT.

use crate::access::{EntryRef as _, Expiry, Keys, KeysMut};
use crate::deadline::{Deadline, ExpiryUnit, expire};
use crate::encoding::{Key, choices, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::reply::put_integer;
use crate::words::{Words, integer, is};
use core::num::NonZeroU64;

/// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT: answers 1 if the key has the new expiry, or is gone because that is past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expire<'a> {
    /// The key.
    pub key: &'a [u8],
    /// When it expires.
    pub deadline: Deadline,
    /// Whether it gets the new expiry.
    pub condition: ExpireCondition,
}

/// Condition of an EXPIRE. A key without expiry counts as one that expires after any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ExpireCondition {
    /// None.
    #[default]
    Always,
    /// NX: only if the key has no expiry.
    IfNone,
    /// XX: only if it has one.
    IfSome,
    /// GT, and XX with GT: only if the new one is later (never, where there is none).
    IfLater,
    /// LT: only if the new one is earlier, or there is none.
    IfEarlier,
    /// XX with LT: only if there is one and the new one is earlier.
    IfSomeAndEarlier,
}

choices!(ExpireCondition: Always, IfNone, IfSome, IfLater, IfEarlier, IfSomeAndEarlier);

fields!(Expire<'a> = 46 { key: Key, deadline: Deadline, condition: ExpireCondition });

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    arity: -3,
    keys: KeyPositions::ONE,
    key_flags: &[&["RW", "update"]],
    flags: &["write", "fast"],
    categories: &["@keyspace", "@write", "@fast"],
    ..super::ROW
};

impl<'a> Definition<'a> for Expire<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "expire",
            since: "1.0.0",
            summary: "Sets the time to live of a key in seconds.",
            parser: |name, words| parse(ExpiryUnit::Seconds, name, words),
            ..ROW
        },
        CommandSpec {
            name: "expireat",
            since: "1.2.0",
            summary: "Sets the expiry of a key to a Unix time in seconds.",
            parser: |name, words| parse(ExpiryUnit::AtSeconds, name, words),
            ..ROW
        },
        CommandSpec {
            name: "pexpire",
            since: "2.6.0",
            summary: "Sets the time to live of a key in milliseconds.",
            parser: |name, words| parse(ExpiryUnit::Milliseconds, name, words),
            ..ROW
        },
        CommandSpec {
            name: "pexpireat",
            since: "2.6.0",
            summary: "Sets the expiry of a key to a Unix time in milliseconds.",
            parser: |name, words| parse(ExpiryUnit::AtMilliseconds, name, words),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse<'a>(unit: ExpiryUnit, name: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let condition = parse_condition(&words[3..])?;
    let deadline = unit.deadline(name, integer(words[2])?)?;
    Ok(Expire { key: words[1], deadline, condition }.into())
}

fn parse_condition(options: Words<'_>) -> Result<ExpireCondition, CommandError> {
    let (mut nx, mut xx, mut gt, mut lt) = (false, false, false, false);
    for option in options {
        let flag = [("nx", &mut nx), ("xx", &mut xx), ("gt", &mut gt), ("lt", &mut lt)]
            .into_iter()
            .find(|(name, _)| is(option, name));
        match flag {
            Some((_, flag)) => *flag = true,
            None => return Err(CommandError::UnsupportedOption(option.to_vec())),
        }
    }
    match (nx, xx, gt, lt) {
        (true, true, ..) | (true, _, true, _) | (true, _, _, true) => Err(CommandError::ExpireNxWithOther),
        (_, _, true, true) => Err(CommandError::ExpireGtWithLt),
        (true, ..) => Ok(ExpireCondition::IfNone),
        (_, _, true, _) => Ok(ExpireCondition::IfLater),
        (_, true, _, true) => Ok(ExpireCondition::IfSomeAndEarlier),
        (_, _, _, true) => Ok(ExpireCondition::IfEarlier),
        (_, true, ..) => Ok(ExpireCondition::IfSome),
        _ => Ok(ExpireCondition::Always),
    }
}

impl<'a> UpdateCommand<'a> for Expire<'a> {
    fn counts(&self) -> bool {
        self.condition == ExpireCondition::Always
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let allowed = may_expire(keys, self.key, self.deadline.resolve(now_ms), self.condition);
        if allowed {
            expire(keys, self.key, self.deadline, now_ms);
        }
        put_integer(reply, i64::from(allowed));
        Ok(())
    }
}

fn may_expire<K: Keys>(keys: &K, key: &[u8], new: u64, condition: ExpireCondition) -> bool {
    let Some(found) = keys.get(key) else { return false };
    condition.allows(found.expiry(), new)
}

impl ExpireCondition {
    /// True if what has the old expiry gets the new one.
    pub(crate) fn allows(self, old: Expiry, new: u64) -> bool {
        let old = old.map(NonZeroU64::get);
        match self {
            Self::Always => true,
            Self::IfNone => old.is_none(),
            Self::IfSome => old.is_some(),
            Self::IfLater => old.is_some_and(|old| new > old),
            Self::IfEarlier => old.is_none_or(|old| new < old),
            Self::IfSomeAndEarlier => old.is_some_and(|old| new < old),
        }
    }
}
