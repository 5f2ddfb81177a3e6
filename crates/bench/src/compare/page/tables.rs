//! Tables: everything that was measured, as numbers.

use super::escape;
use crate::compare::comparison::{Comparison, Metric, Spread, median, number};
use crate::compare::sample::Sample;
use syros_experiment::Measured;

/// A row of a table.
fn row(name: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(name))
}

/// A table with a heading for each column.
fn table(caption: &str, columns: &[String], rows: &str) -> String {
    let columns: String = columns.iter().map(|column| format!("<th scope=\"col\">{column}</th>")).collect();
    format!(
        "<div class=\"wide\"><table>\n<caption>{}</caption>\n<thead><tr><th scope=\"col\">protocol</th>{columns}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n",
        escape(caption)
    )
}

/// Medians, and the least and the most where there are several rounds.
fn spread(spread: Option<Spread>, places: usize) -> String {
    match spread {
        None => "–".to_owned(),
        Some(Spread { median, min, max }) if max > min => {
            format!("{median:.places$} <small>({min:.places$}–{max:.places$})</small>")
        }
        Some(Spread { median, .. }) => format!("{median:.places$}"),
    }
}

/// The tables of one load.
pub(super) fn draw(comparison: &Comparison) -> String {
    let load = comparison.load();
    let headings = Metric::ALL.iter().map(|metric| format!("{}, {}", metric.name(), metric.unit()));
    let more = ["99.9th percentile, µs", "clients’ CPU, µs/operation", "in one round trip", "failed"];
    let columns: Vec<String> = headings.clone().chain(more.map(str::to_owned)).collect();
    let mut rows = String::new();
    for entry in &comparison.entries {
        let samples = &entry.samples;
        let places = |metric| if metric == Metric::Throughput { 0 } else { 1 };
        let mut cells: Vec<String> =
            Metric::ALL.iter().map(|metric| spread(entry.spread(*metric), places(*metric))).collect();
        let p999 = samples.iter().filter(|sample| sample.operations > 0);
        cells.push(spread(Spread::of(p999.map(|sample| sample.latency.quantile_us(0.999))), 1));
        cells.push(spread(Spread::of(samples.iter().filter_map(Sample::client_cpu_us)), 1));
        let share = median(samples, |sample| sample.fast_share().map(|share| share * 100.0));
        cells.push(format!("{}\u{a0}%", number(share, 2)));
        cells.push(samples.iter().map(|sample| sample.failed).sum::<u64>().to_string());
        rows.push_str(&row(&entry.protocol, &cells));
    }
    let mut out = table(&load, &columns, &rows);
    if comparison.entries.len() > 1
        && let Some(baseline) = comparison.entries.get(comparison.baseline)
    {
        let columns: Vec<String> = Metric::ALL.iter().map(|metric| metric.name().to_owned()).collect();
        let rows: String = (0..comparison.entries.len())
            .map(|index| {
                let cells = Metric::ALL.map(|metric| spread(comparison.ratio(index, metric), 2));
                row(&comparison.entries[index].protocol, &cells)
            })
            .collect();
        out.push_str(&table(&format!("{load}: times {}", baseline.protocol), &columns, &rows));
    }
    out + &kinds(comparison)
}

/// Latencies by kind of operation, if there are several.
fn kinds(comparison: &Comparison) -> String {
    let mut names: Vec<&str> = Vec::new();
    let samples = || comparison.entries.iter().flat_map(|entry| &entry.samples);
    for name in samples().flat_map(|sample| sample.kinds.keys()) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    // A request is told apart from its operation only where an operation has two.
    if !names.contains(&"read-modify-write") {
        names.retain(|name| !name.starts_with("requests"));
    }
    if names.len() < 2 {
        return String::new();
    }
    names.sort_unstable();
    let columns: Vec<String> =
        names.iter().map(|name| format!("{name}, µs: mean <small>(p50, p99)</small>")).collect();
    let rows: String = comparison
        .entries
        .iter()
        .map(|entry| {
            let cells: Vec<String> = names
                .iter()
                .map(|name| {
                    let mut all = Measured::default();
                    let parts = entry.samples.iter().filter_map(|sample| sample.kinds.get(name));
                    parts.for_each(|part| all.add(part));
                    let (mean, p50, p99) = (all.mean_us(), all.quantile_us(0.5), all.quantile_us(0.99));
                    format!("{mean:.1} <small>({p50:.1}, {p99:.1})</small>")
                })
                .collect();
            row(&entry.protocol, &cells)
        })
        .collect();
    table(&format!("{}: latency by kind of operation, all rounds", comparison.load()), &columns, &rows)
}
