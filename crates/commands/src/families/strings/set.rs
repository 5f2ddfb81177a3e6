//! SET, and the commands that are a SET with an option: SETEX, PSETEX and GETSET.

use super::{ROW, put_value, string_of};
use crate::access::{EntryRef as _, KeyEvent, KeysMut};
use crate::deadline::{Deadline, ExpiryOption, ExpiryUnit, future};
use crate::encoding::{Encoding, Field as _, Key, Opcode, Value};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KEY_BYTES, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions};
use crate::primitive::{Malformed, take_u8};
use crate::reply::{put_nil, put_ok};
use crate::words::{Words, is};
use core::fmt;

/// SET with any options, SETEX, PSETEX, GETSET.
///
/// It is the most frequent of all updates, and its options are many: those of an IFEQ are read again where they are needed.
#[derive(Clone, Copy)]
pub struct Set<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its new value.
    pub value: &'a [u8],
    options: Options<'a>,
}

/// What else it says.
#[derive(Clone, Copy)]
enum Options<'a> {
    /// All of it.
    Simple { existence: Existence, lifetime: Lifetime, get: bool },
    /// The words of a SET with IFEQ, which have been read before.
    Words(Words<'a>),
    /// Its fields, which have been read before.
    Fields(&'a [u8]),
}

/// The conditions that name no value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Existence {
    Any,
    Absent,
    Present,
}

/// All that a SET says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetParts<'a> {
    /// The key.
    pub key: &'a [u8],
    /// Its new value.
    pub value: &'a [u8],
    /// Whether it is set at all.
    pub condition: Condition<'a>,
    /// What becomes of its expiry.
    pub lifetime: Lifetime,
    /// True if the old value is the reply.
    pub get: bool,
}

/// Condition of a SET.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition<'a> {
    /// None.
    #[default]
    Always,
    /// NX: only a key that does not exist.
    IfAbsent,
    /// XX: only a key that exists.
    IfPresent,
    /// IFEQ, which Valkey 8.1 has: only a key whose string is this one.
    IfEqual(&'a [u8]),
}

/// What a SET does to the key's expiry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// The key will not expire.
    #[default]
    Forever,
    /// KEEPTTL: the old expiry stays.
    Keep,
    /// EX, PX, EXAT, PXAT.
    Until(Deadline),
}

impl<'a> Set<'a> {
    /// The SET without options.
    #[must_use]
    pub const fn new(key: &'a [u8], value: &'a [u8]) -> Self {
        let options = Options::Simple { existence: Existence::Any, lifetime: Lifetime::Forever, get: false };
        Self { key, value, options }
    }

    /// A SET without a condition.
    #[must_use]
    pub const fn unconditional(key: &'a [u8], value: &'a [u8], lifetime: Lifetime, get: bool) -> Self {
        Self { key, value, options: Options::Simple { existence: Existence::Any, lifetime, get } }
    }

    /// The opcode of SET with at least one option.
    pub(crate) const OPCODE_WITH_OPTIONS: Opcode = 33;

    /// The SET that says this; `compared` is where it is read from if it has an IFEQ.
    fn of(parts: &SetParts<'a>, compared: Options<'a>) -> Self {
        let SetParts { key, value, condition, lifetime, get } = *parts;
        let existence = match condition {
            Condition::Always => Existence::Any,
            Condition::IfAbsent => Existence::Absent,
            Condition::IfPresent => Existence::Present,
            Condition::IfEqual(_) => return Self { key, value, options: compared },
        };
        Self { key, value, options: Options::Simple { existence, lifetime, get } }
    }

    /// True if it has no options.
    #[inline]
    const fn is_plain(&self) -> bool {
        matches!(
            self.options,
            Options::Simple { existence: Existence::Any, lifetime: Lifetime::Forever, get: false }
        )
    }

    /// All that it says.
    ///
    /// # Panics
    /// If what has been read before cannot be read again.
    #[must_use]
    pub fn parts(&self) -> SetParts<'a> {
        match self.options {
            Options::Simple { existence, lifetime, get } => {
                let condition = match existence {
                    Existence::Any => Condition::Always,
                    Existence::Absent => Condition::IfAbsent,
                    Existence::Present => Condition::IfPresent,
                };
                SetParts { key: self.key, value: self.value, condition, lifetime, get }
            }
            Options::Words(words) => parse_parts("set", words).expect("these words have been read before"),
            Options::Fields(mut fields) => {
                decode_with_options(&mut fields).expect("these bytes have been read before")
            }
        }
    }
}

impl fmt::Debug for Set<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().fmt(f)
    }
}

impl PartialEq for Set<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Set<'_> {}

impl SetParts<'_> {
    /// The option byte; 0 if there are no options, and then it is not written.
    const fn options(&self) -> u8 {
        let condition_bits = match self.condition {
            Condition::Always => 0,
            Condition::IfAbsent => option_bit::IF_ABSENT,
            Condition::IfPresent => option_bit::IF_PRESENT,
            Condition::IfEqual(_) => option_bit::IF_EQUAL,
        };
        let lifetime_bits = match self.lifetime {
            Lifetime::Forever => 0,
            Lifetime::Keep => option_bit::KEEP,
            Lifetime::Until(Deadline::After(_)) => option_bit::AFTER,
            Lifetime::Until(Deadline::At(_)) => option_bit::AT,
        };
        condition_bits | lifetime_bits | if self.get { option_bit::GET } else { 0 }
    }
}

/// Bits of the option byte: two for the condition, two for the lifetime's kind, one for GET.
mod option_bit {
    pub(super) const IF_ABSENT: u8 = 1;
    pub(super) const IF_PRESENT: u8 = 2;
    pub(super) const IF_EQUAL: u8 = 3;
    pub(super) const KEEP: u8 = 1 << 2;
    pub(super) const AFTER: u8 = 2 << 2;
    pub(super) const AT: u8 = 3 << 2;
    pub(super) const GET: u8 = 1 << 4;
    pub(super) const CONDITION_MASK: u8 = 3;
    pub(super) const LIFETIME_MASK: u8 = 3 << 2;
    pub(super) const ALL: u8 = GET | LIFETIME_MASK | CONDITION_MASK;
}

impl<'a> Encoding<'a> for Set<'a> {
    const OPCODE: Opcode = 32;

    fn opcode(&self) -> Opcode {
        if self.is_plain() { Self::OPCODE } else { Self::OPCODE_WITH_OPTIONS }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let parts = self.parts();
        let options = parts.options();
        if options != 0 {
            out.push(options);
        }
        if let Lifetime::Until(deadline) = parts.lifetime {
            deadline.put_ms(out);
        }
        Key::put(out, self.key);
        Value::put(out, self.value);
        if let Condition::IfEqual(expected) = parts.condition {
            Value::put(out, expected);
        }
    }

    #[inline]
    fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        if opcode == Self::OPCODE {
            Ok(Self::new(Key::take(input)?, Value::take(input)?))
        } else {
            let start = *input;
            let parts = decode_with_options(input)?;
            Ok(Self::of(&parts, Options::Fields(&start[..start.len() - input.len()])))
        }
    }
}

fn decode_with_options<'a>(input: &mut &'a [u8]) -> Result<SetParts<'a>, Malformed> {
    let options = take_u8(input)?;
    if options == 0 || options & !option_bit::ALL != 0 {
        return Err(Malformed::Options(options));
    }
    let lifetime = match options & option_bit::LIFETIME_MASK {
        option_bit::KEEP => Lifetime::Keep,
        option_bit::AFTER => Lifetime::Until(Deadline::take_after(input)?),
        option_bit::AT => Lifetime::Until(Deadline::take_at(input)?),
        _ => Lifetime::Forever,
    };
    let get = options & option_bit::GET != 0;
    let (key, value) = (Key::take(input)?, Value::take(input)?);
    let condition = match options & option_bit::CONDITION_MASK {
        option_bit::IF_ABSENT => Condition::IfAbsent,
        option_bit::IF_PRESENT => Condition::IfPresent,
        option_bit::IF_EQUAL => Condition::IfEqual(Value::take(input)?),
        _ => Condition::Always,
    };
    Ok(SetParts { key, value, condition, lifetime, get })
}

/// What the rows of SETEX and PSETEX have in common.
const TIMED: CommandSpec = CommandSpec {
    kind: CommandKind::OVERWRITE,
    arity: 4,
    keys: KeyPositions::ONE,
    key_flags: &[&["OW", "update"]],
    flags: &["write", "denyoom"],
    categories: &["@write", "@string", "@slow"],
    ..ROW
};

impl<'a> Definition<'a> for Set<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "getset",
            kind: CommandKind::UPDATE,
            arity: 3,
            keys: KeyPositions::ONE,
            key_flags: &[&["RW", "access", "update"]],
            flags: &["write", "denyoom", "fast"],
            categories: &["@write", "@string", "@fast"],
            since: "1.0.0",
            summary: "Sets the value of a key and returns the old value.",
            parser: |_, words| Ok(Set::unconditional(words[1], words[2], Lifetime::Forever, true).into()),
            ..ROW
        },
        CommandSpec {
            name: "psetex",
            since: "2.6.0",
            summary: "Sets the value of a key and its time to live in milliseconds.",
            parser: |name, words| parse_for(ExpiryUnit::Milliseconds, name, words),
            ..TIMED
        },
        CommandSpec {
            name: "set",
            kind: CommandKind::OVERWRITE,
            arity: -3,
            keys: KeyPositions::ONE,
            key_flags: &[&["RW", "access", "update", "variable_flags"]],
            key_notes: "RW and ACCESS due to the optional `GET` argument",
            flags: &["write", "denyoom"],
            categories: &["@write", "@string", "@slow"],
            since: "1.0.0",
            summary: "Sets the value of a key, and its expiry; optionally depending on whether it exists.",
            parser: parse,
            ..ROW
        },
        CommandSpec {
            name: "setex",
            since: "2.0.0",
            summary: "Sets the value of a key and its time to live in seconds.",
            parser: |name, words| parse_for(ExpiryUnit::Seconds, name, words),
            ..TIMED
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }

    fn values(&self) -> u32 {
        u32::from(self.parts().get)
    }
}

fn parse<'a>(name: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let parts = parse_parts(name, words)?;
    Ok(Set::of(&parts, Options::Words(words)).into())
}

fn parse_parts<'a>(name: &'static str, words: Words<'a>) -> Result<SetParts<'a>, CommandError> {
    let (key, value) = (words[1], words[2]);
    let (mut condition, mut keep, mut get) = (Condition::Always, false, false);
    let mut expiry = ExpiryOption::default();
    let mut options = words[3..].iter().copied();
    while let Some(option) = options.next() {
        if is(option, "nx") && matches!(condition, Condition::Always | Condition::IfAbsent) {
            condition = Condition::IfAbsent;
        } else if is(option, "xx") && matches!(condition, Condition::Always | Condition::IfPresent) {
            condition = Condition::IfPresent;
        } else if is(option, "ifeq") && condition == Condition::Always {
            condition = Condition::IfEqual(options.next().ok_or(CommandError::Syntax)?);
        } else if is(option, "get") {
            get = true;
        } else if is(option, "keepttl") && expiry.is_none() {
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
    Ok(SetParts { key, value, condition, lifetime, get })
}

/// SETEX and PSETEX.
fn parse_for<'a>(
    unit: ExpiryUnit,
    name: &'static str,
    words: Words<'a>,
) -> Result<Command<'a>, CommandError> {
    let lifetime = Lifetime::Until(unit.positive_deadline(name, words[2])?);
    Ok(Set::unconditional(words[1], words[3], lifetime, false).into())
}

impl<'a> UpdateCommand<'a> for Set<'a> {
    fn answers_ok(&self) -> bool {
        matches!(self.options, Options::Simple { existence: Existence::Any, get: false, .. })
    }

    fn overwrites_one_key(&self) -> bool {
        // With GET it fails if the key has a value of another kind.
        self.answers_ok() && !matches!(self.options, Options::Simple { lifetime: Lifetime::Keep, .. })
    }

    fn growth(&self, encoded: usize) -> usize {
        encoded + KEY_BYTES
    }

    fn apply<K: KeysMut>(&self, keys: &mut K, now_ms: u64, reply: &mut Vec<u8>) -> ExecutionResult {
        if self.is_plain() {
            keys.set(self.key, self.value, None);
            keys.notify(KeyEvent::Set, self.key);
            put_ok(reply);
            return Ok(());
        }
        let SetParts { key, value, condition, lifetime, get } = self.parts();
        if get {
            put_value(keys, key, reply)?;
        }
        let allowed = match condition {
            Condition::Always => true,
            Condition::IfAbsent => keys.get(key).is_none(),
            Condition::IfPresent => keys.get(key).is_some(),
            Condition::IfEqual(expected) => string_of(keys.get(key).as_ref())? == Some(expected),
        };
        if allowed {
            match lifetime {
                Lifetime::Forever => keys.set(key, value, None),
                Lifetime::Keep => {
                    let old = keys.get(key).and_then(|found| found.expiry());
                    keys.set(key, value, old);
                }
                Lifetime::Until(deadline) => match future(deadline, now_ms) {
                    Some(expiry) => keys.set(key, value, Some(expiry)),
                    None => {
                        if keys.notifies() && keys.get(key).is_none() {
                            keys.notify(KeyEvent::New, key);
                        }
                        keys.remove(key);
                    }
                },
            }
            notify(keys, key, lifetime, now_ms);
        }
        match (get, allowed) {
            (true, _) => {}
            (false, true) => put_ok(reply),
            (false, false) => put_nil(reply),
        }
        Ok(())
    }
}

/// Tells that a key was set. One whose expiry is in the past is set nevertheless, and expires at once.
fn notify<K: KeysMut>(keys: &mut K, key: &[u8], lifetime: Lifetime, now_ms: u64) {
    keys.notify(KeyEvent::Set, key);
    if let Lifetime::Until(deadline) = lifetime {
        keys.notify(KeyEvent::Expire, key);
        if future(deadline, now_ms).is_none() {
            keys.notify(KeyEvent::Expired, key);
        }
    }
}
