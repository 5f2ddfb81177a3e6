//! Lines: something over what points differ in, or latency over throughput.

use crate::compare::Metric;
use crate::compare::page::axis::{
    BOTTOM, LEFT, RIGHT, TOP, across, base, label, log_label, log_ticks, polyline, ticks, titles, upright,
};
use crate::compare::page::{class, escape};
use crate::figure::{Measurements, Panel};
use std::fmt::Write as _;

/// A line: its name, its class and its places, from left to right or from few clients to many.
struct Curve {
    name: String,
    class: String,
    places: Vec<(f64, f64)>,
}

/// The axis across.
struct Across {
    ticks: Vec<f64>,
    is_log: bool,
}

impl Across {
    fn new(values: &[f64], is_log: bool) -> Option<Self> {
        let (min, max) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        let ticks = if is_log { log_ticks(min, max) } else { ticks(max) };
        Some(Self { ticks, is_log })
    }

    fn place(&self, value: f64) -> f64 {
        let scale = |value: f64| if self.is_log { value.max(1e-9).ln() } else { value };
        let (first, last) = (self.ticks.first(), self.ticks.last());
        let (first, last) = (scale(first.copied().unwrap_or(0.0)), scale(last.copied().unwrap_or(1.0)));
        LEFT + (RIGHT - LEFT) * (scale(value) - first) / (last - first)
    }
}

/// The name and the class of each line over the points of a panel: dashes tell the metrics apart.
pub(super) fn names(panel: &Panel) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for (index, protocol) in panel.protocols.iter().enumerate() {
        for (dash, metric) in panel.metrics.iter().enumerate() {
            names.push(match panel.metrics.len() {
                1 => ((*protocol).to_owned(), class(index)),
                _ => (format!("{protocol}, {}", metric.name().to_lowercase()), format!("c{index} d{dash}")),
            });
        }
    }
    names
}

fn draw(curves: &[Curve], across_title: &str, up_title: &str, is_log: bool) -> Option<String> {
    let values = |of: fn(&(f64, f64)) -> f64| -> Vec<f64> {
        curves.iter().flat_map(|curve| &curve.places).map(of).collect()
    };
    let axis = Across::new(&values(|place| place.0), is_log)?;
    let up = ticks(values(|place| place.1).into_iter().reduce(f64::max)?);
    let end = up.last().copied().unwrap_or(1.0);
    let height = |value: f64| BOTTOM - (BOTTOM - TOP) * value / end;
    let mut out = upright(&up, height, label);
    let text = |tick: f64| if is_log { log_label(&axis.ticks, tick) } else { label(tick) };
    out.push_str(&across(&axis.ticks, |value| axis.place(value), text));
    for Curve { name, class, places } in curves.iter().filter(|curve| !curve.places.is_empty()) {
        let name = escape(name);
        let drawn = || places.iter().map(|(x, y)| (axis.place(*x), height(*y)));
        out.push_str(&polyline(class, &name, drawn()));
        for ((x, y), (value_x, value_y)) in drawn().zip(places) {
            let _ = write!(
                out,
                "<g><title>{name}: {} at {}</title><circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" \
                 r=\"3.5\"/></g>",
                label(*value_y),
                label(*value_x)
            );
        }
    }
    out.push_str(&titles(&escape(across_title), &escape(up_title)));
    Some(out + &base())
}

/// A line for each protocol and metric; `None` if nothing was measured.
pub(super) fn over_points(
    panel: &Panel,
    measurements: &Measurements,
    across: &str,
    is_log: bool,
) -> Option<String> {
    let lines = panel
        .protocols
        .iter()
        .flat_map(|protocol| panel.metrics.iter().map(move |metric| (protocol, metric)));
    let curves: Vec<Curve> = lines
        .zip(names(panel))
        .map(|((protocol, metric), (name, class))| {
            let places = panel.points.iter();
            let places =
                places.filter_map(|point| Some((point.x, measurements.median(protocol, point, *metric)?)));
            Curve { name, class, places: places.collect() }
        })
        .collect();
    draw(&curves, across, panel.metrics.first()?.unit(), is_log)
}

/// The metric over the throughput, a line for each protocol; `None` if nothing was measured.
pub(super) fn over_throughput(panel: &Panel, measurements: &Measurements, metric: Metric) -> Option<String> {
    let curve = |(index, protocol): (usize, &&'static str)| {
        let places = panel.points.iter().filter_map(|point| {
            let throughput = measurements.median(protocol, point, Metric::Throughput)?;
            Some((throughput, measurements.median(protocol, point, metric)?))
        });
        Curve { name: (*protocol).to_owned(), class: class(index), places: places.collect() }
    };
    let curves: Vec<Curve> = panel.protocols.iter().enumerate().map(curve).collect();
    draw(&curves, Metric::Throughput.unit(), &format!("{}, {}", metric.name(), metric.unit()), false)
}
