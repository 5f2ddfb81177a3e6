//! DEBUG: what tests of clients ask for.

use super::{Session, Subcommand, write_help, write_wrong_words};
use crate::shared::DebugAccess;
use crate::writer::{
    Protocol, write_array, write_attribute, write_bulk, write_error, write_integer, write_push, write_reply,
    write_simple,
};
use std::net::SocketAddr;
use std::time::Duration;
use syros_commands::limits::PATTERN_BYTES_MAX;
use syros_commands::{ReplyRef, glob_matches, parse_integer, put_example};

/// The longest sleep: nobody means more.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// Longest text that a pattern is compared with, in bytes: a millisecond's work with the longest pattern.
const MATCH_BYTES_MAX: usize = 1 << 20;

const NOT_ALLOWED: &[u8] = b"ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can \
run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the \
server.";

const NO_TYPE: &[u8] = b"ERR Wrong protocol type name. Please use one of the following: \
string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false";

const SUBCOMMANDS: [Subcommand; 7] = [
    Subcommand {
        name: "error",
        arity: 3,
        help: &["ERROR <string>", "    Return an error with <string> as its text."],
    },
    Subcommand {
        name: "object",
        arity: 3,
        help: &["OBJECT <key>", "    Show how the value of <key> is kept."],
    },
    Subcommand {
        name: "protocol",
        arity: 3,
        help: &[
            "PROTOCOL <type>",
            "    Answer with a value of the type, so that clients can try how they read it.",
        ],
    },
    Subcommand {
        name: "set-active-expire",
        arity: 3,
        help: &[
            "SET-ACTIVE-EXPIRE (0|1)",
            "    Accepted, and ignored: no command ever sees a key that has expired.",
        ],
    },
    Subcommand {
        name: "set-disable-deny-scripts",
        arity: 3,
        help: &[
            "SET-DISABLE-DENY-SCRIPTS (0|1)",
            "    Whether scripts sent to this node may call DEBUG OBJECT, PROTOCOL and SLEEP.",
        ],
    },
    Subcommand {
        name: "sleep",
        arity: 3,
        help: &["SLEEP <seconds>", "    Have this connection wait for <seconds>. Others do not."],
    },
    Subcommand {
        name: "stringmatch-len",
        arity: 4,
        help: &["STRINGMATCH-LEN <len> <pattern>", "    Compare <pattern> with a string of <len> letters a."],
    },
];

/// True if a client may use DEBUG.
pub(crate) fn is_allowed(session: &Session) -> bool {
    match session.shared.debug_access() {
        DebugAccess::Nobody => false,
        DebugAccess::Everybody => true,
        DebugAccess::Local => {
            session.identity.address.parse().is_ok_and(|address: SocketAddr| address.ip().is_loopback())
        }
    }
}

/// How long DEBUG SLEEP is to last; `None` if the command is another one, or must not be used.
pub(super) fn sleep(words: &[&[u8]], session: &Session) -> Option<Duration> {
    let [_, name, seconds] = words else { return None };
    if !name.eq_ignore_ascii_case(b"sleep") || !is_allowed(session) {
        return None;
    }
    // What is no number is 0, as in Redis.
    let seconds: f64 = str::from_utf8(seconds).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let time = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(SLEEP_MAX);
    Some(time.min(SLEEP_MAX))
}

pub(super) fn answer(words: &[&[u8]], session: &Session, out: &mut Vec<u8>) {
    if !is_allowed(session) {
        return write_error(out, NOT_ALLOWED);
    }
    let is = |name: &str| words[1].eq_ignore_ascii_case(name.as_bytes());
    match words {
        [_, _] if is("help") => write_help("debug", &SUBCOMMANDS, out),
        [_, _, text] if is("error") => write_error(out, text),
        [_, _, kind] if is("protocol") => write_example(kind, session.protocol, out),
        [_, _, _] if is("set-active-expire") => write_simple(out, b"OK"),
        [_, _, flag] if is("set-disable-deny-scripts") => {
            // What is no number is 0, as in Redis.
            session.shared.set_scripts_debug(parse_integer(flag).is_some_and(|number| number != 0));
            write_simple(out, b"OK");
        }
        [_, _, length, pattern] if is("stringmatch-len") => {
            let length = parse_integer(length).and_then(|length| usize::try_from(length).ok());
            match length.filter(|length| *length <= MATCH_BYTES_MAX && pattern.len() <= PATTERN_BYTES_MAX) {
                Some(length) => write_integer(out, i64::from(glob_matches(pattern, &vec![b'a'; length]))),
                None => write_error(
                    out,
                    format!(
                        "ERR the string may have {MATCH_BYTES_MAX} bytes, and the pattern {PATTERN_BYTES_MAX}"
                    )
                    .as_bytes(),
                ),
            }
        }
        _ => write_wrong_words("debug", words[1], out),
    }
}

/// Appends a value of a type.
fn write_example(kind: &[u8], protocol: Protocol, out: &mut Vec<u8>) {
    if kind.eq_ignore_ascii_case(b"push") {
        if protocol == Protocol::Resp2 {
            return write_error(out, b"ERR RESP2 is not supported by this command");
        }
        write_push(out, protocol, 2);
        write_bulk(out, b"server-cpu-usage");
        write_integer(out, 42);
        return write_bulk(out, b"Some real reply following the push reply");
    }
    if kind.eq_ignore_ascii_case(b"attrib") && write_attribute(out, protocol, 1) {
        write_bulk(out, b"key-popularity");
        write_array(out, 2);
        write_bulk(out, b"key:123");
        write_integer(out, 90);
    }
    let mut encoded = Vec::new();
    match put_example(kind, &mut encoded).then(|| ReplyRef::decode(&mut &encoded[..])) {
        Some(Ok(reply)) => write_reply(out, protocol, reply),
        _ => write_error(out, NO_TYPE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Identity, Shared};
    use std::sync::Arc;
    use syros_types::WallTime;

    /// Kinds with what redis-server 7.0.15 answers in RESP2 and RESP3.
    const EXAMPLES: [(&str, &str, &str); 14] = [
        ("string", "$11\r\nHello World\r\n", "$11\r\nHello World\r\n"),
        ("integer", ":12345\r\n", ":12345\r\n"),
        ("double", "$5\r\n3.141\r\n", ",3.141\r\n"),
        (
            "bignum",
            "$37\r\n1234567999999999999999999999999999999\r\n",
            "(1234567999999999999999999999999999999\r\n",
        ),
        ("null", "$-1\r\n", "_\r\n"),
        ("array", "*3\r\n:0\r\n:1\r\n:2\r\n", "*3\r\n:0\r\n:1\r\n:2\r\n"),
        ("set", "*3\r\n:0\r\n:1\r\n:2\r\n", "~3\r\n:0\r\n:1\r\n:2\r\n"),
        ("map", "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n", "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n"),
        (
            "attrib",
            "$39\r\nSome real reply following the attribute\r\n",
            "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n$39\r\nSome real reply following the attribute\r\n",
        ),
        (
            "push",
            "-ERR RESP2 is not supported by this command\r\n",
            ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n$40\r\nSome real reply following the push reply\r\n",
        ),
        ("VERBATIM", "$25\r\nThis is a verbatim\nstring\r\n", "=29\r\ntxt:This is a verbatim\nstring\r\n"),
        ("true", ":1\r\n", "#t\r\n"),
        ("false", ":0\r\n", "#f\r\n"),
        (
            "nosuch",
            "-ERR Wrong protocol type name. Please use one of the following: \
             string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false\r\n",
            "-ERR Wrong protocol type name. Please use one of the following: \
             string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false\r\n",
        ),
    ];

    #[test]
    fn examples_are_those_of_redis() {
        let identity =
            Identity { id: 1, address: "10.0.0.1:1".to_owned(), local_address: "10.0.0.2:6379".to_owned() };
        let shared = Arc::new(Shared::new(DebugAccess::Everybody));
        let mut session = Session::new(identity, WallTime(0), shared);
        for (kind, old, new) in EXAMPLES {
            for (protocol, expected) in [(Protocol::Resp2, old), (Protocol::Resp3, new)] {
                session.protocol = protocol;
                let mut out = Vec::new();
                answer(&[b"debug", b"protocol", kind.as_bytes()], &session, &mut out);
                assert_eq!(String::from_utf8(out).unwrap(), expected, "{kind}");
            }
        }
    }
}
