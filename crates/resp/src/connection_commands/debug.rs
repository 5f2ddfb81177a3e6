//! DEBUG: what tests of clients ask for.

use super::{Session, Subcommand, write_help, write_wrong_words};
use crate::shared::DebugAccess;
use crate::writer::{write_error, write_integer, write_simple};
use std::net::SocketAddr;
use std::time::Duration;
use syros_commands::{glob_matches, parse_integer};

/// The longest sleep: nobody means more.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// Longest text that a pattern is compared with, in bytes, and the longest pattern: a millisecond's work.
const MATCH_BYTES_MAX: usize = 1 << 20;
const PATTERN_BYTES_MAX: usize = 1024;

const NOT_ALLOWED: &[u8] = b"ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can \
run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the \
server.";

const SUBCOMMANDS: [Subcommand; 4] = [
    Subcommand {
        name: "error",
        arity: 3,
        help: &["ERROR <string>", "    Return an error with <string> as its text."],
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
fn is_allowed(session: &Session) -> bool {
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
        [_, _, _] if is("set-active-expire") => write_simple(out, b"OK"),
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
