//! Scripts and functions. What Lua is stands in `syros-scripts`.
//!
//! All replicas run a script, as they execute all operations. Its seed and its fuel stand in the body. Its footprint is the
//! keys that it declares. A script that touches another key, or uses up its fuel, fails, and nothing that it has done remains.
//! A first line `#!lua flags=allow-undeclared-keys` makes everything the footprint.

pub(crate) mod eval;
pub(crate) mod evalsha;
pub(crate) mod fcall;
pub(crate) mod library;
pub(crate) mod load;
mod loaded;
pub(crate) mod look;

use super::definition::KeyNames;
use super::specification::{CommandKind, CommandSpec, KeyPositions, SubcommandSpec};
use crate::arguments::Arguments;
use crate::calling_user::{CallingUser, UserNumber};
use crate::encoding::{Field, Value};
use crate::error::CommandError;
use crate::number::parse_integer;
use crate::primitive::{Malformed, put_bytes, take_u8, take_up_to};
use crate::words::Words;
use core::fmt;
use syros_types::limits::{KEY_BYTES_MAX, KEYS_PER_OPERATION_MAX, VALUE_BYTES_MAX};
use syros_types::varint::{put_varint, take_varint};

/// What the rows of this family have in common.
const ROW: CommandSpec = CommandSpec { group: "scripting", since: "2.6.0", ..CommandSpec::ROW };

/// What the rows of subcommands have in common.
const SUBCOMMAND: SubcommandSpec = SubcommandSpec {
    name: "",
    arity: 2,
    flags: &["noscript"],
    categories: &["@slow", "@scripting"],
    tips: &[],
};

/// What the rows of commands have in common that run something.
const RUNS: CommandSpec = CommandSpec {
    kind: CommandKind::UPDATE,
    arity: -3,
    keys: KeyPositions::NONE,
    key_count: 2,
    key_flags: &[&["RW", "access", "update"]],
    key_notes: "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
    flags: &["noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"],
    categories: &["@slow", "@scripting"],
    ..ROW
};

/// The same of those that change nothing.
const READS: CommandSpec = CommandSpec {
    kind: CommandKind::READ,
    key_flags: &[&["RO", "access"]],
    key_notes: "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
    flags: &["readonly", "noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"],
    since: "7.0.0",
    ..RUNS
};

/// Keys and arguments of a script. There may be none of either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptInput<'a> {
    /// The keys that it declares.
    pub keys: Arguments<'a>,
    /// Its other arguments.
    pub arguments: Arguments<'a>,
}

impl<'a> Field<'a> for ScriptInput<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        for list in [content.keys, content.arguments] {
            put_varint(out, list.len() as u64);
            list.iter().for_each(|bytes| put_bytes(out, bytes));
        }
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let mut list = |limit: usize| -> Result<Arguments<'a>, Malformed> {
            let count = take_up_to(input, KEYS_PER_OPERATION_MAX as u64)?;
            let start = *input;
            for _ in 0..count {
                crate::primitive::take_bytes_up_to(input, limit as u64)?;
            }
            let bytes = &start[..start.len() - input.len()];
            Ok(Arguments::encoded(count as usize, bytes))
        };
        Ok(Self { keys: list(KEY_BYTES_MAX)?, arguments: list(VALUE_BYTES_MAX)? })
    }
}

/// What builds have learned to do with scripts: all who execute one have to do the same. Together in a byte, because a decoded
/// operation has no more room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities(u8);

impl Abilities {
    /// See [`Limits`](syros_scripts::Limits). Members of builds before wire format 14 cannot do so.
    pub const COUNTS_SCRIPT_ALONE: Self = Self(1 << 2);
    /// What goes through a whole value counts as its length. Members of builds before wire format 16 cannot do so.
    pub const COUNTS_WHOLE_VALUES: Self = Self(1 << 4);
    /// `redis.acl_check_cmd` asks for the rights of the user. Members of builds before wire format 21 say yes to everything.
    pub const TELLS_RIGHTS: Self = Self(1 << 6);
    /// KEYS and SCAN count as the keys that they go through. Members of builds before wire format 22 count them as calls.
    pub const COUNTS_KEYS: Self = Self(1 << 7);
    /// All of them.
    pub const ALL: Self = Self(
        Self::COUNTS_SCRIPT_ALONE.0
            | Self::COUNTS_WHOLE_VALUES.0
            | Self::TELLS_RIGHTS.0
            | Self::COUNTS_KEYS.0,
    );

    /// True if this one is among them.
    #[must_use]
    pub const fn has(self, one: Self) -> bool {
        self.0 & one.0 != 0
    }

    /// The same, with this one or without it.
    #[must_use]
    pub const fn with(self, one: Self, is_there: bool) -> Self {
        if is_there { Self(self.0 | one.0) } else { Self(self.0 & !one.0) }
    }
}

/// What a node knows that has something run which may change keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTerms {
    /// It may touch any key, whatever it declares.
    pub owns_everything: bool,
    /// The data may take no more memory: the operation was refused for that without this term. What is run gets an error from
    /// the commands that would make the data grow, as Redis does it, until it has changed something.
    pub lacks_memory: bool,
    /// It may call DEBUG, for tests of clients: DEBUG SET-DISABLE-DENY-SCRIPTS. Members of builds before wire format 16 cannot
    /// execute it.
    pub debugs: bool,
    /// What whoever executes it is able to do, and does.
    pub abilities: Abilities,
    /// The user whose rights each command needs that it calls. Members of builds before wire format 18 know of no users.
    pub user: CallingUser,
}

impl RunTerms {
    /// True if it says what builds before wire format 14 do not know.
    pub(crate) const fn is_new(self) -> bool {
        self.lacks_memory || self.abilities.has(Abilities::COUNTS_SCRIPT_ALONE)
    }

    /// True if it says what builds before wire format 16 do not know.
    pub(crate) const fn is_newest(self) -> bool {
        self.debugs || self.abilities.has(Abilities::COUNTS_WHOLE_VALUES)
    }

    /// See [`Operation::growth`](crate::Operation::growth).
    const fn growth(self, encoded: usize) -> usize {
        if self.lacks_memory { 0 } else { encoded + super::definition::KEY_BYTES }
    }
}

impl Field<'_> for RunTerms {
    type Content = Self;

    fn put(out: &mut Vec<u8>, Self { owns_everything, lacks_memory, debugs, abilities, user }: Self) {
        let number = user.number();
        let flags = [(0, owns_everything), (1, lacks_memory), (3, debugs), (5, number.is_some())];
        let flags = flags.into_iter().map(|(bit, flag)| u8::from(flag) << bit);
        out.push(flags.fold(abilities.0, |bits, flag| bits | flag));
        if let Some(UserNumber(number)) = number {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn take(input: &mut &[u8]) -> Result<Self, Malformed> {
        let bits = take_u8(input)?;
        let has_user = bits & 32 != 0;
        Ok(Self {
            owns_everything: bits & 1 != 0,
            lacks_memory: bits & 2 != 0,
            debugs: bits & 8 != 0,
            abilities: Abilities(bits & Abilities::ALL.0),
            user: if has_user { take_user(input)? } else { CallingUser::default() },
        })
    }
}

/// Takes the number of a user, which is not 0.
fn take_user(input: &mut &[u8]) -> Result<CallingUser, Malformed> {
    let number = u16::from_le_bytes([take_u8(input)?, take_u8(input)?]);
    if number == 0 { Err(Malformed::Count(0)) } else { Ok(CallingUser::new(UserNumber(number))) }
}

/// Fuel of what only reads, and the user who runs it: one number, the user in the bits from the 32nd on. Builds that know of
/// no users take it for more fuel than there may be, and refuse it.
enum ReadBudget {}

impl Field<'_> for ReadBudget {
    type Content = (u64, CallingUser);

    fn put(out: &mut Vec<u8>, (fuel, user): (u64, CallingUser)) {
        put_varint(out, Self::number(fuel, user));
    }

    fn take(input: &mut &[u8]) -> Result<(u64, CallingUser), Malformed> {
        Self::of(take_varint(input)?)
    }
}

impl ReadBudget {
    /// Both as one number.
    fn number(fuel: u64, user: CallingUser) -> u64 {
        fuel | user.number().map_or(0, |UserNumber(number)| u64::from(number)) << 32
    }

    fn of(both: u64) -> Result<(u64, CallingUser), Malformed> {
        let number = u16::try_from(both >> 32)
            .map_err(|_| Malformed::TooLong { length: both >> 32, limit: u64::from(u16::MAX) })?;
        let user = if number == 0 { CallingUser::default() } else { CallingUser::new(UserNumber(number)) };
        Ok((both & u64::from(u32::MAX), user))
    }
}

/// The keys of something that is run: all, or those that it declares.
const fn footprint<'a>(owns_everything: bool, input: ScriptInput<'a>) -> KeyNames<'a> {
    if owns_everything { KeyNames::All } else { KeyNames::Declared(input.keys) }
}

/// What is run, and its keys and arguments: as they are written, because the largest operation decides how many bytes every
/// decoded one has.
#[derive(Clone, Copy)]
pub struct ScriptCall<'a>(Source<'a>);

/// What a call is read from. Either has been read before, without an error.
#[derive(Clone, Copy)]
enum Source<'a> {
    Words(Words<'a>),
    Fields(&'a [u8]),
}

impl<'a> ScriptCall<'a> {
    /// The words of a command: its name, what is run, the number of keys, the keys, the arguments.
    fn parse(words: Words<'a>, not_a_number: CommandError) -> Result<Self, CommandError> {
        input(words, not_a_number)?;
        Ok(Self(Source::Words(words)))
    }

    /// What is run: a text, or a name.
    #[must_use]
    pub fn subject(&self) -> &'a [u8] {
        match self.0 {
            Source::Words(words) => words[1],
            Source::Fields(mut fields) => Value::take(&mut fields).unwrap_or_default(),
        }
    }

    /// Its keys and arguments.
    #[must_use]
    pub fn input(&self) -> ScriptInput<'a> {
        const NONE: Arguments<'_> = Arguments::new(&[]);
        let found = match self.0 {
            Source::Words(words) => input(words, CommandError::NotInteger).ok(),
            Source::Fields(mut fields) => {
                Value::take(&mut fields).and_then(|_| ScriptInput::take(&mut fields)).ok()
            }
        };
        found.unwrap_or(ScriptInput { keys: NONE, arguments: NONE })
    }
}

impl<'a> Field<'a> for ScriptCall<'a> {
    type Content = Self;

    fn put(out: &mut Vec<u8>, content: Self) {
        Value::put(out, content.subject());
        ScriptInput::put(out, content.input());
    }

    fn take(input: &mut &'a [u8]) -> Result<Self, Malformed> {
        let start = *input;
        Value::take(input)?;
        ScriptInput::take(input)?;
        Ok(Self(Source::Fields(&start[..start.len() - input.len()])))
    }
}

impl fmt::Debug for ScriptCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScriptCall").field(&self.subject()).field(&self.input()).finish()
    }
}

impl PartialEq for ScriptCall<'_> {
    fn eq(&self, other: &Self) -> bool {
        (self.subject(), self.input()) == (other.subject(), other.input())
    }
}

impl Eq for ScriptCall<'_> {}

/// The number of keys, the keys and the arguments, which stand behind the first two words.
fn input<'a>(words: Words<'a>, not_a_number: CommandError) -> Result<ScriptInput<'a>, CommandError> {
    let count = parse_integer(words[2]).ok_or(not_a_number)?;
    if count < 0 {
        return Err(CommandError::NegativeKeyCount);
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let (keys, arguments) = words[3..].split_at_checked(count).ok_or(CommandError::MoreKeysThanWords)?;
    if arguments.len() > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyElements(arguments.len()));
    }
    Ok(ScriptInput { keys: Arguments::new(keys), arguments: Arguments::new(arguments) })
}
