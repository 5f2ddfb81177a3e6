//! From a client's words to an operation, refusing what Redis 7.0 refuses in the words it uses.

use crate::access::is_hidden;
use crate::encoding::encoded_length_bound;
use crate::error::CommandError;
use crate::families::specification::{CommandKind, CommandSpec};
use crate::families::{Command, ConnectionCommand};
use crate::operation::Operation;
use crate::table::{commands, number_of};
use crate::words::{Words, is};
use syros_types::limits::{BODY_BYTES_MAX, KEY_BYTES_MAX, KEYS_PER_OPERATION_MAX, VALUE_BYTES_MAX};

/// A command of the right number of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// An operation on data, within all limits.
    Data(Operation<'a>),
    /// A command that the connection answers; its arguments are not looked at.
    Local(ConnectionCommand),
}

/// Parses a command: its name and its arguments.
///
/// # Errors
/// [`CommandError`], whose text is the reply to the client. No words at all are an unknown command
/// with an empty name; a connection never gets that far, since Redis ignores empty commands.
pub fn parse<'a>(words: &'a [&'a [u8]]) -> Result<Parsed<'a>, CommandError> {
    parse_numbered(words).1
}

/// As [`parse`]; also the command's place in [`commands`](crate::commands), if there is such a command.
pub fn parse_numbered<'a>(words: &'a [&'a [u8]]) -> (Option<usize>, Result<Parsed<'a>, CommandError>) {
    let name = words.first().copied().unwrap_or_default();
    let number = number_of(name);
    let parsed = find(number, words).and_then(|spec| parse_as(spec, words));
    (number, parsed)
}

fn parse_as<'a>(spec: &'static CommandSpec, words: &'a [&'a [u8]]) -> Result<Parsed<'a>, CommandError> {
    match spec.kind {
        CommandKind::Data(_) if asks_for_help(spec, words) => Ok(Parsed::Local(ConnectionCommand::Help)),
        CommandKind::Data(_) => match (parse_data(spec, words), spec.local) {
            (Err(CommandError::UnknownSubcommand { .. }), Some(local)) => Ok(Parsed::Local(local)),
            (command, _) => command.map(|command| Parsed::Data(Operation::new(command))),
        },
        CommandKind::Local(local) => Ok(Parsed::Local(local)),
        CommandKind::Blind => {
            let words = &words[1..];
            let spec = find(number_of(words.first().copied().unwrap_or_default()), words)?;
            if !matches!(spec.kind, CommandKind::Data(_)) {
                return Err(CommandError::BlindNotUpdate(spec.name));
            }
            let command = parse_data(spec, words)?;
            if command.is_read() || matches!(command, Command::Take(_)) {
                return Err(CommandError::BlindNotUpdate(spec.name));
            }
            Ok(Parsed::Data(Operation { blind: true, ..Operation::new(command) }))
        }
    }
}

/// True of HELP, where other subcommands are operations on data, unless it is one, too, as those about streams are.
fn asks_for_help(spec: &CommandSpec, words: Words<'_>) -> bool {
    if spec.group == "stream" {
        return false;
    }
    !spec.subcommands.is_empty() && spec.local.is_none() && words.len() == 2 && is(words[1], "help")
}

/// The command of these words, if there are enough of them and not too many.
fn find(number: Option<usize>, words: Words<'_>) -> Result<&'static CommandSpec, CommandError> {
    let name = words.first().copied().unwrap_or_default();
    let spec = number.and_then(|number| commands().get(number));
    let spec = spec.ok_or_else(|| unknown(name, words.get(1..).unwrap_or_default()))?;
    if spec.accepts(words.len()) { Ok(spec) } else { Err(CommandError::Arity(spec.name)) }
}

/// Redis prints names and arguments as C strings, the first 128 bytes of them.
fn unknown(name: &[u8], arguments: Words<'_>) -> CommandError {
    const SHOWN_BYTES_MAX: usize = 128;
    fn shown(bytes: &[u8], max: usize) -> &[u8] {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        &bytes[..end.min(max)]
    }
    let mut quoted = Vec::new();
    for argument in arguments {
        if quoted.len() >= SHOWN_BYTES_MAX {
            break;
        }
        let room = SHOWN_BYTES_MAX - quoted.len();
        quoted.push(b'\'');
        quoted.extend_from_slice(shown(argument, room));
        quoted.extend_from_slice(b"' ");
    }
    CommandError::Unknown { name: shown(name, SHOWN_BYTES_MAX).to_vec(), arguments: quoted }
}

fn parse_data<'a>(spec: &'static CommandSpec, words: Words<'a>) -> Result<Command<'a>, CommandError> {
    let command = (spec.parser)(spec.name, words)?;
    check_limits(&command, words)?;
    Ok(command)
}

/// Checks what every operation must respect to be accepted by [`Operation::decode`].
fn check_limits(command: &Command<'_>, words: Words<'_>) -> Result<(), CommandError> {
    if words.iter().any(|word| is_hidden(word)) && names_hidden_key(command) {
        return Err(CommandError::HiddenKey);
    }
    let length = encoded_length_bound(words);
    // No single string or list can be too long for its limit if all of them together are not.
    if length > KEY_BYTES_MAX.min(KEYS_PER_OPERATION_MAX) {
        check_long(command, words)?;
    }
    if length > BODY_BYTES_MAX {
        return Err(CommandError::OperationTooLong(length));
    }
    Ok(())
}

fn names_hidden_key(command: &Command<'_>) -> bool {
    let mut is_named = false;
    command.keys().each(|key| is_named |= is_hidden(key));
    is_named
}

fn check_long(command: &Command<'_>, words: Words<'_>) -> Result<(), CommandError> {
    let keys = command.keys();
    let (count, mut longest) = (keys.len(), 0);
    keys.each(|key| longest = longest.max(key.len()));
    if longest > KEY_BYTES_MAX {
        return Err(CommandError::KeyTooLong(longest));
    }
    if count > KEYS_PER_OPERATION_MAX {
        return Err(CommandError::TooManyKeys(count));
    }
    if words.iter().any(|word| word.len() > VALUE_BYTES_MAX) {
        return Err(CommandError::ValueTooLong);
    }
    Ok(())
}
