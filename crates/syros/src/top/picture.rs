//! What is shown at one moment, as lines of text.

use std::time::Instant;

use syros_client::StatusReport;
use syros_types::View;

use super::{Answers, problems};
use crate::status::{leads, plain, state};

/// What the replicas said at one moment.
pub(super) struct Moment {
    at: Instant,
    pub(super) answers: Answers,
}

impl Moment {
    pub(super) const fn new(at: Instant, answers: Answers) -> Self {
        Self { at, answers }
    }

    fn reports(&self) -> impl Iterator<Item = &StatusReport> {
        self.answers.iter().filter_map(|(_, answer)| answer.as_ref().ok())
    }

    /// The replica that leads with a majority.
    pub(super) fn leader(&self) -> Option<&StatusReport> {
        // One that has been deposed may not know it yet.
        self.reports().filter(|report| leads(report)).max_by_key(|report| report.view)
    }

    fn of(&self, address: &str) -> Option<&StatusReport> {
        self.answers.iter().find(|(known, _)| known == address)?.1.as_ref().ok()
    }
}

/// The columns: a title, and whether they hold numbers, which stand at the right.
const COLUMNS: [(&str, bool); 12] = [
    ("NODE", true),
    ("ADDRESS", false),
    ("STATE", false),
    ("VIEW", true),
    ("APPLIED", true),
    ("LAG", true),
    ("UNORDERED", true),
    ("UPDATES/S", true),
    ("1 RTT", true),
    ("READS/S", true),
    ("REFUSED/S", true),
    ("LOG", true),
];

/// A line of the table.
type Row = [String; COLUMNS.len()];

/// The lines for this moment, with rates since the one before.
pub(super) fn picture(before: Option<&Moment>, now: &Moment) -> Vec<String> {
    let mut rows = vec![COLUMNS.map(|(title, _)| title.to_owned())];
    let newest = now.reports().map(|report| report.op_number).max().unwrap_or(0);
    for (place, (address, answer)) in now.answers.iter().enumerate() {
        let address = plain(address);
        rows.push(match answer {
            Ok(report) => {
                let older = before.and_then(|before| Some((before.of(&address)?, before.at)));
                let older = older.map(|(older, at)| (older, now.at.duration_since(at).as_secs_f64()));
                cells(&address, report, older, newest)
            }
            Err(_) => {
                let mut cells = COLUMNS.map(|_| "-".to_owned());
                (cells[0], cells[1], cells[2]) = (place.to_string(), address, "down".to_owned());
                cells
            }
        });
    }
    let mut lines = vec![head(now), String::new()];
    lines.extend(table(&rows));
    let problems = problems(now);
    if !problems.is_empty() {
        lines.push(String::new());
        lines.extend(problems.iter().map(|problem| plain(problem)));
    }
    lines
}

/// The group in a line.
fn head(now: &Moment) -> String {
    let Some(leader) = now.leader() else { return "syros top   no leader".to_owned() };
    let view = View(leader.view);
    format!(
        "syros top   leader {}   view {}   epoch {}   mode {}   {} of {} replicas answer",
        leader.replica,
        view.number(),
        view.epoch().0,
        leader.fast_quorum,
        now.reports().count(),
        leader.replicas
    )
}

/// What is shown of a replica that answered. `older` is what it said so many seconds before.
fn cells(address: &str, report: &StatusReport, older: Option<(&StatusReport, f64)>, newest: u64) -> Row {
    let rate = |count: fn(&StatusReport) -> u64| {
        let (older, seconds) = older?;
        // One that was started again counts anew.
        let grown = count(report).checked_sub(count(older))?;
        (seconds > 0.0).then(|| grown as f64 / seconds)
    };
    let fast = rate(|report| report.fast_updates);
    let updates = rate(|report| report.fast_updates + report.slow_updates);
    let share = fast.zip(updates).filter(|(_, updates)| *updates > 0.0);
    let shown = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}"));
    [
        report.replica.to_string(),
        address.to_owned(),
        state(report),
        View(report.view).number().to_string(),
        report.applied.to_string(),
        newest.saturating_sub(report.applied).to_string(),
        report.dlog_length.to_string(),
        shown(updates),
        share.map_or_else(|| "-".to_owned(), |(fast, updates)| format!("{:.0}%", 100.0 * fast / updates)),
        shown(rate(|report| report.fast_reads + report.slow_reads)),
        shown(rate(|report| report.refused)),
        size(report.log_bytes),
    ]
}

/// Rows as lines, whose columns are as wide as they have to be.
fn table(rows: &[Row]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let line = |row: &Row| {
        let cells = row.iter().zip(&widths).zip(COLUMNS).map(|((cell, width), (_, is_number))| {
            if is_number { format!("{cell:>width$}") } else { format!("{cell:width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn size(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    if mebibytes < 1024.0 { format!("{mebibytes:.1}MiB") } else { format!("{:.1}GiB", mebibytes / 1024.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use syros_protocol::message::RoleName;

    fn report(replica: u8, role: RoleName) -> StatusReport {
        StatusReport {
            replica,
            replicas: 3,
            role,
            view: 4,
            op_number: 100,
            applied: 90,
            ..StatusReport::default()
        }
    }

    fn leader() -> StatusReport {
        report(0, RoleName::Leader)
    }

    fn answers(leader: StatusReport) -> Answers {
        let follower = StatusReport { applied: 60, ..report(1, RoleName::Follower) };
        vec![
            ("a:1".to_owned(), Ok(leader)),
            ("b:1".to_owned(), Ok(follower)),
            ("c:1".to_owned(), Err("refused \u{1b}[2J".to_owned())),
        ]
    }

    #[test]
    fn a_line_tells_how_a_replica_is_and_what_it_does_in_a_second() {
        let then = Instant::now();
        let busy = StatusReport { fast_updates: 300, slow_updates: 100, fast_reads: 50, ..leader() };
        let before = Moment::new(then, answers(leader()));
        let now = Moment::new(then + Duration::from_secs(2), answers(busy));
        let lines = picture(Some(&before), &now);
        assert_eq!(lines[0], "syros top   leader 0   view 4   epoch 0   mode mixed   2 of 3 replicas answer");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            words(&lines[3]),
            ["0", "a:1", "leader", "4", "90", "10", "0", "200", "75%", "25", "0", "0.0MiB"]
        );
        assert_eq!(words(&lines[4])[..6], ["1", "b:1", "follower", "4", "60", "40"]);
        assert_eq!(words(&lines[5])[..4], ["2", "c:1", "down", "-"]);
        // Titles stand above their figures.
        let end = |line: &str, word: &str| line.find(word).map(|start| start + word.len());
        assert_eq!(end(&lines[2], "UPDATES/S"), end(&lines[3], "200"));
        assert_eq!(lines.last().map(String::as_str), Some("c:1: down: refused ?[2J"));
    }

    #[test]
    fn without_a_moment_before_there_are_no_rates_and_without_a_leader_it_says_so() {
        let now = Moment::new(Instant::now(), answers(StatusReport { no_quorum: true, ..leader() }));
        let lines = picture(None, &now);
        assert_eq!(lines[0], "syros top   no leader");
        assert!(lines[3].contains("leader, no quorum") && lines[3].contains(" -  "), "{}", lines[3]);
        assert!(lines.iter().any(|line| line.starts_with("no replica leads")), "{lines:?}");
        // One that was started again has counted less than before.
        let before = Moment::new(Instant::now(), answers(StatusReport { fast_updates: 9, ..leader() }));
        assert!(picture(Some(&before), &now)[3].contains(" -  "));
    }
}
