//! HGETDEL.

use super::field_options::{FIELD_UPDATE, parse_fields, put_values};
use crate::access::{KeyEvent, KeysMut};
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, fields};
use crate::error::CommandError;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::CommandSpec;
use crate::field_error::FieldError;
use syros_values::Hash;

/// HGETDEL: answers the values of fields, and removes them. With its last field the key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HGetDel<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The fields.
    pub fields: Arguments<'a>,
}

fields!(HGetDel<'a> = 327 { key: Key, fields: Elements<1> });

impl<'a> Definition<'a> for HGetDel<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "hgetdel",
        arity: -5,
        key_flags: &[&["RW", "access", "delete"]],
        since: "8.0.0",
        summary: "Returns the values of fields of a hash and deletes the fields.",
        parser: |_, words| {
            let fields = parse_fields(&words[2..], 1, CommandError::Field(FieldError::CountNotPositive))?;
            Ok(HGetDel { key: words[1], fields }.into())
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

impl<'a> UpdateCommand<'a> for HGetDel<'a> {
    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        put_values(keys, self.key, self.fields, reply)?;
        if keys.get(self.key).is_some() {
            let removed = keys.edit_collection(self.key, |hash: &mut Hash| {
                self.fields.iter().filter(|field| hash.remove_at(field, now_ms)).count()
            })?;
            if removed > 0 {
                keys.notify_removal(KeyEvent::HDel, self.key);
            }
        }
        Ok(())
    }
}
