//! CONFIG: a few settings to be read, none to be changed.

use super::{Session, Subcommand, subcommand};
use crate::info::{ServerInfo, settings};
use crate::writer::{Protocol, write_bulk, write_error, write_map, write_simple};

const SUBCOMMANDS: [Subcommand; 4] = [
    Subcommand {
        name: "get",
        arity: -3,
        help: &["GET <pattern>", "    Return parameters matching the glob-like <pattern> and their values."],
    },
    Subcommand {
        name: "set",
        arity: -4,
        help: &["SET <directive> <value>", "    Refused: settings are given to the process when it starts."],
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
        Some("set") => write_error(
            out,
            b"ERR CONFIG SET is not supported: settings are given to the process when it starts",
        ),
        Some("resetstat") => {
            info.reset_statistics();
            session.statistics.reset();
            write_simple(out, b"OK");
        }
        Some("rewrite") => write_error(out, b"ERR The server is running without a config file"),
        _ => {}
    }
}

fn get(patterns: &[&[u8]], protocol: Protocol, info: &dyn ServerInfo, out: &mut Vec<u8>) {
    let settings = settings(&info.report());
    let named: Vec<_> = settings
        .iter()
        .filter(|(name, _)| patterns.iter().any(|pattern| matches(pattern, name.as_bytes())))
        .collect();
    write_map(out, protocol, named.len());
    for (name, value) in named {
        write_bulk(out, name.as_bytes());
        write_bulk(out, value.as_bytes());
    }
}

/// True if a pattern matches a whole name, in any case. `*` is any text, `?` any byte, and `\` takes the
/// byte that follows it literally. On a mismatch it goes back to the last `*` only, which is enough,
/// and keeps the work to the product of the lengths.
fn matches(mut pattern: &[u8], mut text: &[u8]) -> bool {
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern, text) {
            ([b'*', rest @ ..], _) => {
                pattern = rest;
                retry = Some((rest, text));
                continue;
            }
            ([], []) => return true,
            ([b'?', rest @ ..], [_, after @ ..]) => {
                (pattern, text) = (rest, after);
                continue;
            }
            ([b'\\', byte, rest @ ..] | [byte, rest @ ..], [first, after @ ..])
                if byte.eq_ignore_ascii_case(first) =>
            {
                (pattern, text) = (rest, after);
                continue;
            }
            _ => {}
        }
        // Let the last `*` stand for one byte more.
        let Some((after_star, [_, shorter @ ..])) = retry else { return false };
        (pattern, text) = (after_star, shorter);
        retry = Some((after_star, shorter));
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("save", "save", true),
            ("SAVE", "save", true),
            ("sav", "save", false),
            ("saves", "save", false),
            ("*", "", true),
            ("*", "save", true),
            ("max*", "maxmemory", true),
            ("max*y", "maxmemory-policy", true),
            ("max*z", "maxmemory-policy", false),
            ("*mem*pol*", "maxmemory-policy", true),
            ("s?ve", "save", true),
            ("s?ve", "sve", false),
            ("s\\ave", "save", true),
            ("s\\*ve", "save", false),
            ("s\\*ve", "s*ve", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
        // Would take for ever if every `*` were tried at every place.
        assert!(!matches(&b"*a".repeat(5000), &b"a".repeat(64)));
    }
}
