//! The figures themselves.

mod curp;
mod ionia;
mod skyros;
mod syros;

use super::{At, Bound, Claim, Figure, Load, Panel, Paper, Point, Shape, Storage, Value};
use crate::compare::Metric;

/// Clients of a sweep: from one to more than any protocol needs for its most throughput.
const CLIENTS: [usize; 8] = [1, 2, 5, 10, 20, 50, 100, 200];

/// Shares of writes of a sweep, in percent.
const WRITES: [u8; 5] = [10, 30, 50, 70, 90];

/// What the axis across is, in several figures.
const WRITE_SHARE: &str = "writes, % of the operations";
const READ_SHARE: &str = "reads, % of the operations";

/// Every figure, paper by paper.
#[must_use]
pub fn catalogue() -> Vec<Figure> {
    [skyros::figures(), syros::figures(), ionia::figures(), curp::figures()].concat()
}

/// The names of all figures.
#[must_use]
pub fn names() -> Vec<&'static str> {
    catalogue().iter().map(|figure| figure.name).collect()
}

/// A figure of which everything else is still to be said.
const fn figure(name: &'static str, paper: Paper, section: &'static str, title: &'static str) -> Figure {
    Figure {
        name,
        paper,
        section,
        title,
        statement: "",
        panels: Vec::new(),
        claims: Vec::new(),
        differs: "",
        missing: "",
    }
}

/// A load for each number of clients.
fn sweep(load: &Load) -> Vec<Point> {
    let load = |clients: usize| Load { clients, ..load.clone() };
    CLIENTS.iter().map(|clients| Point::at(*clients as f64, load(*clients))).collect()
}

/// A share of reads and the rest updates, as a workload.
fn mix(writes: u8) -> String {
    format!("{}%", 100 - writes.min(100))
}

/// A metric of a protocol somewhere in a panel.
const fn value(panel: usize, protocol: &'static str, at: At, metric: Metric) -> Value {
    Value { panel, protocol, at, metric }
}

/// What the paper says, as the ratio of two values.
const fn claim(text: &'static str, of: Value, by: Value, bound: Bound) -> Claim {
    Claim { text, of, by, bound, because: "" }
}

impl Claim {
    /// If it does not hold, this is why.
    const fn because(self, because: &'static str) -> Self {
        Self { because, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Measurements;
    use std::collections::BTreeSet;
    use syros_experiment::{Blend, KeyChoice};
    use syros_regions::Regions;
    use syros_types::Protocol;

    /// What the issue names.
    fn wanted() -> Vec<String> {
        let mut names: Vec<String> = ["8a", "8b-i", "8b-ii", "8b-iii", "9", "10", "11", "12", "13"]
            .map(|name| format!("skyros-{name}"))
            .into();
        names.extend(["a", "b", "c", "d", "e"].map(|part| format!("skyros-14{part}")));
        names.extend((5..=12).map(|number| format!("syros-{number}")));
        names.extend((8..=16).map(|number| format!("ionia-{number}")));
        names.extend(["curp-8".to_owned(), "curp-9".to_owned()]);
        names
    }

    #[test]
    fn every_figure_is_there_once_and_says_what_the_paper_says() {
        assert_eq!(names(), wanted());
        for figure in catalogue() {
            assert!(!figure.statement.is_empty(), "{}", figure.name);
            let is_reproduced = !figure.panels.is_empty();
            assert!(is_reproduced || !figure.missing.is_empty(), "{} says why it is not there", figure.name);
            assert!(is_reproduced || figure.claims.is_empty(), "{}", figure.name);
        }
    }

    #[test]
    fn everything_that_is_named_exists() {
        for Figure { name, panels, .. } in catalogue() {
            for panel in &panels {
                assert!(!panel.metrics.is_empty() && !panel.points.is_empty(), "{name}");
                for protocol in panel.protocols {
                    assert!(protocol.parse::<Protocol>().is_ok(), "{name}: {protocol}");
                }
                for Load { workload, distribution, regions, .. } in
                    panel.points.iter().map(|point| &point.load)
                {
                    assert!(workload.parse::<Blend>().is_ok(), "{name}: {workload}");
                    assert!(distribution.parse::<KeyChoice>().is_ok(), "{name}: {distribution}");
                    assert!(regions.is_none_or(|regions| Regions::shipped_text(regions).is_some()), "{name}");
                }
            }
        }
    }

    #[test]
    fn claims_are_about_what_is_measured() {
        for figure in catalogue() {
            for Claim { text, of, by, .. } in &figure.claims {
                for Value { panel, protocol, at, .. } in [of, by] {
                    let panel = &figure.panels[*panel];
                    assert!(panel.protocols.contains(protocol), "{}: {text}: {protocol}", figure.name);
                    let labels: BTreeSet<&str> =
                        panel.points.iter().map(|point| point.label.as_str()).collect();
                    match at {
                        At::Point(label) => {
                            assert!(labels.contains(label), "{}: {text}: {label}", figure.name);
                        }
                        At::PeakAt(label, other) => {
                            assert!(
                                labels.contains(label) && panel.protocols.contains(other),
                                "{}",
                                figure.name
                            );
                        }
                        At::Peak => {}
                        At::PeakOf(other) => assert!(panel.protocols.contains(other), "{}", figure.name),
                    }
                }
            }
            assert!(
                figure.judge(&Measurements::default()).iter().all(|judged| judged.verdict.ratio().is_none()),
                "nothing is claimed of what was not measured"
            );
        }
    }

    #[test]
    fn a_quick_figure_has_fewer_points_and_the_same_panels() {
        for figure in catalogue() {
            let quick = figure.clone().quick();
            assert_eq!(quick.panels.len(), figure.panels.len());
            assert!(quick.cells().len() <= figure.cells().len());
            assert_eq!(quick.cells().is_empty(), figure.cells().is_empty());
        }
    }
}
