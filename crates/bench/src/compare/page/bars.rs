//! Bars: for each load, one for each contender.

use super::axis::{BOTTOM, LEFT, RIGHT, TOP, base, label, ticks, titles, upright};
use super::{class, escape};
use crate::compare::comparison::{Comparison, Metric, Spread};

/// The widest bar, and the narrowest over which its number is written.
const BAR_MAX: f64 = 72.0;
const NUMBERED_MIN: f64 = 30.0;

/// The share of a load's place that its bars take.
const FILLED: f64 = 0.82;

/// One bar, with its whiskers.
fn bar(
    (x, width): (f64, f64),
    contender: usize,
    spread: Spread,
    title: &str,
    height: impl Fn(f64) -> f64,
) -> String {
    let Spread { median, min, max } = spread;
    let (top, low, high) = (height(median), height(min), height(max));
    let (centre, arm) = (x + width / 2.0, (width / 4.0).min(8.0));
    let mut out = format!(
        "<g><title>{title}</title><rect class=\"bar {}\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
        class(contender),
        (width - 1.5).max(1.0),
        BOTTOM - top
    );
    if max > min {
        out.push_str(&format!(
            "<path class=\"whisker\" d=\"M{centre:.1} {low:.1}V{high:.1}M{:.1} {low:.1}H{:.1}M{:.1} {high:.1}H{:.1}\"/>",
            centre - arm,
            centre + arm,
            centre - arm,
            centre + arm
        ));
    }
    if width >= NUMBERED_MIN {
        out.push_str(&format!(
            "<text class=\"number\" text-anchor=\"middle\" x=\"{centre:.1}\" y=\"{:.1}\">{}</text>",
            high - 5.0,
            label(median)
        ));
    }
    out + "</g>"
}

/// The plot; `None` if nothing of it was measured. `across` says what the loads differ in.
pub(crate) fn draw(metric: Metric, across: &str, loads: &[&Comparison]) -> Option<String> {
    let spreads = loads.iter().flat_map(|load| &load.entries).filter_map(|entry| entry.spread(metric));
    let max = spreads.map(|spread| spread.max).reduce(f64::max)?;
    let ticks = ticks(max);
    let end = ticks.last().copied().unwrap_or(1.0);
    let height = |value: f64| BOTTOM - (BOTTOM - TOP) * value / end;
    let mut out = upright(&ticks, height, label);
    let place = (RIGHT - LEFT) / loads.len() as f64;
    for (index, load) in loads.iter().enumerate() {
        let centre = LEFT + place * (index as f64 + 0.5);
        let width = (place * FILLED / load.entries.len().max(1) as f64).min(BAR_MAX);
        let first = centre - width * load.entries.len() as f64 / 2.0;
        for (contender, entry) in load.entries.iter().enumerate() {
            let Some(spread) = entry.spread(metric) else { continue };
            let Spread { median, min, max } = spread;
            let title = format!(
                "{}, {}: {median:.1} {} ({min:.1} to {max:.1})",
                entry.protocol,
                load.workload,
                metric.unit()
            );
            let x = first + width * contender as f64;
            out.push_str(&bar((x, width), contender, spread, &escape(&title), height));
        }
        for (line, text) in [&load.workload, &load.distribution].into_iter().enumerate() {
            out.push_str(&format!(
                "<text class=\"{}\" text-anchor=\"middle\" x=\"{centre:.1}\" y=\"{:.1}\">{}</text>",
                if line == 0 { "load" } else { "tick" },
                BOTTOM + 17.0 + 15.0 * line as f64,
                escape(text)
            ));
        }
    }
    out.push_str(&titles(across, metric.unit()));
    Some(out + &base())
}
