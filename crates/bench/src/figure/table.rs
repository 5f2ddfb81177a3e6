//! What was measured, as text and as tables of a document.

use super::{Figure, Judged, Measurements, Panel, Shape};
use crate::compare::Metric;
use core::fmt::Write as _;

/// A number with as many places as say something.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value >= 1_000.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.1}"),
    }
}

/// A table: the headings, and the rows with their names.
pub(super) struct Table {
    /// The first is that of the names.
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// The metrics that a table of this panel has.
fn metrics(panel: &Panel) -> Vec<Metric> {
    match panel.shape {
        Shape::Curve | Shape::AtPeakOf(_) => vec![Metric::Throughput, Metric::Mean, Metric::P99],
        Shape::Distribution(_) => vec![Metric::Mean, Metric::P50, Metric::P99],
        Shape::Lines { .. } | Shape::Bars { .. } => panel.metrics.to_vec(),
    }
}

/// What the names of the rows are.
const fn across(panel: &Panel) -> &'static str {
    match panel.shape {
        Shape::Lines { across, .. } | Shape::Bars { across } => across,
        Shape::Curve => "clients",
        Shape::AtPeakOf(_) | Shape::Distribution(_) => "workload",
    }
}

impl Table {
    /// Everything that a panel shows: points below each other, protocols side by side.
    pub(super) fn of(panel: &Panel, measurements: &Measurements) -> Self {
        let metrics = metrics(panel);
        let mut columns = vec![across(panel).to_owned()];
        for protocol in panel.protocols {
            columns.extend(metrics.iter().map(|metric| format!("{protocol} {}", short(*metric))));
        }
        let rows = match panel.shape {
            Shape::AtPeakOf(_) | Shape::Distribution(_) => {
                let groups = measurements.groups(panel);
                let row = |group: &crate::compare::Comparison| {
                    let entries = group.entries.iter();
                    let cells = entries.flat_map(|entry| {
                        metrics.iter().map(|metric| number(entry.spread(*metric).map(|spread| spread.median)))
                    });
                    core::iter::once(group.workload.clone()).chain(cells).collect()
                };
                groups.iter().map(row).collect()
            }
            _ => {
                let row = |point: &super::Point| {
                    let cells = panel.protocols.iter().flat_map(|protocol| {
                        metrics.iter().map(|metric| number(measurements.median(protocol, point, *metric)))
                    });
                    core::iter::once(point.label.clone()).chain(cells).collect()
                };
                panel.points.iter().map(row).collect()
            }
        };
        Self { columns, rows }
    }
}

/// A metric in a heading.
const fn short(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "ops/s",
        Metric::Mean => "mean µs",
        Metric::P50 => "p50 µs",
        Metric::P99 => "p99 µs",
        Metric::Cpu => "CPU µs/op",
        Metric::FastReads => "1 RTT %",
    }
}

/// The claims of a figure, below each other, and whether they hold.
#[must_use]
pub fn claims_text(judged: &[Judged]) -> String {
    let mut out = String::new();
    for Judged { claim, verdict, because } in judged {
        let ratio = verdict.ratio().map_or_else(String::new, |ratio| format!(", {ratio:.2}"));
        let _ = writeln!(out, "  {verdict}: {} ({}{ratio})", claim.text, claim.bound);
        if !because.is_empty() {
            let _ = writeln!(out, "    because {because}");
        }
    }
    out
}

/// Everything about a figure that was measured, for a terminal.
#[must_use]
pub fn text(figure: &Figure, measurements: &Measurements) -> String {
    let mut out = format!(
        "{} ({})\nThe paper ({}): {}\n",
        figure.heading(),
        figure.name,
        figure.section,
        figure.statement
    );
    for panel in &figure.panels {
        let Table { columns, rows } = Table::of(panel, measurements);
        let _ = writeln!(out, "\n{}", panel.title);
        let mut lines = vec![columns.clone()];
        lines.extend(rows);
        let width = |column: usize| {
            let lengths = lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count());
            lengths.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns.len()).map(width).collect();
        for line in &lines {
            let cells =
                line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}", width = *width));
            let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("  "));
        }
    }
    let claims = claims_text(&figure.judge(measurements));
    if !claims.is_empty() {
        let _ = write!(out, "\nWhat the paper says, here:\n{claims}");
    }
    for reason in measurements.reasons(&figure.panels) {
        let _ = writeln!(out, "Not measured: {reason}");
    }
    for (what, text) in [("Not reproduced", figure.missing), ("What differs", figure.differs)] {
        if !text.is_empty() {
            let _ = writeln!(out, "{what}: {text}");
        }
    }
    out
}
