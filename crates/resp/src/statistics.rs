//! What the connections of a process have done, for INFO.

use crate::scripts::KnownScripts;
use crate::tracking::TrackingCounts;
use crate::writer::Protocol;
use core::fmt::Write as _;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use syros_commands::{LookupReply, commands};
use syros_types::WallTime;

/// The rate of commands is that of the last second or two.
const RATE_WINDOW_MICROS: u64 = 1_000_000;

/// Most codes of errors that are counted apart, beside our own: scripts make up others, and somebody who makes up many is to
/// take neither memory nor places.
const ERROR_CODES_MAX: usize = 128;

/// Longest code that is counted apart, in bytes.
const ERROR_CODE_BYTES_MAX: usize = 32;

/// The codes of errors that do not come from scripts. There is always a place for them.
const OWN_ERROR_CODES: [&[u8]; 21] = [
    b"ERR",
    b"BUSYGROUP",
    b"BUSYKEY",
    b"CROSSSLOT",
    b"EXECABORT",
    b"INDEX",
    b"LOADING",
    b"MISCONF",
    b"NOAUTH",
    b"NOGROUP",
    b"NOPERM",
    b"NOPROTO",
    b"NOQUORUM",
    b"NOSCRIPT",
    b"OOM",
    b"READONLY",
    b"TRYAGAIN",
    b"UNBLOCKED",
    b"UNKNOWN",
    b"WRONGPASS",
    b"WRONGTYPE",
];

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
    /// Microseconds that the calls whose times are known took.
    micros: Counter,
    /// How many of them took how long; made when the first is known.
    times: OnceLock<Box<Histogram>>,
}

/// Parts of a range from a power of two to the next that are told apart: what is told of a time is off by an eighth at
/// most.
const PARTS: usize = 8;

/// Buckets of a histogram: the times below `PARTS`, then the parts of each range up to 2^40 microseconds, 12 days.
const BUCKETS: usize = PARTS * 38;

/// Powers of two, and how many times were below each.
pub(crate) type Cumulative = Vec<(u64, u64)>;

/// How many times there were, by their length in microseconds.
#[derive(Debug)]
struct Histogram([Counter; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([const { Counter(AtomicU64::new(0)) }; BUCKETS])
    }
}

impl Histogram {
    /// The bucket of a time.
    const fn bucket(micros: u64) -> usize {
        if micros < PARTS as u64 {
            return micros as usize;
        }
        let exponent = micros.ilog2() as usize;
        let part = (micros >> (exponent - 3)) as usize - PARTS;
        let bucket = PARTS * (exponent - 2) + part;
        if bucket < BUCKETS { bucket } else { BUCKETS - 1 }
    }

    /// The shortest time that is longer than those in a bucket.
    const fn end(bucket: usize) -> u64 {
        let next = bucket + 1;
        if next < PARTS {
            return next as u64;
        }
        ((PARTS + next % PARTS) as u64) << (next / PARTS - 1)
    }

    fn total(&self) -> u64 {
        self.0.iter().map(Counter::get).sum()
    }

    /// The ends of the buckets that hold times, with how many each holds.
    fn filled(&self) -> Vec<(u64, u64)> {
        let counts = self.0.iter().map(Counter::get).enumerate();
        counts.filter(|(_, count)| *count > 0).map(|(bucket, count)| (Self::end(bucket), count)).collect()
    }

    /// No shorter time than so many thousandths of all, up to the precision of the buckets.
    fn percentile(&self, thousandths: u64) -> u64 {
        let wanted = (self.total() * thousandths).div_ceil(1000);
        let mut count = 0;
        let is_reached = |counter: &Counter| {
            count += counter.get();
            count >= wanted
        };
        self.0.iter().position(is_reached).map_or(0, |bucket| Self::end(bucket) - 1)
    }

    /// How many times were below each of these lengths, which rise and are powers of two.
    fn below(&self, bounds: &[u64]) -> Vec<u64> {
        let (mut count, mut bucket) = (0, 0);
        let mut below = |bound: &u64| {
            while bucket < BUCKETS && Self::end(bucket) <= *bound {
                count += self.0[bucket].get();
                bucket += 1;
            }
            count
        };
        bounds.iter().map(&mut below).collect()
    }

    /// Powers of two, and how many times were below each, as far as that number changes.
    fn cumulative(&self) -> Cumulative {
        let bounds: Vec<u64> = (0..=40).map(|exponent| 1 << exponent).collect();
        let mut before = 0;
        let changed = |(_, count): &(u64, u64)| core::mem::replace(&mut before, *count) < *count;
        bounds.iter().copied().zip(self.below(&bounds)).filter(changed).collect()
    }
}

/// What the clients of a process have done together, since the start or the last CONFIG RESETSTAT, or do at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientTotals {
    /// Clients whose commands wait for elements, at present.
    pub waiting: u64,
    /// Clients that keep copies of keys, at present.
    pub tracking: u64,
    /// Keys that reads have found.
    pub hits: u64,
    /// Keys that they have not.
    pub misses: u64,
    /// Bytes received.
    pub input_bytes: u64,
    /// Bytes sent.
    pub output_bytes: u64,
}

/// What became of a command, since the start or the last CONFIG RESETSTAT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandTotals {
    /// Its name.
    pub name: &'static str,
    /// How often it came.
    pub calls: u64,
    /// How often it got an error as its result.
    pub failed: u64,
    /// How often it was refused before it became an operation.
    pub rejected: u64,
    /// How often it is known how long it took: what a connection answers by itself is not timed.
    pub timed: u64,
    /// Microseconds that it took then, together.
    pub micros: u64,
    /// How often it took less than each of the lengths that were asked about.
    pub below: Vec<u64>,
}

/// What commands do with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandUse {
    /// They read it.
    Reads,
    /// They may change it.
    Updates,
    /// Neither: connections, servers, scripts.
    Other,
}

/// How long a command took, since the start or the last CONFIG RESETSTAT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandTimes {
    /// Its name.
    pub name: &'static str,
    /// What it does with data.
    pub used_for: CommandUse,
    /// How often it came.
    pub calls: u64,
    /// How often it got an error as its result, or was refused before it became an operation.
    pub errors: u64,
    /// Lengths in microseconds, which rise, each with how many times were below it and not below the one before. Those
    /// without any are left out.
    pub times: Vec<(u64, u64)>,
}

/// When a window of the rates began, and what there had been until then.
#[derive(Debug, Default)]
struct RateWindow {
    /// In microseconds since 1970.
    begun: Counter,
    commands: Counter,
    input_bytes: Counter,
    output_bytes: Counter,
}

impl RateWindow {
    fn set(&self, begun: u64, [commands, input, output]: [u64; 3]) {
        self.begun.set(begun);
        self.commands.set(commands);
        self.input_bytes.set(input);
        self.output_bytes.set(output);
    }

    fn totals(&self) -> [u64; 3] {
        [&self.commands, &self.input_bytes, &self.output_bytes].map(Counter::get)
    }
}

/// Why ACLs refuse something, as ACL LOG says it, and the end of the name of its counter in INFO.
const REFUSED: [(&str, &str); 4] =
    [("auth", "auth"), ("command", "cmd"), ("key", "key"), ("channel", "channel")];

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
    /// Errors whose codes are not counted apart.
    other_errors: Counter,
    /// What ACLs have refused, by the places of [`REFUSED`].
    refused: [Counter; REFUSED.len()],
    /// Clients whose commands wait for elements.
    blocked: AtomicU64,
    /// What is known of clients that keep copies.
    tracking: Mutex<TrackingCounts>,
    /// What is known of the scripts that clients run.
    pub(crate) scripts: KnownScripts,
    /// When two windows of the rates began; the older one first.
    windows: [RateWindow; 2],
}

impl Default for Statistics {
    fn default() -> Self {
        let counters = |lookup| CommandCounters {
            lookup,
            calls: Counter::default(),
            rejected: Counter::default(),
            failed: Counter::default(),
            micros: Counter::default(),
            times: OnceLock::new(),
        };
        Self {
            commands: commands().iter().map(|spec| counters(spec.lookup)).collect(),
            total: Counter::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            input_bytes: Counter::default(),
            output_bytes: Counter::default(),
            errors: Mutex::default(),
            other_errors: Counter::default(),
            refused: Default::default(),
            blocked: AtomicU64::new(0),
            tracking: Mutex::default(),
            scripts: KnownScripts::default(),
            windows: Default::default(),
        }
    }
}

impl Statistics {
    /// So many clients have commands that wait for elements.
    pub fn set_blocked(&self, clients: u64) {
        self.blocked.store(clients, Ordering::Relaxed);
    }

    /// So much is known of clients that keep copies.
    pub fn set_tracking(&self, counts: TrackingCounts) {
        *self.tracking.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }

    /// What was set with [`set_tracking`](Self::set_tracking).
    pub(crate) fn tracking(&self) -> TrackingCounts {
        *self.tracking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many clients have commands that wait for elements.
    pub(crate) fn blocked(&self) -> u64 {
        self.blocked.load(Ordering::Relaxed)
    }

    /// What all clients have done. Other threads may ask while it is counted: what is told is then not of one moment.
    #[must_use]
    pub fn totals_of_clients(&self) -> ClientTotals {
        ClientTotals {
            waiting: self.blocked(),
            tracking: self.tracking().clients,
            hits: self.hits.get(),
            misses: self.misses.get(),
            input_bytes: self.input_bytes.get(),
            output_bytes: self.output_bytes.get(),
        }
    }

    /// What became of each command that has come, with how often it took less than these lengths in microseconds, which rise
    /// and are powers of two. Other threads may ask, as above.
    #[must_use]
    pub fn totals_of_commands(&self, lengths: &[u64]) -> Vec<CommandTotals> {
        let all = commands().iter().zip(&self.commands);
        let of = |(spec, counters): (&syros_commands::CommandSpec, &CommandCounters)| {
            let (calls, rejected) = (counters.calls.get(), counters.rejected.get());
            let times = counters.times.get();
            (calls + rejected > 0).then(|| CommandTotals {
                name: spec.name,
                calls,
                failed: counters.failed.get(),
                rejected,
                timed: times.map_or(0, |times| times.total()),
                micros: counters.micros.get(),
                below: times.map_or_else(Vec::new, |times| times.below(lengths)),
            })
        };
        all.filter_map(of).collect()
    }

    /// How long each command took that has come. Other threads may ask, as above.
    #[must_use]
    pub fn times_of_commands(&self) -> Vec<CommandTimes> {
        let all = commands().iter().zip(&self.commands);
        let of = |(spec, counters): (&syros_commands::CommandSpec, &CommandCounters)| {
            let (calls, rejected) = (counters.calls.get(), counters.rejected.get());
            let used_for = if spec.flags.contains(&"write") {
                CommandUse::Updates
            } else if spec.flags.contains(&"readonly") {
                CommandUse::Reads
            } else {
                CommandUse::Other
            };
            (calls + rejected > 0).then(|| CommandTimes {
                name: spec.name,
                used_for,
                calls,
                errors: counters.failed.get() + rejected,
                times: counters.times.get().map_or_else(Vec::new, |times| times.filled()),
            })
        };
        all.filter_map(of).collect()
    }

    /// How many error replies there were, by their first word, which has capital letters, digits and underlines only, and
    /// those with others under `other`.
    #[must_use]
    pub fn errors(&self) -> Vec<(String, u64)> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let named = errors.iter().map(|(code, count)| (String::from_utf8_lossy(code).into_owned(), *count));
        let mut all: Vec<(String, u64)> = named.collect();
        let others = self.other_errors.get();
        if others > 0 {
            all.push(("other".to_owned(), others));
        }
        all
    }

    /// Starts all counters again from zero.
    pub fn reset(&self) {
        for counters in &self.commands {
            let CommandCounters { calls, rejected, failed, micros, times, .. } = counters;
            [calls, rejected, failed, micros].iter().for_each(|counter| counter.set(0));
            times.get().into_iter().flat_map(|times| &times.0).for_each(|counter| counter.set(0));
        }
        let others = [
            &self.total,
            &self.other_errors,
            &self.hits,
            &self.misses,
            &self.input_bytes,
            &self.output_bytes,
        ];
        others.into_iter().chain(&self.refused).for_each(|counter| counter.set(0));
        self.windows.iter().for_each(|window| window.set(window.begun.get(), [0; 3]));
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Bytes have been received and consumed.
    pub(crate) fn on_input(&self, bytes: usize, now: WallTime) {
        self.input_bytes.add(bytes as u64);
        let [older, newer] = &self.windows;
        if now.0.saturating_sub(newer.begun.get()) >= RATE_WINDOW_MICROS || now.0 < newer.begun.get() {
            older.set(newer.begun.get(), newer.totals());
            newer.set(now.0, self.totals());
        }
    }

    fn totals(&self) -> [u64; 3] {
        [&self.total, &self.input_bytes, &self.output_bytes].map(Counter::get)
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

    /// A command took so long.
    pub(crate) fn on_time(&self, command: usize, took: Duration) {
        let Some(counters) = self.commands.get(command) else { return };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        counters.micros.add(micros);
        counters.times.get_or_init(Box::default).0[Histogram::bucket(micros)].add(1);
    }

    /// Of these commands, or of all, if their times are known: the name, how many times are known, and powers of two
    /// with how many times were below each, in microseconds.
    pub(crate) fn histograms(&self, names: &[&[u8]]) -> Vec<(&'static str, u64, Cumulative)> {
        let is_named = |name: &str| {
            names.is_empty() || names.iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        let all = commands().iter().zip(&self.commands).filter(|(spec, _)| is_named(spec.name));
        let known = all.filter_map(|(spec, counters)| Some((spec.name, counters.times.get()?)));
        let told = known.map(|(name, times)| (name, times.total(), times.cumulative()));
        told.filter(|(_, calls, _)| *calls > 0).collect()
    }

    /// The lines of INFO's section `Latencystats`.
    pub(crate) fn write_latencies(&self, text: &mut String) {
        for (spec, counters) in commands().iter().zip(&self.commands) {
            let Some(times) = counters.times.get().filter(|times| times.total() > 0) else { continue };
            let [half, most, nearly_all] = [500, 990, 999].map(|thousandths| times.percentile(thousandths));
            let _ = write!(
                text,
                "latency_percentiles_usec_{}:p50={half}.000,p99={most}.000,p99.9={nearly_all}.000\r\n",
                spec.name
            );
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

    /// ACLs have refused something, for this reason of ACL LOG.
    pub(crate) fn on_refused(&self, reason: &str) {
        if let Some(place) = REFUSED.iter().position(|(known, _)| *known == reason) {
            self.refused[place].add(1);
        }
    }

    /// An error reply, whose code is its first word.
    fn on_error(&self, error: &[u8]) {
        self.scripts.on_error(error);
        let code = error.split(|byte| matches!(byte, b' ' | b'\r')).next().unwrap_or_default();
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = errors.len() < ERROR_CODES_MAX && is_error_code(code);
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if OWN_ERROR_CODES.contains(&code) || has_room {
            errors.insert(code.to_vec(), 1);
        } else {
            self.other_errors.add(1);
        }
    }

    /// The lines of INFO's section `Stats` that are counted here.
    pub(crate) fn write_stats(&self, now: WallTime, text: &mut String) {
        let [older, _] = &self.windows;
        let micros = now.0.saturating_sub(older.begun.get()).max(1);
        let (totals, before) = (self.totals(), older.totals());
        let rate = |place: usize| {
            u128::from(totals[place].saturating_sub(before[place])) * 1_000_000 / u128::from(micros)
        };
        let (commands, input, output) = (rate(0), rate(1) as f64 / 1024.0, rate(2) as f64 / 1024.0);
        let errors: u64 = self.errors().iter().map(|(_, count)| count).sum();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "instantaneous_ops_per_sec:{commands}\r\ninstantaneous_input_kbps:{input:.2}\r\n\
             instantaneous_output_kbps:{output:.2}\r\ntotal_net_input_bytes:{}\r\ntotal_net_output_bytes:{}\r\n\
             keyspace_hits:{}\r\nkeyspace_misses:{}\r\ntotal_error_replies:{errors}\r\n",
            self.input_bytes.get(),
            self.output_bytes.get(),
            self.hits.get(),
            self.misses.get(),
        );
        for ((_, name), count) in REFUSED.iter().zip(&self.refused) {
            let _ = write!(text, "acl_access_denied_{name}:{}\r\n", count.get());
        }
    }

    /// The lines of INFO's section `Commandstats`: of the commands that have been asked for. Times are those from the
    /// submission to the replicas until the answer; of what a connection answers by itself they are not measured, and 0.
    pub(crate) fn write_commands(&self, text: &mut String) {
        for (spec, counters) in commands().iter().zip(&self.commands) {
            let (calls, rejected) = (counters.calls.get(), counters.rejected.get());
            if calls + rejected > 0 {
                let (name, failed, micros) = (spec.name, counters.failed.get(), counters.micros.get());
                let mean = micros as f64 / calls.max(1) as f64;
                let _ = write!(
                    text,
                    "cmdstat_{name}:calls={calls},usec={micros},usec_per_call={mean:.2},rejected_calls={rejected},\
                     failed_calls={failed}\r\n"
                );
            }
        }
    }

    /// The lines of INFO's section `Errorstats`.
    pub(crate) fn write_errors(&self, text: &mut String) {
        for (code, count) in self.errors() {
            let _ = write!(text, "errorstat_{code}:count={count}\r\n");
        }
    }
}

/// True if this looks like the code of an error: what metrics and INFO can show, and tell apart.
fn is_error_code(code: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    (1..=ERROR_CODE_BYTES_MAX).contains(&code.len()) && code.iter().all(is_plain)
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
    fn times_are_told_to_an_eighth() {
        for micros in (0..5000).chain([1 << 20, (1 << 38) + 5]) {
            let bucket = Histogram::bucket(micros);
            let (start, end) = (bucket.checked_sub(1).map_or(0, Histogram::end), Histogram::end(bucket));
            assert!(
                (start..end).contains(&micros) && end - start <= 1 + start / 8,
                "{micros}: {start} {end}"
            );
        }
        assert_eq!(Histogram::bucket(u64::MAX), BUCKETS - 1);
        let statistics = Statistics::default();
        for micros in 1..=1000 {
            statistics.on_time(0, Duration::from_micros(micros));
        }
        let [(_, calls, buckets)] = &statistics.histograms(&[])[..] else { panic!("one command") };
        assert_eq!((*calls, buckets.first(), buckets.last()), (1000, Some(&(2, 1)), Some(&(1024, 1000))));
        assert!(buckets.contains(&(512, 511)) && buckets.is_sorted());
        let times = statistics.commands[0].times.get().unwrap();
        let [half, most] = [500, 990].map(|thousandths| times.percentile(thousandths));
        assert!((500..=575).contains(&half) && (990..=1023).contains(&most), "{half} {most}");
        assert!(statistics.histograms(&[b"nosuch"]).is_empty());
        statistics.on_call(0);
        let [command] = &statistics.totals_of_commands(&[1, 2, 512, 1024, 1 << 30])[..] else {
            panic!("one command")
        };
        assert_eq!((command.timed, &command.below[..]), (1000, &[0, 1, 511, 1000, 1000][..]));
        let [times] = &statistics.times_of_commands()[..] else { panic!("one command") };
        assert_eq!(times.times.iter().map(|(_, count)| count).sum::<u64>(), 1000);
        assert!(times.times.is_sorted() && times.times.contains(&(512, 32)), "{:?}", times.times);
        statistics.reset();
        assert!(statistics.histograms(&[]).is_empty());
    }

    /// Scripts answer what they like.
    #[test]
    fn codes_that_scripts_make_up_take_neither_places_nor_memory() {
        let statistics = Statistics::default();
        let long = vec![b'A'; 1 << 20];
        for strange in [&b"A\"B"[..], b"A\\", b"A\tB", b"", b"\xff\xfe", b"lower", &long] {
            statistics.on_error(&[strange, b" text"].concat());
        }
        for number in 0..300 {
            statistics.on_error(format!("CODE{number} text").as_bytes());
        }
        // The table is full, and ours are told all the same.
        statistics.on_error(b"NOQUORUM text");
        let errors = statistics.errors();
        let count = |code: &str| errors.iter().find(|(name, _)| name == code).map(|(_, count)| *count);
        assert_eq!((count("CODE0"), count("NOQUORUM"), count("other")), (Some(1), Some(1), Some(7 + 172)));
        assert_eq!(errors.len(), 128 + 2);
        let mut text = String::new();
        statistics.write_errors(&mut text);
        assert!(text.len() < 5_000 && text.contains("errorstat_other:count=179\r\n"), "{text}");
        text.clear();
        statistics.write_stats(WallTime(1), &mut text);
        assert!(text.contains("total_error_replies:308\r\n"), "{text}");
        statistics.reset();
        assert!(statistics.errors().is_empty());
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
