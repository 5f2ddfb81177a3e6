//! HELP of commands whose other subcommands are operations on data.

use super::{Subcommand, write_help};

const OBJECT: [Subcommand; 4] = [
    Subcommand {
        name: "encoding",
        arity: 3,
        help: &["ENCODING <key>", "    Return the name of the form in which the value of a <key> is kept."],
    },
    Subcommand {
        name: "freq",
        arity: 3,
        help: &["FREQ <key>", "    Return how often a <key> is used, if an LFU maxmemory policy is set."],
    },
    Subcommand {
        name: "idletime",
        arity: 3,
        help: &[
            "IDLETIME <key>",
            "    Return the seconds since a <key> was used; 0 where no policy records it.",
        ],
    },
    Subcommand {
        name: "refcount",
        arity: 3,
        help: &["REFCOUNT <key>", "    Return the number of references of the value of a <key>, which is 1."],
    },
];

const FUNCTION: [Subcommand; 8] = [
    Subcommand {
        name: "load",
        arity: -3,
        help: &["LOAD [REPLACE] <code>", "    Load the library with this <code>."],
    },
    Subcommand { name: "delete", arity: 3, help: &["DELETE <library>", "    Remove a <library>."] },
    Subcommand { name: "flush", arity: -2, help: &["FLUSH [ASYNC|SYNC]", "    Remove all libraries."] },
    Subcommand {
        name: "list",
        arity: -2,
        help: &["LIST [LIBRARYNAME <pattern>] [WITHCODE]", "    Return the libraries and their functions."],
    },
    Subcommand {
        name: "stats",
        arity: 2,
        help: &["STATS", "    Return how many libraries and functions there are."],
    },
    Subcommand {
        name: "dump",
        arity: 2,
        help: &["DUMP", "    Return all libraries as a payload for FUNCTION RESTORE."],
    },
    Subcommand {
        name: "restore",
        arity: -3,
        help: &[
            "RESTORE <payload> [APPEND|FLUSH|REPLACE]",
            "    Load the libraries of a <payload>: APPEND fails if there is one of the same name, REPLACE replaces it,",
            "    and FLUSH replaces all. APPEND is the default.",
        ],
    },
    Subcommand {
        name: "kill",
        arity: 2,
        help: &["KILL", "    Refused: functions end by themselves, for their steps are limited."],
    },
];

const SCRIPT: [Subcommand; 5] = [
    Subcommand {
        name: "exists",
        arity: -3,
        help: &["EXISTS <sha1> [<sha1> ...]", "    Return which of these scripts are loaded."],
    },
    Subcommand { name: "flush", arity: -2, help: &["FLUSH [ASYNC|SYNC]", "    Remove all scripts."] },
    Subcommand {
        name: "kill",
        arity: 2,
        help: &["KILL", "    Refused: scripts end by themselves, for their steps are limited."],
    },
    Subcommand {
        name: "load",
        arity: 3,
        help: &["LOAD <script>", "    Load a <script>, and return its SHA-1."],
    },
    Subcommand { name: "show", arity: 3, help: &["SHOW <sha1>", "    Return the text of a script."] },
];

/// Writes the lines about a command.
pub(super) fn answer(words: &[&[u8]], out: &mut Vec<u8>) {
    let is = |name: &str| words.first().is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    if is("function") {
        write_help("function", &FUNCTION, out);
    } else if is("script") {
        write_help("script", &SCRIPT, out);
    } else {
        write_help("object", &OBJECT, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syros_commands::{CommandKind, commands};

    /// Every command that is asked here is the one that is told of.
    #[test]
    fn each_command_is_told_of() {
        let of_data = |spec: &&syros_commands::CommandSpec| {
            matches!(spec.kind, CommandKind::Data(_)) && !spec.subcommands.is_empty()
        };
        for spec in commands().iter().filter(of_data) {
            if spec.local.is_some() || spec.group == "stream" {
                continue;
            }
            let mut out = Vec::new();
            answer(&[spec.name.as_bytes(), b"help"], &mut out);
            let text = String::from_utf8(out).unwrap();
            let expected = format!("+{} <subcommand>", spec.name.to_uppercase());
            assert!(text.contains(&expected), "{text}");
            for subcommand in spec.subcommands {
                let (_, name) = subcommand.name.split_once('|').unwrap();
                assert!(text.contains(&format!("+{}", name.to_uppercase())), "{name}");
            }
        }
    }
}
