//! What the connections of a process have done, for INFO.

use crate::scripts::KnownScripts;
use crate::writer::Protocol;
use core::fmt::Write as _;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use syros_commands::{LookupReply, commands};
use syros_types::WallTime;

/// The rate of commands is that of the last second or two.
const RATE_WINDOW_MICROS: u64 = 1_000_000;

/// Most codes of errors that are counted apart: there are a dozen, so that more are a mistake.
const ERROR_CODES_MAX: usize = 128;

/// A number that one thread counts. It is atomic so that a connection may be moved to another thread; adding is a
/// load and a store, because nobody else adds.
#[derive(Debug, Default)]
struct Counter(AtomicU64);

impl Counter {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    fn add(&self, count: u64) {
        self.set(self.get().wrapping_add(count));
    }
}

/// Counters of one command.
#[derive(Debug)]
struct CommandCounters {
    lookup: LookupReply,
    calls: Counter,
    rejected: Counter,
    failed: Counter,
}

/// Counters of all connections of a process, since the start or the last CONFIG RESETSTAT. Connections share it; all
/// of them belong to one thread.
#[derive(Debug)]
pub struct Statistics {
    commands: Vec<CommandCounters>,
    total: Counter,
    hits: Counter,
    misses: Counter,
    input_bytes: Counter,
    output_bytes: Counter,
    errors: Mutex<BTreeMap<Vec<u8>, u64>>,
    /// What is known of the scripts that clients run.
    pub(crate) scripts: KnownScripts,
    /// When two windows of the rate began, in microseconds, and the commands until then; the older one first.
    windows: [(Counter, Counter); 2],
}

impl Default for Statistics {
    fn default() -> Self {
        let counters = |lookup| CommandCounters {
            lookup,
            calls: Counter::default(),
            rejected: Counter::default(),
            failed: Counter::default(),
        };
        Self {
            commands: commands().iter().map(|spec| counters(spec.lookup)).collect(),
            total: Counter::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            input_bytes: Counter::default(),
            output_bytes: Counter::default(),
            errors: Mutex::default(),
            scripts: KnownScripts::default(),
            windows: Default::default(),
        }
    }
}

impl Statistics {
    /// Starts all counters again from zero.
    pub fn reset(&self) {
        for counters in &self.commands {
            [&counters.calls, &counters.rejected, &counters.failed].iter().for_each(|counter| counter.set(0));
        }
        let others = [&self.total, &self.hits, &self.misses, &self.input_bytes, &self.output_bytes];
        others.iter().for_each(|counter| counter.set(0));
        self.windows.iter().for_each(|(_, commands)| commands.set(0));
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Bytes have been received and consumed.
    pub(crate) fn on_input(&self, bytes: usize, now: WallTime) {
        self.input_bytes.add(bytes as u64);
        let [(older, older_total), (newer, newer_total)] = &self.windows;
        if now.0.saturating_sub(newer.get()) >= RATE_WINDOW_MICROS || now.0 < newer.get() {
            older.set(newer.get());
            older_total.set(newer_total.get());
            newer.set(now.0);
            newer_total.set(self.total.get());
        }
    }

    /// Bytes have been sent.
    pub(crate) fn on_output(&self, bytes: usize) {
        self.output_bytes.add(bytes as u64);
    }

    /// A command came: number `command` of the table.
    pub(crate) fn on_call(&self, command: usize) {
        self.total.add(1);
        if let Some(counters) = self.commands.get(command) {
            counters.calls.add(1);
        }
    }

    /// A command was refused before it became an operation.
    pub(crate) fn on_rejected(&self, command: Option<usize>, error: &[u8]) {
        if let Some(counters) = command.and_then(|command| self.commands.get(command)) {
            counters.rejected.add(1);
        }
        self.on_error(error);
    }

    /// A command got this reply, as the client reads it.
    pub(crate) fn on_reply(&self, command: usize, protocol: Protocol, reply: &[u8]) {
        let Some(counters) = self.commands.get(command) else { return };
        if let [b'-', error @ ..] = reply {
            counters.failed.add(1);
            return self.on_error(error);
        }
        let (hits, misses) = match counters.lookup {
            LookupReply::None => return,
            LookupReply::Value => values(protocol, reply),
            LookupReply::Count => match number(reply) {
                0 => (0, 1),
                found => (found.unsigned_abs(), 0),
            },
            LookupReply::Number { miss } if number(reply) == miss => (0, 1),
            LookupReply::Type if reply.starts_with(b"+none\r") => (0, 1),
            LookupReply::Number { .. } | LookupReply::Type => (1, 0),
        };
        self.hits.add(hits);
        self.misses.add(misses);
    }

    /// An error reply, whose code is its first word.
    fn on_error(&self, error: &[u8]) {
        self.scripts.on_error(error);
        let code = error.split(|byte| matches!(byte, b' ' | b'\r')).next().unwrap_or_default();
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < ERROR_CODES_MAX {
            errors.insert(code.to_vec(), 1);
        }
    }

    /// The lines of INFO's section `Stats` that are counted here.
    pub(crate) fn write_stats(&self, now: WallTime, text: &mut String) {
        let [(older, older_total), _] = &self.windows;
        let micros = now.0.saturating_sub(older.get()).max(1);
        let commands = u128::from(self.total.get().saturating_sub(older_total.get()));
        let rate = commands * 1_000_000 / u128::from(micros);
        let errors: u64 = self.errors.lock().unwrap_or_else(PoisonError::into_inner).values().sum();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "instantaneous_ops_per_sec:{rate}\r\ntotal_net_input_bytes:{}\r\ntotal_net_output_bytes:{}\r\n\
             keyspace_hits:{}\r\nkeyspace_misses:{}\r\ntotal_error_replies:{errors}\r\n",
            self.input_bytes.get(),
            self.output_bytes.get(),
            self.hits.get(),
            self.misses.get(),
        );
    }

    /// The lines of INFO's section `Commandstats`: of the commands that have been asked for. Times are not measured.
    pub(crate) fn write_commands(&self, text: &mut String) {
        for (spec, counters) in commands().iter().zip(&self.commands) {
            let (calls, rejected) = (counters.calls.get(), counters.rejected.get());
            if calls + rejected > 0 {
                let (name, failed) = (spec.name, counters.failed.get());
                let _ = write!(
                    text,
                    "cmdstat_{name}:calls={calls},usec=0,usec_per_call=0.00,rejected_calls={rejected},\
                     failed_calls={failed}\r\n"
                );
            }
        }
    }

    /// The lines of INFO's section `Errorstats`.
    pub(crate) fn write_errors(&self, text: &mut String) {
        for (code, count) in self.errors.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let _ = write!(text, "errorstat_{}:count={count}\r\n", String::from_utf8_lossy(code));
        }
    }
}

/// The number that a reply is; 0 if it is none.
fn number(reply: &[u8]) -> i64 {
    let end = reply.iter().position(|byte| *byte == b'\r').unwrap_or(reply.len());
    reply.get(1..end).and_then(syros_commands::parse_integer).unwrap_or(0)
}

/// How many of a reply's strings are there, and how many are nil.
fn values(protocol: Protocol, mut reply: &[u8]) -> (u64, u64) {
    let nil: &[u8] = if protocol == Protocol::Resp2 { b"$-1\r\n" } else { b"_\r\n" };
    let (mut hits, mut misses) = (0, 0);
    if reply.first() == Some(&b'*') {
        let end = reply.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        reply = &reply[end + 1..];
    }
    while !reply.is_empty() {
        if let Some(rest) = reply.strip_prefix(nil) {
            misses += 1;
            reply = rest;
            continue;
        }
        hits += 1;
        let end = reply.iter().position(|byte| *byte == b'\n').unwrap_or(0);
        let length = usize::try_from(number(reply)).unwrap_or(0);
        reply = reply.get(end + 1 + length + 2..).unwrap_or_default();
    }
    (hits, misses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_nils_are_told_apart() {
        for (protocol, reply, expected) in [
            (Protocol::Resp2, &b"$-1\r\n"[..], (0, 1)),
            (Protocol::Resp3, b"_\r\n", (0, 1)),
            (Protocol::Resp2, b"$5\r\n$-1\r\n\r\n", (1, 0)),
            (Protocol::Resp2, b"*4\r\n$0\r\n\r\n$-1\r\n$12\r\n0123456789ab\r\n$-1\r\n", (2, 2)),
            (Protocol::Resp3, b"*2\r\n_\r\n$1\r\n_\r\n", (1, 1)),
            (Protocol::Resp2, b"*0\r\n", (0, 0)),
        ] {
            assert_eq!(values(protocol, reply), expected, "{}", reply.escape_ascii());
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let statistics = Statistics::default();
        let rate = |now: u64| {
            let mut text = String::new();
            statistics.write_stats(WallTime(now), &mut text);
            let (_, rest) = text.split_once("instantaneous_ops_per_sec:").unwrap();
            rest.split_once("\r\n").unwrap().0.parse::<u64>().unwrap()
        };
        for millis in 10_000..20_000 {
            statistics.on_input(1, WallTime(millis * 1000));
            statistics.on_call(0);
        }
        assert!((990..=1010).contains(&rate(20_000_000)), "{}", rate(20_000_000));
        // A client that asks after a minute without commands.
        statistics.on_input(1, WallTime(80_000_000));
        assert!(rate(80_000_000) < 40);
    }
}
