//! SLOWLOG.

use super::{Session, Subcommand, subcommand, write_wrong_words};
use crate::writer::{write_array, write_bulk, write_error, write_integer, write_simple};
use syros_commands::parse_integer;

/// So many commands are shown if no number is given.
const COUNT: usize = 10;

const SUBCOMMANDS: [Subcommand; 3] = [
    Subcommand {
        name: "get",
        arity: -2,
        help: &[
            "GET [<count>]",
            "    Return the last <count> commands of this node that took long (default: 10, -1 means all):",
            "    id, timestamp, time in microseconds, arguments, client IP and port, client name",
        ],
    },
    Subcommand { name: "len", arity: 2, help: &["LEN", "    Return the length of the slowlog."] },
    Subcommand { name: "reset", arity: 2, help: &["RESET", "    Reset the slowlog."] },
];

pub(super) fn answer(words: &[&[u8]], session: &Session, out: &mut Vec<u8>) {
    match subcommand("slowlog", &SUBCOMMANDS, words, out) {
        Some("get") => get(words, session, out),
        Some("len") => write_integer(out, session.shared.slow_log(|log| log.len()) as i64),
        Some("reset") => {
            session.shared.slow_log(crate::shared::SlowLog::clear);
            write_simple(out, b"OK");
        }
        _ => {}
    }
}

fn get(words: &[&[u8]], session: &Session, out: &mut Vec<u8>) {
    let count = match &words[2..] {
        [] => COUNT,
        [count] => match parse_integer(count) {
            Some(-1) => usize::MAX,
            Some(count) if count >= 0 => usize::try_from(count).unwrap_or(usize::MAX),
            _ => return write_error(out, b"ERR count should be greater than or equal to -1"),
        },
        _ => return write_wrong_words("slowlog", words[1], out),
    };
    session.shared.slow_log(|log| {
        write_array(out, count.min(log.len()));
        for (number, command) in log.commands().take(count) {
            write_array(out, 6);
            write_integer(out, number.cast_signed());
            write_integer(out, (command.at.0 / 1_000_000).cast_signed());
            write_integer(out, i64::try_from(command.took.as_micros()).unwrap_or(i64::MAX));
            write_array(out, command.words.len());
            command.words.iter().for_each(|word| write_bulk(out, word));
            write_bulk(out, command.address.as_bytes());
            write_bulk(out, &command.name);
        }
    });
}
