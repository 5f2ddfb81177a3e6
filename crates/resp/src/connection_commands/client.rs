//! CLIENT: what a client says and asks of its own connection.

use super::{
    NAME_BYTES_MAX, Replies, Session, Subcommand, is_plain, set_name, subcommand, write_command_error,
    write_id,
};
use crate::context::Identity;
use crate::tracking::TrackingChoice;
use crate::writer::{
    write_array, write_bulk, write_error, write_integer, write_map, write_nil, write_set, write_simple,
    write_verbatim,
};
use std::io::Write as _;
use std::time::Duration;
use syros_commands::CommandError;
use syros_types::WallTime;

const SUBCOMMANDS: [Subcommand; 18] = [
    Subcommand {
        name: "blind",
        arity: 3,
        help: &[
            "BLIND (ON|OFF)",
            "    Run updates without their counts, in one round trip: :-1 is answered instead.",
        ],
    },
    Subcommand {
        name: "caching",
        arity: 3,
        help: &[
            "CACHING (YES|NO)",
            "    Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes.",
        ],
    },
    Subcommand {
        name: "getname",
        arity: 2,
        help: &["GETNAME", "    Return the name of the current connection."],
    },
    Subcommand {
        name: "getredir",
        arity: 2,
        help: &["GETREDIR", "    Return the client ID we are redirecting to when tracking is enabled."],
    },
    Subcommand { name: "id", arity: 2, help: &["ID", "    Return the ID of the current connection."] },
    Subcommand {
        name: "info",
        arity: 2,
        help: &["INFO", "    Return information about the current client connection."],
    },
    Subcommand {
        name: "kill",
        arity: -3,
        help: &[
            "KILL <ip:port>",
            "    Close the connection made from <ip:port>.",
            "KILL <option> <value> [<option> <value> [...]]",
            "    Close connections of this node. Options are:",
            "    * ID <client-id>",
            "    * ADDR <ip:port>",
            "    * LADDR <ip:port>",
            "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
            "    * USER <username>",
            "    * MAXAGE <seconds>",
            "    * SKIPME (YES|NO)",
            "      Spare the current connection (default: yes).",
        ],
    },
    Subcommand {
        name: "list",
        arity: -2,
        help: &[
            "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB) | ID <client-id> [<client-id> ...]]",
            "    Return information about the connections of this node.",
        ],
    },
    Subcommand { name: "no-evict", arity: 3, help: &["NO-EVICT (ON|OFF)", "    Accepted, and ignored."] },
    Subcommand { name: "no-touch", arity: 3, help: &["NO-TOUCH (ON|OFF)", "    Accepted, and ignored."] },
    Subcommand {
        name: "pause",
        arity: -3,
        help: &[
            "PAUSE <timeout> [WRITE|ALL]",
            "    Have all commands of clients of this node wait, or just those that write, for <timeout> milliseconds.",
        ],
    },
    Subcommand {
        name: "reply",
        arity: 3,
        help: &["REPLY (ON|OFF|SKIP)", "    Control the replies sent to the current connection."],
    },
    Subcommand {
        name: "setinfo",
        arity: 4,
        help: &["SETINFO (LIB-NAME|LIB-VER) <value>", "    Set the name or version of the client library."],
    },
    Subcommand {
        name: "setname",
        arity: 3,
        help: &["SETNAME <name>", "    Assign the name <name> to the current connection."],
    },
    Subcommand {
        name: "tracking",
        arity: -3,
        help: &[
            "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> [...]]",
            "         [OPTIN] [OPTOUT] [NOLOOP]",
            "    Control server assisted client side caching.",
        ],
    },
    Subcommand {
        name: "trackinginfo",
        arity: 2,
        help: &["TRACKINGINFO", "    Report tracking status for the current connection."],
    },
    Subcommand { name: "unpause", arity: 2, help: &["UNPAUSE", "    End the pause."] },
    Subcommand {
        name: "unblock",
        arity: -3,
        help: &["UNBLOCK <clientid> [TIMEOUT|ERROR]", "    Unblock the specified blocked client."],
    },
];

pub(super) fn answer(words: &[&[u8]], session: &mut Session, now: WallTime, out: &mut Vec<u8>) {
    match subcommand("client", &SUBCOMMANDS, words, out) {
        Some("blind") => blind(session, words[2], out),
        Some("caching") => caching(session, words[2], out),
        Some("getredir") => write_integer(out, redirection(session)),
        Some("trackinginfo") => tracking_info(session, out),
        Some("getname") if session.name.is_empty() => write_nil(out, session.protocol),
        Some("getname") => write_bulk(out, &session.name),
        Some("id") => write_id(session, out),
        // In a transaction.
        Some("info") => {
            let mut line = Vec::new();
            put_client_line(session, &ClientFigures::default(), now, &mut line);
            write_verbatim(out, session.protocol, &line);
        }
        Some("no-evict" | "no-touch") => {
            switch(words[2], out);
        }
        Some("reply") => reply(session, words[2], out),
        Some("setinfo") => set_info(session, words[2], words[3], out),
        Some("setname") => set_own_name(session, words[2], out),
        // With as many words as it may have it does not come here: other connections are not this one's business.
        Some("unblock") => write_command_error(out, &CommandError::Syntax),
        _ => {}
    }
}

/// CLIENT CACHING.
fn caching(session: &mut Session, mode: &[u8], out: &mut Vec<u8>) {
    let choice = session.tracking.as_ref().map(|tracking| tracking.request.choice);
    let Some(choice @ (TrackingChoice::OptIn | TrackingChoice::OptOut)) = choice else {
        let text = "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT \
                    mode enabled";
        return write_error(out, text.as_bytes());
    };
    let is_yes = mode.eq_ignore_ascii_case(b"yes");
    if !is_yes && !mode.eq_ignore_ascii_case(b"no") {
        return write_command_error(out, &CommandError::Syntax);
    }
    match (is_yes, choice) {
        (true, TrackingChoice::OptOut) => {
            write_error(out, b"ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
        }
        (false, TrackingChoice::OptIn) => {
            write_error(out, b"ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
        }
        _ => {
            if let Some(tracking) = &mut session.tracking {
                tracking.is_caching_set = true;
            }
            write_simple(out, b"OK");
        }
    }
}

/// The number of the client that is told of keys to be dropped: 0 if it is this one, -1 if none is.
fn redirection(session: &Session) -> i64 {
    let redirect = session.tracking.as_ref().map(|tracking| tracking.request.redirect.unwrap_or(0));
    redirect.map_or(-1, u64::cast_signed)
}

/// CLIENT TRACKINGINFO.
fn tracking_info(session: &Session, out: &mut Vec<u8>) {
    let mut flags: Vec<&[u8]> = Vec::new();
    match &session.tracking {
        None => flags.push(b"off"),
        Some(tracking) => {
            flags.push(b"on");
            let request = &tracking.request;
            let (is_in, is_out) =
                (request.choice == TrackingChoice::OptIn, request.choice == TrackingChoice::OptOut);
            for (flag, is_set) in [
                (&b"bcast"[..], request.is_broadcast),
                (b"optin", is_in),
                (b"caching-yes", is_in && tracking.is_caching_set),
                (b"optout", is_out),
                (b"caching-no", is_out && tracking.is_caching_set),
                (b"noloop", request.no_loop),
                (b"broken_redirect", tracking.is_broken),
            ] {
                flags.extend(is_set.then_some(flag));
            }
        }
    }
    write_map(out, session.protocol, 3);
    write_bulk(out, b"flags");
    write_set(out, session.protocol, flags.len());
    flags.iter().for_each(|flag| write_bulk(out, flag));
    write_bulk(out, b"redirect");
    write_integer(out, redirection(session));
    write_bulk(out, b"prefixes");
    // A client that is told of all keys has an empty prefix.
    let all = [Vec::new()];
    let prefixes = match session.tracking.as_ref().map(|tracking| &tracking.request) {
        Some(request) if request.is_broadcast && request.prefixes.is_empty() => &all[..],
        Some(request) => &request.prefixes,
        None => &[],
    };
    write_array(out, prefixes.len());
    prefixes.iter().for_each(|prefix| write_bulk(out, prefix));
}

fn set_own_name(session: &mut Session, name: &[u8], out: &mut Vec<u8>) {
    if set_name(session, name, out) {
        write_simple(out, b"OK");
    }
}

fn reply(session: &mut Session, mode: &[u8], out: &mut Vec<u8>) {
    let is = |known: &[u8]| mode.eq_ignore_ascii_case(known);
    match session.replies {
        _ if is(b"on") => {
            session.replies = Replies::Again;
            write_simple(out, b"OK");
        }
        _ if is(b"off") => session.replies = Replies::Off,
        Replies::Off if is(b"skip") => {}
        Replies::Wanted | Replies::Again | Replies::SkipNext if is(b"skip") => {
            session.replies = Replies::SkipNext;
        }
        _ => write_command_error(out, &CommandError::Syntax),
    }
}

fn blind(session: &mut Session, mode: &[u8], out: &mut Vec<u8>) {
    if let Some(is_on) = switch(mode, out) {
        session.gives_up_counts = is_on;
    }
}

/// Whether a word is ON or OFF; replies.
fn switch(mode: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let is_on = mode.eq_ignore_ascii_case(b"on");
    if is_on || mode.eq_ignore_ascii_case(b"off") {
        write_simple(out, b"OK");
        Some(is_on)
    } else {
        write_command_error(out, &CommandError::Syntax);
        None
    }
}

/// CLIENT SETINFO is newer than the Redis imitated here, but client libraries send it first of all.
fn set_info(session: &mut Session, option: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let (option, field) = match option {
        name if name.eq_ignore_ascii_case(b"lib-name") => ("lib-name", &mut session.library_name),
        name if name.eq_ignore_ascii_case(b"lib-ver") => ("lib-ver", &mut session.library_version),
        other => {
            let mut text = b"ERR Unrecognized option '".to_vec();
            text.extend_from_slice(&other[..other.len().min(super::SHOWN_BYTES_MAX)]);
            text.push(b'\'');
            return write_error(out, &text);
        }
    };
    if !is_plain(value) {
        let text = format!("ERR {option} cannot contain spaces, newlines or special characters.");
        return write_error(out, text.as_bytes());
    }
    if value.len() > NAME_BYTES_MAX {
        let text = format!("ERR {option} of {} bytes exceeds the maximum of {NAME_BYTES_MAX}", value.len());
        return write_error(out, text.as_bytes());
    }
    *field = value.to_vec();
    write_simple(out, b"OK");
}

/// What CLIENT LIST tells of a connection beside its session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientFigures {
    /// Commands since MULTI; `None` outside of a transaction.
    pub(crate) queued: Option<usize>,
    /// Bytes of these commands.
    pub(crate) queue_bytes: usize,
    /// It waits for something else than data.
    pub(crate) is_blocked: bool,
    /// Bytes that have been received and not looked at.
    pub(crate) unread_bytes: usize,
    /// Bytes of replies that have not been sent.
    pub(crate) output_bytes: usize,
    /// Memory of buffers of replies, in bytes.
    pub(crate) output_memory: usize,
    /// Memory of the connection, in bytes.
    pub(crate) memory_bytes: usize,
    /// How long it has sent nothing.
    pub(crate) idle: Duration,
    /// The last command.
    pub(crate) last_command: Option<&'static str>,
    /// Keys that it watches.
    pub(crate) watched: usize,
    /// Bytes of requests that have been looked at.
    pub(crate) received_bytes: u64,
    /// Bytes of replies that have been sent.
    pub(crate) sent_bytes: u64,
    /// Commands, of which this is one.
    pub(crate) commands: u64,
}

/// Appends a line of CLIENT LIST: all of Redis's fields, because client libraries look up the ones that they know.
pub(crate) fn put_client_line(session: &Session, figures: &ClientFigures, now: WallTime, out: &mut Vec<u8>) {
    let Identity { id, address, local_address } = &session.identity;
    let age = now.0.saturating_sub(session.connected_at.0) / 1_000_000;
    let (protocol, database) = (session.protocol.number(), session.database.number());
    let ClientFigures { queue_bytes, unread_bytes, output_bytes, output_memory, memory_bytes, .. } = figures;
    let ClientFigures { watched, received_bytes, sent_bytes, commands, .. } = figures;
    let idle = figures.idle.as_secs();
    let multi = figures.queued.map_or(-1, |count| count as i64);
    let [sub, psub, ssub] = session.subscriptions;
    let mut flags = String::new();
    for (flag, is_set) in [
        ('O', session.is_monitor),
        ('P', session.is_subscriber()),
        ('x', figures.queued.is_some()),
        ('b', figures.is_blocked),
        ('t', session.tracking.is_some()),
        ('R', session.tracking.as_ref().is_some_and(|tracking| tracking.is_broken)),
        ('B', session.tracking.as_ref().is_some_and(|tracking| tracking.request.is_broadcast)),
    ] {
        flags.extend(is_set.then_some(flag));
    }
    if flags.is_empty() {
        flags.push('N');
    }
    // Buffers that are kept for later replies count as memory, and not as replies.
    let (replies, events, output_memory) =
        if *output_bytes > 0 { (1, "rw", *output_memory) } else { (0, "r", 0) };
    let (command, redirect) = (figures.last_command.unwrap_or("NULL"), redirection(session));
    // The number of the file is the system's business. Neither the words of commands nor replies are in buffers of a
    // fixed size.
    let _ = write!(out, "id={id} addr={address} laddr={local_address} fd=-1 name=");
    out.extend_from_slice(&session.name);
    let _ = write!(
        out,
        " age={age} idle={idle} flags={flags} db={database} sub={sub} psub={psub} ssub={ssub} multi={multi} \
         watch={watched} qbuf={unread_bytes} qbuf-free=0 argv-mem=0 multi-mem={queue_bytes} rbs=0 rbp=0 obl=0 oll={replies} omem={output_memory} \
         tot-mem={memory_bytes} events={events} cmd={command} user="
    );
    out.extend_from_slice(session.login.name());
    let _ = write!(out, " redir={redirect} resp={protocol} lib-name=");
    out.extend_from_slice(&session.library_name);
    out.extend_from_slice(b" lib-ver=");
    out.extend_from_slice(&session.library_version);
    let _ = writeln!(out, " tot-net-in={received_bytes} tot-net-out={sent_bytes} tot-cmds={commands}");
}
