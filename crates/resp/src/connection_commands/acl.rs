//! AUTH, and the subcommands of ACL that one node answers by itself. Those that concern all nodes are operations.

use super::{
    SHOWN_BYTES_MAX, Session, Subcommand, full_name, subcommand, subcommand_error, write_command_error,
    write_wrong_words,
};
use crate::access::{AclEntry, AclLog, OUTDATED_USERS, Refusal, RefusalContext};
use crate::context::{Context, Unavailable};
use crate::info::ServerInfo;
use crate::writer::{
    Protocol, write_array, write_bulk, write_error, write_integer, write_map, write_reply, write_simple,
};
use std::sync::Arc;
use syros_commands::acl::{CheckBudget, DEFAULT_USER};
use syros_commands::{CommandError, Double, ReplyRef, commands, lookup, parse_integer};
use syros_types::WallTime;

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

const WRONG_PASSWORD: &[u8] = b"WRONGPASS invalid username-password pair or user is disabled.";

/// Bits of the longest password that ACL GENPASS makes: as in Redis.
const PASSWORD_BITS_MAX: i64 = 4096;

/// Entries that ACL LOG shows if nobody says how many: as in Redis.
const ENTRIES_SHOWN: usize = 10;

const SUBCOMMANDS: [Subcommand; 12] = [
    Subcommand {
        name: "cat",
        arity: -2,
        help: &[
            "CAT [<category>]",
            "    List all commands that belong to <category>, or all command categories",
            "    when no category is specified.",
        ],
    },
    Subcommand {
        name: "deluser",
        arity: -3,
        help: &["DELUSER <username> [<username> ...]", "    Delete a list of users."],
    },
    Subcommand {
        name: "dryrun",
        arity: -4,
        help: &[
            "DRYRUN <username> <command> [<arg> ...]",
            "    Returns whether the user can execute the given command without executing the command.",
        ],
    },
    Subcommand { name: "getuser", arity: 3, help: &["GETUSER <username>", "    Get the user's details."] },
    Subcommand {
        name: "genpass",
        arity: -2,
        help: &[
            "GENPASS [<bits>]",
            "    Generate a secure 256-bit user password. The optional `bits` argument can",
            "    be used to specify a different size.",
        ],
    },
    Subcommand { name: "list", arity: 2, help: &["LIST", "    Show users details in config file format."] },
    Subcommand {
        name: "load",
        arity: 2,
        help: &["LOAD", "    Do nothing: every node has the users from the replicated log."],
    },
    Subcommand {
        name: "log",
        arity: -2,
        help: &["LOG [<count> | RESET]", "    Show the ACL log entries of this node."],
    },
    Subcommand {
        name: "save",
        arity: 2,
        help: &["SAVE", "    Do nothing: the users are in the replicated log."],
    },
    Subcommand {
        name: "setuser",
        arity: -3,
        help: &[
            "SETUSER <username> <attribute> [<attribute> ...]",
            "    Create or modify a user with the specified attributes.",
        ],
    },
    Subcommand { name: "users", arity: 2, help: &["USERS", "    List all the registered usernames."] },
    Subcommand { name: "whoami", arity: 2, help: &["WHOAMI", "    Return the current connection username."] },
];

/// AUTH.
pub(super) fn authenticate(words: &[&[u8]], session: &mut Session, out: &mut Vec<u8>) {
    let (user, password) = match words {
        [_, password] => {
            let users = session.shared.known_users();
            if users.is_some_and(|users| users.default_user().user().needs_no_password()) {
                return write_error(
                    out,
                    b"ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                      configuration is correct?",
                );
            }
            (DEFAULT_USER, *password)
        }
        [_, user, password] => (*user, *password),
        _ => return write_command_error(out, &CommandError::Syntax),
    };
    if log_in(user, password, words[0], session, out) {
        write_simple(out, b"OK");
    }
}

/// Has the client become a user. False if the reply is an error, which has been written.
pub(super) fn log_in(
    name: &[u8],
    password: &[u8],
    command: &[u8],
    session: &mut Session,
    out: &mut Vec<u8>,
) -> bool {
    let Some(users) = session.shared.known_users() else {
        write_error(out, Unavailable::Loading.text().as_bytes());
        return false;
    };
    if session.login.comes_too_late(&session.shared.users) {
        // The password may be wrong by now, or right.
        write_error(out, OUTDATED_USERS);
        return false;
    }
    match users.find(name).filter(|user| user.user().accepts(password)) {
        Some(user) => {
            session.login.enter(Arc::clone(user), &users, &session.shared.users);
            true
        }
        None => {
            let (object, user) = (command.to_vec(), name.to_vec());
            let context = RefusalContext::Toplevel;
            session.refused_login = Some(Refusal { reason: "auth", context, object, user });
            write_error(out, WRONG_PASSWORD);
            false
        }
    }
}

pub(super) fn answer(words: &[&[u8]], session: &Session, context: &Context<'_>, out: &mut Vec<u8>) {
    match subcommand("acl", &SUBCOMMANDS, words, out) {
        Some("whoami") => write_bulk(out, session.login.name()),
        Some("cat") => list_categories(words, out),
        Some("log") => log(words, session, context.now, out),
        Some("dryrun") => dry_run(&words[2..], session, out),
        Some("load" | "save") => write_simple(out, b"OK"),
        Some("genpass") => make_password(words, context.info, out),
        _ => {}
    }
}

fn make_password(words: &[&[u8]], info: &dyn ServerInfo, out: &mut Vec<u8>) {
    let bits = match &words[2..] {
        [] => Some(256),
        [bits] => parse_integer(bits),
        _ => return write_wrong_words("acl", words[1], out),
    };
    let Some(bits) = bits else { return write_command_error(out, &CommandError::NotInteger) };
    if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
        let text = format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to \
             {PASSWORD_BITS_MAX}"
        );
        return write_error(out, text.as_bytes());
    }
    // From 1 to 1024.
    let digits = bits.unsigned_abs().div_ceil(4) as usize;
    let mut bytes = vec![0; digits.div_ceil(2)];
    if !info.fill_with_chance(&mut bytes) {
        return write_error(out, b"ERR this server has no source of chance for passwords");
    }
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    write_bulk(out, &text.as_bytes()[..digits]);
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

fn log(words: &[&[u8]], session: &Session, now: WallTime, out: &mut Vec<u8>) {
    let count = match &words[2..] {
        [] => ENTRIES_SHOWN,
        [word] if word.eq_ignore_ascii_case(b"reset") => {
            session.shared.acl_log(AclLog::clear);
            return write_simple(out, b"OK");
        }
        [count] => match parse_integer(count) {
            Some(count) => usize::try_from(count).unwrap_or(0),
            None => return write_command_error(out, &CommandError::NotInteger),
        },
        _ => return write_wrong_words("acl", words[1], out),
    };
    session.shared.acl_log(|log| {
        let entries = log.entries();
        write_array(out, count.min(entries.len()));
        entries.take(count).for_each(|entry| write_entry(entry, session.protocol, now, out));
    });
}

fn write_entry(entry: &AclEntry, protocol: Protocol, now: WallTime, out: &mut Vec<u8>) {
    let AclEntry { number, count, refusal, first, last, client } = entry;
    let millis = |at: &WallTime| (at.0 / 1000).cast_signed();
    write_map(out, protocol, 10);
    write_bulk(out, b"count");
    write_integer(out, count.cast_signed());
    let texts: [(&[u8], &[u8]); 4] = [
        (b"reason", refusal.reason.as_bytes()),
        (b"context", refusal.context.name().as_bytes()),
        (b"object", &refusal.object),
        (b"username", &refusal.user),
    ];
    for (name, text) in texts {
        write_bulk(out, name);
        write_bulk(out, text);
    }
    write_bulk(out, b"age-seconds");
    let age = now.0.saturating_sub(last.0) / 1000;
    write_reply(out, protocol, ReplyRef::Double(Double::new(age as f64 / 1000.0)));
    write_bulk(out, b"client-info");
    write_bulk(out, client);
    let numbers = [
        ("entry-id", number.cast_signed()),
        ("timestamp-created", millis(first)),
        ("timestamp-last-updated", millis(last)),
    ];
    for (name, number) in numbers {
        write_bulk(out, name.as_bytes());
        write_integer(out, number);
    }
}

fn dry_run(words: &[&[u8]], session: &Session, out: &mut Vec<u8>) {
    let (name, command) = (words[0], &words[1..]);
    let users = session.shared.known_users();
    let Some(user) = users.as_ref().and_then(|users| users.find(name)) else {
        let shown = &name[..name.len().min(SHOWN_BYTES_MAX)];
        return write_error(out, &[b"ERR User '", shown, b"' not found"].concat());
    };
    let spec = lookup(command[0]);
    let is_unknown = spec.is_none_or(|spec| {
        let full = full_name(spec, command);
        command.len() > 1 && !spec.subcommands.is_empty() && full == spec.name
    });
    match spec {
        Some(spec) if !is_unknown && !spec.accepts(command.len()) => {
            write_command_error(out, &CommandError::Arity(full_name(spec, command)));
        }
        Some(spec) if !is_unknown => match subcommand_error(spec, command) {
            Some(error) => write_error(out, &error),
            None => match user.user().admit(command, &mut CheckBudget::default()) {
                Ok(()) => write_simple(out, b"OK"),
                Err(denial) => write_bulk(out, &denial.sentence(name, true)),
            },
        },
        _ => {
            let shown = &command[0][..command[0].len().min(SHOWN_BYTES_MAX)];
            write_error(out, &[b"ERR Command '", shown, b"' not found"].concat());
        }
    }
}
