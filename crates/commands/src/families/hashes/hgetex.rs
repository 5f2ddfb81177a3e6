//! HGETEX.

use super::field_options::{FIELD_UPDATE, FieldTtl, expiry_of, parse_deadline, parse_fields, put_values};
use super::hmget::HMGet;
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::deadline::ExpiryUnit;
use crate::encoding::{Elements, Key, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::elements::ELEMENT_BYTES;
use crate::families::indirect::Indirect;
use crate::families::specification::CommandSpec;
use crate::field_error::FieldError;
use crate::words::{Words, is};
use syros_values::Hash;

/// HGETEX with an option: answers the values of fields, and changes their expiry. Without one it is HMGET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HGetExParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What becomes of their expiry.
    pub ttl: FieldTtl,
    /// The fields.
    pub fields: Arguments<'a>,
}

/// The same, read again where it is needed.
pub type HGetEx<'a> = Indirect<'a, HGetExParts<'a>>;

fields!(HGetExParts<'a> = 325 { key: Key, ttl: FieldTtl, fields: Elements<1> });

impl<'a> Definition<'a> for HGetExParts<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hgetex",
        arity: -5,
        key_flags: &[&["RW", "access", "update"]],
        key_notes: "RW and UPDATE because it changes the TTL",
        since: "8.0.0",
        summary: "Returns the values of fields of a hash and optionally changes their expiry.",
        parser: |_, words| match parse(words)? {
            HGetExParts { key, ttl: FieldTtl::Keep, fields } => Ok(HMGet { key, fields }.into()),
            _ => Indirect::parse(words, parse),
        },
        ..FIELD_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    /// All together are not longer than one may be.
    fn values(&self) -> u32 {
        1
    }
}

fn parse(words: Words<'_>) -> Result<HGetExParts<'_>, CommandError> {
    let (ttl, rest) = match (ExpiryUnit::of_option(words[2]), &words[2..]) {
        (Some(unit), [_, value, rest @ ..]) => {
            (FieldTtl::Until(parse_deadline(unit, "hgetex", value)?), rest)
        }
        (None, [option, rest @ ..]) if is(option, "persist") => (FieldTtl::Stay, rest),
        (_, rest) => (FieldTtl::Keep, rest),
    };
    let fields = parse_fields(rest, 1, CommandError::Field(FieldError::CountNotPositive))?;
    Ok(HGetExParts { key: words[1], ttl, fields })
}

impl<'a> UpdateCommand<'a> for HGetExParts<'a> {
    fn growth(&self, encoded: usize) -> usize {
        if self.ttl == FieldTtl::Stay { 0 } else { encoded + self.fields.len() * ELEMENT_BYTES }
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_values(keys, self.key, self.fields, reply)?;
        if keys.get(self.key).is_none() {
            return Ok(());
        }
        let mut event = None;
        keys.edit_collection(self.key, |hash: &mut Hash| {
            for field in self.fields {
                if hash.at(now_ms).get(field).is_none() {
                    continue;
                }
                match self.ttl {
                    FieldTtl::Keep => {}
                    FieldTtl::Stay => {
                        if hash.at(now_ms).expiry(field).is_some() {
                            event = Some(KeyEvent::HPersist);
                        }
                        hash.set_expiry(field, None);
                    }
                    FieldTtl::Until(deadline) => match expiry_of(deadline, now_ms) {
                        None => {
                            hash.remove(field);
                            event = Some(KeyEvent::HDel);
                        }
                        expiry => {
                            hash.set_expiry(field, expiry);
                            event = Some(KeyEvent::HExpire);
                        }
                    },
                }
            }
        })?;
        if let Some(event) = event {
            keys.notify_removal(event, self.key);
        }
        Ok(())
    }
}
