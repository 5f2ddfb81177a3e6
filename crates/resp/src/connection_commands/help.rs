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
        help: &["FREQ <key>", "    Refused: how often a <key> is used is not tracked."],
    },
    Subcommand {
        name: "idletime",
        arity: 3,
        help: &["IDLETIME <key>", "    Return 0: when a <key> was used last is not tracked."],
    },
    Subcommand {
        name: "refcount",
        arity: 3,
        help: &["REFCOUNT <key>", "    Return the number of references of the value of a <key>, which is 1."],
    },
];

/// Writes the lines about OBJECT, the only one.
pub(super) fn answer(out: &mut Vec<u8>) {
    write_help("object", &OBJECT, out);
}
