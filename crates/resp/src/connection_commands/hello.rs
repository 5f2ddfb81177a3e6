//! HELLO: choice of the protocol, and an introduction.

use super::{Session, acl, set_name, write_id};
use crate::info::REDIS_VERSION;
use crate::writer::{Protocol, write_array, write_bulk, write_error, write_integer, write_map};
use syros_commands::parse_integer;

/// HELLO, with Redis's options, order of checks and texts.
pub(super) fn answer(words: &[&[u8]], session: &mut Session, out: &mut Vec<u8>) {
    let mut protocol = session.protocol;
    let mut options = words.get(1..).unwrap_or_default();
    if let [version, rest @ ..] = options {
        protocol = match parse_integer(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return write_error(out, b"NOPROTO unsupported protocol version"),
            None => return write_error(out, b"ERR Protocol version is not an integer or out of range"),
        };
        options = rest;
    }
    let (mut user, mut name) = (None, None);
    loop {
        options = match options {
            [] => break,
            [option, given_user, password, rest @ ..] if option.eq_ignore_ascii_case(b"auth") => {
                user = Some((*given_user, *password));
                rest
            }
            [option, given_name, rest @ ..] if option.eq_ignore_ascii_case(b"setname") => {
                name = Some(*given_name);
                rest
            }
            [option, ..] => {
                let mut text = b"ERR Syntax error in HELLO option '".to_vec();
                text.extend_from_slice(option);
                text.push(b'\'');
                return write_error(out, &text);
            }
        };
    }
    if let Some((user, password)) = user
        && !acl::log_in(user, password, words[0], session, out)
    {
        return;
    }
    if !session.is_known() {
        let text = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
                    <pass> option can be used to authenticate the client and select the RESP protocol version at the same \
                    time";
        return write_error(out, text.as_bytes());
    }
    if name.is_some_and(|name| !set_name(session, name, out)) {
        return;
    }
    session.protocol = protocol;
    introduce(session, out);
}

fn introduce(session: &Session, out: &mut Vec<u8>) {
    write_map(out, session.protocol, 7);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        write_bulk(out, name.as_bytes());
        write_bulk(out, value.as_bytes());
    }
    write_bulk(out, b"proto");
    write_integer(out, session.protocol.number());
    write_bulk(out, b"id");
    write_id(session, out);
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        write_bulk(out, name.as_bytes());
        write_bulk(out, value.as_bytes());
    }
    write_bulk(out, b"modules");
    write_array(out, 0);
}
