//! ACL and AUTH: there is one user, `default`, who needs no password and may do everything.

use super::{SHOWN_BYTES_MAX, Subcommand, subcommand, write_command_error, write_wrong_words};
use crate::writer::{
    Protocol, write_array, write_bulk, write_error, write_integer, write_map, write_nil, write_set,
    write_simple,
};
use syros_commands::{CommandError, commands, lookup, parse_integer};

/// The categories that a command can have, in Redis's order.
const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

const USER: &[u8] = b"default";

const WRONG_PASSWORD: &[u8] = b"WRONGPASS invalid username-password pair or user is disabled.";

const SUBCOMMANDS: [Subcommand; 12] = [
    Subcommand {
        name: "cat",
        arity: -2,
        help: &["CAT [<category>]", "    List the categories, or the commands of one."],
    },
    Subcommand { name: "deluser", arity: -3, help: &["DELUSER <username> [<username> ...]", "    Refused."] },
    Subcommand {
        name: "dryrun",
        arity: -4,
        help: &[
            "DRYRUN <username> <command> [<arg> ...]",
            "    Say whether the user may execute the command.",
        ],
    },
    Subcommand { name: "genpass", arity: -2, help: &["GENPASS [<bits>]", "    Refused."] },
    Subcommand {
        name: "getuser",
        arity: 3,
        help: &["GETUSER <username>", "    Return what the user may do."],
    },
    Subcommand { name: "list", arity: 2, help: &["LIST", "    Describe the users."] },
    Subcommand { name: "load", arity: 2, help: &["LOAD", "    Refused: there is no ACL file."] },
    Subcommand {
        name: "log",
        arity: -2,
        help: &["LOG [<count> | RESET]", "    Return nothing: nothing is ever denied."],
    },
    Subcommand { name: "save", arity: 2, help: &["SAVE", "    Refused: there is no ACL file."] },
    Subcommand {
        name: "setuser",
        arity: -3,
        help: &["SETUSER <username> <attribute> [<attribute> ...]", "    Refused."],
    },
    Subcommand { name: "users", arity: 2, help: &["USERS", "    List the names of the users."] },
    Subcommand {
        name: "whoami",
        arity: 2,
        help: &["WHOAMI", "    Return the name of the user of this connection."],
    },
];

/// AUTH.
pub(super) fn authenticate(words: &[&[u8]], out: &mut Vec<u8>) {
    match words {
        [_, _password] => write_error(
            out,
            b"ERR AUTH <password> called without any password configured for the default user. Are you sure your \
              configuration is correct?",
        ),
        [_, user, _password] if *user == USER => write_simple(out, b"OK"),
        [_, _, _] => write_error(out, WRONG_PASSWORD),
        _ => write_command_error(out, &CommandError::Syntax),
    }
}

pub(super) fn answer(words: &[&[u8]], protocol: Protocol, out: &mut Vec<u8>) {
    match subcommand("acl", &SUBCOMMANDS, words, out) {
        Some("whoami") => write_bulk(out, USER),
        Some("users") => {
            write_array(out, 1);
            write_bulk(out, USER);
        }
        Some("list") => {
            write_array(out, 1);
            write_bulk(out, b"user default on nopass ~* &* +@all");
        }
        Some("cat") => list_categories(words, out),
        Some("getuser") if words[2] == USER => describe_user(protocol, out),
        Some("getuser") => write_nil(out, protocol),
        Some("log") => log(words, out),
        Some("dryrun") => dry_run(&words[2..], out),
        Some("deluser") if words[2..].contains(&USER) => {
            write_error(out, b"ERR The 'default' user cannot be removed");
        }
        Some("deluser") => write_integer(out, 0),
        Some("load" | "save") => write_error(
            out,
            b"ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL \
              SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in \
              order to store users in the Redis configuration.",
        ),
        Some("setuser" | "genpass") => {
            write_error(out, b"ERR there is only the default user, who needs no password: users cannot be made");
        }
        _ => {}
    }
}

fn list_categories(words: &[&[u8]], out: &mut Vec<u8>) {
    let category = match &words[2..] {
        [] => {
            write_array(out, CATEGORIES.len());
            return CATEGORIES.iter().for_each(|category| write_bulk(out, category.as_bytes()));
        }
        [category] => *category,
        _ => return write_wrong_words("acl", words[1], out),
    };
    let is_it = |known: &str| category.eq_ignore_ascii_case(known.as_bytes());
    if !CATEGORIES.iter().any(|known| is_it(known)) {
        let shown = &category[..category.len().min(SHOWN_BYTES_MAX)];
        return write_error(out, &[b"ERR Unknown category '", shown, b"'"].concat());
    }
    let has = |categories: &[&str]| categories.iter().any(|known| is_it(&known[1..]));
    let mut names = Vec::new();
    for spec in commands() {
        names.extend(has(spec.categories).then_some(spec.name));
        let subcommands = spec.subcommands.iter().filter(|subcommand| has(subcommand.categories));
        names.extend(subcommands.map(|subcommand| subcommand.name));
    }
    write_array(out, names.len());
    names.iter().for_each(|name| write_bulk(out, name.as_bytes()));
}

fn describe_user(protocol: Protocol, out: &mut Vec<u8>) {
    write_map(out, protocol, 6);
    write_bulk(out, b"flags");
    write_set(out, protocol, 2);
    write_bulk(out, b"on");
    write_bulk(out, b"nopass");
    write_bulk(out, b"passwords");
    write_array(out, 0);
    for (name, value) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        write_bulk(out, name.as_bytes());
        write_bulk(out, value.as_bytes());
    }
    write_bulk(out, b"selectors");
    write_array(out, 0);
}

fn log(words: &[&[u8]], out: &mut Vec<u8>) {
    match &words[2..] {
        [word] if word.eq_ignore_ascii_case(b"reset") => write_simple(out, b"OK"),
        [count] if parse_integer(count).is_none() => write_command_error(out, &CommandError::NotInteger),
        [] | [_] => write_array(out, 0),
        _ => write_wrong_words("acl", words[1], out),
    }
}

fn dry_run(words: &[&[u8]], out: &mut Vec<u8>) {
    let (user, command) = (words[0], &words[1..]);
    if user != USER {
        let shown = &user[..user.len().min(SHOWN_BYTES_MAX)];
        return write_error(out, &[b"ERR User '", shown, b"' not found"].concat());
    }
    match lookup(command[0]) {
        None => {
            let shown = &command[0][..command[0].len().min(SHOWN_BYTES_MAX)];
            write_error(out, &[b"ERR Command '", shown, b"' not found"].concat());
        }
        Some(spec) if !spec.accepts(command.len()) => {
            write_command_error(out, &CommandError::Arity(spec.name));
        }
        Some(_) => write_simple(out, b"OK"),
    }
}
