//! COMMAND: the table of commands, for clients that route and check by it.

use super::{Subcommand, subcommand, write_command_error};
use crate::writer::{
    Protocol, write_array, write_bulk, write_error, write_integer, write_map, write_nil, write_set,
    write_simple,
};
use syros_commands::{
    CommandError, CommandSpec, KeyWord, KeysBehind, SubcommandSpec, accessed_keys, commands,
    first_word_specification, glob_matches_in_any_case, key_flags, lookup, parse_pattern,
    subcommand_key_flags,
};

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
        [by, kind, argument] if is(by, "filterby") && is(kind, "pattern") => match parse_pattern(argument) {
            Ok(pattern) => all
                .map(|(name, _)| name)
                .filter(|name| glob_matches_in_any_case(pattern, name.as_bytes()))
                .collect(),
            Err(error) => return write_command_error(out, &error),
        },
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
    write_key_specifications(spec, protocol, out);
    match spec.subcommands.len() {
        0 => write_set(out, protocol, 0),
        count => write_array(out, count),
    }
    spec.subcommands.iter().for_each(|subcommand| write_subcommand_info(subcommand, protocol, out));
}

/// As [`write_info`]: subcommands have no key, or one behind their name.
fn write_subcommand_info(spec: &SubcommandSpec, protocol: Protocol, out: &mut Vec<u8>) {
    let flags = subcommand_key_flags(spec);
    write_array(out, 10);
    write_bulk(out, spec.name.as_bytes());
    write_integer(out, i64::from(spec.arity));
    write_words(spec.flags, protocol, out);
    let positions = if flags.is_empty() { [0; 3] } else { [2, 2, 1] };
    positions.iter().for_each(|position| write_integer(out, *position));
    write_words(spec.categories, protocol, out);
    write_tips(spec.tips, protocol, out);
    if flags.is_empty() {
        write_set(out, protocol, 0);
    } else {
        write_set(out, protocol, 1);
        let range: [(&[u8], i64); 3] = [(b"lastkey", 0), (b"keystep", 1), (b"limit", 0)];
        let search = Search { kind: b"index", fields: &[(b"index", Found::Number(2))] };
        write_key_specification("", flags, &search, (b"range", &range), protocol, out);
    }
    write_set(out, protocol, 0);
}

fn write_tips(tips: &[&str], protocol: Protocol, out: &mut Vec<u8>) {
    write_set(out, protocol, tips.len());
    tips.iter().for_each(|tip| write_bulk(out, tip.as_bytes()));
}

fn write_words(words: &[&str], protocol: Protocol, out: &mut Vec<u8>) {
    write_set(out, protocol, words.len());
    words.iter().for_each(|word| write_simple(out, word.as_bytes()));
}

/// Where keys are, said again in the way of Redis 7: ranges that begin at an index, and those behind their number. Where a
/// range ends is counted from its beginning, or, if negative, from the last word.
fn write_key_specifications(spec: &CommandSpec, protocol: Protocol, out: &mut Vec<u8>) {
    let keys = spec.keys;
    // One for each key, for they may be used differently; the last one for all that are left.
    let placed = spec.key_flags.len() - spec.movable_keys();
    let mut ranges: Vec<(i8, i8)> = (keys.first..).take(placed).map(|position| (position, 0)).collect();
    if let Some((first, last)) = ranges.last_mut() {
        *last = if keys.last < 0 { keys.last } else { keys.last - *first };
    }
    write_set(out, protocol, spec.key_flags.len());
    for (number, (first, last)) in ranges.iter().enumerate() {
        let range: [(&[u8], i64); 3] =
            [(b"lastkey", i64::from(*last)), (b"keystep", i64::from(keys.step)), (b"limit", 0)];
        let flags = key_flags(spec, number);
        let search = Search { kind: b"index", fields: &[(b"index", Found::Number(i64::from(*first)))] };
        write_key_specification(spec.key_notes, flags, &search, (b"range", &range), protocol, out);
    }
    if spec.key_count > 0 {
        let behind: [(&[u8], i64); 3] = [(b"keynumidx", 0), (b"firstkey", 1), (b"keystep", 1)];
        let fields: [(&[u8], Found); 1] = [(b"index", Found::Number(i64::from(spec.key_count)))];
        let search = Search { kind: b"index", fields: &fields };
        let flags = key_flags(spec, placed);
        write_key_specification(spec.key_notes, flags, &search, (b"keynum", &behind), protocol, out);
    }
    let words = spec.key_words.iter().zip(first_word_specification(spec)..);
    for (KeyWord { word, from, keys }, number) in words {
        let flags = key_flags(spec, number);
        let (last, limit) = match keys {
            KeysBehind::One => (0, 0),
            KeysBehind::Half => (-1, 2),
            KeysBehind::Untold(notes) | KeysBehind::Pattern(notes) => {
                let search = Search { kind: b"unknown", fields: &[] };
                write_key_specification(notes, flags, &search, (b"unknown", &[]), protocol, out);
                continue;
            }
        };
        let range: [(&[u8], i64); 3] = [(b"lastkey", last), (b"keystep", 1), (b"limit", limit)];
        let fields: [(&[u8], Found); 2] =
            [(b"keyword", Found::Word(word)), (b"startfrom", Found::Number(i64::from(*from)))];
        let search = Search { kind: b"keyword", fields: &fields };
        write_key_specification(spec.key_notes, flags, &search, (b"range", &range), protocol, out);
    }
}

/// Where the search for keys begins.
struct Search<'a> {
    kind: &'a [u8],
    fields: &'a [(&'a [u8], Found)],
}

/// What it begins at.
#[derive(Clone, Copy)]
enum Found {
    Number(i64),
    Word(&'static str),
}

/// One of them: where the search for keys begins, and how they are found from there.
fn write_key_specification(
    notes: &str,
    flags: &[&str],
    search: &Search<'_>,
    (kind, fields): (&[u8], &[(&[u8], i64)]),
    protocol: Protocol,
    out: &mut Vec<u8>,
) {
    write_map(out, protocol, if notes.is_empty() { 3 } else { 4 });
    if !notes.is_empty() {
        write_bulk(out, b"notes");
        write_bulk(out, notes.as_bytes());
    }
    write_bulk(out, b"flags");
    write_words(flags, protocol, out);
    write_bulk(out, b"begin_search");
    write_typed(search.kind, search.fields, protocol, out);
    write_bulk(out, b"find_keys");
    let fields: Vec<(&[u8], Found)> =
        fields.iter().map(|(name, number)| (*name, Found::Number(*number))).collect();
    write_typed(kind, &fields, protocol, out);
}

fn write_typed(kind: &[u8], fields: &[(&[u8], Found)], protocol: Protocol, out: &mut Vec<u8>) {
    write_map(out, protocol, 2);
    write_bulk(out, b"type");
    write_bulk(out, kind);
    write_bulk(out, b"spec");
    write_map(out, protocol, fields.len());
    for (name, value) in fields {
        write_bulk(out, name);
        match value {
            Found::Number(number) => write_integer(out, *number),
            Found::Word(word) => write_bulk(out, word.as_bytes()),
        }
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
    if !spec.subcommand_keys.is_empty() {
        return get_subcommand_key(spec, words, flags, out);
    }
    if spec.has_no_keys() {
        return write_error(out, b"ERR The command has no key arguments");
    }
    if !spec.accepts(words.len()) {
        return write_error(out, b"ERR Invalid number of arguments specified for command");
    }
    let Some(keys) = accessed_keys(spec, words) else {
        return write_error(out, b"ERR Invalid arguments specified for command");
    };
    write_array(out, keys.len());
    for (key, key_flags) in keys {
        let Some(protocol) = flags else {
            write_bulk(out, key);
            continue;
        };
        write_array(out, 2);
        write_bulk(out, key);
        write_words(key_flags, protocol, out);
    }
}

/// The key of a subcommand.
fn get_subcommand_key(spec: &CommandSpec, words: &[&[u8]], flags: Option<Protocol>, out: &mut Vec<u8>) {
    let name = words.get(1).copied().unwrap_or_default();
    let is_own = |found: &&SubcommandSpec| {
        found.name.split_once('|').is_some_and(|(_, own)| name.eq_ignore_ascii_case(own.as_bytes()))
    };
    let Some(subcommand) = spec.subcommands.iter().find(is_own) else {
        return write_error(out, b"ERR Invalid command specified");
    };
    let key_flags = subcommand_key_flags(subcommand);
    if key_flags.is_empty() {
        return write_error(out, b"ERR The command has no key arguments");
    }
    let Some(key) = words.get(2).filter(|_| subcommand.accepts(words.len())) else {
        return write_error(out, b"ERR Invalid number of arguments specified for command");
    };
    write_array(out, 1);
    if let Some(protocol) = flags {
        write_array(out, 2);
        write_bulk(out, key);
        write_words(key_flags, protocol, out);
    } else {
        write_bulk(out, key);
    }
}
