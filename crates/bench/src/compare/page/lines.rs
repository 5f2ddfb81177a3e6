//! Lines: which share of operations took how long at most, for each contender.

use super::axis::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, label, log_ticks, titles, upright};
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
pub(super) fn draw(comparison: &Comparison) -> Option<String> {
    let lines: Vec<Vec<(f64, f64)>> = comparison.entries.iter().map(points).collect();
    let latencies = || lines.iter().flatten().map(|(latency, _)| *latency);
    let (min, max) = (latencies().reduce(f64::min)?, latencies().reduce(f64::max)?);
    let across_ticks = log_ticks(min, max);
    let (first, last) = (across_ticks.first()?.ln(), across_ticks.last()?.ln());
    let across = |latency: f64| LEFT + (RIGHT - LEFT) * (latency.ln() - first) / (last - first);
    let height = |share: f64| BOTTOM - (BOTTOM - TOP) * share;
    let shares = [0.0, 0.25, 0.5, 0.75, 1.0];
    let mut out = upright(&shares, height, |share| format!("{:.0} %", share * 100.0));
    // Of many, only the powers of ten have room for their numbers.
    let is_crowded = across_ticks.len() > 16;
    for tick in &across_ticks {
        let x = across(*tick);
        out.push_str(&format!(
            "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{BOTTOM}\"/>"
        ));
        if !is_crowded || tick.log10().fract().abs() < 1e-9 {
            out.push_str(&format!(
                "<text class=\"tick\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                BOTTOM + 17.0,
                label(*tick)
            ));
        }
    }
    for (contender, (line, entry)) in lines.iter().zip(&comparison.entries).enumerate() {
        if line.is_empty() {
            continue;
        }
        let places: Vec<String> = line
            .iter()
            .map(|(latency, share)| format!("{:.1},{:.1}", across(*latency), height(*share)))
            .collect();
        out.push_str(&format!(
            "<g><title>{}</title><polyline class=\"line {}\" points=\"{}\"/></g>",
            escape(&entry.protocol),
            class(contender),
            places.join(" ")
        ));
    }
    out.push_str(&titles("latency, µs (logarithmic)", "operations that took no longer"));
    Some(format!(
        "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"distribution of latency\">{out}\
         <line class=\"base\" x1=\"{LEFT}\" y1=\"{BOTTOM}\" x2=\"{RIGHT}\" y2=\"{BOTTOM}\"/></svg>"
    ))
}
