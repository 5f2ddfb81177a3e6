//! What the commands on fields that expire have in common: FIELDS, and when fields expire.

use super::{ROW, hash_of};
use crate::access::{Expiry, Keys, KeysMut};
use crate::arguments::Arguments;
use crate::deadline::{Deadline, ExpiryUnit, deadline_kind};
use crate::encoding::Field;
use crate::error::{CommandError, ExecutionError};
use crate::families::definition::ExecutionResult;
use crate::families::elements::put_optional;
use crate::families::specification::{CommandKind, CommandSpec};
use crate::field_error::FieldError;
use crate::limits::UPDATE_REPLY_BYTES_MAX;
use crate::primitive::{Malformed, take_u8};
use crate::reply::{put_array, put_integer};
use crate::words::{Words, integer, is};
use core::num::NonZeroU64;
use syros_types::limits::KEYS_PER_OPERATION_MAX;
use syros_values::Hash;

/// What becomes of the expiry of fields that a command gets or sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldTtl {
    /// They stay.
    Stay,
    /// KEEPTTL: it is what it was.
    Keep,
    /// EX, PX, EXAT, PXAT: they expire then.
    Until(Deadline),
}

/// Kinds beside those of [`Deadline`].
mod ttl_kind {
    pub(super) const STAY: u8 = 0;
    pub(super) const KEEP: u8 = 3;
}

impl<'a> Field<'a> for FieldTtl {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        match content {
            Self::Stay => out.push(ttl_kind::STAY),
            Self::Keep => out.push(ttl_kind::KEEP),
            Self::Until(deadline) => Deadline::put(out, deadline),
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(match take_u8(input)? {
            ttl_kind::STAY => Self::Stay,
            ttl_kind::KEEP => Self::Keep,
            kind @ (deadline_kind::AFTER | deadline_kind::AT) => {
                Self::Until(Deadline::take_of_kind(kind, input)?)
            }
            other => return Err(Malformed::Options(other)),
        })
    }
}

/// When a field expires that has this deadline; `None` if that is past. No field expires later than it can.
pub(super) fn expiry_of(deadline: Deadline, now_ms: u64) -> Expiry {
    let ms = deadline.resolve(now_ms).min(Hash::EXPIRY_MS_MAX);
    NonZeroU64::new(ms).filter(|_| ms > now_ms)
}

/// The deadline that a word is, of a field.
pub(super) fn parse_deadline(
    unit: ExpiryUnit,
    name: &'static str,
    word: &[u8],
) -> Result<Deadline, CommandError> {
    let value = integer(word)?;
    if value < 0 {
        return Err(CommandError::NegativeExpireTime);
    }
    let deadline = unit.deadline(name, value)?;
    let (Deadline::After(ms) | Deadline::At(ms)) = deadline;
    if ms > Hash::EXPIRY_MS_MAX { Err(CommandError::InvalidExpireTime(name)) } else { Ok(deadline) }
}

/// The fields behind FIELDS and their number, `step` words each.
pub(super) fn parse_fields<'a>(
    words: Words<'a>,
    step: usize,
    not_positive: CommandError,
) -> Result<Arguments<'a>, CommandError> {
    let [word, count, fields @ ..] = words else { return Err(CommandError::Field(FieldError::Missing)) };
    if !is(word, "fields") {
        return Err(CommandError::Field(FieldError::Missing));
    }
    let count = integer(count).ok().and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|count| *count > 0).ok_or(not_positive)?;
    if count.checked_mul(step) != Some(fields.len()) {
        return Err(CommandError::Field(FieldError::CountDiffers));
    }
    if count > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyElements(count));
    }
    Ok(Arguments::new(fields))
}

/// Answers of a field that is not there.
pub(super) const NO_FIELD: i64 = -2;

/// Answers of a field that does not expire.
pub(super) const NO_EXPIRY: i64 = -1;

/// Changes each of these fields, and appends what `change` answers of it. Of a key that does not exist no field is there.
pub(super) fn change_each<K: KeysMut>(
    keys: &mut K,
    key: &[u8],
    fields: Arguments<'_>,
    reply: &mut Vec<u8>,
    mut change: impl FnMut(&mut Hash, &[u8]) -> i64,
) -> ExecutionResult {
    let exists = hash_of(keys, keys.get(key).as_ref())?.is_some();
    put_array(reply, fields.len());
    if !exists {
        fields.iter().for_each(|_| put_integer(reply, NO_FIELD));
        return Ok(());
    }
    keys.edit_collection(key, |hash: &mut Hash| {
        fields.iter().for_each(|field| put_integer(reply, change(hash, field)));
    })?;
    Ok(())
}

/// Appends the values of fields that an update is about to change or remove. They may not be too long together.
pub(super) fn put_values<K: Keys>(
    keys: &K,
    key: &[u8],
    fields: Arguments<'_>,
    reply: &mut Vec<u8>,
) -> ExecutionResult {
    let found = keys.get(key);
    let hash = hash_of(keys, found.as_ref())?;
    put_array(reply, fields.len());
    let start = reply.len();
    for field in fields {
        put_optional(reply, hash.as_ref().and_then(|hash| hash.get(field)));
        // A value may be as long as the limit, and must not stay for that.
        if fields.len() > 1 && reply.len() - start > UPDATE_REPLY_BYTES_MAX {
            return Err(ExecutionError::UpdateReplyTooLong);
        }
    }
    Ok(())
}

/// What the rows of updates of fields have in common.
pub(super) const FIELD_UPDATE: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    key_flags: &[&["RW", "update"]],
    flags: &["write", "fast"],
    categories: &["@write", "@hash", "@fast"],
    ..ROW
};
