//! OBJECT: how a key's value is kept.
//!
//! Its answers are any member's word. Each member knows of the uses of a key that it has seen itself, and only while a policy
//! of eviction asks for them.

use super::ROW;
use crate::access::{EntryRef, Keys, Uses};
use crate::encoding::{Key, choices, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::length_of;
use crate::families::specification::{CommandKind, CommandSpec, SubcommandSpec};
use crate::number::parse_integer;
use crate::rdb;
use crate::reply::{put_bulk, put_integer, put_nil, put_simple};
use crate::words::{Words, is};
use syros_values::{Kind, List, Set, SortedSet, WrongType};

/// OBJECT ENCODING, FREQ, IDLETIME and REFCOUNT: nil if the key does not exist. DEBUG OBJECT: an error then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object<'a> {
    /// What is asked for.
    pub aspect: ObjectAspect,
    /// The key.
    pub key: &'a [u8],
}

/// What OBJECT tells of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ObjectAspect {
    /// ENCODING: the name that Redis 7.2 has for the form of such a value.
    Encoding,
    /// FREQ: how often it is used, as a logarithm; an error unless the policy of eviction goes by that.
    Frequency,
    /// IDLETIME: seconds since it was used, 0 if no policy asks for that; an error if the policy of eviction goes by
    /// frequencies.
    IdleTime,
    /// REFCOUNT: 1.
    ReferenceCount,
    /// DEBUG OBJECT: a line with all of that, and how long the value is in an RDB file. Builds before wire format 16 do not
    /// know it.
    Everything,
}

/// The names of the aspects, in the order of their numbers, as subcommands.
const ASPECTS: [(&str, &str, ObjectAspect); 4] = [
    ("encoding", "object|encoding", ObjectAspect::Encoding),
    ("freq", "object|freq", ObjectAspect::Frequency),
    ("idletime", "object|idletime", ObjectAspect::IdleTime),
    ("refcount", "object|refcount", ObjectAspect::ReferenceCount),
];

choices!(ObjectAspect: Encoding, Frequency, IdleTime, ReferenceCount, Everything);

fields!(Object<'a> = 316 { aspect: ObjectAspect, key: Key });

/// What the subcommands that name a key have in common.
const OF_KEY: SubcommandSpec = SubcommandSpec {
    name: "",
    arity: 3,
    flags: &["readonly"],
    categories: &["@keyspace", "@read", "@slow"],
    tips: &["nondeterministic_output"],
};

impl<'a> Definition<'a> for Object<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "object",
        kind: CommandKind::READ,
        arity: -2,
        categories: &["@slow"],
        subcommand_keys: &[&["RO"], &["RO"], &[], &["RO"], &["RO"]],
        since: "2.2.3",
        summary: "Tells how the value of a key is kept.",
        subcommands: &[
            SubcommandSpec { name: "object|encoding", ..OF_KEY },
            SubcommandSpec { name: "object|freq", ..OF_KEY },
            SubcommandSpec {
                name: "object|help",
                arity: 2,
                flags: &["loading", "stale"],
                categories: &["@keyspace", "@slow"],
                tips: &[],
            },
            SubcommandSpec { name: "object|idletime", ..OF_KEY },
            SubcommandSpec { name: "object|refcount", ..OF_KEY },
        ],
        parser: |_, words| parse(words),
        ..ROW
    }];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    let found = ASPECTS.iter().find(|(word, ..)| is(words[1], word));
    let (_, name, aspect) = found.ok_or_else(|| CommandError::unknown_subcommand("object", words[1]))?;
    match words[2..] {
        [key] => Ok(Object { aspect: *aspect, key }.into()),
        _ => Err(CommandError::Arity(name)),
    }
}

/// The words of DEBUG, of which OBJECT reads data.
pub(crate) fn parse_debug(words: Words<'_>) -> Result<Command<'_>, CommandError> {
    match *words {
        [_, object, key] if is(object, "object") => {
            Ok(Object { aspect: ObjectAspect::Everything, key }.into())
        }
        _ => Err(CommandError::unknown_subcommand("debug", words[1])),
    }
}

impl ReadCommand for Object<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let Some(found) = keys.get(self.key) else {
            if self.aspect == ObjectAspect::Everything {
                return Err(ExecutionError::NoSuchKey);
            }
            put_nil(reply);
            return Ok(());
        };
        let uses =
            || if view.is_of_member { keys.uses(self.key, view.now.as_millis()) } else { Uses::Unknown };
        match self.aspect {
            ObjectAspect::Encoding => put_bulk(reply, encoding(&found)?.as_bytes()),
            ObjectAspect::Frequency => match uses() {
                Uses::Frequency(frequency) => put_integer(reply, i64::from(frequency)),
                Uses::Idle(_) | Uses::Unknown => return Err(ExecutionError::FrequencyNotTracked),
            },
            ObjectAspect::IdleTime => match uses() {
                Uses::Idle(seconds) => put_integer(reply, seconds.cast_signed()),
                Uses::Unknown => put_integer(reply, 0),
                Uses::Frequency(_) => return Err(ExecutionError::IdleTimeNotTracked),
            },
            ObjectAspect::ReferenceCount => put_integer(reply, 1),
            ObjectAspect::Everything => {
                let uses = uses();
                let mut value = found.to_value();
                value.drop_due(keys.time_ms(), u64::MAX);
                let bytes_max = view.reply_end.saturating_sub(reply.len());
                let length = rdb::value_bytes(&value, bytes_max).ok_or(ExecutionError::ReplyTooLong)?;
                put_simple(reply, line(encoding(&found)?, length, uses).as_bytes());
            }
        }
        Ok(())
    }

    fn work_on<K: Keys>(&self, keys: &K) -> usize {
        match self.aspect {
            ObjectAspect::Everything => {
                keys.get(self.key).map_or(0, |found| length_of(&found, keys.time_ms()))
            }
            _ => 0,
        }
    }
}

/// What DEBUG OBJECT answers, in the words of Redis. A value has no address, and the clock of uses has no number.
fn line(encoding: &str, length: usize, uses: Uses) -> String {
    let idle = if let Uses::Idle(seconds) = uses { seconds } else { 0 };
    format!(
        "Value at:0x0 refcount:1 encoding:{encoding} serializedlength:{length} lru:0 lru_seconds_idle:{idle}"
    )
}

/// The longest string that Redis keeps beside its head.
const EMBEDDED_BYTES_MAX: usize = 44;

/// The most members of a set of integers that Redis keeps as an array of numbers.
const INTEGERS_MAX: u64 = 512;

/// What Redis 7.2 would say of the value. In Redis this depends on more than the value, such as on what a string was made
/// by; here it does not.
fn encoding<E: EntryRef>(found: &E) -> Result<&'static str, WrongType> {
    let packed_or = |is_packed: bool, other: &'static str| if is_packed { "listpack" } else { other };
    Ok(match found.kind() {
        Kind::String => encoding_of_string(found.string()?),
        Kind::Hash => packed_or(found.hash()?.is_packed(), "hashtable"),
        Kind::List => packed_or(found.collection::<List>()?.is_packed(), "quicklist"),
        Kind::Set => encoding_of_set(found.collection()?),
        Kind::SortedSet => packed_or(found.collection::<SortedSet>()?.is_packed(), "skiplist"),
        Kind::Stream => "stream",
    })
}

fn encoding_of_string(string: &[u8]) -> &'static str {
    if parse_integer(string).is_some() {
        "int"
    } else if string.len() <= EMBEDDED_BYTES_MAX {
        "embstr"
    } else {
        "raw"
    }
}

fn encoding_of_set(set: &Set) -> &'static str {
    if set.len() <= INTEGERS_MAX && set.iter().all(|member| parse_integer(member).is_some()) {
        "intset"
    } else if set.is_packed() {
        "listpack"
    } else {
        "hashtable"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_have_the_limits_of_redis() {
        for (string, expected) in [
            (&b"0"[..], "int"),
            (b"-9223372036854775808", "int"),
            (b"9223372036854775808", "embstr"),
            (b"007", "embstr"),
            (b"", "embstr"),
            (&[b'x'; 44], "embstr"),
            (&[b'x'; 45], "raw"),
        ] {
            assert_eq!(encoding_of_string(string), expected, "{}", string.escape_ascii());
        }
        let set = |count: u32| -> Set {
            let mut set = Set::default();
            (0..count).for_each(|number| assert!(set.insert(number.to_string().as_bytes())));
            set
        };
        assert_eq!(
            [3, 512, 513].map(|count| encoding_of_set(&set(count))),
            ["intset", "intset", "hashtable"]
        );
        let mut mixed = set(3);
        mixed.insert(b"x");
        assert_eq!(encoding_of_set(&mixed), "listpack");
    }
}
