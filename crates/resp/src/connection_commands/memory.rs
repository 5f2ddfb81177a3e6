//! MEMORY, but for MEMORY USAGE.

use super::{Subcommand, subcommand};
use crate::info::{ServerInfo, ServerReport};
use crate::writer::{Protocol, write_bulk, write_integer, write_map, write_simple, write_verbatim};

const SUBCOMMANDS: [Subcommand; 5] = [
    Subcommand { name: "doctor", arity: 2, help: &["DOCTOR", "    Say whether memory is short."] },
    Subcommand {
        name: "malloc-stats",
        arity: 2,
        help: &["MALLOC-STATS", "    Say that the allocator counts nothing."],
    },
    Subcommand {
        name: "purge",
        arity: 2,
        help: &["PURGE", "    Accepted: the allocator has nothing to be told."],
    },
    Subcommand {
        name: "stats",
        arity: 2,
        help: &["STATS", "    Return what the memory of the server is used for."],
    },
    // An operation on data, which does not come here unless words are missing.
    Subcommand {
        name: "usage",
        arity: -3,
        help: &[
            "USAGE <key> [SAMPLES <count>]",
            "    Return about how many bytes a <key> and its value take at the node that answers.",
        ],
    },
];

/// Data that takes so many percent of its limit is worth a remark.
const SHORT_PERCENT: u64 = 90;

pub(super) fn answer(words: &[&[u8]], protocol: Protocol, info: &dyn ServerInfo, out: &mut Vec<u8>) {
    match subcommand("memory", &SUBCOMMANDS, words, out) {
        Some("doctor") => write_verbatim(out, protocol, diagnosis(&info.report()).as_bytes()),
        Some("malloc-stats") => write_bulk(out, b"Stats not supported for the current allocator"),
        Some("purge") => write_simple(out, b"OK"),
        Some("stats") => stats(&info.report(), protocol, out),
        _ => {}
    }
}

/// What is known of Redis's figures, under Redis's names.
fn stats(report: &ServerReport, protocol: Protocol, out: &mut Vec<u8>) {
    let data = report.data_bytes.unwrap_or(0);
    let mut figures = vec![
        ("peak.allocated", report.memory_peak_bytes),
        ("total.allocated", report.memory_bytes),
        ("clients.normal", report.client_memory_bytes),
    ];
    if report.data_bytes.is_some() {
        let keys = report.databases.iter().map(|database| database.keys).sum::<u64>();
        figures.push(("keys.count", keys));
        figures.push(("keys.bytes-per-key", data.checked_div(keys).unwrap_or(0)));
        figures.push(("dataset.bytes", data));
    }
    write_map(out, protocol, figures.len());
    for (name, value) in figures {
        write_bulk(out, name.as_bytes());
        write_integer(out, value.cast_signed());
    }
}

fn diagnosis(report: &ServerReport) -> String {
    let is_short = |used: u64, limit: u64| limit > 0 && used >= limit / 100 * SHORT_PERCENT;
    let mut text = String::new();
    if is_short(report.data_bytes.unwrap_or(0), report.maxmemory) {
        text.push_str("The data takes nearly as much memory as maxmemory allows: updates that make it grow are refused beyond.\n");
    }
    if is_short(report.client_memory_bytes, report.client_memory_max) {
        text.push_str("The connections of clients take nearly as much memory as they may: those that hold most are closed beyond.\n");
    }
    if text.is_empty() {
        text.push_str("Memory is not short.\n");
    }
    text
}
