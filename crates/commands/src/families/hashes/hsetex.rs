//! HSETEX.

use super::field_options::{FieldTtl, expiry_of, parse_deadline, parse_fields};
use super::{GROWING_UPDATE, hash_of};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::deadline::ExpiryUnit;
use crate::encoding::{Elements, Key, choices, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::field_error::FieldError;
use crate::reply::put_integer;
use crate::words::{Words, is};
use syros_values::Hash;

/// HSETEX: answers 1 if the fields have their values, 0 if the condition is not met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HSetExParts<'a> {
    /// The key, which need not exist.
    pub key: &'a [u8],
    /// Whether they get their values.
    pub condition: FieldCondition,
    /// What becomes of their expiry.
    pub ttl: FieldTtl,
    /// Fields and their values in turn. Of a field that is named twice the last value counts.
    pub pairs: Arguments<'a>,
}

/// Condition of an HSETEX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FieldCondition {
    /// None.
    Always,
    /// FNX: only if there are none of the fields.
    IfNone,
    /// FXX: only if there are all of them.
    IfAll,
}

choices!(FieldCondition: Always, IfNone, IfAll);

/// The same, read again where it is needed.
pub type HSetEx<'a> = Indirect<'a, HSetExParts<'a>>;

fields!(HSetExParts<'a> = 326 { key: Key, condition: FieldCondition, ttl: FieldTtl, pairs: Elements<2> });

impl<'a> Definition<'a> for HSetExParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hsetex",
        arity: -6,
        key_flags: &[&["RW", "update"]],
        since: "8.0.0",
        summary: "Sets fields of a hash and optionally their expiry.",
        parser: |_, words| Indirect::parse(words, parse),
        ..GROWING_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<HSetExParts<'_>, CommandError> {
    let (mut condition, mut ttl) = (FieldCondition::Always, None);
    let mut rest = &words[2..];
    loop {
        let [option, behind @ ..] = rest else { return Err(CommandError::Field(FieldError::Missing)) };
        if is(option, "fields") {
            break;
        }
        rest = behind;
        let wanted = [("fnx", FieldCondition::IfNone), ("fxx", FieldCondition::IfAll)];
        if let Some((_, wanted)) = wanted.into_iter().find(|(word, _)| is(option, word)) {
            if condition != FieldCondition::Always {
                return Err(CommandError::Field(FieldError::SeveralConditions));
            }
            condition = wanted;
            continue;
        }
        let unit = ExpiryUnit::of_option(option);
        if unit.is_none() && !is(option, "keepttl") {
            return Err(CommandError::UnknownFieldOption(option.to_vec()));
        }
        if ttl.is_some() {
            return Err(CommandError::Field(FieldError::SeveralExpiries));
        }
        ttl = Some(match unit {
            None => FieldTtl::Keep,
            Some(unit) => {
                let [value, behind @ ..] = rest else { return Err(CommandError::Field(FieldError::Missing)) };
                rest = behind;
                FieldTtl::Until(parse_deadline(unit, "hsetex", value)?)
            }
        });
    }
    let pairs = parse_fields(rest, 2, CommandError::Field(FieldError::CountNotPositive))?;
    Ok(HSetExParts { key: words[1], condition, ttl: ttl.unwrap_or(FieldTtl::Stay), pairs })
}

impl HSetExParts<'_> {
    /// Sets one field.
    fn set(&self, hash: &mut Hash, (field, value): (&[u8], &[u8]), now_ms: u64) {
        match self.ttl {
            FieldTtl::Stay => drop(hash.set(field, value)),
            FieldTtl::Keep => hash.replace_at(field, value, now_ms),
            FieldTtl::Until(deadline) => match expiry_of(deadline, now_ms) {
                None => drop(hash.remove(field)),
                expiry => {
                    hash.set(field, value);
                    hash.set_expiry(field, expiry);
                }
            },
        }
    }
}

impl<'a> UpdateCommand<'a> for HSetExParts<'a> {
    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES + self.pairs.len() * ELEMENT_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let hash = hash_of(keys, found.as_ref())?;
        let is_there = |field| hash.as_ref().is_some_and(|hash| hash.get(field).is_some());
        let mut fields = self.pairs.pairs().map(|(field, _)| field);
        let allowed = match self.condition {
            FieldCondition::Always => true,
            FieldCondition::IfNone => !fields.any(is_there),
            FieldCondition::IfAll => fields.all(is_there),
        };
        drop(found);
        if allowed {
            keys.edit_collection(self.key, |hash: &mut Hash| {
                self.pairs.pairs().for_each(|pair| self.set(hash, pair, now_ms));
            })?;
            keys.notify(KeyEvent::HSet, self.key);
            if let FieldTtl::Until(deadline) = self.ttl {
                let is_past = expiry_of(deadline, now_ms).is_none();
                let event = if is_past { KeyEvent::HDel } else { KeyEvent::HExpire };
                keys.notify_removal(event, self.key);
            }
        }
        put_integer(reply, i64::from(allowed));
        Ok(())
    }
}
