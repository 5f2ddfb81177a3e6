//! TTL and PTTL, EXPIRETIME and PEXPIRETIME.

use crate::access::{EntryRef as _, Keys};
use crate::encoding::{Encoding, Field as _, Key, Opcode};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::{CommandKind, CommandSpec, KeyPositions, LookupReply};
use crate::primitive::Malformed;
use crate::reply::put_integer;

/// TTL and PTTL: time left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The unit of the answer.
    pub unit: Unit,
}

/// EXPIRETIME and PEXPIRETIME: the moment of expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpireTime<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The unit of the answer.
    pub unit: Unit,
}

/// Unit in which a time is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds, rounded to the nearest.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// Implements [`Encoding`] for an operation that is a key and a unit, of which the opcode is the unit.
macro_rules! opcodes_of_units {
    ($name:ident: $seconds:literal, $milliseconds:literal) => {
        impl $name<'_> {
            /// The opcode with [`Unit::Milliseconds`].
            pub(crate) const OPCODE_MILLISECONDS: Opcode = $milliseconds;
        }

        impl<'a> Encoding<'a> for $name<'a> {
            /// The opcode with [`Unit::Seconds`].
            const OPCODE: Opcode = $seconds;

            fn opcode(&self) -> Opcode {
                match self.unit {
                    Unit::Seconds => Self::OPCODE,
                    Unit::Milliseconds => Self::OPCODE_MILLISECONDS,
                }
            }

            fn encode(&self, out: &mut Vec<u8>) {
                Key::put(out, self.key);
            }

            fn decode(opcode: Opcode, input: &mut &'a [u8]) -> Result<Self, Malformed> {
                let unit = if opcode == Self::OPCODE { Unit::Seconds } else { Unit::Milliseconds };
                Ok(Self { key: Key::take(input)?, unit })
            }
        }
    };
}

opcodes_of_units!(Ttl: 7, 8);
opcodes_of_units!(ExpireTime: 9, 10);

/// What the rows have in common.
const ROW: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    arity: 2,
    keys: KeyPositions::ONE,
    key_flags: &[&["RO", "access"]],
    flags: &["readonly", "fast"],
    categories: &["@keyspace", "@read", "@fast"],
    lookup: LookupReply::Number { miss: -2 },
    ..super::ROW
};

impl<'a> Definition<'a> for Ttl<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "pttl",
            tips: &["nondeterministic_output"],
            since: "2.6.0",
            summary: "Returns the time to live of a key in milliseconds.",
            parser: |_, words| Ok(Ttl { key: words[1], unit: Unit::Milliseconds }.into()),
            ..ROW
        },
        CommandSpec {
            name: "ttl",
            tips: &["nondeterministic_output"],
            since: "1.0.0",
            summary: "Returns the time to live of a key in seconds.",
            parser: |_, words| Ok(Ttl { key: words[1], unit: Unit::Seconds }.into()),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl<'a> Definition<'a> for ExpireTime<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "expiretime",
            since: "7.0.0",
            summary: "Returns the expiry of a key as a Unix time in seconds.",
            parser: |_, words| Ok(ExpireTime { key: words[1], unit: Unit::Seconds }.into()),
            ..ROW
        },
        CommandSpec {
            name: "pexpiretime",
            since: "7.0.0",
            summary: "Returns the expiry of a key as a Unix time in milliseconds.",
            parser: |_, words| Ok(ExpireTime { key: words[1], unit: Unit::Milliseconds }.into()),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

impl ReadCommand for Ttl<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let left = |last: u64| last.saturating_sub(view.now.as_millis());
        put_integer(reply, time_of(keys, self.key, self.unit, left));
        Ok(())
    }
}

impl ReadCommand for ExpireTime<'_> {
    fn read<K: Keys>(&self, keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        put_integer(reply, time_of(keys, self.key, self.unit, |last| last));
        Ok(())
    }
}

/// What TTL and EXPIRETIME answer: -2 for no key, -1 for no expiry, else what `show` makes of the last
/// millisecond in which the key is there, seconds rounded to the nearest.
fn time_of<K: Keys>(keys: &K, key: &[u8], unit: Unit, show: impl FnOnce(u64) -> u64) -> i64 {
    let Some(found) = keys.get(key) else { return -2 };
    let Some(expiry) = found.expiry() else { return -1 };
    let ms = show(expiry.get() - 1);
    // An expiry is at most the largest signed number.
    match unit {
        Unit::Milliseconds => ms as i64,
        Unit::Seconds => ((ms + 500) / 1000) as i64,
    }
}
