//! What was measured.

use super::Fault;
use core::fmt;
use core::time::Duration;

/// One failure of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Which node led.
    pub leader: usize,
    /// Longest time without an acknowledged write of anybody, until the leader was let back.
    pub outage: Duration,
    /// Longest time without an acknowledged write that one of the writers saw.
    pub one_writer: Duration,
    /// Longest time without an acknowledged write of anybody while it came back.
    pub return_outage: Duration,
    /// From letting it back until the cluster was whole again.
    pub catch_up: Duration,
}

/// All rounds, and what became of the writes. `Display` prints a summary, [`FailoverReport::json`] a line for
/// machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailoverReport {
    /// What happened to the leaders.
    pub fault: Fault,
    /// Replicas in the group.
    pub replicas: usize,
    /// `fsync` or `replicated`.
    pub durability: String,
    /// Clients that wrote.
    pub writers: usize,
    /// In order.
    pub rounds: Vec<Round>,
    /// Writes that were acknowledged.
    pub writes: u64,
    /// Writes that were not, and may have been executed or not.
    pub failed: u64,
    /// Writes that were acknowledged and could not be read back: must be 0.
    pub lost: u64,
}

/// One of the times of a round.
type Time = fn(&Round) -> Duration;

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

impl FailoverReport {
    /// The smallest of the values that at least `percent` percent of all values do not exceed.
    fn percentile(&self, percent: usize, value: Time) -> f64 {
        let mut sorted: Vec<Duration> = self.rounds.iter().map(value).collect();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied().map_or(0.0, millis)
    }

    /// The report as one line of JSON, without a line end. Times are in milliseconds.
    #[must_use]
    pub fn json(&self) -> String {
        let list = |value: Time| {
            let all: Vec<String> =
                self.rounds.iter().map(|round| format!("{:.1}", millis(value(round)))).collect();
            all.join(",")
        };
        let Self { fault, replicas, durability, writers, rounds, writes, failed, lost } = self;
        format!(
            "{{\"version\":\"{}\",\"kind\":\"{fault}\",\"replicas\":{replicas},\"durability\":\"{durability}\",\
             \"writers\":{writers},\"kills\":{},\"median_ms\":{:.1},\"p90_ms\":{:.1},\"max_ms\":{:.1},\
             \"one_writer_median_ms\":{:.1},\"one_writer_max_ms\":{:.1},\"return_median_ms\":{:.1},\
             \"return_max_ms\":{:.1},\"catch_up_median_ms\":{:.1},\"catch_up_max_ms\":{:.1},\
             \"writes\":{writes},\"failed_writes\":{failed},\"lost_writes\":{lost},\"outages_ms\":[{}]}}",
            env!("CARGO_PKG_VERSION"),
            rounds.len(),
            self.percentile(50, |round| round.outage),
            self.percentile(90, |round| round.outage),
            self.percentile(100, |round| round.outage),
            self.percentile(50, |round| round.one_writer),
            self.percentile(100, |round| round.one_writer),
            self.percentile(50, |round| round.return_outage),
            self.percentile(100, |round| round.return_outage),
            self.percentile(50, |round| round.catch_up),
            self.percentile(100, |round| round.catch_up),
            list(|round| round.outage),
        )
    }
}

impl fmt::Display for FailoverReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, replicas, durability, writers, rounds, writes, failed, lost } = self;
        writeln!(f, "{} x {fault}, {replicas} replicas, {durability}, {writers} writers", rounds.len())?;
        writeln!(f, "{:>30} {:>9} {:>9} {:>9}", "without a write, ms", "median", "p90", "max")?;
        let rows: [(&str, Time); 4] = [
            ("all writers", |round| round.outage),
            ("the unluckiest writer", |round| round.one_writer),
            ("all, while the leader is back", |round| round.return_outage),
            ("time to be whole again", |round| round.catch_up),
        ];
        for (name, value) in rows {
            let [median, p90, max] = [50, 90, 100].map(|percent| self.percentile(percent, value));
            writeln!(f, "{name:>30} {median:>9.1} {p90:>9.1} {max:>9.1}")?;
        }
        write!(f, "{writes} writes acknowledged, {failed} not; {lost} of the acknowledged lost")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> FailoverReport {
        let round = |millis: u64| Round {
            leader: 0,
            outage: Duration::from_millis(millis),
            one_writer: Duration::from_millis(millis + 10),
            return_outage: Duration::from_millis(5),
            catch_up: Duration::from_millis(40),
        };
        FailoverReport {
            fault: Fault::Kill,
            replicas: 3,
            durability: "fsync".to_owned(),
            writers: 4,
            rounds: [300, 100, 200, 400].map(round).to_vec(),
            writes: 1000,
            failed: 2,
            lost: 1,
        }
    }

    #[test]
    fn the_line_for_machines_says_everything() {
        let golden = "{\"version\":\"0.1.0\",\"kind\":\"kill\",\"replicas\":3,\"durability\":\"fsync\",\
            \"writers\":4,\"kills\":4,\"median_ms\":200.0,\"p90_ms\":400.0,\"max_ms\":400.0,\
            \"one_writer_median_ms\":210.0,\"one_writer_max_ms\":410.0,\"return_median_ms\":5.0,\
            \"return_max_ms\":5.0,\"catch_up_median_ms\":40.0,\"catch_up_max_ms\":40.0,\"writes\":1000,\
            \"failed_writes\":2,\"lost_writes\":1,\"outages_ms\":[300.0,100.0,200.0,400.0]}";
        assert_eq!(report().json(), golden);
    }

    #[test]
    fn the_summary_names_what_was_lost() {
        let text = report().to_string();
        assert!(text.contains("1000 writes acknowledged, 2 not; 1 of the acknowledged lost"), "{text}");
        assert!(text.contains("all writers     200.0     400.0     400.0"), "{text}");
    }
}
