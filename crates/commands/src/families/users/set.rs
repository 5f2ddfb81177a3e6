//! ACL, and what ACL SETUSER does; CONFIG SET requirepass is one, too.

use super::delete::UserDelete;
use super::look::{UserLook, UserQuestion};
use crate::access::KeysMut;
use crate::arguments::Arguments;
use crate::encoding::{Flag, OptionalElements, Value, fields};
use crate::error::{CommandError, ExecutionError};
use crate::families::Command;
use crate::families::ConnectionCommand;
use crate::families::connection::acl::SUBCOMMANDS;
use crate::families::definition::{Definition, ExecutionResult, KeyNames, UpdateCommand};
use crate::families::specification::{CommandKind, CommandSpec};
use crate::limits::PATTERN_BYTES_MAX;
use crate::words::{Words, is};

/// ACL SETUSER. Its rules have hashes in the place of passwords: see [`hide_passwords`](crate::acl::hide_passwords).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserSet<'a> {
    /// The user.
    pub name: &'a [u8],
    /// What becomes of it.
    pub rules: Arguments<'a>,
    /// Nothing happens if users have been changed before.
    pub if_untouched: bool,
}

fields!(UserSet<'a> = 377 { name: Value, rules: OptionalElements, if_untouched: Flag });

impl<'a> Definition<'a> for UserSet<'a> {
    const SPECS: &'static [CommandSpec] = &[CommandSpec {
        name: "acl",
        kind: CommandKind::UPDATE,
        arity: -2,
        categories: &["@slow"],
        since: "6.0.0",
        group: "server",
        summary: "Describes and changes the users.",
        subcommands: SUBCOMMANDS,
        local: Some(ConnectionCommand::Acl),
        parser: parse,
        ..CommandSpec::ROW
    }];

    /// Users are no keys. What runs as one of them may name any.
    fn keys(&self) -> KeyNames<'a> {
        KeyNames::All
    }
}

/// Other subcommands than these are answered by the connection: for it they are unknown.
fn parse<'a>(_: &'static str, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let look = |question, name| Ok(UserLook { question, name, known: 0 }.into());
    match words {
        [_, subcommand, name, rules @ ..] if is(subcommand, "setuser") => {
            // Asked of what clients send alone: replicas execute rules that were given before this was a limit.
            if let Some(bytes) = rules.iter().find_map(|rule| too_long_pattern(rule)) {
                return Err(CommandError::PatternTooLong(bytes));
            }
            Ok(UserSet { name, rules: Arguments::new(rules), if_untouched: false }.into())
        }
        [_, subcommand, names @ ..] if is(subcommand, "deluser") && !names.is_empty() => {
            Ok(UserDelete { names: Arguments::new(names) }.into())
        }
        [_, subcommand, name] if is(subcommand, "getuser") => look(UserQuestion::One, name),
        [_, subcommand] if is(subcommand, "list") => look(UserQuestion::Lines, b""),
        [_, subcommand] if is(subcommand, "users") => look(UserQuestion::Names, b""),
        [_, subcommand, ..] => Err(CommandError::unknown_subcommand("acl", subcommand)),
        _ => Err(CommandError::Arity("acl")),
    }
}

/// The length of the first pattern in a word of ACL SETUSER that is longer than a new one may be.
fn too_long_pattern(word: &[u8]) -> Option<usize> {
    let length = |rule: &[u8]| {
        let pattern = pattern_of(rule)?;
        // The end of the parentheses may stand behind it.
        let length = pattern.strip_suffix(b")").unwrap_or(pattern).len();
        (length > PATTERN_BYTES_MAX).then_some(length)
    };
    match word {
        [b'(', rules @ ..] => rules.split(u8::is_ascii_whitespace).find_map(length),
        rule => length(rule),
    }
}

/// The pattern of a rule about keys or channels.
fn pattern_of(rule: &[u8]) -> Option<&[u8]> {
    match rule {
        [b'~' | b'&', pattern @ ..] => Some(pattern),
        [b'%', access @ ..] => Some(&access[access.iter().position(|byte| *byte == b'~')? + 1..]),
        _ => None,
    }
}

impl<'a> UpdateCommand<'a> for UserSet<'a> {
    /// Users are more than operations know of keys, so it is executed above the families: see `user_execution`.
    fn apply<K: KeysMut>(&self, _keys: &mut K, _now_ms: u64, _reply: &mut Vec<u8>) -> ExecutionResult {
        Err(ExecutionError::NotRead)
    }
}
