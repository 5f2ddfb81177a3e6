//! Operations as bytes.
//!
//! An operation is an opcode, whose highest bit says "blind", and its fields in the order of their
//! declaration. Numbers are little-endian base-128 varints in their shortest form, signed ones
//! zigzagged; byte strings are a varint length and the bytes; lists are a varint count and the strings.
//! Every operation has exactly one encoding. Opcodes are fixed for ever: logs and peers hold them.

use crate::extended::Extended;
use crate::limits::{EXPIRY_MS_MAX, PATTERN_BYTES_MAX, RELATIVE_EXPIRY_MS_MAX};
use crate::operation::{
    Arguments, Command, Condition, Deadline, ExpireCondition, Lifetime, Operation, Source, TtlChange, Unit,
};
use crate::primitive::{
    Malformed, put_bytes, put_signed, take_bytes_up_to, take_signed, take_u8, take_up_to,
};
use syros_types::limits::{BODY_BYTES_MAX, KEY_BYTES_MAX, KEYS_PER_OPERATION_MAX, VALUE_BYTES_MAX};
use syros_types::varint::{put_varint, take_varint};

/// The bit of an opcode that marks a blind operation.
const BLIND: u8 = 0x80;

mod opcode {
    pub(super) const GET: u8 = 1;
    pub(super) const MGET: u8 = 2;
    pub(super) const STRLEN: u8 = 3;
    pub(super) const GETRANGE: u8 = 4;
    pub(super) const EXISTS: u8 = 5;
    pub(super) const TYPE: u8 = 6;
    pub(super) const TTL: u8 = 7;
    pub(super) const PTTL: u8 = 8;
    pub(super) const EXPIRETIME: u8 = 9;
    pub(super) const PEXPIRETIME: u8 = 10;
    pub(super) const SCAN: u8 = 11;
    pub(super) const KEYS: u8 = 12;
    pub(super) const RANDOMKEY: u8 = 13;
    pub(super) const DBSIZE: u8 = 14;
    /// SET without options.
    pub(super) const SET: u8 = 32;
    /// SET with at least one option.
    pub(super) const SET_WITH: u8 = 33;
    pub(super) const MSET: u8 = 34;
    pub(super) const MSETNX: u8 = 35;
    pub(super) const SETNX: u8 = 36;
    pub(super) const GETDEL: u8 = 37;
    pub(super) const GETEX: u8 = 38;
    pub(super) const APPEND: u8 = 39;
    pub(super) const SETRANGE: u8 = 40;
    pub(super) const INCRBY: u8 = 41;
    pub(super) const INCRBYFLOAT: u8 = 42;
    pub(super) const DEL: u8 = 43;
    pub(super) const RENAME: u8 = 44;
    pub(super) const RENAMENX: u8 = 45;
    pub(super) const EXPIRE: u8 = 46;
    pub(super) const PERSIST: u8 = 47;
    pub(super) const FLUSHALL: u8 = 48;
}

/// Bits of the option byte of SET: two for the condition, two for the lifetime's kind, one for GET.
mod set_option {
    pub(super) const IF_ABSENT: u8 = 1;
    pub(super) const IF_PRESENT: u8 = 2;
    pub(super) const KEEP: u8 = 1 << 2;
    pub(super) const AFTER: u8 = 2 << 2;
    pub(super) const AT: u8 = 3 << 2;
    pub(super) const GET: u8 = 1 << 4;
    pub(super) const CONDITION_MASK: u8 = 3;
    pub(super) const LIFETIME_MASK: u8 = 3 << 2;
    pub(super) const ALL: u8 = GET | LIFETIME_MASK | CONDITION_MASK;
}

/// Bits of SCAN's option byte.
mod scan_option {
    pub(super) const PATTERN: u8 = 1;
    pub(super) const TYPE: u8 = 2;
}

/// Kinds of deadline, as GETEX and EXPIRE write them.
mod deadline_kind {
    pub(super) const PERSIST: u8 = 0;
    pub(super) const AFTER: u8 = 1;
    pub(super) const AT: u8 = 2;
    pub(super) const NOT_INTEGER: u8 = 3;
    pub(super) const INVALID: u8 = 4;
}

fn put_list(out: &mut Vec<u8>, list: Arguments<'_>) {
    put_varint(out, list.len() as u64);
    for bytes in list {
        put_bytes(out, bytes);
    }
}

fn take_key<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    take_bytes_up_to(input, KEY_BYTES_MAX as u64)
}

fn take_value<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    take_bytes_up_to(input, VALUE_BYTES_MAX as u64)
}

fn take_pattern<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    take_bytes_up_to(input, PATTERN_BYTES_MAX as u64)
}

/// A non-empty list of keys or, with `step` 2, of keys and values in turn.
fn take_list<'a>(input: &mut &'a [u8], step: u64) -> Result<Arguments<'a>, Malformed> {
    let count = take_up_to(input, step * KEYS_PER_OPERATION_MAX as u64)?;
    if count == 0 || !count.is_multiple_of(step) {
        return Err(Malformed::Count(count));
    }
    let start = *input;
    for index in 0..count {
        if index % step == 0 {
            take_key(input)?
        } else {
            take_value(input)?
        };
    }
    let bytes = &start[..start.len() - input.len()];
    Ok(Arguments(Source::Encoded { count: count as usize, bytes }))
}

fn take_after(input: &mut &[u8]) -> Result<Deadline, Malformed> {
    Ok(Deadline::After(take_up_to(input, RELATIVE_EXPIRY_MS_MAX)?))
}

fn take_at(input: &mut &[u8]) -> Result<Deadline, Malformed> {
    Ok(Deadline::At(take_up_to(input, EXPIRY_MS_MAX)?))
}

fn put_deadline_ms(out: &mut Vec<u8>, deadline: Deadline) {
    match deadline {
        Deadline::After(ms) | Deadline::At(ms) => put_varint(out, ms),
    }
}

const fn kind_of(deadline: Deadline) -> u8 {
    match deadline {
        Deadline::After(_) => deadline_kind::AFTER,
        Deadline::At(_) => deadline_kind::AT,
    }
}

impl<'a> Operation<'a> {
    /// Appends the operation's only encoding. What [`parse`](crate::parse) returns is within all
    /// limits; an operation built by hand has to be, or [`Operation::decode`] will refuse it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.command.opcode() | if self.blind { BLIND } else { 0 });
        self.command.encode_fields(out);
    }

    /// Takes one operation off the front of `input`, which is left behind it.
    ///
    /// # Errors
    /// [`Malformed`] if the bytes are no operation within the limits; `input` is then unspecified.
    pub fn decode(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let byte = take_u8(input)?;
        let (blind, opcode) = (byte & BLIND != 0, byte & !BLIND);
        let command = Command::decode(opcode, input)?;
        if blind && command.is_read() {
            return Err(Malformed::BlindRead(opcode));
        }
        Ok(Self { command, blind })
    }
}

impl<'a> Command<'a> {
    const fn opcode(&self) -> u8 {
        match self {
            Self::Get { .. } => opcode::GET,
            Self::MGet { .. } => opcode::MGET,
            Self::StrLen { .. } => opcode::STRLEN,
            Self::GetRange { .. } => opcode::GETRANGE,
            Self::Exists { .. } => opcode::EXISTS,
            Self::Type { .. } => opcode::TYPE,
            Self::Ttl { unit: Unit::Seconds, .. } => opcode::TTL,
            Self::Ttl { unit: Unit::Milliseconds, .. } => opcode::PTTL,
            Self::ExpireTime { unit: Unit::Seconds, .. } => opcode::EXPIRETIME,
            Self::ExpireTime { unit: Unit::Milliseconds, .. } => opcode::PEXPIRETIME,
            Self::Scan { .. } => opcode::SCAN,
            Self::Keys { .. } => opcode::KEYS,
            Self::RandomKey => opcode::RANDOMKEY,
            Self::DbSize => opcode::DBSIZE,
            Self::Set { condition, lifetime, get, .. } => match (condition, lifetime, get) {
                (Condition::Always, Lifetime::Forever, false) => opcode::SET,
                _ => opcode::SET_WITH,
            },
            Self::MSet { .. } => opcode::MSET,
            Self::MSetNx { .. } => opcode::MSETNX,
            Self::SetNx { .. } => opcode::SETNX,
            Self::GetDel { .. } => opcode::GETDEL,
            Self::GetEx { .. } => opcode::GETEX,
            Self::Append { .. } => opcode::APPEND,
            Self::SetRange { .. } => opcode::SETRANGE,
            Self::IncrBy { .. } => opcode::INCRBY,
            Self::IncrByFloat { .. } => opcode::INCRBYFLOAT,
            Self::Del { .. } => opcode::DEL,
            Self::Rename { .. } => opcode::RENAME,
            Self::RenameNx { .. } => opcode::RENAMENX,
            Self::Expire { .. } => opcode::EXPIRE,
            Self::Persist { .. } => opcode::PERSIST,
            Self::FlushAll => opcode::FLUSHALL,
        }
    }

    fn encode_fields(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Get { key }
            | Self::StrLen { key }
            | Self::Type { key }
            | Self::Ttl { key, .. }
            | Self::ExpireTime { key, .. }
            | Self::GetDel { key }
            | Self::Persist { key }
            | Self::Keys { pattern: key } => put_bytes(out, key),
            Self::MGet { keys: list }
            | Self::Exists { keys: list }
            | Self::Del { keys: list }
            | Self::MSet { pairs: list }
            | Self::MSetNx { pairs: list } => put_list(out, list),
            Self::GetRange { key, start, end } => {
                put_bytes(out, key);
                put_signed(out, start);
                put_signed(out, end);
            }
            Self::Scan { cursor, pattern, count, only_type } => {
                let pattern_bit = if pattern.is_some() { scan_option::PATTERN } else { 0 };
                let type_bit = if only_type.is_some() { scan_option::TYPE } else { 0 };
                out.push(pattern_bit | type_bit);
                put_varint(out, cursor);
                put_varint(out, count);
                pattern.into_iter().chain(only_type).for_each(|bytes| put_bytes(out, bytes));
            }
            Self::RandomKey | Self::DbSize | Self::FlushAll => {}
            Self::Set { key, value, condition, lifetime, get } => {
                put_set_options(out, condition, lifetime, get);
                put_bytes(out, key);
                put_bytes(out, value);
            }
            Self::SetNx { key: first, value: second }
            | Self::Append { key: first, value: second }
            | Self::Rename { from: first, to: second }
            | Self::RenameNx { from: first, to: second } => {
                put_bytes(out, first);
                put_bytes(out, second);
            }
            Self::GetEx { key, change } => {
                put_bytes(out, key);
                match change {
                    TtlChange::Persist => out.push(deadline_kind::PERSIST),
                    TtlChange::NotInteger => out.push(deadline_kind::NOT_INTEGER),
                    TtlChange::Invalid => out.push(deadline_kind::INVALID),
                    TtlChange::Until(deadline) => {
                        out.push(kind_of(deadline));
                        put_deadline_ms(out, deadline);
                    }
                }
            }
            Self::SetRange { key, offset, value } => {
                put_bytes(out, key);
                put_varint(out, offset);
                put_bytes(out, value);
            }
            Self::IncrBy { key, delta } => {
                put_bytes(out, key);
                put_signed(out, delta);
            }
            Self::IncrByFloat { key, delta } => {
                put_bytes(out, key);
                out.extend_from_slice(&delta.to_bytes());
            }
            Self::Expire { key, deadline, condition } => {
                put_bytes(out, key);
                out.push(kind_of(deadline));
                put_deadline_ms(out, deadline);
                out.push(condition as u8);
            }
        }
    }

    fn decode(opcode: u8, input: &mut &'a [u8]) -> Result<Self, Malformed> {
        Ok(match opcode {
            opcode::GET => Self::Get { key: take_key(input)? },
            opcode::SET => Self::Set {
                key: take_key(input)?,
                value: take_value(input)?,
                condition: Condition::Always,
                lifetime: Lifetime::Forever,
                get: false,
            },
            opcode::SET_WITH => decode_set_with(input)?,
            opcode::MGET => Self::MGet { keys: take_list(input, 1)? },
            opcode::STRLEN => Self::StrLen { key: take_key(input)? },
            opcode::GETRANGE => {
                Self::GetRange { key: take_key(input)?, start: take_signed(input)?, end: take_signed(input)? }
            }
            opcode::EXISTS => Self::Exists { keys: take_list(input, 1)? },
            opcode::TYPE => Self::Type { key: take_key(input)? },
            opcode::TTL => Self::Ttl { key: take_key(input)?, unit: Unit::Seconds },
            opcode::PTTL => Self::Ttl { key: take_key(input)?, unit: Unit::Milliseconds },
            opcode::EXPIRETIME => Self::ExpireTime { key: take_key(input)?, unit: Unit::Seconds },
            opcode::PEXPIRETIME => Self::ExpireTime { key: take_key(input)?, unit: Unit::Milliseconds },
            opcode::SCAN => decode_scan(input)?,
            opcode::KEYS => Self::Keys { pattern: take_pattern(input)? },
            opcode::RANDOMKEY => Self::RandomKey,
            opcode::DBSIZE => Self::DbSize,
            opcode::MSET => Self::MSet { pairs: take_list(input, 2)? },
            opcode::MSETNX => Self::MSetNx { pairs: take_list(input, 2)? },
            opcode::SETNX => Self::SetNx { key: take_key(input)?, value: take_value(input)? },
            opcode::GETDEL => Self::GetDel { key: take_key(input)? },
            opcode::GETEX => {
                let key = take_key(input)?;
                let change = match take_u8(input)? {
                    deadline_kind::PERSIST => TtlChange::Persist,
                    deadline_kind::NOT_INTEGER => TtlChange::NotInteger,
                    deadline_kind::INVALID => TtlChange::Invalid,
                    kind => TtlChange::Until(take_deadline(input, kind)?),
                };
                Self::GetEx { key, change }
            }
            opcode::APPEND => Self::Append { key: take_key(input)?, value: take_value(input)? },
            opcode::SETRANGE => decode_set_range(input)?,
            opcode::INCRBY => Self::IncrBy { key: take_key(input)?, delta: take_signed(input)? },
            opcode::INCRBYFLOAT => {
                let key = take_key(input)?;
                let (bytes, rest) = input.split_first_chunk().ok_or(Malformed::Truncated)?;
                *input = rest;
                let delta = Extended::from_bytes(*bytes).ok_or(Malformed::Number)?;
                Self::IncrByFloat { key, delta }
            }
            opcode::DEL => Self::Del { keys: take_list(input, 1)? },
            opcode::RENAME => Self::Rename { from: take_key(input)?, to: take_key(input)? },
            opcode::RENAMENX => Self::RenameNx { from: take_key(input)?, to: take_key(input)? },
            opcode::EXPIRE => {
                let key = take_key(input)?;
                let kind = take_u8(input)?;
                let deadline = take_deadline(input, kind)?;
                Self::Expire { key, deadline, condition: take_expire_condition(input)? }
            }
            opcode::PERSIST => Self::Persist { key: take_key(input)? },
            opcode::FLUSHALL => Self::FlushAll,
            other => return Err(Malformed::Opcode(other)),
        })
    }
}

/// Writes SET's option byte and deadline; nothing if there are no options, which has its own opcode.
fn put_set_options(out: &mut Vec<u8>, condition: Condition, lifetime: Lifetime, get: bool) {
    let condition_bits = match condition {
        Condition::Always => 0,
        Condition::IfAbsent => set_option::IF_ABSENT,
        Condition::IfPresent => set_option::IF_PRESENT,
    };
    let lifetime_bits = match lifetime {
        Lifetime::Forever => 0,
        Lifetime::Keep => set_option::KEEP,
        Lifetime::Until(Deadline::After(_)) => set_option::AFTER,
        Lifetime::Until(Deadline::At(_)) => set_option::AT,
    };
    let options = condition_bits | lifetime_bits | if get { set_option::GET } else { 0 };
    if options == 0 {
        return;
    }
    out.push(options);
    if let Lifetime::Until(deadline) = lifetime {
        put_deadline_ms(out, deadline);
    }
}

fn decode_set_with<'a>(input: &mut &'a [u8]) -> Result<Command<'a>, Malformed> {
    let options = take_u8(input)?;
    if options == 0 || options & !set_option::ALL != 0 {
        return Err(Malformed::Options(options));
    }
    let condition = match options & set_option::CONDITION_MASK {
        0 => Condition::Always,
        set_option::IF_ABSENT => Condition::IfAbsent,
        set_option::IF_PRESENT => Condition::IfPresent,
        _ => return Err(Malformed::Options(options)),
    };
    let lifetime = match options & set_option::LIFETIME_MASK {
        set_option::KEEP => Lifetime::Keep,
        set_option::AFTER => Lifetime::Until(take_after(input)?),
        set_option::AT => Lifetime::Until(take_at(input)?),
        _ => Lifetime::Forever,
    };
    let get = options & set_option::GET != 0;
    Ok(Command::Set { key: take_key(input)?, value: take_value(input)?, condition, lifetime, get })
}

fn decode_scan<'a>(input: &mut &'a [u8]) -> Result<Command<'a>, Malformed> {
    let options = take_u8(input)?;
    if options & !(scan_option::PATTERN | scan_option::TYPE) != 0 {
        return Err(Malformed::Options(options));
    }
    let (cursor, count) = (take_varint(input)?, take_varint(input)?);
    if count == 0 {
        return Err(Malformed::Count(count));
    }
    let mut optional = |bit| (options & bit != 0).then(|| take_pattern(input)).transpose();
    let pattern = optional(scan_option::PATTERN)?;
    let only_type = optional(scan_option::TYPE)?;
    Ok(Command::Scan { cursor, pattern, count, only_type })
}

fn decode_set_range<'a>(input: &mut &'a [u8]) -> Result<Command<'a>, Malformed> {
    let (key, offset, value) = (take_key(input)?, take_varint(input)?, take_value(input)?);
    let end = offset.saturating_add(value.len() as u64);
    if !value.is_empty() && end > VALUE_BYTES_MAX as u64 {
        return Err(Malformed::TooLong { length: end, limit: VALUE_BYTES_MAX as u64 });
    }
    Ok(Command::SetRange { key, offset, value })
}

fn take_deadline(input: &mut &[u8], kind: u8) -> Result<Deadline, Malformed> {
    match kind {
        deadline_kind::AFTER => take_after(input),
        deadline_kind::AT => take_at(input),
        other => Err(Malformed::Options(other)),
    }
}

fn take_expire_condition(input: &mut &[u8]) -> Result<ExpireCondition, Malformed> {
    const CONDITIONS: [ExpireCondition; 6] = [
        ExpireCondition::Always,
        ExpireCondition::IfNone,
        ExpireCondition::IfSome,
        ExpireCondition::IfLater,
        ExpireCondition::IfEarlier,
        ExpireCondition::IfSomeAndEarlier,
    ];
    let byte = take_u8(input)?;
    CONDITIONS.get(usize::from(byte)).copied().ok_or(Malformed::Options(byte))
}

/// The most bytes that an operation's opcode, options, counts and numbers take besides its strings and
/// their length prefixes: opcode, option byte, and three varints of ten bytes.
const FIXED_BYTES_MAX: usize = 32;

/// A bound on the encoded length of an operation with strings of these lengths: never too low.
pub(crate) fn encoded_length_bound(strings: &[&[u8]]) -> usize {
    // A string within the limits has a length prefix of at most four bytes.
    strings.iter().map(|bytes| bytes.len() + 4).sum::<usize>() + FIXED_BYTES_MAX
}

const _: () = assert!(VALUE_BYTES_MAX < 1 << 28, "a length prefix has at most four bytes");
const _: () = assert!(encoded_length_of_largest() <= BODY_BYTES_MAX, "the largest SET fits into a body");

const fn encoded_length_of_largest() -> usize {
    VALUE_BYTES_MAX + KEY_BYTES_MAX + 8 + FIXED_BYTES_MAX
}
