//! HPERSIST.

use super::field_options::{FIELD_UPDATE, NO_EXPIRY, NO_FIELD, change_each, parse_fields};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::field_error::FieldError;
use syros_values::Hash;

/// HPERSIST: answers of each field -2 if there is none, -1 if it does not expire, and 1 if it does so no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HPersist<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The fields.
    pub fields: Arguments<'a>,
}

fields!(HPersist<'a> = 380 { key: Key, fields: Elements<1> });

impl<'a> Definition<'a> for HPersist<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hpersist",
        arity: -5,
        since: "7.4.0",
        summary: "Removes the expiry of fields of a hash.",
        parser: |_, words| {
            let fields = parse_fields(&words[2..], 1, CommandError::Field(FieldError::CountNotPositive))?;
            Ok(HPersist { key: words[1], fields }.into())
        },
        ..FIELD_UPDATE
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

const PERSISTS: i64 = 1;

/// Carries it out on one field, and says what it answers.
fn persist(hash: &mut Hash, field: &[u8], now_ms: u64) -> i64 {
    let live = hash.at(now_ms);
    match (live.get(field), live.expiry(field)) {
        (None, _) => NO_FIELD,
        (Some(_), None) => NO_EXPIRY,
        (Some(_), Some(_)) => {
            hash.set_expiry(field, None);
            PERSISTS
        }
    }
}

impl<'a> UpdateCommand<'a> for HPersist<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        let mut have_changed = false;
        change_each(keys, self.key, self.fields, reply, |hash, field| {
            let outcome = persist(hash, field, now_ms);
            have_changed |= outcome == PERSISTS;
            outcome
        })?;
        if have_changed {
            keys.notify(KeyEvent::HPersist, self.key);
        }
        Ok(())
    }
}
