//! One parser for each command: from its words to what it does, refusing what Redis 7.0 refuses in the words it uses.

use crate::error::CommandError;
use crate::extended::Extended;
use crate::limits::{EXPIRY_MS_MAX, PATTERN_BYTES_MAX, RELATIVE_EXPIRY_MS_MAX};
use crate::number::parse_integer;
use crate::operation::{Arguments, Command, Condition, Deadline, ExpireCondition, Lifetime, TtlChange, Unit};
use syros_types::limits::VALUE_BYTES_MAX;

pub(crate) type Words<'a> = &'a [&'a [u8]];
pub(crate) type ParseResult<'a> = Result<Command<'a>, CommandError>;

fn integer(bytes: &[u8]) -> Result<i64, CommandError> {
    parse_integer(bytes).ok_or(CommandError::NotInteger)
}

fn is(word: &[u8], option: &str) -> bool {
    word.eq_ignore_ascii_case(option.as_bytes())
}

/// The place of commands that are no operation on data; [`parse`] never calls it.
pub(crate) fn no_data<'a>(name: &'static str, _: Words<'a>) -> ParseResult<'a> {
    Err(CommandError::BlindNotUpdate(name))
}

pub(crate) fn get<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::Get { key: words[1] })
}

pub(crate) fn mget<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::MGet { keys: Arguments::new(&words[1..]) })
}

pub(crate) fn str_len<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::StrLen { key: words[1] })
}

pub(crate) fn get_range<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::GetRange { key: words[1], start: integer(words[2])?, end: integer(words[3])? })
}

pub(crate) fn exists<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::Exists { keys: Arguments::new(&words[1..]) })
}

pub(crate) fn key_type<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::Type { key: words[1] })
}

pub(crate) fn ttl<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::Ttl { key: words[1], unit: Unit::Seconds })
}

pub(crate) fn pttl<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::Ttl { key: words[1], unit: Unit::Milliseconds })
}

pub(crate) fn expire_time<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::ExpireTime { key: words[1], unit: Unit::Seconds })
}

pub(crate) fn pexpire_time<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::ExpireTime { key: words[1], unit: Unit::Milliseconds })
}

/// SCAN's default COUNT, as in Redis.
const SCAN_COUNT: u64 = 10;

pub(crate) fn scan<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    let cursor = scan_cursor(words[1])?;
    let (mut pattern, mut count, mut only_type) = (None, SCAN_COUNT, None);
    let mut options = words[2..].iter().copied();
    while let Some(option) = options.next() {
        let argument = options.next().ok_or(CommandError::Syntax)?;
        if is(option, "count") {
            let value = integer(argument)?;
            count = u64::try_from(value).ok().filter(|count| *count > 0).ok_or(CommandError::Syntax)?;
        } else if is(option, "match") {
            check_pattern(argument)?;
            pattern = (argument != b"*").then_some(argument);
        } else if is(option, "type") {
            check_pattern(argument)?;
            only_type = Some(argument);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(Command::Scan { cursor, pattern, count, only_type })
}

/// A cursor is what C's `strtoul` reads: blanks are refused, a sign is not, and `-1` is the largest.
fn scan_cursor(word: &[u8]) -> Result<u64, CommandError> {
    let (negative, digits) = match word {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, word),
    };
    // An empty string is read as 0, up to its end.
    if word.is_empty() {
        return Ok(0);
    }
    if digits.is_empty() {
        return Err(CommandError::InvalidCursor);
    }
    let value = digits.iter().try_fold(0u64, |value, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    });
    let value = value.ok_or(CommandError::InvalidCursor)?;
    Ok(if negative { value.wrapping_neg() } else { value })
}

fn check_pattern(pattern: &[u8]) -> Result<(), CommandError> {
    if pattern.len() > PATTERN_BYTES_MAX {
        return Err(CommandError::PatternTooLong(pattern.len()));
    }
    Ok(())
}

pub(crate) fn keys<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    check_pattern(words[1])?;
    Ok(Command::Keys { pattern: words[1] })
}

pub(crate) fn random_key<'a>(_: &'static str, _: Words<'a>) -> ParseResult<'a> {
    Ok(Command::RandomKey)
}

pub(crate) fn db_size<'a>(_: &'static str, _: Words<'a>) -> ParseResult<'a> {
    Ok(Command::DbSize)
}

/// Unit and origin of an expiry's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpiryUnit {
    Seconds,
    Milliseconds,
    AtSeconds,
    AtMilliseconds,
}

impl ExpiryUnit {
    /// The unit that this word of SET or GETEX names.
    fn of_option(word: &[u8]) -> Option<Self> {
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
    fn deadline(self, name: &'static str, value: i64) -> Result<Deadline, CommandError> {
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
    fn positive_deadline(self, name: &'static str, word: &[u8]) -> Result<Deadline, CommandError> {
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
struct ExpiryOption<'a>(Option<(ExpiryUnit, &'a [u8])>);

impl<'a> ExpiryOption<'a> {
    /// Takes `option` and its argument if it names a unit. True if it did.
    fn take(
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

    fn deadline(&self, name: &'static str) -> Result<Option<Deadline>, CommandError> {
        self.0.map(|(unit, word)| unit.positive_deadline(name, word)).transpose()
    }
}

pub(crate) fn set<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    let (key, value) = (words[1], words[2]);
    let (mut condition, mut keep, mut get) = (Condition::Always, false, false);
    let mut expiry = ExpiryOption::default();
    let mut options = words[3..].iter().copied();
    while let Some(option) = options.next() {
        if is(option, "nx") && condition != Condition::IfPresent {
            condition = Condition::IfAbsent;
        } else if is(option, "xx") && condition != Condition::IfAbsent {
            condition = Condition::IfPresent;
        } else if is(option, "get") {
            get = true;
        } else if is(option, "keepttl") && expiry.0.is_none() {
            keep = true;
        } else if keep || !expiry.take(option, &mut options)? {
            return Err(CommandError::Syntax);
        }
    }
    let lifetime = match expiry.deadline(name)? {
        Some(deadline) => Lifetime::Until(deadline),
        None if keep => Lifetime::Keep,
        None => Lifetime::Forever,
    };
    Ok(Command::Set { key, value, condition, lifetime, get })
}

const fn plain_set<'a>(key: &'a [u8], value: &'a [u8], lifetime: Lifetime, get: bool) -> Command<'a> {
    Command::Set { key, value, condition: Condition::Always, lifetime, get }
}

pub(crate) fn set_ex<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    let deadline = ExpiryUnit::Seconds.positive_deadline(name, words[2])?;
    Ok(plain_set(words[1], words[3], Lifetime::Until(deadline), false))
}

pub(crate) fn pset_ex<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    let deadline = ExpiryUnit::Milliseconds.positive_deadline(name, words[2])?;
    Ok(plain_set(words[1], words[3], Lifetime::Until(deadline), false))
}

pub(crate) fn get_set<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(plain_set(words[1], words[2], Lifetime::Forever, true))
}

pub(crate) fn set_nx<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::SetNx { key: words[1], value: words[2] })
}

fn pairs<'a>(name: &'static str, words: Words<'a>) -> Result<Arguments<'a>, CommandError> {
    if words.len().is_multiple_of(2) {
        return Err(CommandError::Arity(name));
    }
    Ok(Arguments::new(&words[1..]))
}

pub(crate) fn mset<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::MSet { pairs: pairs(name, words)? })
}

pub(crate) fn mset_nx<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::MSetNx { pairs: pairs(name, words)? })
}

pub(crate) fn get_del<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::GetDel { key: words[1] })
}

pub(crate) fn get_ex<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    let key = words[1];
    let mut persist = false;
    let mut expiry = ExpiryOption::default();
    let mut options = words[2..].iter().copied();
    while let Some(option) = options.next() {
        if is(option, "persist") && expiry.0.is_none() {
            persist = true;
        } else if persist || !expiry.take(option, &mut options)? {
            return Err(CommandError::Syntax);
        }
    }
    Ok(match expiry.deadline(name) {
        Ok(Some(deadline)) => Command::GetEx { key, change: TtlChange::Until(deadline) },
        // A key that does not exist has no value, whatever the expiry would have been: only the engine can tell.
        Err(CommandError::NotInteger) => Command::GetEx { key, change: TtlChange::NotInteger },
        Err(CommandError::InvalidExpireTime(_)) => Command::GetEx { key, change: TtlChange::Invalid },
        Err(error) => return Err(error),
        Ok(None) if persist => Command::GetEx { key, change: TtlChange::Persist },
        Ok(None) => Command::Get { key },
    })
}

pub(crate) fn append<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::Append { key: words[1], value: words[2] })
}

pub(crate) fn set_range<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    let offset = u64::try_from(integer(words[2])?).map_err(|_| CommandError::OffsetOutOfRange)?;
    let value = words[3];
    if !value.is_empty() && offset.saturating_add(value.len() as u64) > VALUE_BYTES_MAX as u64 {
        return Err(CommandError::ValueTooLong);
    }
    Ok(Command::SetRange { key: words[1], offset, value })
}

pub(crate) fn incr<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::IncrBy { key: words[1], delta: 1 })
}

pub(crate) fn decr<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::IncrBy { key: words[1], delta: -1 })
}

pub(crate) fn incr_by<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::IncrBy { key: words[1], delta: integer(words[2])? })
}

pub(crate) fn decr_by<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    let delta = integer(words[2])?.checked_neg().ok_or(CommandError::DecrementOverflow)?;
    Ok(Command::IncrBy { key: words[1], delta })
}

pub(crate) fn incr_by_float<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    let delta = Extended::parse_argument(words[2]).ok_or(CommandError::NotFloat)?;
    Ok(Command::IncrByFloat { key: words[1], delta })
}

pub(crate) fn del<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::Del { keys: Arguments::new(&words[1..]) })
}

pub(crate) fn rename<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::Rename { from: words[1], to: words[2] })
}

pub(crate) fn rename_nx<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::RenameNx { from: words[1], to: words[2] })
}

fn expiry<'a>(name: &'static str, words: Words<'a>, unit: ExpiryUnit) -> ParseResult<'a> {
    let condition = expire_condition(&words[3..])?;
    let deadline = unit.deadline(name, integer(words[2])?)?;
    Ok(Command::Expire { key: words[1], deadline, condition })
}

fn expire_condition(options: Words<'_>) -> Result<ExpireCondition, CommandError> {
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

pub(crate) fn expire<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    expiry(name, words, ExpiryUnit::Seconds)
}

pub(crate) fn pexpire<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    expiry(name, words, ExpiryUnit::Milliseconds)
}

pub(crate) fn expire_at<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    expiry(name, words, ExpiryUnit::AtSeconds)
}

pub(crate) fn pexpire_at<'a>(name: &'static str, words: Words<'a>) -> ParseResult<'a> {
    expiry(name, words, ExpiryUnit::AtMilliseconds)
}

pub(crate) fn persist<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    Ok(Command::Persist { key: words[1] })
}

pub(crate) fn flush<'a>(_: &'static str, words: Words<'a>) -> ParseResult<'a> {
    match &words[1..] {
        [] => Ok(Command::FlushAll),
        [mode] if is(mode, "async") || is(mode, "sync") => Ok(Command::FlushAll),
        _ => Err(CommandError::Syntax),
    }
}
