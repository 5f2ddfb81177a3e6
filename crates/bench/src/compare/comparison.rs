//! What contenders came to under one load, in several rounds, and how that relates.

use super::sample::Sample;
use core::fmt;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Operations per second.
    Throughput,
    /// Mean latency.
    Mean,
    /// Median latency.
    P50,
    /// The latency that 99 percent do not exceed.
    P99,
    /// CPU time of all replicas for an operation.
    Cpu,
    /// The share of the reads that took one round trip.
    FastReads,
}

impl Metric {
    /// Those that are columns, in their order.
    pub const ALL: [Self; 5] = [Self::Throughput, Self::Mean, Self::P50, Self::P99, Self::Cpu];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "Throughput",
            Self::Mean => "Mean latency",
            Self::P50 => "Median latency",
            Self::P99 => "99th percentile of latency",
            Self::Cpu => "CPU time of all replicas",
            Self::FastReads => "Reads in one round trip",
        }
    }

    /// What it is measured in.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Throughput => "operations/s",
            Self::Mean | Self::P50 | Self::P99 => "µs",
            Self::Cpu => "µs/operation",
            Self::FastReads => "% of the reads",
        }
    }

    /// The heading of its column.
    const fn heading(self) -> &'static str {
        match self {
            Self::Throughput => "ops/s",
            Self::Mean => "mean us",
            Self::P50 => "p50 us",
            Self::P99 => "p99 us",
            Self::Cpu => "CPU us/op",
            Self::FastReads => "reads 1 RTT",
        }
    }

    /// Of a sample; `None` if it was not measured.
    #[must_use]
    pub fn of(self, sample: &Sample) -> Option<f64> {
        if sample.operations == 0 {
            return None;
        }
        match self {
            Self::Throughput => Some(sample.throughput()),
            Self::Mean => Some(sample.latency.mean_us()),
            Self::P50 => Some(sample.latency.quantile_us(0.5)),
            Self::P99 => Some(sample.latency.quantile_us(0.99)),
            Self::Cpu => sample.cpu_us(),
            Self::FastReads => sample.fast_reads_share().map(|share| share * 100.0),
        }
    }
}

/// What rounds came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Of an even number, the mean of the two in the middle.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Spread {
    /// Of these; `None` if there are none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let median = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { median, min, max })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { median, min, max } = self;
        f.pad(&format!("{median:.2} ({min:.2}..{max:.2})"))
    }
}

/// The order of so many contenders in a round, which is counted from 0: every other round is the reverse of
/// the one before, and each pair of rounds begins one place later. So nobody is always first, nor always
/// after the same one.
#[must_use]
pub fn order(contenders: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..contenders).collect();
    if contenders > 0 {
        order.rotate_left(round / 2 % contenders);
    }
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// One contender's rounds.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The protocol.
    pub protocol: String,
    /// Its replicas.
    pub replicas: usize,
    /// One for each round, in the order of the rounds.
    pub samples: Vec<Sample>,
}

impl Entry {
    /// Over its rounds.
    #[must_use]
    pub fn spread(&self, metric: Metric) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| metric.of(sample)))
    }
}

/// What contenders came to under one load. `Display` prints a table.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The workload.
    pub workload: String,
    /// How keys were chosen.
    pub distribution: String,
    /// Number of clients.
    pub clients: usize,
    /// Everybody.
    pub entries: Vec<Entry>,
    /// Position of the one to whom the others are related.
    pub baseline: usize,
}

impl Comparison {
    /// How an entry relates to the baseline: the ratio in each round, over the rounds.
    #[must_use]
    pub fn ratio(&self, entry: usize, metric: Metric) -> Option<Spread> {
        let (entry, baseline) = (self.entries.get(entry)?, self.entries.get(self.baseline)?);
        let rounds = entry.samples.iter().zip(&baseline.samples);
        let ratios = rounds.filter_map(|(sample, base)| {
            let base = metric.of(base).filter(|base| *base > 0.0)?;
            Some(metric.of(sample)? / base)
        });
        Spread::of(ratios)
    }

    /// The load in a few words.
    #[must_use]
    pub fn load(&self) -> String {
        let Self { workload, distribution, clients, .. } = self;
        let s = if *clients == 1 { "" } else { "s" };
        format!("workload {workload}, {distribution}, {clients} client{s}")
    }
}

/// A number of a table, if there is one.
pub(super) fn number(value: Option<f64>, places: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.places$}"))
}

/// The median over the rounds of something that may not have been measured.
pub(super) fn median(samples: &[Sample], of: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    Spread::of(samples.iter().filter_map(of)).map(|spread| spread.median)
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounds = self.entries.first().map_or(0, |entry| entry.samples.len());
        let s = if rounds == 1 { "" } else { "s" };
        writeln!(f, "{}: medians of {rounds} round{s}", self.load())?;
        write!(f, "{:<16}", "protocol")?;
        for metric in Metric::ALL {
            write!(f, " {:>10}", metric.heading())?;
        }
        writeln!(f, " {:>10} {:>12} {:>7} {:>7}", "p99.9 us", "client us/op", "1 RTT", "failed")?;
        for Entry { protocol, samples, .. } in &self.entries {
            write!(f, "{protocol:<16}")?;
            for metric in Metric::ALL {
                let places = if metric == Metric::Throughput { 0 } else { 1 };
                write!(f, " {:>10}", number(median(samples, |sample| metric.of(sample)), places))?;
            }
            let p999 = median(samples, |sample| Some(sample.latency.quantile_us(0.999)));
            let share = median(samples, |sample| sample.fast_share().map(|share| share * 100.0));
            writeln!(
                f,
                " {:>10} {:>12} {:>6}% {:>7}",
                number(p999, 1),
                number(median(samples, Sample::client_cpu_us), 1),
                number(share, 1),
                samples.iter().map(|sample| sample.failed).sum::<u64>(),
            )?;
        }
        let Some(baseline) = self.entries.get(self.baseline) else { return Ok(()) };
        if self.entries.len() < 2 {
            return Ok(());
        }
        write!(f, "{:<16}", format!("x {}", baseline.protocol))?;
        for metric in Metric::ALL {
            write!(f, " {:>21}", metric.heading())?;
        }
        for (index, entry) in self.entries.iter().enumerate().filter(|(index, _)| *index != self.baseline) {
            write!(f, "\n{:<16}", entry.protocol)?;
            for metric in Metric::ALL {
                match self.ratio(index, metric) {
                    Some(ratio) => write!(f, " {ratio:>21}")?,
                    None => write!(f, " {:>21}", "-")?,
                }
            }
        }
        writeln!(f)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use core::time::Duration;
    use syros_experiment::Measured;

    /// So many operations in a second, each of so many microseconds.
    pub(in crate::compare) fn sample(operations: u64, micros: u64) -> Sample {
        let mut latency = Measured::default();
        (0..operations).for_each(|number| latency.record(micros * 1_000 + number * 100));
        let cpu = Some(Duration::from_micros(20 * operations));
        let mut sample = Sample::default();
        (sample.operations, sample.seconds, sample.latency, sample.cpu) = (operations, 1.0, latency, cpu);
        sample
    }

    pub(in crate::compare) fn comparison() -> Comparison {
        let entry = |protocol: &str, samples: Vec<Sample>| Entry {
            protocol: protocol.to_owned(),
            replicas: 3,
            samples,
        };
        Comparison {
            workload: "nilext".to_owned(),
            distribution: "uniform".to_owned(),
            clients: 10,
            entries: vec![
                entry("vr", vec![sample(100, 200), sample(200, 100), sample(100, 200)]),
                entry("skyros<&>", vec![sample(200, 100), sample(300, 50), sample(400, 50)]),
            ],
            baseline: 0,
        }
    }

    #[test]
    fn the_middle_is_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::of([7.0]), Some(Spread { median: 7.0, min: 7.0, max: 7.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        let comparison = comparison();
        // 200 to 100, 300 to 200, 400 to 100: not 300 to 100.
        let throughput = comparison.ratio(1, Metric::Throughput).unwrap();
        assert_eq!(throughput, Spread { median: 2.0, min: 1.5, max: 4.0 });
        assert_eq!(comparison.ratio(0, Metric::Throughput).unwrap().median, 1.0);
        assert_eq!(comparison.ratio(1, Metric::Cpu).unwrap().median, 1.0);
        assert_eq!(comparison.ratio(2, Metric::Cpu), None);
        let mut nothing = comparison;
        nothing.entries[0].samples.iter_mut().for_each(|sample| *sample = Sample::default());
        assert_eq!(nothing.ratio(1, Metric::Throughput), None, "no division by zero");
        assert!(nothing.to_string().contains(" -"), "{nothing}");
    }

    #[test]
    fn rounds_begin_with_everybody_in_turn() {
        assert_eq!(
            [0, 1, 2, 3].map(|round| order(2, round)),
            [[0, 1], [1, 0], [1, 0], [0, 1]].map(Vec::from)
        );
        let first: Vec<usize> = (0..6).map(|round| order(3, round)[0]).collect();
        assert_eq!(first, [0, 2, 1, 0, 2, 1]);
        assert!(order(0, 5).is_empty());
    }

    #[test]
    fn the_table_names_everybody_and_relates_them() {
        let table = comparison().to_string();
        for expected in
            ["x vr", "2.00 (1.50..4.00)", "workload nilext, uniform, 10 clients: medians of 3 rounds"]
        {
            assert!(table.contains(expected), "{expected} is missing in\n{table}");
        }
    }
}
