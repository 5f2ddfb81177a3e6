//! CONFIG: settings to be read, one to be changed.

use super::{SHOWN_BYTES_MAX, Session, Subcommand, subcommand, write_command_error};
use crate::info::ServerInfo;
use crate::settings::{Change, check, settings};
use crate::shared::Shared;
use crate::writer::{write_bulk, write_error, write_map, write_simple};
use syros_commands::{CommandError, glob_matches_in_any_case, parse_pattern};

const SUBCOMMANDS: [Subcommand; 4] = [
    Subcommand {
        name: "get",
        arity: -3,
        help: &["GET <pattern>", "    Return parameters matching the glob-like <pattern> and their values."],
    },
    Subcommand {
        name: "set",
        arity: -4,
        help: &[
            "SET <directive> <value> [<directive> <value> ...]",
            "    Set settings of this node, until it ends, if they may change while it runs.",
        ],
    },
    Subcommand {
        name: "resetstat",
        arity: 2,
        help: &["RESETSTAT", "    Reset statistics reported by the INFO command."],
    },
    Subcommand {
        name: "rewrite",
        arity: 2,
        help: &["REWRITE", "    Refused: there is no configuration file."],
    },
];

pub(super) fn answer(words: &[&[u8]], session: &Session, info: &dyn ServerInfo, out: &mut Vec<u8>) {
    match subcommand("config", &SUBCOMMANDS, words, out) {
        Some("get") => get(&words[2..], session, info, out),
        Some("set") => set(&words[2..], &session.shared, info, out),
        Some("resetstat") => {
            info.reset_statistics();
            session.statistics.reset();
            write_simple(out, b"OK");
        }
        Some("rewrite") => write_error(out, b"ERR The server is running without a config file"),
        _ => {}
    }
}

/// CONFIG SET: all of the parameters, or none.
fn set(words: &[&[u8]], shared: &Shared, info: &dyn ServerInfo, out: &mut Vec<u8>) {
    if !words.len().is_multiple_of(2) {
        return write_command_error(out, &CommandError::Syntax);
    }
    let pairs = words.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let report = info.report();
    let known = settings(shared, &report);
    let known = |name: &[u8]| known.iter().find(|(other, _)| name.eq_ignore_ascii_case(other.as_bytes()));
    if let Some((name, _)) = pairs.clone().find(|(name, _)| known(name).is_none()) {
        let mut text = b"ERR Unknown option or number of arguments for CONFIG SET - '".to_vec();
        text.extend_from_slice(&name[..name.len().min(SHOWN_BYTES_MAX)]);
        text.push(b'\'');
        return write_error(out, &text);
    }
    let mut changes: Vec<Change> = Vec::new();
    for (place, (name, value)) in pairs.clone().enumerate() {
        let Some((name, present)) = known(name) else { continue };
        let mut earlier = pairs.clone().take(place);
        let checked = if earlier.any(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes())) {
            Err("duplicate parameter".to_owned())
        } else {
            check(name, value, present)
        };
        match checked {
            Ok(change) => changes.extend(change),
            Err(problem) => return fail(name, &problem, out),
        }
    }
    let before: Vec<Change> = changes.iter().map(|change| change.reverse(shared, &report)).collect();
    for (place, change) in changes.iter().enumerate() {
        if let Err(problem) = change.apply(shared, info) {
            for earlier in &before[..place] {
                // It was so a moment ago, and nothing else has been done meanwhile.
                let _ = earlier.apply(shared, info);
            }
            return fail(change.name(), problem, out);
        }
    }
    write_simple(out, b"OK");
}

fn fail(name: &str, problem: &str, out: &mut Vec<u8>) {
    let text = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {problem}");
    write_error(out, text.as_bytes());
}

/// Bytes of all patterns of one CONFIG GET: each is compared with each name of a setting.
const PATTERNS_BYTES_MAX: usize = 8 << 10;

fn get(patterns: &[&[u8]], session: &Session, info: &dyn ServerInfo, out: &mut Vec<u8>) {
    if let Some(error) = patterns.iter().find_map(|pattern| parse_pattern(pattern).err()) {
        return write_command_error(out, &error);
    }
    let bytes: usize = patterns.iter().map(|pattern| pattern.len()).sum();
    if bytes > PATTERNS_BYTES_MAX {
        let text = format!(
            "ERR the patterns have {bytes} bytes, and {PATTERNS_BYTES_MAX} is the limit for all together"
        );
        return write_error(out, text.as_bytes());
    }
    let protocol = session.protocol;
    let settings = settings(&session.shared, &info.report());
    let named: Vec<_> = settings
        .iter()
        .filter(|(name, _)| patterns.iter().any(|pattern| glob_matches_in_any_case(pattern, name.as_bytes())))
        .collect();
    write_map(out, protocol, named.len());
    for (name, value) in named {
        write_bulk(out, name.as_bytes());
        write_bulk(out, value.as_bytes());
    }
}
