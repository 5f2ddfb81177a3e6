//! Metrics in the text format of OpenMetrics 1.0, which Prometheus reads.
//!
//! Names have units, and counters end with `_total`, as the format asks for it. What Redis's INFO tells under another name is
//! told from the same figures.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use syros_resp::{CommandTotals, ServerReport, Statistics};

use crate::{Distribution, Peer, ReplicaActivity, Told, TraceActivity};

/// The format of [`exposition`], as HTTP names it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The states of a disk, of which one is the present one.
const DISK_STATES: [&str; 5] = ["ok", "full", "missing", "refusing", "failed"];

/// The limits of the buckets of durations, in microseconds: powers of two from 16 us to 17 s. They are always the same, so that
/// processes can be added up.
const BUCKETS: [u64; 21] = {
    let mut buckets = [16; 21];
    let mut place = 1;
    while place < buckets.len() {
        buckets[place] = buckets[place - 1] * 2;
        place += 1;
    }
    buckets
};

/// All metrics of a process.
#[must_use]
pub fn exposition(told: Told) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Everything(told)));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Everything(Told);

/// Writes metrics one after the other.
struct Writer<'a>(DescriptorEncoder<'a>);

/// The value of a metric with the value of its label.
type Labelled<'a> = (&'a str, f64);

impl Writer<'_> {
    fn metric<'a>(
        &'a mut self,
        (name, help): (&'a str, &'a str),
        unit: Option<&'a Unit>,
        kind: MetricType,
    ) -> Result<MetricEncoder<'a>, fmt::Error> {
        self.0.encode_descriptor(name, help, unit, kind)
    }

    fn gauge(&mut self, described: (&str, &str), unit: Option<&Unit>, value: f64) -> fmt::Result {
        put_gauge(self.metric(described, unit, MetricType::Gauge)?, value)
    }

    fn counter(&mut self, described: (&str, &str), unit: Option<&Unit>, value: f64) -> fmt::Result {
        put_counter(self.metric(described, unit, MetricType::Counter)?, value)
    }

    fn gauges(
        &mut self,
        described: (&str, &str),
        unit: Option<&Unit>,
        label: &str,
        values: &[Labelled<'_>],
    ) -> fmt::Result {
        put_each(self.metric(described, unit, MetricType::Gauge)?, label, values, put_gauge)
    }

    /// A histogram of values that are given in a smaller unit, which is this part of the unit.
    fn histogram(
        &mut self,
        described: (&str, &str),
        unit: Option<&Unit>,
        part: f64,
        distribution: &Distribution,
    ) -> fmt::Result {
        put_histogram(self.metric(described, unit, MetricType::Histogram)?, part, distribution)
    }

    fn counters(
        &mut self,
        described: (&str, &str),
        unit: Option<&Unit>,
        label: &str,
        values: &[Labelled<'_>],
    ) -> fmt::Result {
        put_each(self.metric(described, unit, MetricType::Counter)?, label, values, put_counter)
    }
}

fn put_gauge(mut metric: MetricEncoder<'_>, value: f64) -> fmt::Result {
    metric.encode_gauge(&value)
}

fn put_counter(mut metric: MetricEncoder<'_>, value: f64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
}

/// Writes the samples of a histogram of values that are given in a smaller unit, which is this part of the unit.
fn put_histogram(
    mut metric: MetricEncoder<'_>,
    part: f64,
    Distribution { sum, buckets }: &Distribution,
) -> fmt::Result {
    let count = buckets.iter().map(|(_, count)| count).sum();
    // What is above the last bound but one is above all bounds.
    let last = buckets.len().saturating_sub(1);
    let bound = |place: usize, bound: u64| if place < last { number(bound) * part } else { f64::MAX };
    let places = buckets.iter().enumerate();
    let buckets: Vec<(f64, u64)> =
        places.map(|(place, (value, count))| (bound(place, *value), *count)).collect();
    metric.encode_histogram::<NoLabelSet>(number(*sum) * part, count, &buckets, None)
}

/// Writes a sample for each value of a label.
fn put_each(
    mut metric: MetricEncoder<'_>,
    label: &str,
    values: &[Labelled<'_>],
    put: fn(MetricEncoder<'_>, f64) -> fmt::Result,
) -> fmt::Result {
    values.iter().try_for_each(|(name, value)| put(metric.encode_family(&[(label, *name)])?, *value))
}

/// Numbers of INFO are integers, and those of metrics are not: above 2^53 the last digits go.
const fn number(value: u64) -> f64 {
    value as f64
}

const fn flag(value: bool) -> f64 {
    if value { 1.0 } else { 0.0 }
}

impl Collector for Everything {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Told { report, shared, ways, peers, replica, traces, .. } = &self.0;
        let statistics = &*shared.statistics;
        let mut writer = Writer(encoder);
        process(&mut writer, report)?;
        clients(&mut writer, report, statistics)?;
        data(&mut writer, report)?;
        disk(&mut writer, report)?;
        certificate(&mut writer, report)?;
        group(&mut writer, report)?;
        ways_of(&mut writer, ways)?;
        peers_of(&mut writer, report, peers, replica.as_ref())?;
        if let Some(replica) = replica {
            activity(&mut writer, replica)?;
        }
        if let Some(traces) = traces {
            traces_of(&mut writer, traces)?;
        }
        commands(&mut writer, statistics)
    }
}

fn process(writer: &mut Writer<'_>, report: &ServerReport) -> fmt::Result {
    let version = [(report.version.as_str(), 1.0)];
    writer.gauges(("syros_build_info", "The version of this process"), None, "version", &version)?;
    let uptime = number(report.uptime_seconds);
    writer.gauge(("syros_uptime", "Since this process started"), Some(&Unit::Seconds), uptime)?;
    let [system, user] = report.cpu_millis.map(|millis| number(millis) / 1000.0);
    let modes = [("system", system), ("user", user)];
    writer.counters(("syros_cpu", "Processor time of this process"), Some(&Unit::Seconds), "mode", &modes)?;
    let resident = number(report.memory_bytes);
    writer.gauge(("syros_resident_memory", "Memory of this process"), Some(&Unit::Bytes), resident)?;
    let total = number(report.memory_total_bytes);
    writer.gauge(("syros_machine_memory", "Memory of the machine"), Some(&Unit::Bytes), total)
}

fn clients(writer: &mut Writer<'_>, report: &ServerReport, statistics: &Statistics) -> fmt::Result {
    let totals = statistics.totals_of_clients();
    for (described, value) in [
        (("syros_clients", "Redis clients connected"), report.clients),
        (("syros_clients_max", "Redis clients that may be connected"), report.clients_max),
        (("syros_clients_waiting", "Redis clients whose commands wait for elements"), totals.waiting),
        (("syros_clients_tracking", "Redis clients that keep copies of keys"), totals.tracking),
        (("syros_pubsub_channels", "Channels that clients subscribe to"), report.pubsub_channels),
        (("syros_pubsub_patterns", "Patterns that clients subscribe to"), report.pubsub_patterns),
        (
            ("syros_pubsub_shard_channels", "Shard channels that clients subscribe to"),
            report.pubsubshard_channels,
        ),
    ] {
        writer.gauge(described, None, number(value))?;
    }
    let bytes = Some(&Unit::Bytes);
    let (used, limit) = (number(report.client_memory_bytes), number(report.client_memory_max));
    writer.gauge(("syros_client_memory", "Memory of all clients' connections"), bytes, used)?;
    writer.gauge(("syros_client_memory_max", "Most that it may be"), bytes, limit)?;
    for (described, value) in [
        (("syros_connections_received", "Connections accepted"), report.connections_received),
        (
            ("syros_connections_rejected", "Connections refused: there were as many as may be"),
            report.connections_rejected,
        ),
        (
            ("syros_clients_evicted", "Connections closed: they held most of the clients' memory"),
            report.clients_evicted,
        ),
        (
            ("syros_subscribers_closed", "Connections closed: they did not take their messages"),
            report.subscribers_closed,
        ),
        (("syros_keyspace_hits", "Keys that reads found"), totals.hits),
        (("syros_keyspace_misses", "Keys that reads did not find"), totals.misses),
    ] {
        writer.counter(described, None, number(value))?;
    }
    let (input, output) = (number(totals.input_bytes), number(totals.output_bytes));
    writer.counter(("syros_client_input", "What Redis clients have sent"), bytes, input)?;
    writer.counter(("syros_client_output", "What Redis clients were sent"), bytes, output)
}

fn data(writer: &mut Writer<'_>, report: &ServerReport) -> fmt::Result {
    let bytes = Some(&Unit::Bytes);
    if let Some(used) = report.data_bytes {
        writer.gauge(("syros_data_memory", "Memory that the data takes"), bytes, number(used))?;
        let limit = number(report.maxmemory);
        writer.gauge(("syros_data_memory_max", "maxmemory; 0 without a limit"), bytes, limit)?;
    }
    if report.replica.is_none() {
        return Ok(());
    }
    let names: Vec<String> = (0..report.databases.len()).map(|number| number.to_string()).collect();
    let used = |count: fn(&syros_resp::DatabaseReport) -> u64| -> Vec<Labelled<'_>> {
        let all = names.iter().zip(&report.databases).filter(|(_, database)| database.keys > 0);
        all.map(|(name, database)| (name.as_str(), number(count(database)))).collect()
    };
    let keys = used(|database| database.keys);
    let help = "Keys; of an engine on disk, when they were counted last";
    writer.gauges(("syros_keys", help), None, "database", &keys)?;
    let expiring = used(|database| database.keys_with_expiry);
    let help = "Keys that expire; of an engine on disk, when they were counted last";
    writer.gauges(("syros_keys_with_expiry", help), None, "database", &expiring)?;
    writer.counter(("syros_keys_expired", "Keys that have expired"), None, number(report.keys_expired))?;
    let help = "Keys that have gone because memory was short";
    writer.counter(("syros_keys_evicted", help), None, number(report.keys_evicted))
}

fn disk(writer: &mut Writer<'_>, report: &ServerReport) -> fmt::Result {
    if report.disk.is_empty() {
        return Ok(());
    }
    let bytes = Some(&Unit::Bytes);
    let states = DISK_STATES.map(|state| (state, flag(state == report.disk)));
    writer.gauges(
        ("syros_disk_state", "What the disk does: 1 for the present state"),
        None,
        "state",
        &states,
    )?;
    let help = "The disk is nearly full: updates that make the data grow are refused";
    writer.gauge(("syros_disk_short", help), None, flag(report.disk_is_short))?;
    let help = "Free on the disk, beside the reserve";
    writer.gauge(("syros_disk_free", help), bytes, number(report.disk_free_bytes))?;
    let help = "In reserve; so many are to be free beside them";
    writer.gauge(("syros_disk_reserve", help), bytes, number(report.disk_reserve_bytes))?;
    let help = "Files that can still be made; 0 where that has no limit";
    writer.gauge(("syros_disk_free_inodes", help), None, number(report.disk_free_inodes))?;
    let help =
        "A backup that ends with this log entry, or a later one, can be continued with what this node has";
    writer.gauge(("syros_log_oldest_entry", help), None, number(report.oldest_entry))
}

/// When the certificate ends, of a process that has one.
fn certificate(writer: &mut Writer<'_>, report: &ServerReport) -> fmt::Result {
    let Some(expires) = report.certificate_expires else { return Ok(()) };
    let name = "syros_tls_certificate_expiry_timestamp";
    let help = "When the certificate of the process is no longer valid, since 1970";
    writer.gauge((name, help), Some(&Unit::Seconds), number(u64::try_from(expires).unwrap_or(0)))
}

fn group(writer: &mut Writer<'_>, report: &ServerReport) -> fmt::Result {
    let roles = ["leader", "follower", "gateway"].map(|role| (role, flag(role == report.role)));
    writer.gauges(
        ("syros_role", "What this process is in the group: 1 for the present role"),
        None,
        "role",
        &roles,
    )?;
    let states = ["normal", "no-quorum", "view-change", "recovering", "forming", "stopping"];
    let states = states.map(|status| (status, flag(status == report.status)));
    writer.gauges(
        ("syros_status", "The protocol's status: 1 for the present one"),
        None,
        "status",
        &states,
    )?;
    writer.gauge(
        ("syros_has_leader", "This process knows of a leader"),
        None,
        flag(report.leader.is_some()),
    )?;
    let silent = number(report.silent_ms) / 1000.0;
    let help = "Since this process knew of a working majority that it is part of";
    writer.gauge(("syros_quorum_silent", help), Some(&Unit::Seconds), silent)?;
    writer.gauge(("syros_group_size", "Members of the group"), None, number(report.group_size))?;
    writer.gauge(
        ("syros_view", "The number of the view; it grows with every change of leader"),
        None,
        number(report.view),
    )?;
    let help = "The epoch of the configuration; it grows with each node that is replaced";
    writer.gauge(("syros_configuration_epoch", help), None, number(report.epoch))?;
    if report.replica.is_some() {
        let help = "Highest committed entry of the log that this member knows of";
        writer.gauge(("syros_committed_entry", help), None, number(report.commit))?;
        let help = "Highest entry of the log that this member has applied";
        writer.gauge(("syros_applied_entry", help), None, number(report.applied))?;
        let help = "Updates in the durability log, which are durable and not yet ordered";
        writer.gauge(("syros_durability_log_updates", help), None, number(report.durability_log))?;
        let paths = [("fast", number(report.fast_updates)), ("ordered", number(report.slow_updates))];
        let help = "Updates by what they had to wait for: one round trip, or the leader's order";
        writer.counters(("syros_updates", help), None, "path", &paths)?;
        writer.counter(
            ("syros_reads", "Reads that this member has completed"),
            None,
            number(report.reads),
        )?;
    }
    let how = |name: &str| report.answered.iter().find(|(known, _)| *known == name).map(|(_, count)| *count);
    if let Some(damaged) = how("damaged_frames") {
        let help = "Frames of other processes that were damaged on their way";
        writer.counter(("syros_damaged_frames", help), None, number(damaged))?;
    }
    if let (Some(found), Some(diverged)) = (how("divergences"), how("diverged")) {
        let help = "Members whose data were found to differ from the leader's";
        writer.counter(("syros_divergences", help), None, number(found))?;
        let help = "The data of this member are not those of the others";
        writer.gauge(("syros_diverged", help), None, flag(diverged > 0))?;
    }
    let ways: Vec<Labelled<'_>> = report
        .answered
        .iter()
        .filter(|(name, _)| name.starts_with("reads_") || name.starts_with("writes_"))
        .map(|(name, count)| (*name, number(*count)))
        .collect();
    let help = "Operations of this process's Redis clients, by the way they were answered";
    writer.counters(("syros_operations", help), None, "way", &ways)
}

/// How long operations took, by the way in which they were answered.
fn ways_of(writer: &mut Writer<'_>, ways: &[(&'static str, Distribution)]) -> fmt::Result {
    let help =
        "From the submission of an operation to the members until its answer, by the way it was answered";
    let described = ("syros_operation_duration", help);
    let mut metric = writer.metric(described, Some(&Unit::Seconds), MetricType::Histogram)?;
    ways.iter()
        .try_for_each(|(way, times)| put_histogram(metric.encode_family(&[("way", *way)])?, 1e-6, times))
}

/// The other members, as this process sees them.
fn peers_of(
    writer: &mut Writer<'_>,
    report: &ServerReport,
    peers: &[Peer],
    replica: Option<&ReplicaActivity>,
) -> fmt::Result {
    let names: Vec<String> = peers.iter().map(|peer| peer.member.to_string()).collect();
    let named = || names.iter().map(String::as_str).zip(peers);
    let connected: Vec<Labelled<'_>> = named().map(|(name, peer)| (name, flag(peer.is_connected))).collect();
    let help = "A connection to this other member is open";
    writer.gauges(("syros_peer_connected", help), None, "member", &connected)?;
    let Some(replica) = replica.filter(|_| report.role == "leader") else { return Ok(()) };
    let lag = |peer: &Peer| Some(number(replica.last_entry.saturating_sub(peer.acknowledged?)));
    let lags: Vec<Labelled<'_>> = named().filter_map(|(name, peer)| Some((name, lag(peer)?))).collect();
    let help = "Entries of this leader's log that this member has not said to be durable there";
    writer.gauges(("syros_peer_lag_entries", help), None, "member", &lags)
}

/// What the replica has done.
fn activity(writer: &mut Writer<'_>, replica: &ReplicaActivity) -> fmt::Result {
    let last = number(replica.last_entry);
    writer.gauge(("syros_last_entry", "The last entry of this member's log"), None, last)?;
    let sessions = number(replica.sessions);
    writer.gauge(("syros_sessions", "Sessions of clients that this member keeps"), None, sessions)?;
    let help = "Log and durability log in memory";
    writer.gauge(("syros_log_memory", help), Some(&Unit::Bytes), number(replica.log_bytes))?;
    let help = "Updates that something pending was in conflict with, so that they took longer";
    writer.counter(("syros_conflicts", help), None, number(replica.conflicts))?;
    let labelled = |counts: &[(&'static str, u64)]| -> Vec<Labelled<'static>> {
        counts.iter().map(|(name, count)| (*name, number(*count))).collect()
    };
    let help = "Operations that this member has refused, by why";
    let refusals = labelled(&replica.refusals);
    writer.counters(("syros_operations_refused", help), None, "reason", &refusals)?;
    let help = "Views that this member has left, by why";
    writer.counters(("syros_view_changes", help), None, "reason", &labelled(&replica.view_changes))?;
    let help = "Writing a batch of records to the log and syncing it";
    writer.histogram(("syros_log_sync_duration", help), Some(&Unit::Seconds), 1e-6, &replica.syncs)?;
    let help = "Records that became durable with one sync";
    writer.histogram(("syros_log_sync_records", help), None, 1.0, &replica.sync_records)?;
    let help = "Bytes that became durable with one sync";
    writer.histogram(("syros_log_sync_size", help), Some(&Unit::Bytes), 1.0, &replica.sync_bytes)
}

fn traces_of(writer: &mut Writer<'_>, traces: &TraceActivity) -> fmt::Result {
    let help = "Spans of traces that a collector has taken";
    writer.counter(("syros_trace_spans_exported", help), None, number(traces.exported))?;
    let help = "Spans of traces that are lost, by why";
    let dropped: Vec<Labelled<'_>> =
        traces.dropped.iter().map(|(reason, count)| (*reason, number(*count))).collect();
    writer.counters(("syros_trace_spans_dropped", help), None, "reason", &dropped)?;
    let help = "Requests to the collector of traces that failed";
    writer.counter(("syros_trace_export_failures", help), None, number(traces.failures))
}

fn commands(writer: &mut Writer<'_>, statistics: &Statistics) -> fmt::Result {
    let all = statistics.totals_of_commands(&BUCKETS);
    let of = |count: fn(&CommandTotals) -> u64| -> Vec<Labelled<'_>> {
        all.iter().map(|command| (command.name, number(count(command)))).collect()
    };
    let calls = of(|command| command.calls);
    writer.counters(("syros_commands", "Commands of Redis clients"), None, "command", &calls)?;
    let failed = of(|command| command.failed);
    writer.counters(
        ("syros_commands_failed", "Those that got an error as their result"),
        None,
        "command",
        &failed,
    )?;
    let rejected = of(|command| command.rejected);
    let help = "Those that were refused before they were executed";
    writer.counters(("syros_commands_rejected", help), None, "command", &rejected)?;
    let errors = statistics.errors();
    let codes: Vec<Labelled<'_>> =
        errors.iter().map(|(code, count)| (code.as_str(), number(*count))).collect();
    writer.counters(("syros_errors", "Error replies, by the first word"), None, "code", &codes)?;
    let help = "From the submission of a command to the members until its answer";
    let mut metric =
        writer.metric(("syros_command_duration", help), Some(&Unit::Seconds), MetricType::Histogram)?;
    for command in all.iter().filter(|command| command.timed > 0) {
        let (mut buckets, mut before) = (Vec::new(), 0);
        for (micros, count) in BUCKETS.iter().zip(&command.below) {
            buckets.push((number(*micros) / 1e6, count.saturating_sub(before)));
            before = *count;
        }
        buckets.push((f64::MAX, command.timed.saturating_sub(before)));
        let sum = number(command.micros) / 1e6;
        let label = [("command", command.name)];
        metric.encode_family(&label)?.encode_histogram::<NoLabelSet>(sum, command.timed, &buckets, None)?;
    }
    Ok(())
}
