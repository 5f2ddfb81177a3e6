//! What a row of the table of commands says.

use super::{Command, ConnectionCommand};
use crate::error::CommandError;
use crate::words::Words;
use syros_types::Class;

/// One command, as COMMAND INFO and COMMAND DOCS describe it: names, arities, key positions, flags, categories, tips and
/// key flags as in Redis 7.0.
#[derive(Clone, Copy, Debug)]
pub struct CommandSpec {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What kind of command it is.
    pub kind: CommandKind,
    /// Number of words, the name included; negative if it is a minimum.
    pub arity: i8,
    /// Which of its words are keys.
    pub keys: KeyPositions,
    /// The position of the word that says how many keys stand behind it; 0 if none does.
    pub key_count: u8,
    /// The words behind which keys stand.
    pub key_words: &'static [KeyWord],
    /// What it does to its keys, in Redis's words: one list for each key, the last of them for all that are left, and at
    /// the end one for all that are counted, and one for each word behind which keys stand.
    pub key_flags: &'static [&'static [&'static str]],
    /// An explanation of that, or nothing.
    pub key_notes: &'static str,
    /// Flags, in Redis's words.
    pub flags: &'static [&'static str],
    /// Access control categories, in Redis's words.
    pub categories: &'static [&'static str],
    /// What proxies and clients of a cluster may want to know, in Redis's words.
    pub tips: &'static [&'static str],
    /// The version of Redis that first had it; of BLIND, the one that is imitated here.
    pub since: &'static str,
    /// The group it belongs to, in Redis's words.
    pub group: &'static str,
    /// One sentence on what it does.
    pub summary: &'static str,
    /// The commands that are its second word, in the order of their names.
    pub subcommands: &'static [SubcommandSpec],
    /// Who answers the subcommands that are no operations on data, of a command that has both.
    pub local: Option<ConnectionCommand>,
    /// What each of them does to the key behind its name, in Redis's words; nothing, if it has none. Empty if none has.
    pub subcommand_keys: &'static [&'static [&'static str]],
    /// What its reply says about the keys that it looked up.
    pub lookup: LookupReply,
    /// Turns its words, checked against the arity, into an operation.
    pub(crate) parser: Parser,
}

/// Parses the words of a command, the first of them its name, and knows the name for error texts.
pub(crate) type Parser = for<'a> fn(&'static str, Words<'a>) -> Result<Command<'a>, CommandError>;

impl CommandSpec {
    /// What a row need not say. The table refuses a row that leaves out its name, its arity, its group or its summary.
    pub(crate) const ROW: Self = Self {
        name: "",
        kind: CommandKind::Blind,
        arity: 0,
        keys: KeyPositions::NONE,
        key_count: 0,
        key_words: &[],
        key_flags: &[],
        key_notes: "",
        flags: &[],
        categories: &[],
        tips: &[],
        since: "",
        group: "",
        summary: "",
        subcommands: &[],
        local: None,
        subcommand_keys: &[],
        lookup: LookupReply::None,
        // Only commands that are no operation on data keep this, and nobody parses their words.
        parser: |name, _| Err(CommandError::BlindNotUpdate(name)),
    };

    /// True if a command of this many words, the name included, is neither too short nor too long.
    #[must_use]
    pub const fn accepts(&self, words: usize) -> bool {
        fits(self.arity, words)
    }

    /// How many of its specifications of keys, which stand at the end of [`Self::key_flags`], are not for fixed positions.
    #[must_use]
    pub const fn movable_keys(&self) -> usize {
        self.key_words.len() + (self.key_count > 0) as usize
    }

    /// True if none of its words can be a key. Keys of subcommands are not looked at.
    #[must_use]
    pub const fn has_no_keys(&self) -> bool {
        self.keys.first == 0 && self.movable_keys() == 0
    }
}

/// A word behind which keys stand.
#[derive(Clone, Copy, Debug)]
pub struct KeyWord {
    /// The word, in upper case; clients may send it in any.
    pub word: &'static str,
    /// The first position that it is looked for at.
    pub from: u8,
    /// Which of the words behind it are keys.
    pub keys: KeysBehind,
}

/// Which of the words behind a [`KeyWord`] are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysBehind {
    /// The next one.
    One,
    /// The first half of them.
    Half,
    /// The next one, but what is said to clients is that nothing is known; and why, in Redis's words.
    Untold(&'static str),
    /// None: the word behind it is a pattern of keys; and why that does not say which they are, in Redis's words.
    Pattern(&'static str),
}

/// True if so many words are neither too few nor too many.
const fn fits(arity: i8, words: usize) -> bool {
    let least = arity.unsigned_abs() as usize;
    if arity < 0 { words >= least } else { words == least }
}

/// A subcommand, as COMMAND INFO describes it.
#[derive(Clone, Copy, Debug)]
pub struct SubcommandSpec {
    /// The name of its command, a bar, and its own.
    pub name: &'static str,
    /// See [`CommandSpec::arity`]; the words of the command are counted.
    pub arity: i8,
    /// See [`CommandSpec::flags`].
    pub flags: &'static [&'static str],
    /// See [`CommandSpec::categories`].
    pub categories: &'static [&'static str],
    /// See [`CommandSpec::tips`].
    pub tips: &'static [&'static str],
}

impl SubcommandSpec {
    /// As [`CommandSpec::accepts`].
    #[must_use]
    pub const fn accepts(&self, words: usize) -> bool {
        fits(self.arity, words)
    }
}

/// Positions of the keys among a command's words, as Redis counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPositions {
    /// The first key's position; 0 if there are no keys.
    pub first: i8,
    /// The last key's position; -1 for the last word.
    pub last: i8,
    /// Distance from one key to the next.
    pub step: i8,
}

impl KeyPositions {
    /// No word is a key.
    pub(crate) const NONE: Self = Self { first: 0, last: 0, step: 0 };
    /// The word behind the name is.
    pub(crate) const ONE: Self = Self { first: 1, last: 1, step: 1 };
    /// The two words behind the name are.
    pub(crate) const TWO: Self = Self { first: 1, last: 2, step: 1 };
    /// All words behind the name are.
    pub(crate) const ALL: Self = Self { first: 1, last: -1, step: 1 };
    /// Keys and other words alternate.
    pub(crate) const PAIRS: Self = Self { first: 1, last: -1, step: 2 };
}

/// Kind of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// An operation on data, and its class when it is given no options, several keys where it can
    /// name several, and is not blind. [`Operation::class`](crate::Operation::class) knows the rest.
    Data(Class),
    /// BLIND, which makes a nilext update of another command.
    Blind,
    /// Answered by the connection, without the data.
    Local(ConnectionCommand),
}

impl CommandKind {
    /// Reads.
    pub(crate) const READ: Self = Self::Data(Class::Read);
    /// Gives keys a new state that does not depend on the old one, and answers OK.
    pub(crate) const OVERWRITE: Self = Self::Data(Class::Overwrite);
    /// Answers OK.
    pub(crate) const MERGE: Self = Self::Data(Class::Merge);
    /// Changes keys and answers something about them.
    pub(crate) const UPDATE: Self = Self::Data(Class::Update);
}

/// What a reply to a command says about the keys that it looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupReply {
    /// Nothing, or the command is no read.
    None,
    /// Nil: there was none; a string: there was one. An array has many of them.
    Value,
    /// How many of the keys were there.
    Count,
    /// A length, or how long a key will be there: `miss` if there was none.
    Number {
        /// What is answered if the key was not there.
        miss: i64,
    },
    /// The name of a type.
    Type,
}
