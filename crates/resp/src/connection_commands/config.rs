//! CONFIG: settings to be read, one to be changed.

use super::{SHOWN_BYTES_MAX, Session, Subcommand, subcommand, write_command_error};
use crate::info::{ServerInfo, settings};
use crate::writer::{Protocol, write_bulk, write_error, write_map, write_simple};
use syros_commands::{CommandError, glob_matches_in_any_case};

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
            "SET <directive> <value>",
            "    Set maxmemory, of this node, until it ends; other settings are given to it when it starts.",
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
        Some("get") => get(&words[2..], session.protocol, info, out),
        Some("set") => set(&words[2..], info, out),
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
fn set(words: &[&[u8]], info: &dyn ServerInfo, out: &mut Vec<u8>) {
    if !words.len().is_multiple_of(2) {
        return write_command_error(out, &CommandError::Syntax);
    }
    let pairs = words.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    let known = settings(&info.report());
    let known = |name: &[u8]| known.iter().find(|(other, _)| name.eq_ignore_ascii_case(other.as_bytes()));
    if let Some((name, _)) = pairs.clone().find(|(name, _)| known(name).is_none()) {
        let mut text = b"ERR Unknown option or number of arguments for CONFIG SET - '".to_vec();
        text.extend_from_slice(&name[..name.len().min(SHOWN_BYTES_MAX)]);
        text.push(b'\'');
        return write_error(out, &text);
    }
    let mut maxmemory = None;
    let mut outcome = Ok(());
    for (place, (name, value)) in pairs.clone().enumerate() {
        let Some((name, present)) = known(name) else { continue };
        let is_again =
            pairs.clone().take(place).any(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()));
        let checked = if is_again {
            Err("duplicate parameter")
        } else if *name == "maxmemory" {
            parse_memory(value).map(|bytes| maxmemory = Some(bytes)).ok_or("argument must be a memory value")
        } else if value.eq_ignore_ascii_case(present.as_bytes()) {
            // As it is.
            Ok(())
        } else {
            Err(
                "only maxmemory can be set while a node runs; other settings are given to it when it starts, in its \
                 configuration file, if it has them",
            )
        };
        outcome = checked.map_err(|problem| (*name, problem));
        if outcome.is_err() {
            break;
        }
    }
    if outcome.is_ok()
        && let Some(bytes) = maxmemory
    {
        outcome = info.set_maxmemory(bytes).map_err(|problem| ("maxmemory", problem));
    }
    match outcome {
        Ok(()) => write_simple(out, b"OK"),
        Err((name, problem)) => {
            let text = format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {problem}");
            write_error(out, text.as_bytes());
        }
    }
}

/// A number of bytes as Redis reads it: digits and one of its units.
fn parse_memory(text: &[u8]) -> Option<u64> {
    const UNITS: [(&str, u64); 8] = [
        ("", 1),
        ("b", 1),
        ("k", 1000),
        ("kb", 1 << 10),
        ("m", 1_000_000),
        ("mb", 1 << 20),
        ("g", 1_000_000_000),
        ("gb", 1 << 30),
    ];
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| unit.eq_ignore_ascii_case(name.as_bytes()))?;
    std::str::from_utf8(number).ok()?.parse::<u64>().ok()?.checked_mul(*factor)
}

fn get(patterns: &[&[u8]], protocol: Protocol, info: &dyn ServerInfo, out: &mut Vec<u8>) {
    let settings = settings(&info.report());
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

#[cfg(test)]
mod tests {
    use super::parse_memory;

    #[test]
    fn memory_is_read_as_by_redis() {
        for (text, expected) in [
            ("0", Some(0)),
            ("100", Some(100)),
            ("7b", Some(7)),
            ("2k", Some(2_000)),
            ("2KB", Some(2_048)),
            ("3m", Some(3_000_000)),
            ("3Mb", Some(3 << 20)),
            ("1g", Some(1_000_000_000)),
            ("1gb", Some(1 << 30)),
            ("", None),
            ("mb", None),
            ("-1", None),
            ("1.5mb", None),
            ("1tb", None),
            ("99999999999gb", None),
        ] {
            assert_eq!(parse_memory(text.as_bytes()), expected, "{text}");
        }
    }
}
