//! LATENCY.

use super::{Session, Subcommand, subcommand};
use crate::shared::LatencyEvents;
use crate::writer::{write_array, write_bulk, write_error, write_integer, write_map, write_verbatim};
use core::sync::atomic::Ordering;
use std::fmt::Write as _;

const SUBCOMMANDS: [Subcommand; 6] = [
    Subcommand { name: "doctor", arity: 2, help: &["DOCTOR", "    Say what the events below were."] },
    Subcommand {
        name: "graph",
        arity: 3,
        help: &["GRAPH <event>", "    Return a bar for each sample of the <event>."],
    },
    Subcommand {
        name: "histogram",
        arity: -2,
        help: &[
            "HISTOGRAM [COMMAND ...]",
            "    Return how many calls of the commands took up to how many microseconds, of all if none is named.",
        ],
    },
    Subcommand {
        name: "history",
        arity: 3,
        help: &["HISTORY <event>", "    Return the samples of the <event>: timestamp and milliseconds."],
    },
    Subcommand {
        name: "latest",
        arity: 2,
        help: &["LATEST", "    Return the latest samples of all events."],
    },
    Subcommand {
        name: "reset",
        arity: -2,
        help: &["RESET [<event> ...]", "    Forget the samples of these events, or of all."],
    },
];

pub(super) fn answer(words: &[&[u8]], session: &Session, out: &mut Vec<u8>) {
    let shared = &session.shared;
    match subcommand("latency", &SUBCOMMANDS, words, out) {
        Some("doctor") => {
            let threshold = shared.settings.latency_millis.load(Ordering::Relaxed);
            let text = shared.latency(|events| diagnosis(events, threshold));
            write_verbatim(out, session.protocol, text.as_bytes());
        }
        Some("graph") => match shared.latency(|events| graph(events, words[2])) {
            Some(text) => write_verbatim(out, session.protocol, text.as_bytes()),
            None => {
                let shown = &words[2][..words[2].len().min(super::SHOWN_BYTES_MAX)];
                write_error(out, &[b"ERR No samples available for event '", shown, b"'"].concat());
            }
        },
        Some("histogram") => histogram(&words[2..], session, out),
        Some("history") => shared.latency(|events| history(events, words[2], out)),
        Some("latest") => shared.latency(|events| latest(events, out)),
        Some("reset") => write_integer(out, shared.latency(|events| events.reset(&words[2..])) as i64),
        _ => {}
    }
}

fn history(events: &LatencyEvents, name: &[u8], out: &mut Vec<u8>) {
    let Some(event) = events.get(name) else { return write_array(out, 0) };
    write_array(out, event.samples.len());
    for (second, millis) in &event.samples {
        write_array(out, 2);
        write_integer(out, second.cast_signed());
        write_integer(out, millis.cast_signed());
    }
}

fn latest(events: &LatencyEvents, out: &mut Vec<u8>) {
    write_array(out, events.0.len());
    for (name, event) in &events.0 {
        let (second, millis) = event.samples.back().copied().unwrap_or_default();
        write_array(out, 4);
        write_bulk(out, name.as_bytes());
        [second, millis, event.max].iter().for_each(|number| write_integer(out, number.cast_signed()));
    }
}

/// A line for each sample, as long as its share of the longest.
fn graph(events: &LatencyEvents, name: &[u8]) -> Option<String> {
    const WIDTH: u64 = 60;
    let event = events.get(name)?;
    let millis = event.samples.iter().map(|(_, millis)| *millis);
    let (high, low) = (millis.clone().max()?, millis.min()?);
    let name = String::from_utf8_lossy(name);
    let mut text = format!("{name} - high {high} ms, low {low} ms (all time high {} ms)\n", event.max);
    for (second, millis) in &event.samples {
        let bar = "#".repeat(usize::try_from(millis * WIDTH / high.max(1)).unwrap_or(0).max(1));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{second} {millis:>7} ms {bar}");
    }
    Some(text)
}

fn diagnosis(events: &LatencyEvents, threshold: u64) -> String {
    if threshold == 0 {
        return "Latency monitoring is disabled. CONFIG SET latency-monitor-threshold <milliseconds> enables it.\n"
            .to_owned();
    }
    if events.0.is_empty() {
        return format!("Nothing has taken {threshold} ms or longer.\n");
    }
    let mut text = format!("These took {threshold} ms or longer:\n");
    for (name, event) in &events.0 {
        let (count, total) =
            (event.samples.len() as u64, event.samples.iter().map(|(_, millis)| millis).sum::<u64>());
        let mean = total.checked_div(count).unwrap_or(0);
        let _ = writeln!(text, "{name}: {count} samples, {mean} ms on average, {} ms at most.", event.max);
    }
    text.push_str(
        "The time of a command that reads or writes data is that from its submission to the replicas until its answer: it \
         contains the network between them, their disks, and waiting for a new leader.\n",
    );
    text
}

fn histogram(names: &[&[u8]], session: &Session, out: &mut Vec<u8>) {
    let histograms = session.shared.statistics.histograms(names);
    write_map(out, session.protocol, histograms.len());
    for (name, calls, buckets) in histograms {
        write_bulk(out, name.as_bytes());
        write_map(out, session.protocol, 2);
        write_bulk(out, b"calls");
        write_integer(out, calls.cast_signed());
        write_bulk(out, b"histogram_usec");
        write_map(out, session.protocol, buckets.len());
        for (bound, count) in buckets {
            write_integer(out, bound.cast_signed());
            write_integer(out, count.cast_signed());
        }
    }
}
