//! What came of an experiment: one row for each region that clients were in.

use crate::blend::{OperationKind, Part};

use core::fmt;
use core::time::Duration;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use syros_types::Protocol;

/// Longest latency told apart from longer ones, in nanoseconds.
const LATENCY_NANOS_MAX: u64 = 100_000_000_000;

/// Times from asking for an operation to its end.
#[derive(Clone, Debug)]
pub struct Measured {
    histogram: Histogram<u64>,
    /// The histogram keeps three digits of each; the mean is exact.
    sum: u128,
}

impl Default for Measured {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_NANOS_MAX, 3);
        Self { histogram: histogram.expect("the bounds are constants"), sum: 0 }
    }
}

impl Measured {
    /// One operation, in nanoseconds.
    pub fn record(&mut self, nanos: u64) {
        self.histogram.saturating_record(nanos);
        self.sum += u128::from(nanos);
    }

    /// Operations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Microseconds; 0 if there is nothing.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.sum as f64 / self.count().max(1) as f64 / 1_000.0
    }

    /// Microseconds that this share of the operations did not exceed.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.histogram.value_at_quantile(quantile) as f64 / 1_000.0
    }

    /// Adds all of these operations to them.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("the bounds are the same");
        self.sum += other.sum;
    }
}

/// What the clients of one region experienced.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The protocol's name.
    pub protocol: String,
    /// The workload's.
    pub workload: String,
    /// How keys were chosen.
    pub distribution: String,
    /// Where the clients were.
    pub region: String,
    /// Reads.
    pub reads: Measured,
    /// Updates.
    pub writes: Measured,
    /// Operations that read and then update.
    pub pairs: Measured,
    /// Operations by kind, and requests, where they are told apart: in virtual time.
    pub kinds: BTreeMap<&'static str, Measured>,
    /// Operations that did not succeed.
    pub failed: u64,
    /// Reads by how they were answered.
    pub read_paths: BTreeMap<&'static str, u64>,
    /// Reads that took one round trip to those that were asked first.
    pub reads_at_once: u64,
    /// Updates by how they were answered.
    pub write_paths: BTreeMap<&'static str, u64>,
}

/// What came of an experiment in virtual time.
#[derive(Clone, Debug, Default)]
pub struct VirtualRun {
    /// One row for each region that clients were in.
    pub rows: Vec<Row>,
    /// Operations that ended while all clients had something to do and the measurement had begun.
    pub ended: u64,
    /// How long that was, in virtual time.
    pub time: Duration,
    /// How much of it each replica was busy; all zero where nothing costs anything.
    pub busy: Vec<Duration>,
    /// Hash of everything that happened: equal for equal runs.
    pub trace_hash: u64,
}

/// How many operations have been answered on each path.
pub type Paths<const N: usize> = [(&'static str, u64); N];

fn add_paths<const N: usize>(paths: &mut BTreeMap<&'static str, u64>, before: &Paths<N>, after: &Paths<N>) {
    for ((name, after), (_, before)) in after.iter().zip(before) {
        *paths.entry(name).or_default() += after - before;
    }
}

/// Shares of a whole, as a JSON object.
fn shares(paths: &BTreeMap<&'static str, u64>) -> String {
    let whole: u64 = paths.values().sum();
    let shares = paths.iter().filter(|(_, count)| **count > 0);
    let shares: Vec<String> =
        shares.map(|(name, count)| format!("\"{name}\":{:.4}", *count as f64 / whole as f64)).collect();
    format!("{{{}}}", shares.join(","))
}

impl Row {
    /// An empty row.
    #[must_use]
    pub fn new(
        protocol: Protocol,
        workload: impl fmt::Display,
        distribution: impl fmt::Display,
        region: &str,
    ) -> Self {
        Self {
            protocol: protocol.to_string(),
            workload: workload.to_string(),
            distribution: distribution.to_string(),
            region: region.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a read that took so many nanoseconds; `before` and `after` are how its client's reads had been
    /// answered, by path. One that went `at_once` took one round trip to those that were asked first.
    pub fn read<const N: usize>(&mut self, nanos: u64, before: &Paths<N>, after: &Paths<N>, at_once: bool) {
        self.reads.record(nanos);
        self.read_paths(before, after, at_once);
    }

    /// Adds how the read of an operation was answered, without its time: the operation has not ended.
    pub fn read_paths<const N: usize>(&mut self, before: &Paths<N>, after: &Paths<N>, at_once: bool) {
        self.reads_at_once += u64::from(at_once);
        add_paths(&mut self.read_paths, before, after);
    }

    /// Adds an update, as [`Self::read`] does.
    pub fn write<const N: usize>(&mut self, nanos: u64, before: &Paths<N>, after: &Paths<N>) {
        self.writes.record(nanos);
        add_paths(&mut self.write_paths, before, after);
    }

    /// Adds the end of an operation that read before, as [`Self::write`] does; both took so many nanoseconds.
    pub fn pair<const N: usize>(&mut self, nanos: u64, before: &Paths<N>, after: &Paths<N>) {
        self.pairs.record(nanos);
        add_paths(&mut self.write_paths, before, after);
    }

    /// Tells apart of which kind an operation of so many nanoseconds was.
    pub fn of_kind(&mut self, kind: OperationKind, nanos: u64) {
        self.kinds.entry(kind.name()).or_default().record(nanos);
    }

    /// Tells apart what a request of so many nanoseconds was.
    pub fn of_part(&mut self, part: Part, nanos: u64) {
        self.kinds.entry(part.name()).or_default().record(nanos);
    }

    /// All operations together.
    #[must_use]
    pub fn all(&self) -> Measured {
        let mut all = self.reads.clone();
        all.add(&self.writes);
        all.add(&self.pairs);
        all
    }

    /// The share of the reads that took one round trip.
    fn share_at_once(&self) -> f64 {
        self.reads_at_once as f64 / (self.reads.count() + self.pairs.count()).max(1) as f64
    }

    /// The row as one line of JSON, without a line end. Times are in microseconds.
    #[must_use]
    pub fn json(&self) -> String {
        let Self { protocol, workload, distribution, region, reads, writes, failed, .. } = self;
        let times = |prefix: &str, measured: &Measured| {
            let (mean, p50, p99) =
                (measured.mean_us(), measured.quantile_us(0.5), measured.quantile_us(0.99));
            format!("\"{prefix}mean_us\":{mean:.1},\"{prefix}p50_us\":{p50:.1},\"{prefix}p99_us\":{p99:.1}")
        };
        let all = self.all();
        let at_once = self.share_at_once();
        format!(
            "{{\"protocol\":\"{protocol}\",\"workload\":\"{workload}\",\"distribution\":\"{distribution}\",\
             \"region\":\"{region}\",\"operations\":{},{},{},{},\"failed\":{failed},\
             \"reads\":{},\"reads_one_round_trip\":{at_once:.4},\"read_paths\":{},\"write_paths\":{}}}",
            all.count(),
            times("", &all),
            times("read_", reads),
            times("write_", writes),
            reads.count(),
            shares(&self.read_paths),
            shares(&self.write_paths),
        )
    }

    /// The heading of a table of rows.
    #[must_use]
    pub fn heading() -> String {
        format!(
            "{:<14} {:<4} {:<13} {:<14} {:>10} {:>10} {:>10} {:>11} {:>11} {:>8}",
            "protocol",
            "mix",
            "keys",
            "clients in",
            "mean, us",
            "p50, us",
            "p99, us",
            "reads, us",
            "writes, us",
            "1 RTT"
        )
    }
}

impl fmt::Display for Row {
    /// A line of the table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.all();
        write!(
            f,
            "{:<14} {:<4} {:<13} {:<14} {:>10.1} {:>10.1} {:>10.1} {:>11.1} {:>11.1} {:>7.2}%",
            self.protocol,
            self.workload,
            self.distribution,
            self.region,
            all.mean_us(),
            all.quantile_us(0.5),
            all.quantile_us(0.99),
            self.reads.mean_us(),
            self.writes.mean_us(),
            100.0 * self.share_at_once(),
        )?;
        if self.failed > 0 {
            write!(f, "  {} failed", self.failed)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let mut row = Row {
            protocol: "default".into(),
            workload: "a".into(),
            distribution: "uniform".into(),
            region: "paris".into(),
            ..Row::default()
        };
        (0..3).for_each(|_| row.reads.record(1_000_000));
        row.writes.record(3_000_000);
        row.read_paths = BTreeMap::from([("leader", 0), ("meta", 1), ("quorum", 2)]);
        row.write_paths = BTreeMap::from([("fast", 1)]);
        row.reads_at_once = 3;
        row
    }

    #[test]
    fn the_line_for_machines_says_everything() {
        let json = row().json();
        for part in [
            "\"operations\":4,\"mean_us\":1500.",
            "\"read_mean_us\":1000.",
            "\"write_p99_us\":3000.",
            "\"reads_one_round_trip\":1.0000",
            "\"read_paths\":{\"meta\":0.3333,\"quorum\":0.6667}",
            "\"write_paths\":{\"fast\":1.0000}",
        ] {
            assert!(json.contains(part), "{part} is missing in {json}");
        }
        assert!(Row::default().json().contains("\"mean_us\":0.0"), "nothing is no division by zero");
    }

    #[test]
    fn a_line_of_the_table_is_as_wide_as_the_heading() {
        assert_eq!(row().to_string().len(), Row::heading().len());
    }
}
