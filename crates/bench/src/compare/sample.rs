//! What one run of one contender came to.

use super::facts::Facts;
use core::time::Duration;
use serde::Serialize;
use std::collections::BTreeMap;
use syros_client::{ReadCounts, WriteCounts};
use syros_experiment::{Measured, OperationKind, Part, Row, VirtualRun};

/// What one run of one contender came to.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Operations that ended within the time measured.
    pub operations: u64,
    /// That time, in seconds.
    pub seconds: f64,
    /// Latencies of all operations.
    pub latency: Measured,
    /// Latencies by kind of operation, and of the two parts of those that read, modify and write.
    pub kinds: BTreeMap<&'static str, Measured>,
    /// Operations that did not succeed.
    pub failed: u64,
    /// CPU time of all replicas; `None` in virtual time, unless work takes time there.
    pub cpu: Option<Duration>,
    /// The share of the time in which the replica was busy that was so longest; in virtual time only, and if work takes
    /// time there.
    pub busiest: Option<f64>,
    /// CPU time of the process that is all clients; `None` in virtual time.
    pub client_cpu: Option<Duration>,
    /// Requests that were answered in one round trip, in the time measured.
    fast: f64,
    /// All requests answered in that time.
    requests: f64,
    /// Of the fast ones, those that read.
    fast_reads: f64,
    /// Of all, those that read.
    reads: f64,
    /// Of those, reads that the leader was asked for and did not refuse: which may have had to wait.
    by_leader: f64,
    /// Requests that the leader could have let wait, in all of the run.
    waitable: f64,
}

impl Sample {
    /// What came of an experiment in virtual time by these closed-loop clients.
    #[must_use]
    pub fn from_virtual(run: &VirtualRun, clients: usize, replicas: usize) -> Self {
        let mut sample = Self::from_rows(&run.rows, clients, replicas);
        if run.time > Duration::ZERO {
            (sample.operations, sample.seconds) = (run.ended, run.time.as_secs_f64());
        }
        let busiest = run.busy.iter().max().copied().unwrap_or_default();
        if busiest > Duration::ZERO {
            sample.cpu = Some(run.busy.iter().sum());
            sample.busiest = Some(busiest.as_secs_f64() / sample.seconds);
        }
        sample
    }

    /// What these closed-loop clients, in all regions together, experienced. They do not rest: that says how long it
    /// took.
    #[must_use]
    pub fn from_rows(rows: &[Row], clients: usize, replicas: usize) -> Self {
        let mut sample = Self::default();
        for row in rows {
            sample.latency.add(&row.all());
            for (name, measured) in &row.kinds {
                sample.kinds.entry(name).or_default().add(measured);
            }
            sample.failed += row.failed;
            let updates: u64 = row.write_paths.values().sum();
            let fast = row.write_paths.get("fast").copied().unwrap_or_default();
            // A replica that is alone has nobody to wait for.
            let fast = if replicas == 1 { updates } else { fast };
            let reads = row.reads.count() + row.pairs.count();
            sample.fast += (row.reads_at_once + fast) as f64;
            sample.requests += (reads + updates) as f64;
            sample.fast_reads += row.reads_at_once as f64;
            sample.reads += reads as f64;
        }
        sample.operations = sample.latency.count();
        let all = sample.latency.mean_us() * sample.operations as f64;
        sample.seconds = all / 1_000_000.0 / clients.max(1) as f64;
        sample
    }

    /// Records a request, in nanoseconds from when it was sent.
    pub(super) fn part(&mut self, part: Part, nanos: u64) {
        self.kinds.entry(part.name()).or_default().record(nanos);
    }

    /// Records an operation's latency.
    pub(super) fn operation(&mut self, kind: OperationKind, nanos: u64) {
        self.latency.record(nanos);
        self.kinds.entry(kind.name()).or_default().record(nanos);
    }

    /// Takes in how requests were answered in the time measured (from the first to the second of each) and in all of
    /// the run (the third).
    pub(super) fn paths(
        &mut self,
        replicas: usize,
        (before, after, all): (&ReadCounts, &ReadCounts, &ReadCounts),
        (writes_before, writes_after): (&WriteCounts, &WriteCounts),
    ) {
        let reads = |of: fn(&ReadCounts) -> u64| (of(after) - of(before)) as f64;
        let writes = |of: fn(&WriteCounts) -> u64| (of(writes_after) - of(writes_before)) as f64;
        let by_others = reads(|counts| counts.meta + counts.quorum + counts.stale);
        self.by_leader = reads(|counts| counts.leader + counts.several);
        let referred = reads(|counts| counts.rinsed + counts.referred);
        // A replica that is alone has nobody to wait for.
        let alone = if replicas == 1 { writes(|counts| counts.leader + counts.ordered) } else { 0.0 };
        self.fast_reads = by_others + self.by_leader;
        self.reads = self.fast_reads + referred;
        self.fast = self.fast_reads + writes(|counts| counts.fast) + alone;
        self.requests = self.reads + writes(|counts| counts.fast + counts.leader + counts.ordered);
        self.waitable = (all.leader + all.several + all.referred) as f64;
    }

    /// The leader let so many reads wait in the run. It does not say which: they are spread evenly over those that
    /// it answered.
    pub(super) fn wait_of_reads(&mut self, waited: u64) {
        if self.waitable > 0.0 {
            let waited = self.by_leader * (waited as f64 / self.waitable).min(1.0);
            self.fast -= waited;
            self.fast_reads -= waited;
        }
    }

    /// Operations per second.
    #[must_use]
    pub fn throughput(&self) -> f64 {
        if self.seconds > 0.0 { self.operations as f64 / self.seconds } else { 0.0 }
    }

    /// Microseconds of CPU time of all replicas for each operation.
    #[must_use]
    pub fn cpu_us(&self) -> Option<f64> {
        self.per_operation(self.cpu)
    }

    /// Microseconds of the clients' CPU time for each operation.
    #[must_use]
    pub fn client_cpu_us(&self) -> Option<f64> {
        self.per_operation(self.client_cpu)
    }

    fn per_operation(&self, time: Option<Duration>) -> Option<f64> {
        time.filter(|_| self.operations > 0).map(|time| time.as_secs_f64() * 1e6 / self.operations as f64)
    }

    /// The share of requests that were answered in one round trip.
    #[must_use]
    pub fn fast_share(&self) -> Option<f64> {
        (self.requests > 0.0).then(|| (self.fast / self.requests).clamp(0.0, 1.0))
    }

    /// The share of the reads that were answered in one round trip; `None` if there were none.
    #[must_use]
    pub fn fast_reads_share(&self) -> Option<f64> {
        (self.reads > 0.0).then(|| (self.fast_reads / self.reads).clamp(0.0, 1.0))
    }
}

/// A sample as one line of JSON, without a line end. What is not known is null.
#[derive(Clone, Debug, Serialize)]
pub struct Line<'a> {
    protocol: &'a str,
    workload: &'a str,
    distribution: &'a str,
    replicas: usize,
    clients: usize,
    round: usize,
    ops_per_s: f64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    cpu_us_per_op: Option<f64>,
    client_cpu_us_per_op: Option<f64>,
    fast_share: Option<f64>,
    busiest_share: Option<f64>,
    durability: &'a str,
    engine: &'a str,
    value_bytes: Option<u64>,
    keys: u64,
    failed: u64,
    commit: &'a str,
    machine: &'a str,
    command: &'a str,
}

/// To so many decimal places.
fn round(number: f64, places: i32) -> f64 {
    let factor = 10_f64.powi(places);
    (number * factor).round() / factor
}

impl<'a> Line<'a> {
    /// What a contender of so many replicas did in a round, which is counted from 1, under a load of that name.
    #[must_use]
    pub fn new(
        facts: &'a Facts,
        (workload, distribution, clients): (&'a str, &'a str, usize),
        (protocol, replicas): (&'a str, usize),
        round_number: usize,
        sample: &Sample,
    ) -> Self {
        let quantile = |quantile: f64| round(sample.latency.quantile_us(quantile), 1);
        Self {
            protocol,
            workload,
            distribution,
            replicas,
            clients,
            round: round_number,
            ops_per_s: round(sample.throughput(), 1),
            mean_us: round(sample.latency.mean_us(), 1),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: quantile(0.999),
            cpu_us_per_op: sample.cpu_us().map(|micros| round(micros, 2)),
            client_cpu_us_per_op: sample.client_cpu_us().map(|micros| round(micros, 2)),
            fast_share: sample.fast_share().map(|share| round(share, 4)),
            busiest_share: sample.busiest.map(|share| round(share, 4)),
            durability: &facts.durability,
            engine: &facts.engine,
            value_bytes: facts.value_bytes,
            keys: facts.keys,
            failed: sample.failed,
            commit: &facts.commit,
            machine: &facts.machine,
            command: &facts.command,
        }
    }

    /// The line.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts are always JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_round_trip_is_what_nobody_waited_for() {
        let mut sample = Sample::default();
        let counts = |leader, several, meta, referred| ReadCounts {
            leader,
            several,
            meta,
            referred,
            ..ReadCounts::default()
        };
        let (before, after) = (counts(10, 0, 0, 0), counts(60, 10, 20, 10));
        let (none, writes) = (WriteCounts::default(), WriteCounts { fast: 5, leader: 3, ordered: 2 });
        sample.paths(3, (&before, &after, &after), (&none, &writes));
        // 50 and 10 of the leader, 20 of others, 5 updates; of 100.
        assert_eq!(sample.fast_share(), Some(0.85));
        assert_eq!(sample.fast_reads_share(), Some(80.0 / 90.0));
        // Of the 80 that it was asked for in all, an eighth waited.
        sample.wait_of_reads(10);
        assert_eq!(sample.fast_share(), Some(0.775));
        sample.paths(1, (&before, &after, &after), (&none, &writes));
        assert_eq!(sample.fast_share(), Some(0.9), "the only replica orders alone");
        assert_eq!(Sample::default().fast_share(), None);
    }

    #[test]
    fn the_line_for_machines_has_these_fields() {
        let facts = Facts { machine: "a \"fast\" one".to_owned(), ..Facts::default() };
        let mut sample =
            Sample { operations: 3, seconds: 2.0, cpu: Some(Duration::from_millis(3)), ..Sample::default() };
        (0..3).for_each(|_| sample.operation(OperationKind::Update, 1_000_000));
        let line = Line::new(&facts, ("a", "uniform", 10), ("vr", 5), 2, &sample).json();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        for (key, expected) in [
            ("round", "2"),
            ("ops_per_s", "1.5"),
            ("p50_us", "1000."),
            ("cpu_us_per_op", "1000.0"),
            ("client_cpu_us_per_op", "null"),
            ("machine", "\"a \\\"fast\\\" one\""),
        ] {
            assert!(value[key].to_string().starts_with(expected), "{key}: {line}");
        }
        assert_eq!(value.as_object().unwrap().len(), 23);
    }
}
