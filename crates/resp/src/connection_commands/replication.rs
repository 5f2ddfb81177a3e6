//! What is asked about Redis's replication, of which there is none, and about saving, which is done by itself.

use super::{Session, Subcommand, subcommand, subcommand_error};
use crate::info::ServerInfo;
use crate::writer::{write_array, write_bulk, write_error, write_integer, write_simple, write_verbatim};
use syros_commands::{CommandError, lookup, parse_integer};
use syros_types::WallTime;

/// ROLE: to its clients every node is a master, whose replicas are not seen.
pub(super) fn role(info: &dyn ServerInfo, out: &mut Vec<u8>) {
    write_array(out, 3);
    write_bulk(out, b"master");
    write_integer(out, info.report().commit.cast_signed());
    write_array(out, 0);
}

/// REPLICAOF and SLAVEOF. A node is what REPLICAOF NO ONE would make of it.
pub(super) fn follow(words: &[&[u8]], out: &mut Vec<u8>) {
    if words[1].eq_ignore_ascii_case(b"no") && words[2].eq_ignore_ascii_case(b"one") {
        return write_simple(out, b"OK");
    }
    match parse_integer(words[2]) {
        Some(0..=65535) => write_error(
            out,
            b"ERR this server follows no Redis: the members of its group are given in its configuration",
        ),
        _ => write_error(out, b"ERR Invalid master port"),
    }
}

/// SYNC and PSYNC.
pub(super) fn refuse_replication(out: &mut Vec<u8>) {
    write_error(
        out,
        b"ERR this server replicates to the members of its group only, and sends no Redis its data",
    );
}

/// FAILOVER.
pub(super) fn fail_over(out: &mut Vec<u8>) {
    write_error(out, b"ERR FAILOVER is not for members of a group: they agree on a leader by themselves, and 'syros lead' moves it");
}

/// SHUTDOWN.
pub(super) fn shut_down(out: &mut Vec<u8>) {
    write_error(out, b"ERR a node does not end because a client says so: stop its process, with SIGTERM");
}

/// CLUSTER.
pub(super) fn cluster(words: &[&[u8]], out: &mut Vec<u8>) {
    match lookup(b"cluster").and_then(|spec| subcommand_error(spec, words)) {
        Some(text) => write_error(out, &text),
        None => write_error(out, b"ERR This instance has cluster support disabled"),
    }
}

/// When the data was saved last, in seconds since 1970: now, where every acknowledged update is on disk.
pub(super) fn last_save(info: &dyn ServerInfo, now: WallTime, out: &mut Vec<u8>) {
    let report = info.report();
    let now = now.0 / 1_000_000;
    let saved = if report.fsync { now } else { now.saturating_sub(report.uptime_seconds) };
    write_integer(out, saved.cast_signed());
}

/// SAVE, BGSAVE and BGREWRITEAOF: answered with this where acknowledged updates are on disk.
pub(super) fn save(answer: &[u8], info: &dyn ServerInfo, out: &mut Vec<u8>) {
    if info.report().fsync {
        return write_simple(out, answer);
    }
    write_error(
        out,
        b"ERR nothing is saved by command: acknowledged updates are in the memory of several replicas, or this process \
          has no data",
    );
}

const MODULE: [Subcommand; 4] = [
    Subcommand { name: "list", arity: 2, help: &["LIST", "    Return the modules: there are none."] },
    Subcommand { name: "load", arity: -3, help: &["LOAD <path> [<arg> ...]", "    Refused."] },
    Subcommand { name: "loadex", arity: -3, help: &["LOADEX <path> [...]", "    Refused."] },
    Subcommand { name: "unload", arity: 3, help: &["UNLOAD <name>", "    Refused."] },
];

/// MODULE.
pub(super) fn module(words: &[&[u8]], out: &mut Vec<u8>) {
    match subcommand("module", &MODULE, words, out) {
        Some("list") => write_array(out, 0),
        Some(_) => write_error(out, b"ERR this server has no modules and loads none"),
        None => {}
    }
}

/// LOLWUT: the version, as Redis answers for a version of which it has no picture.
pub(super) fn lolwut(words: &[&[u8]], session: &Session, info: &dyn ServerInfo, out: &mut Vec<u8>) {
    if let [_, option, version, ..] = words
        && option.eq_ignore_ascii_case(b"version")
        && parse_integer(version).is_none()
    {
        return super::write_command_error(out, &CommandError::NotInteger);
    }
    let text = format!("Syros ver. {}, Redis ver. {}\n", info.report().version, crate::info::REDIS_VERSION);
    write_verbatim(out, session.protocol, text.as_bytes());
}
