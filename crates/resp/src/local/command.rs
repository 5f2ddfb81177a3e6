//! COMMAND: the table of commands, for clients that route and check by it.

use super::{Subcommand, subcommand, write_command_error};
use crate::writer::{
    Protocol, write_array, write_bulk, write_error, write_integer, write_map, write_nil, write_set,
    write_simple,
};
use syros_commands::{CommandError, CommandSpec, commands, lookup};

const SUBCOMMANDS: [Subcommand; 5] = [
    Subcommand {
        name: "count",
        arity: 2,
        help: &["COUNT", "    Return the total number of commands in this server."],
    },
    Subcommand {
        name: "list",
        arity: -2,
        help: &["LIST", "    Return a list of all commands in this server."],
    },
    Subcommand {
        name: "info",
        arity: -2,
        help: &[
            "INFO [<command-name> ...]",
            "    Return details about commands; about all if none is named.",
        ],
    },
    Subcommand {
        name: "docs",
        arity: -2,
        help: &[
            "DOCS [<command-name> ...]",
            "    Return documentation details about commands; about all if none is named.",
        ],
    },
    Subcommand {
        name: "getkeys",
        arity: -4,
        help: &["GETKEYS <full-command>", "    Return the keys from a full command."],
    },
];

pub(super) fn answer(words: &[&[u8]], protocol: Protocol, out: &mut Vec<u8>) {
    if words.len() == 1 {
        return info_all(protocol, out);
    }
    match subcommand("command", &SUBCOMMANDS, words, out) {
        Some("count") => write_integer(out, commands().len() as i64),
        Some("list") if words.len() > 2 => write_command_error(out, &CommandError::Syntax),
        Some("list") => {
            write_array(out, commands().len());
            commands().iter().for_each(|spec| write_bulk(out, spec.name.as_bytes()));
        }
        Some("info") if words.len() == 2 => info_all(protocol, out),
        Some("info") => {
            write_array(out, words.len() - 2);
            for name in &words[2..] {
                match lookup(name) {
                    Some(spec) => write_info(spec, protocol, out),
                    None => write_nil(out, protocol),
                }
            }
        }
        Some("docs") if words.len() == 2 => write_docs(commands().iter(), protocol, out),
        Some("docs") => write_docs(words[2..].iter().filter_map(|name| lookup(name)), protocol, out),
        Some("getkeys") => get_keys(&words[2..], out),
        _ => {}
    }
}

fn info_all(protocol: Protocol, out: &mut Vec<u8>) {
    write_array(out, commands().len());
    commands().iter().for_each(|spec| write_info(spec, protocol, out));
}

/// Name, arity, flags, first key, last key, step, categories, tips, key specifications, subcommands.
fn write_info(spec: &CommandSpec, protocol: Protocol, out: &mut Vec<u8>) {
    write_array(out, 10);
    write_bulk(out, spec.name.as_bytes());
    write_integer(out, i64::from(spec.arity));
    write_words(spec.flags, protocol, out);
    for position in [spec.keys.first, spec.keys.last, spec.keys.step] {
        write_integer(out, i64::from(position));
    }
    write_words(spec.categories, protocol, out);
    write_set(out, protocol, 0);
    let keys = spec.keys;
    if keys.last < 0 {
        write_set(out, protocol, 1);
        write_key_specification(spec, keys.first, keys.last, protocol, out);
    } else {
        // One for each key: they may be used differently.
        let positions = (1..=keys.last).filter(|position| *position >= keys.first);
        write_set(out, protocol, positions.clone().count());
        positions.for_each(|first| write_key_specification(spec, first, 0, protocol, out));
    }
    write_set(out, protocol, 0);
}

fn write_words(words: &[&str], protocol: Protocol, out: &mut Vec<u8>) {
    write_set(out, protocol, words.len());
    words.iter().for_each(|word| write_simple(out, word.as_bytes()));
}

/// Where keys are, said again in the way of Redis 7: a range that begins at an index; where it ends is
/// counted from there, or, if negative, from the last word.
fn write_key_specification(spec: &CommandSpec, first: i8, last: i8, protocol: Protocol, out: &mut Vec<u8>) {
    write_map(out, protocol, 3);
    write_bulk(out, b"flags");
    write_words(if spec.flags.contains(&"write") { &["RW"] } else { &["RO"] }, protocol, out);
    write_bulk(out, b"begin_search");
    write_typed(b"index", &[(b"index", first)], protocol, out);
    write_bulk(out, b"find_keys");
    let range: [(&[u8], i8); 3] = [(b"lastkey", last), (b"keystep", spec.keys.step), (b"limit", 0)];
    write_typed(b"range", &range, protocol, out);
}

fn write_typed(kind: &[u8], fields: &[(&[u8], i8)], protocol: Protocol, out: &mut Vec<u8>) {
    write_map(out, protocol, 2);
    write_bulk(out, b"type");
    write_bulk(out, kind);
    write_bulk(out, b"spec");
    write_map(out, protocol, fields.len());
    for (name, value) in fields {
        write_bulk(out, name);
        write_integer(out, i64::from(*value));
    }
}

fn write_docs<'a>(
    specs: impl Iterator<Item = &'a CommandSpec> + Clone,
    protocol: Protocol,
    out: &mut Vec<u8>,
) {
    write_map(out, protocol, specs.clone().count());
    for spec in specs {
        write_bulk(out, spec.name.as_bytes());
        write_map(out, protocol, 3);
        for (name, value) in [("summary", spec.summary), ("since", spec.since), ("group", spec.group)] {
            write_bulk(out, name.as_bytes());
            write_bulk(out, value.as_bytes());
        }
    }
}

fn get_keys(words: &[&[u8]], out: &mut Vec<u8>) {
    let Some(spec) = lookup(words[0]) else { return write_error(out, b"ERR Invalid command specified") };
    if spec.keys.first == 0 {
        return write_error(out, b"ERR The command has no key arguments");
    }
    if !spec.accepts(words.len()) {
        return write_error(out, b"ERR Invalid number of arguments specified for command");
    }
    let first = usize::from(spec.keys.first.unsigned_abs());
    let last = match spec.keys.last {
        negative if negative < 0 => words.len() - usize::from(negative.unsigned_abs()),
        last => usize::from(last.unsigned_abs()),
    };
    let keys = words[first..=last].iter().step_by(usize::from(spec.keys.step.unsigned_abs()));
    write_array(out, keys.len());
    keys.for_each(|key| write_bulk(out, key));
}
