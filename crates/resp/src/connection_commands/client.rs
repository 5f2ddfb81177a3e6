//! CLIENT: what a client says and asks of its own connection.

use super::{
    NAME_BYTES_MAX, Replies, Session, Subcommand, is_plain, set_name, subcommand, write_command_error,
    write_id,
};
use crate::writer::{write_bulk, write_error, write_nil, write_simple, write_verbatim};
use syros_commands::CommandError;
use syros_types::WallTime;

const SUBCOMMANDS: [Subcommand; 9] = [
    Subcommand {
        name: "blind",
        arity: 3,
        help: &[
            "BLIND (ON|OFF)",
            "    Run updates without their counts, in one round trip: :-1 is answered instead.",
        ],
    },
    Subcommand {
        name: "getname",
        arity: 2,
        help: &["GETNAME", "    Return the name of the current connection."],
    },
    Subcommand { name: "id", arity: 2, help: &["ID", "    Return the ID of the current connection."] },
    Subcommand {
        name: "info",
        arity: 2,
        help: &["INFO", "    Return information about the current client connection."],
    },
    Subcommand { name: "no-evict", arity: 3, help: &["NO-EVICT (ON|OFF)", "    Accepted, and ignored."] },
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
        name: "unblock",
        arity: -3,
        help: &["UNBLOCK <clientid> [TIMEOUT|ERROR]", "    Unblock the specified blocked client."],
    },
];

pub(super) fn answer(words: &[&[u8]], session: &mut Session, now: WallTime, out: &mut Vec<u8>) {
    match subcommand("client", &SUBCOMMANDS, words, out) {
        Some("blind") => blind(session, words[2], out),
        Some("getname") if session.name.is_empty() => write_nil(out, session.protocol),
        Some("getname") => write_bulk(out, &session.name),
        Some("id") => write_id(session, out),
        Some("info") => write_verbatim(out, session.protocol, &info_line(session, now)),
        Some("no-evict") => no_evict(words[2], out),
        Some("reply") => reply(session, words[2], out),
        Some("setinfo") => set_info(session, words[2], words[3], out),
        Some("setname") => set_own_name(session, words[2], out),
        // With as many words as it may have it does not come here: other connections are not this one's business.
        Some("unblock") => write_command_error(out, &CommandError::Syntax),
        _ => {}
    }
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

fn no_evict(mode: &[u8], out: &mut Vec<u8>) {
    switch(mode, out);
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

/// The line of CLIENT INFO: all of Redis's fields, because client libraries look up the ones that they know.
fn info_line(session: &Session, now: WallTime) -> Vec<u8> {
    let identity = &session.identity;
    let age = now.0.saturating_sub(session.connected_at.0) / 1_000_000;
    let mut line =
        // The number of the file is the system's business, and what buffers hold is counted for all connections.
        format!("id={} addr={} laddr={} fd=-1 name=", identity.id, identity.address, identity.local_address)
            .into_bytes();
    line.extend_from_slice(&session.name);
    let protocol = session.protocol.number();
    line.extend_from_slice(
        format!(
            " age={age} idle=0 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 \
                  multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=client|info user=default \
                  redir=-1 resp={protocol}"
        )
        .as_bytes(),
    );
    line.extend_from_slice(b" lib-name=");
    line.extend_from_slice(&session.library_name);
    line.extend_from_slice(b" lib-ver=");
    line.extend_from_slice(&session.library_version);
    line.push(b'\n');
    line
}
