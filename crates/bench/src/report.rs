//! What the load cost.

use crate::options::Options;
use core::fmt;
use core::time::Duration;
use hdrhistogram::Histogram;
use syros_types::{ReadPolicy, WritePolicy};

/// What the load cost. `Display` prints a table, [`Report::json`] a line for machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Operations that were answered.
    pub operations: u64,
    /// Time in which they were, in seconds.
    pub seconds: f64,
    /// Operations per second.
    pub throughput: f64,
    /// Latency of the writes, if there were any.
    pub writes: Option<Latency>,
    /// Latency of the reads, if there were any.
    pub reads: Option<Latency>,
    /// Operations that were not answered.
    pub failures: Failures,
    /// CPU time of the replicas, in the order of the process ids given.
    pub replicas: Vec<CpuUse>,
    /// CPU time of this process.
    pub client: CpuUse,
    /// The load: what must be the same for two reports to be compared.
    pub load: Load,
}

/// The load that a report is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// Replicas in the group.
    pub group: usize,
    /// See [`Options::writers`].
    pub writers: usize,
    /// See [`Options::connections`].
    pub connections: usize,
    /// See [`Options::value_bytes`].
    pub value_bytes: usize,
    /// See [`Options::keys`].
    pub keys: u64,
    /// How keys are chosen, see [`Options::distribution`].
    pub distribution: String,
    /// See [`Options::reads_percent`].
    pub reads_percent: u8,
    /// How reads are answered.
    pub read_policy: ReadPolicy,
    /// How updates go.
    pub write_policy: WritePolicy,
    /// See [`Options::seed`].
    pub seed: u64,
}

impl Load {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            group: options.endpoints.len(),
            writers: options.writers,
            connections: options.connections,
            value_bytes: options.value_bytes,
            keys: options.keys,
            distribution: options.distribution.to_string(),
            read_policy: options.client.settings.read_policy,
            write_policy: options.client.settings.write_policy,
            reads_percent: options.reads_percent,
            seed: options.seed,
        }
    }
}

/// Times from sending an operation to its answer, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Number of operations.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Longest.
    pub max: f64,
}

impl Latency {
    /// Of a histogram in nanoseconds.
    pub(crate) fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let micros = |nanoseconds: u64| nanoseconds as f64 / 1000.0;
        (!histogram.is_empty()).then(|| Self {
            count: histogram.len(),
            mean: histogram.mean() / 1000.0,
            p50: micros(histogram.value_at_quantile(0.5)),
            p99: micros(histogram.value_at_quantile(0.99)),
            p999: micros(histogram.value_at_quantile(0.999)),
            max: micros(histogram.max()),
        })
    }
}

/// Operations that were not answered, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Refused by the replicas.
    pub refused: u64,
    /// Updates that nobody knows the fate of.
    pub unknown: u64,
    /// Not answered in time, without effect.
    pub timed_out: u64,
}

impl Failures {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.refused + self.unknown + self.timed_out
    }
}

/// CPU time of a process, user and kernel mode together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuUse {
    /// Its id.
    pub pid: u32,
    /// CPU time during the measurement, in seconds.
    pub seconds: f64,
    /// CPU time for each operation answered, in microseconds; 0 if there was none.
    pub micros_per_operation: f64,
}

impl CpuUse {
    pub(crate) fn new(pid: u32, time: Duration, operations: u64) -> Self {
        let seconds = time.as_secs_f64();
        let micros_per_operation =
            if operations == 0 { 0.0 } else { seconds * 1_000_000.0 / operations as f64 };
        Self { pid, seconds, micros_per_operation }
    }
}

impl Report {
    /// CPU time of all replicas for each operation answered, in microseconds; `None` if no process ids
    /// were given.
    #[must_use]
    pub fn replica_micros_per_operation(&self) -> Option<f64> {
        let sum = self.replicas.iter().map(|replica| replica.micros_per_operation).sum();
        (!self.replicas.is_empty()).then_some(sum)
    }

    /// The report as one line of JSON, without a line end.
    #[must_use]
    pub fn json(&self) -> String {
        let latency = |latency: &Option<Latency>| match latency {
            None => "null".into(),
            Some(Latency { count, mean, p50, p99, p999, max }) => format!(
                "{{\"count\":{count},\"mean_us\":{mean:.1},\"p50_us\":{p50:.1},\"p99_us\":{p99:.1},\
                 \"p999_us\":{p999:.1},\"max_us\":{max:.1}}}"
            ),
        };
        let cpu = |cpu: &CpuUse| {
            let CpuUse { pid, seconds, micros_per_operation } = cpu;
            format!("{{\"pid\":{pid},\"cpu_s\":{seconds:.2},\"cpu_us_per_op\":{micros_per_operation:.2}}}")
        };
        let replicas: Vec<String> = self.replicas.iter().map(cpu).collect();
        let total = match self.replica_micros_per_operation() {
            None => "null".into(),
            Some(micros) => format!("{micros:.2}"),
        };
        let Failures { refused, unknown, timed_out } = self.failures;
        let Load { group, writers, connections, value_bytes, keys, reads_percent, seed, .. } = self.load;
        let Load { distribution, read_policy, write_policy, .. } = &self.load;
        format!(
            "{{\"version\":\"{}\",\"replicas\":{group},\"writers\":{writers},\"connections\":{connections},\
             \"value_bytes\":{value_bytes},\"keys\":{keys},\"distribution\":\"{distribution}\",\"reads_percent\":{reads_percent},\
             \"read_policy\":\"{read_policy}\",\"write_policy\":\"{write_policy}\",\"seed\":{seed},\
             \"operations\":{},\"seconds\":{:.3},\"ops_per_s\":{:.1},\"writes\":{},\"reads\":{},\
             \"refused\":{refused},\"unknown\":{unknown},\"timed_out\":{timed_out},\
             \"replica_cpu_us_per_op\":{total},\"replica_processes\":[{}],\"client_process\":{}}}",
            env!("CARGO_PKG_VERSION"),
            self.operations,
            self.seconds,
            self.throughput,
            latency(&self.writes),
            latency(&self.reads),
            replicas.join(","),
            cpu(&self.client),
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Load { group, writers, connections, value_bytes, keys, reads_percent, .. } = self.load;
        let Load { distribution, read_policy, write_policy, .. } = &self.load;
        writeln!(
            f,
            "{group} replicas, {writers} writers on {connections} connections, values of {value_bytes} bytes, \
             {keys} keys ({distribution}), {reads_percent}% reads ({read_policy}), writes ({write_policy})"
        )?;
        writeln!(
            f,
            "{:>12.0} operations/s   {} in {:.2} s, {} failed",
            self.throughput,
            self.operations,
            self.seconds,
            self.failures.total()
        )?;
        if self.failures != Failures::default() {
            let Failures { refused, unknown, timed_out } = self.failures;
            writeln!(f, "{:>12} {refused} refused, {unknown} unknown, {timed_out} timed out", "")?;
        }
        writeln!(
            f,
            "{:>12} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "latency, us", "mean", "p50", "p99", "p99.9", "max"
        )?;
        for (name, latency) in [("writes", &self.writes), ("reads", &self.reads)] {
            if let Some(Latency { mean, p50, p99, p999, max, .. }) = latency {
                writeln!(f, "{name:>12} {mean:>10.1} {p50:>10.1} {p99:>10.1} {p999:>10.1} {max:>10.1}")?;
            }
        }
        for (index, CpuUse { pid, micros_per_operation, .. }) in self.replicas.iter().enumerate() {
            writeln!(
                f,
                "{:>12} {micros_per_operation:>10.2} us CPU per operation, process {pid}",
                format!("replica {index}")
            )?;
        }
        if let Some(micros) = self.replica_micros_per_operation() {
            writeln!(f, "{:>12} {micros:>10.2} us CPU per operation", "replicas")?;
        }
        write!(f, "{:>12} {:>10.2} us CPU per operation", "client", self.client.micros_per_operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let mut histogram = Histogram::new(3).unwrap();
        (1..=1000).for_each(|micros| histogram.record(micros * 1000).unwrap());
        Report {
            operations: 2000,
            seconds: 2.0,
            throughput: 1000.0,
            writes: Latency::of(&histogram),
            reads: None,
            failures: Failures { refused: 1, unknown: 2, timed_out: 3 },
            replicas: vec![
                CpuUse::new(10, Duration::from_millis(20), 2000),
                CpuUse::new(11, Duration::from_millis(10), 2000),
            ],
            client: CpuUse::new(12, Duration::ZERO, 2000),
            load: Load {
                group: 3,
                writers: 50,
                connections: 5,
                value_bytes: 16,
                keys: 100,
                distribution: "uniform".to_owned(),
                reads_percent: 0,
                read_policy: ReadPolicy::Auto,
                write_policy: WritePolicy::Fast,
                seed: 9,
            },
        }
    }

    #[test]
    fn the_line_for_machines_says_everything() {
        let golden = "{\"version\":\"0.1.0\",\"replicas\":3,\"writers\":50,\"connections\":5,\"value_bytes\":16,\
            \"keys\":100,\"distribution\":\"uniform\",\"reads_percent\":0,\"read_policy\":\"auto\",\
            \"write_policy\":\"fast\",\"seed\":9,\"operations\":2000,\"seconds\":2.000,\"ops_per_s\":1000.0,\
            \"writes\":{\"count\":1000,\"mean_us\":500.5,\"p50_us\":500.2,\"p99_us\":990.2,\"p999_us\":999.4,\
            \"max_us\":1000.4},\"reads\":null,\"refused\":1,\"unknown\":2,\"timed_out\":3,\
            \"replica_cpu_us_per_op\":15.00,\"replica_processes\":[{\"pid\":10,\"cpu_s\":0.02,\
            \"cpu_us_per_op\":10.00},{\"pid\":11,\"cpu_s\":0.01,\"cpu_us_per_op\":5.00}],\
            \"client_process\":{\"pid\":12,\"cpu_s\":0.00,\"cpu_us_per_op\":0.00}}";
        assert_eq!(report().json(), golden);
    }

    #[test]
    fn the_table_names_what_it_has() {
        let table = report().to_string();
        for expected in ["1000 operations/s", "1 refused, 2 unknown, 3 timed out", "writes", "15.00 us CPU"] {
            assert!(table.contains(expected), "{expected} is missing in\n{table}");
        }
        assert!(!table.contains("  reads"));
    }

    #[test]
    fn nothing_done_is_no_division_by_zero() {
        assert_eq!(CpuUse::new(1, Duration::from_secs(1), 0).micros_per_operation, 0.0);
        assert_eq!(Latency::of(&Histogram::new(3).unwrap()), None);
    }
}
