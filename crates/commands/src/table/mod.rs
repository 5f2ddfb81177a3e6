//! The table of commands: the only place that says which there are.

mod specs;

use crate::error::CommandError;
use crate::operation::Command;
use syros_types::Class;

/// One command, as COMMAND INFO and COMMAND DOCS describe it.
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
    /// Flags, in Redis's words.
    pub flags: &'static [&'static str],
    /// Access control categories, in Redis's words.
    pub categories: &'static [&'static str],
    /// The version of Redis that first had it; of BLIND, the one that is imitated here.
    pub since: &'static str,
    /// The group it belongs to, in Redis's words.
    pub group: &'static str,
    /// One sentence on what it does.
    pub summary: &'static str,
    /// Turns its words, checked against the arity, into an operation.
    pub(crate) parser: Parser,
}

/// Parses the words of a command, the first of them its name, and knows the name for error texts.
pub(crate) type Parser = for<'a> fn(&'static str, &'a [&'a [u8]]) -> Result<Command<'a>, CommandError>;

impl CommandSpec {
    /// True if a command of this many words, the name included, is neither too short nor too long.
    #[must_use]
    pub const fn accepts(&self, words: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { words >= arity } else { words == arity }
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

/// The commands that a connection answers by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the Redis command of the same name")]
pub enum ConnectionCommand {
    Client,
    Command,
    Config,
    Echo,
    Hello,
    Info,
    Ping,
    Quit,
    Reset,
    Select,
    Time,
}

/// Every command, in alphabetical order.
#[must_use]
pub const fn commands() -> &'static [CommandSpec] {
    &TABLE
}

static TABLE: [CommandSpec; specs::SPECS.len()] = specs::SPECS;

/// Slots of the index: a power of two, over four times the number of commands, so that a search
/// seldom meets a second name.
const SLOTS: usize = 256;
const _: () = assert!(specs::SPECS.len() * 4 < SLOTS);

/// Slot to number of the command plus one; 0 is free.
static INDEX: [u8; SLOTS] = build_index();

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 11;

/// FNV-1a over the name in lower case, folded into a slot.
const fn slot_of(name: &[u8]) -> usize {
    let mut hash = 0x811c_9dc5_u32;
    let mut index = 0;
    while index < name.len() {
        hash = (hash ^ name[index].to_ascii_lowercase() as u32).wrapping_mul(0x0100_0193);
        index += 1;
    }
    ((hash >> 16) ^ hash) as usize % SLOTS
}

const fn build_index() -> [u8; SLOTS] {
    let mut index = [0; SLOTS];
    let mut row = 0;
    while row < specs::SPECS.len() {
        let name = specs::SPECS[row].name.as_bytes();
        assert!(name.len() <= NAME_BYTES_MAX);
        let mut slot = slot_of(name);
        while index[slot] != 0 {
            slot = (slot + 1) % SLOTS;
        }
        row += 1;
        index[slot] = row as u8;
    }
    index
}

/// The command of this name, in any case. Allocates nothing.
#[must_use]
pub fn lookup(name: &[u8]) -> Option<&'static CommandSpec> {
    number_of(name).map(|number| &TABLE[number])
}

/// The place in [`commands`] of the command of this name.
pub(crate) fn number_of(name: &[u8]) -> Option<usize> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let mut slot = slot_of(name);
    loop {
        let row = usize::from(INDEX[slot]).checked_sub(1)?;
        let spec = &TABLE[row];
        if spec.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some(row);
        }
        slot = (slot + 1) % SLOTS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_in_any_case() {
        for spec in commands() {
            assert_eq!(lookup(spec.name.as_bytes()).map(|found| found.name), Some(spec.name));
            let upper = spec.name.to_ascii_uppercase();
            assert_eq!(lookup(upper.as_bytes()).map(|found| found.name), Some(spec.name));
        }
        for name in ["", "ge", "gett", "incrbyfloatx", "nosuchcommand", "\0get"] {
            assert!(lookup(name.as_bytes()).is_none(), "{name}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_consistent() {
        assert!(commands().is_sorted_by(|a, b| a.name < b.name));
        for spec in commands() {
            let write = spec.flags.contains(&"write");
            let changes = match spec.kind {
                CommandKind::Data(class) => class != Class::Read,
                CommandKind::Blind => true,
                CommandKind::Local(_) => false,
            };
            assert_eq!(write, changes, "{}", spec.name);
            assert_eq!(spec.categories.contains(&"@write"), changes, "{}", spec.name);
            assert!(spec.summary.ends_with('.'), "{}", spec.name);
            assert_eq!(spec.keys.first == 0, spec.keys.step == 0, "{}", spec.name);
        }
    }
}
