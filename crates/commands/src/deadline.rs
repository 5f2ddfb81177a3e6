//! Deadlines of keys, which several commands have in common: as a type, as words, as bytes, and carried out.

use crate::access::{Expiry, KeyEvent, KeysMut};
use crate::encoding::Field;
use crate::error::CommandError;
use crate::limits::{EXPIRY_MS_MAX, RELATIVE_EXPIRY_MS_MAX};
use crate::primitive::{Malformed, take_u8, take_up_to};
use crate::words::{integer, is};
use core::num::NonZeroU64;
use syros_types::varint::put_varint;

/// The first millisecond of log time in which a key is gone. At or before the log time means at once.
///
/// A client counts milliseconds as Redis does: a key that expires at a millisecond is still there in all of it, so
/// that none goes before its time although clocks have more digits than the number. So what a client says is
/// one less than what stands here; bodies in older logs have what the client said, and mean what they meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// So long after the log time at which the operation executes; at most
    /// [`RELATIVE_EXPIRY_MS_MAX`](crate::limits::RELATIVE_EXPIRY_MS_MAX).
    After(u64),
    /// At this time since the Unix epoch; at most [`EXPIRY_MS_MAX`](crate::limits::EXPIRY_MS_MAX).
    At(u64),
}

impl Deadline {
    /// The expiry, in milliseconds since the Unix epoch, of an operation that executes at `now_ms`.
    #[must_use]
    pub const fn resolve(self, now_ms: u64) -> u64 {
        let expiry = match self {
            Self::After(ms) => now_ms.saturating_add(ms),
            Self::At(ms) => ms,
        };
        if expiry > EXPIRY_MS_MAX { EXPIRY_MS_MAX } else { expiry }
    }
}

/// Unit and origin of an expiry's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiryUnit {
    Seconds,
    Milliseconds,
    AtSeconds,
    AtMilliseconds,
}

impl ExpiryUnit {
    /// The unit that this word of SET or GETEX names.
    pub(crate) fn of_option(word: &[u8]) -> Option<Self> {
        const OPTIONS: [(&str, ExpiryUnit); 4] = [
            ("ex", ExpiryUnit::Seconds),
            ("px", ExpiryUnit::Milliseconds),
            ("exat", ExpiryUnit::AtSeconds),
            ("pxat", ExpiryUnit::AtMilliseconds),
        ];
        OPTIONS.iter().find(|(option, _)| is(word, option)).map(|(_, unit)| *unit)
    }

    /// The deadline `value` units away: one millisecond after the last one in which the key is there. A negative
    /// value is as good as 0, which is in the past.
    pub(crate) fn deadline(self, name: &'static str, value: i64) -> Result<Deadline, CommandError> {
        let per_unit = if matches!(self, Self::Seconds | Self::AtSeconds) { 1000 } else { 1 };
        let ms = value.checked_mul(per_unit).ok_or(CommandError::InvalidExpireTime(name))?;
        let gone_ms = u64::try_from(ms).map_or(0, |ms| if ms == 0 { 0 } else { ms + 1 });
        let (deadline, limit) = match self {
            Self::Seconds | Self::Milliseconds => (Deadline::After(gone_ms), RELATIVE_EXPIRY_MS_MAX),
            Self::AtSeconds | Self::AtMilliseconds => (Deadline::At(gone_ms), EXPIRY_MS_MAX),
        };
        if gone_ms > limit { Err(CommandError::InvalidExpireTime(name)) } else { Ok(deadline) }
    }

    /// As [`Self::deadline`], but only positive numbers are allowed: SET and its like.
    pub(crate) fn positive_deadline(self, name: &'static str, word: &[u8]) -> Result<Deadline, CommandError> {
        let value = integer(word)?;
        if value <= 0 {
            return Err(CommandError::InvalidExpireTime(name));
        }
        self.deadline(name, value)
    }
}

/// What SET's and GETEX's options say of the expiry: at most one unit, though it may be repeated, and
/// then the last number counts, as in Redis.
#[derive(Default)]
pub(crate) struct ExpiryOption<'a>(Option<(ExpiryUnit, &'a [u8])>);

impl<'a> ExpiryOption<'a> {
    /// True if no unit has been named.
    pub(crate) const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Takes `option` and its argument if it names a unit. True if it did.
    pub(crate) fn take(
        &mut self,
        option: &[u8],
        rest: &mut impl Iterator<Item = &'a [u8]>,
    ) -> Result<bool, CommandError> {
        let Some(unit) = ExpiryUnit::of_option(option) else { return Ok(false) };
        if self.0.is_some_and(|(other, _)| other != unit) {
            return Err(CommandError::Syntax);
        }
        self.0 = Some((unit, rest.next().ok_or(CommandError::Syntax)?));
        Ok(true)
    }

    /// The deadline that they ask for, if they do.
    pub(crate) fn deadline(&self, name: &'static str) -> Result<Option<Deadline>, CommandError> {
        self.0.map(|(unit, word)| unit.positive_deadline(name, word)).transpose()
    }
}

/// The first byte of a deadline where options of the operation do not say its kind.
pub(crate) mod deadline_kind {
    pub(crate) const AFTER: u8 = 1;
    pub(crate) const AT: u8 = 2;
}

impl Deadline {
    /// Appends the time without its kind.
    pub(crate) fn put_ms(self, out: &mut Vec<u8>) {
        match self {
            Self::After(ms) | Self::At(ms) => put_varint(out, ms),
        }
    }

    /// Takes the time of a [`Self::After`].
    pub(crate) fn take_after(input: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self::After(take_up_to(input, RELATIVE_EXPIRY_MS_MAX)?))
    }

    /// Takes the time of a [`Self::At`].
    pub(crate) fn take_at(input: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self::At(take_up_to(input, EXPIRY_MS_MAX)?))
    }

    /// Takes the time of a deadline of this kind.
    pub(crate) fn take_of_kind(kind: u8, input: &mut &[u8]) -> Result<Self, Malformed> {
        match kind {
            deadline_kind::AFTER => Self::take_after(input),
            deadline_kind::AT => Self::take_at(input),
            other => Err(Malformed::Options(other)),
        }
    }
}

/// The kind and the time.
impl<'a> Field<'a> for Deadline {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        out.push(match content {
            Self::After(_) => deadline_kind::AFTER,
            Self::At(_) => deadline_kind::AT,
        });
        content.put_ms(out);
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let kind = take_u8(input)?;
        Self::take_of_kind(kind, input)
    }
}

/// The expiry, unless it is not after log time.
pub(crate) fn future(deadline: Deadline, now_ms: u64) -> Expiry {
    NonZeroU64::new(deadline.resolve(now_ms)).filter(|expiry| expiry.get() > now_ms)
}

/// Gives a key, if it exists, an expiry, or removes it if that is in the past.
pub(crate) fn expire<K: KeysMut>(keys: &mut K, key: &[u8], deadline: Deadline, now_ms: u64) {
    match future(deadline, now_ms) {
        Some(expiry) => {
            if keys.notifies() && keys.get(key).is_some() {
                keys.notify(KeyEvent::Expire, key);
            }
            keys.set_expiry(key, Some(expiry));
        }
        None => keys.delete(key),
    }
}
