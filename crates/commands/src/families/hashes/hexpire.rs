//! HEXPIRE, HPEXPIRE, HEXPIREAT and HPEXPIREAT.

use super::field_options::{FIELD_UPDATE, NO_FIELD, change_each, expiry_of, parse_deadline, parse_fields};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::deadline::{Deadline, ExpiryUnit};
use crate::encoding::{Elements, Key, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::generic::expire::ExpireCondition;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::field_error::FieldError;
use crate::words::{Words, is};
use syros_values::Hash;

/// HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT: answers of each field -2 if there is none, 0 if the condition is not met, 1 if it
/// has the new expiry, and 2 if it is gone because that is past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HExpireParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// When they expire.
    pub deadline: Deadline,
    /// Whether a field gets the new expiry.
    pub condition: ExpireCondition,
    /// The fields.
    pub fields: Arguments<'a>,
}

/// The same, read again where it is needed.
pub type HExpire<'a> = Indirect<'a, HExpireParts<'a>>;

fields!(HExpireParts<'a> = 328 {
    key: Key, deadline: Deadline, condition: ExpireCondition, fields: Elements<1>
});

/// What the rows have in common.
const ROW: CommandSpec =
    CommandSpec { arity: -6, flags: &["write", "denyoom", "fast"], since: "7.4.0", ..FIELD_UPDATE };

impl<'a> Definition<'a> for HExpireParts<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "hexpire",
            summary: "Sets the time to live of fields of a hash in seconds.",
            parser: |_, words| Indirect::parse(words, |words| parse(ExpiryUnit::Seconds, "hexpire", words)),
            ..ROW
        },
        CommandSpec {
            name: "hexpireat",
            summary: "Sets the expiry of fields of a hash to a Unix time in seconds.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(ExpiryUnit::AtSeconds, "hexpireat", words))
            },
            ..ROW
        },
        CommandSpec {
            name: "hpexpire",
            summary: "Sets the time to live of fields of a hash in milliseconds.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(ExpiryUnit::Milliseconds, "hpexpire", words))
            },
            ..ROW
        },
        CommandSpec {
            name: "hpexpireat",
            summary: "Sets the expiry of fields of a hash to a Unix time in milliseconds.",
            parser: |_, words| {
                Indirect::parse(words, |words| parse(ExpiryUnit::AtMilliseconds, "hpexpireat", words))
            },
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse<'a>(
    unit: ExpiryUnit,
    name: &'static str,
    words: Words<'a>,
) -> Result<HExpireParts<'a>, CommandError> {
    const CONDITIONS: [(&str, ExpireCondition); 4] = [
        ("nx", ExpireCondition::IfNone),
        ("xx", ExpireCondition::IfSome),
        ("gt", ExpireCondition::IfLater),
        ("lt", ExpireCondition::IfEarlier),
    ];
    let deadline = parse_deadline(unit, name, words[2])?;
    let condition = CONDITIONS.iter().find(|(word, _)| is(words[3], word)).map(|(_, condition)| *condition);
    let rest = if condition.is_some() { &words[4..] } else { &words[3..] };
    let fields = parse_fields(rest, 1, CommandError::Field(FieldError::ExpireCountNotPositive))?;
    Ok(HExpireParts { key: words[1], deadline, condition: condition.unwrap_or_default(), fields })
}

const CONDITION_NOT_MET: i64 = 0;
const HAS_EXPIRY: i64 = 1;
const IS_GONE: i64 = 2;

impl HExpireParts<'_> {
    /// Carries it out on one field, and says what it answers.
    fn expire(&self, hash: &mut Hash, field: &[u8], now_ms: u64) -> i64 {
        let live = hash.at(now_ms);
        if live.get(field).is_none() {
            return NO_FIELD;
        }
        let expiry = expiry_of(self.deadline, now_ms);
        let new = expiry.map_or_else(|| self.deadline.resolve(now_ms), core::num::NonZeroU64::get);
        if !self.condition.allows(live.expiry(field), new) {
            return CONDITION_NOT_MET;
        }
        match expiry {
            Some(expiry) => {
                hash.set_expiry(field, Some(expiry));
                HAS_EXPIRY
            }
            None => {
                hash.remove(field);
                IS_GONE
            }
        }
    }
}

impl<'a> UpdateCommand<'a> for HExpireParts<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + self.fields.len() * ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let (mut expire, mut are_gone) = (false, false);
        change_each(keys, self.key, self.fields, reply, |hash, field| {
            let outcome = self.expire(hash, field, now_ms);
            expire |= outcome == HAS_EXPIRY;
            are_gone |= outcome == IS_GONE;
            outcome
        })?;
        if expire {
            keys.notify(KeyEvent::HExpire, self.key);
        }
        if are_gone {
            keys.notify_removal(KeyEvent::HDel, self.key);
        }
        Ok(())
    }
}
