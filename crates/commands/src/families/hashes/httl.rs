//! HTTL, HPTTL, HEXPIRETIME and HPEXPIRETIME.

use super::field_options::{NO_EXPIRY, NO_FIELD, parse_fields};
use super::{FAST_READ, hash_of};
use crate::access::Keys;
use crate::arguments::Arguments;
use crate::encoding::{Elements, Key, choices, fields};
use crate::error::CommandError;
use crate::families::Command;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::elements::LOOKUP_WORK;
use crate::families::specification::CommandSpec;
use crate::field_error::FieldError;
use crate::reply::{put_array, put_integer};
use crate::words::Words;

/// HTTL, HPTTL, HEXPIRETIME, HPEXPIRETIME: answers of each field -2 if there is none, -1 if it does not expire, and its time
/// otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HTtl<'a> {
    /// The key.
    pub key: &'a [u8],
    /// What is asked for.
    pub time: FieldTime,
    /// The fields.
    pub fields: Arguments<'a>,
}

/// A time of a field. Seconds are rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FieldTime {
    /// HTTL: how many seconds are left.
    SecondsLeft,
    /// HPTTL: how many milliseconds are left.
    MillisecondsLeft,
    /// HEXPIRETIME: in which second since the Unix epoch it expires.
    Second,
    /// HPEXPIRETIME: which millisecond since the Unix epoch is the last one in which it is there.
    Millisecond,
}

choices!(FieldTime: SecondsLeft, MillisecondsLeft, Second, Millisecond);

fields!(HTtl<'a> = 324 { key: Key, time: FieldTime, fields: Elements<1> });

/// What the rows have in common.
const ROW: CommandSpec =
    CommandSpec { arity: -5, key_flags: &[&["RO", "access"]], since: "7.4.0", ..FAST_READ };

impl<'a> Definition<'a> for HTtl<'a> {
    const SPECS: &'static [CommandSpec] = &[
        CommandSpec {
            name: "hexpiretime",
            summary: "Returns the expiry of fields of a hash as a Unix time in seconds.",
            parser: |_, words| parse(words, FieldTime::Second),
            ..ROW
        },
        CommandSpec {
            name: "hpexpiretime",
            summary: "Returns the expiry of fields of a hash as a Unix time in milliseconds.",
            parser: |_, words| parse(words, FieldTime::Millisecond),
            ..ROW
        },
        CommandSpec {
            name: "hpttl",
            tips: &["nondeterministic_output"],
            summary: "Returns the time to live of fields of a hash in milliseconds.",
            parser: |_, words| parse(words, FieldTime::MillisecondsLeft),
            ..ROW
        },
        CommandSpec {
            name: "httl",
            tips: &["nondeterministic_output"],
            summary: "Returns the time to live of fields of a hash in seconds.",
            parser: |_, words| parse(words, FieldTime::SecondsLeft),
            ..ROW
        },
    ];

    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(self.key)
    }
}

fn parse(words: Words<'_>, time: FieldTime) -> Result<Command<'_>, CommandError> {
    let fields = parse_fields(&words[2..], 1, CommandError::Field(FieldError::CountNotPositive))?;
    Ok(HTtl { key: words[1], time, fields }.into())
}

impl FieldTime {
    /// What it is for a field that is there in this millisecond for the last time.
    fn of(self, last: u64, now_ms: u64) -> u64 {
        match self {
            Self::SecondsLeft => last.saturating_sub(now_ms).div_ceil(1000),
            Self::MillisecondsLeft => last.saturating_sub(now_ms),
            Self::Second => last.div_ceil(1000),
            Self::Millisecond => last,
        }
    }
}

impl ReadCommand for HTtl<'_> {
    fn read<K: Keys>(&self, keys: &K, view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let found = keys.get(self.key);
        let hash = hash_of(keys, found.as_ref())?;
        put_array(reply, self.fields.len());
        for field in self.fields {
            let live = hash.as_ref().filter(|hash| hash.get(field).is_some());
            let time = live.map_or(NO_FIELD, |hash| {
                let time =
                    |expiry: core::num::NonZeroU64| self.time.of(expiry.get() - 1, view.now.as_millis());
                // An expiry is far below the largest signed number.
                hash.expiry(field).map_or(NO_EXPIRY, |expiry| time(expiry) as i64)
            });
            put_integer(reply, time);
        }
        Ok(())
    }

    fn work_on<K: Keys>(&self, _: &K) -> usize {
        self.fields.len() * LOOKUP_WORK
    }
}
