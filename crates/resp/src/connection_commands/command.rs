//! COMMAND: the table of commands, for clients that route and check by it.

use super::{Subcommand, subcommand, write_command_error};
use crate::writer::{
    Protocol, write_array, write_bulk, write_error, write_integer, write_map, write_nil, write_set,
    write_simple,
};
use syros_commands::{CommandError, CommandSpec, SubcommandSpec, commands, glob_matches_in_any_case, lookup};

const SUBCOMMANDS: [Subcommand; 6] = [
    Subcommand {
        name: "count",
        arity: 2,
        help: &["COUNT", "    Return the total number of commands in this server."],
    },
    Subcommand {
        name: "list",
        arity: -2,
        help: &[
            "LIST [FILTERBY (MODULE <module-name>|ACLCAT <category>|PATTERN <pattern>)]",
            "    Return a list of all commands in this server.",
        ],
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
    Subcommand {
        name: "getkeysandflags",
        arity: -4,
        help: &[
            "GETKEYSANDFLAGS <full-command>",
            "    Return the keys and the access flags from a full command.",
        ],
    },
];

pub(super) fn answer(words: &[&[u8]], protocol: Protocol, out: &mut Vec<u8>) {
    if words.len() == 1 {
        return info_all(protocol, out);
    }
    match subcommand("command", &SUBCOMMANDS, words, out) {
        Some("count") => write_integer(out, commands().len() as i64),
        Some("list") => list(&words[2..], out),
        Some("info") if words.len() == 2 => info_all(protocol, out),
        Some("info") => {
            write_array(out, words.len() - 2);
            for name in &words[2..] {
                match (lookup(name), subcommand_spec(name)) {
                    (Some(spec), _) => write_info(spec, protocol, out),
                    (None, Some(spec)) => write_subcommand_info(spec, protocol, out),
                    (None, None) => write_nil(out, protocol),
                }
            }
        }
        Some("docs") if words.len() == 2 => write_docs(commands().iter(), protocol, out),
        Some("docs") => write_docs(words[2..].iter().filter_map(|name| lookup(name)), protocol, out),
        Some("getkeys") => get_keys(&words[2..], None, out),
        Some("getkeysandflags") => get_keys(&words[2..], Some(protocol), out),
        _ => {}
    }
}

/// All subcommands, those of one command together.
fn all_subcommands() -> impl Iterator<Item = &'static SubcommandSpec> {
    commands().iter().flat_map(|spec| spec.subcommands)
}

/// The subcommand with this full name, such as `client|id`.
fn subcommand_spec(name: &[u8]) -> Option<&'static SubcommandSpec> {
    all_subcommands().find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()))
}

/// COMMAND LIST: the names of all commands and subcommands, or of those that a filter lets through.
fn list(words: &[&[u8]], out: &mut Vec<u8>) {
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let all = commands().iter().map(|spec| (spec.name, spec.categories));
    let all = all.chain(all_subcommands().map(|spec| (spec.name, spec.categories)));
    let names: Vec<&str> = match words {
        [] => all.map(|(name, _)| name).collect(),
        [by, kind, argument] if is(by, "filterby") && is(kind, "pattern") => all
            .map(|(name, _)| name)
            .filter(|name| glob_matches_in_any_case(argument, name.as_bytes()))
            .collect(),
        [by, kind, argument] if is(by, "filterby") && is(kind, "aclcat") => {
            let has = |categories: &[&str]| categories.iter().any(|category| is(argument, &category[1..]));
            all.filter(|(_, categories)| has(categories)).map(|(name, _)| name).collect()
        }
        // There are no modules.
        [by, kind, _] if is(by, "filterby") && is(kind, "module") => Vec::new(),
        _ => return write_command_error(out, &CommandError::Syntax),
    };
    write_array(out, names.len());
    names.iter().for_each(|name| write_bulk(out, name.as_bytes()));
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
    write_tips(spec.tips, protocol, out);
    let keys = spec.keys;
    if keys.last < 0 {
        write_set(out, protocol, 1);
        write_key_specification(spec, 0, (keys.first, keys.last), protocol, out);
    } else {
        // One for each key: they may be used differently.
        let positions = (1..=keys.last).filter(|position| *position >= keys.first);
        write_set(out, protocol, positions.clone().count());
        positions
            .enumerate()
            .for_each(|(number, first)| write_key_specification(spec, number, (first, 0), protocol, out));
    }
    match spec.subcommands.len() {
        0 => write_set(out, protocol, 0),
        count => write_array(out, count),
    }
    spec.subcommands.iter().for_each(|subcommand| write_subcommand_info(subcommand, protocol, out));
}

/// As [`write_info`]: subcommands have no keys.
fn write_subcommand_info(spec: &SubcommandSpec, protocol: Protocol, out: &mut Vec<u8>) {
    write_array(out, 10);
    write_bulk(out, spec.name.as_bytes());
    write_integer(out, i64::from(spec.arity));
    write_words(spec.flags, protocol, out);
    [0; 3].iter().for_each(|position| write_integer(out, *position));
    write_words(spec.categories, protocol, out);
    write_tips(spec.tips, protocol, out);
    write_set(out, protocol, 0);
    write_set(out, protocol, 0);
}

fn write_tips(tips: &[&str], protocol: Protocol, out: &mut Vec<u8>) {
    write_set(out, protocol, tips.len());
    tips.iter().for_each(|tip| write_bulk(out, tip.as_bytes()));
}

/// What a command does to the keys of its specification with this number.
fn key_flags(spec: &CommandSpec, number: usize) -> &'static [&'static str] {
    spec.key_flags.get(number).copied().unwrap_or_default()
}

fn write_words(words: &[&str], protocol: Protocol, out: &mut Vec<u8>) {
    write_set(out, protocol, words.len());
    words.iter().for_each(|word| write_simple(out, word.as_bytes()));
}

/// Where keys are, said again in the way of Redis 7: a range that begins at an index; where it ends is
/// counted from there, or, if negative, from the last word.
fn write_key_specification(
    spec: &CommandSpec,
    number: usize,
    (first, last): (i8, i8),
    protocol: Protocol,
    out: &mut Vec<u8>,
) {
    write_map(out, protocol, if spec.key_notes.is_empty() { 3 } else { 4 });
    if !spec.key_notes.is_empty() {
        write_bulk(out, b"notes");
        write_bulk(out, spec.key_notes.as_bytes());
    }
    write_bulk(out, b"flags");
    write_words(key_flags(spec, number), protocol, out);
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

/// The keys of a command; with a protocol, what the command does to each of them, too.
fn get_keys(words: &[&[u8]], flags: Option<Protocol>, out: &mut Vec<u8>) {
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
    for (number, key) in keys.enumerate() {
        let Some(protocol) = flags else {
            write_bulk(out, key);
            continue;
        };
        write_array(out, 2);
        write_bulk(out, key);
        let number = if spec.keys.last < 0 { 0 } else { number };
        let mut flags = key_flags(spec, number);
        if flags.contains(&"variable_flags") {
            // SET: it reads the key only with GET.
            let gets = words.iter().skip(3).any(|word| word.eq_ignore_ascii_case(b"get"));
            flags = if gets { &["RW", "access", "update"] } else { &["OW", "update"] };
        }
        write_words(flags, protocol, out);
    }
}
