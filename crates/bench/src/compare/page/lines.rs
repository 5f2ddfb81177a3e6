//! Lines: which share of operations took how long at most, for each contender.

use super::axis::{BOTTOM, LEFT, RIGHT, TOP, across, base, log_label, log_ticks, polyline, titles, upright};
use super::{class, escape};
use crate::compare::comparison::{Comparison, Entry};
use syros_experiment::Measured;

/// Shares at which the line has points, in thousandths: up to the 99.9th percentile.
const THOUSANDTHS: core::ops::RangeInclusive<u32> = 1..=999;

/// Longest latency and share of each point of a contender's line.
fn points(entry: &Entry) -> Vec<(f64, f64)> {
    let mut all = Measured::default();
    entry.samples.iter().for_each(|sample| all.add(&sample.latency));
    if all.count() == 0 {
        return Vec::new();
    }
    let shares = THOUSANDTHS.filter(|share| share % 5 == 0 || *share > 985 || *share < 5);
    let shares = shares.map(|share| f64::from(share) / 1_000.0);
    shares.map(|share| (all.quantile_us(share).max(0.001), share)).collect()
}

/// The plot; `None` if nothing was measured.
pub(crate) fn draw(comparison: &Comparison) -> Option<String> {
    let lines: Vec<Vec<(f64, f64)>> = comparison.entries.iter().map(points).collect();
    let latencies = || lines.iter().flatten().map(|(latency, _)| *latency);
    let (min, max) = (latencies().reduce(f64::min)?, latencies().reduce(f64::max)?);
    let across_ticks = log_ticks(min, max);
    let (first, last) = (across_ticks.first()?.ln(), across_ticks.last()?.ln());
    let place = |latency: f64| LEFT + (RIGHT - LEFT) * (latency.ln() - first) / (last - first);
    let height = |share: f64| BOTTOM - (BOTTOM - TOP) * share;
    let shares = [0.0, 0.25, 0.5, 0.75, 1.0];
    let mut out = upright(&shares, height, |share| format!("{:.0} %", share * 100.0));
    out.push_str(&across(&across_ticks, place, |tick| log_label(&across_ticks, tick)));
    for (contender, (line, entry)) in lines.iter().zip(&comparison.entries).enumerate() {
        if !line.is_empty() {
            let places = line.iter().map(|(latency, share)| (place(*latency), height(*share)));
            out.push_str(&polyline(&class(contender), &escape(&entry.protocol), places));
        }
    }
    out.push_str(&titles("latency, µs (logarithmic)", "operations that took no longer"));
    Some(out + &base())
}
