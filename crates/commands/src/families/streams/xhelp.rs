//! XGROUP HELP and XINFO HELP.

use crate::access::Keys;
use crate::encoding::{Flag, fields};
use crate::families::definition::{Definition, ExecutionResult, KeyNames, ReadCommand, View};
use crate::families::specification::CommandSpec;
use crate::reply::{put_array, put_simple};

/// Answers what the subcommands of XGROUP, or of XINFO, are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XHelp {
    /// True for XGROUP.
    pub of_groups: bool,
}

fields!(XHelp = 351 { of_groups: Flag });

impl<'a> Definition<'a> for XHelp {
    /// It is a subcommand of others.
    const SPECS: &'static [CommandSpec] = &[];

    /// It looks at no key. As no operation has none, it names the one without a name.
    fn keys(&self) -> KeyNames<'a> {
        KeyNames::One(&[])
    }
}

const OF_GROUPS: &[&str] = &[
    "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CREATE <key> <groupname> <id|$> [option]",
    "    Create a new consumer group. Options are:",
    "    * MKSTREAM",
    "      Create the empty stream if it does not exist.",
    "    * ENTRIESREAD entries_read",
    "      Set the group's entries_read counter (internal use).",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Create a new consumer in the specified group.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Remove the specified consumer.",
    "DESTROY <key> <groupname>",
    "    Remove the specified group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Set the current group ID and entries_read counter.",
    "HELP",
    "    Prints this help.",
];

const OF_INFO: &[&str] = &[
    "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
    "HELP",
    "    Prints this help.",
];

impl ReadCommand for XHelp {
    fn read<K: Keys>(&self, _keys: &K, _view: View, reply: &mut Vec<u8>) -> ExecutionResult {
        let lines = if self.of_groups { OF_GROUPS } else { OF_INFO };
        put_array(reply, lines.len());
        lines.iter().for_each(|line| put_simple(reply, line.as_bytes()));
        Ok(())
    }
}
