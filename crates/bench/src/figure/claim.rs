//! What a paper says, as a ratio of two figures that can be measured.

use super::{Figure, Measurements, Panel, Point};
use crate::compare::{Metric, Spread};
use core::fmt;

/// At which point of a panel something is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// The one of this name.
    Point(&'static str),
    /// Where the protocol has the most throughput.
    Peak,
    /// Where this other protocol has the most throughput, and where the protocol has as much.
    PeakOf(&'static str),
    /// The same among the points of a name.
    PeakAt(&'static str, &'static str),
}

/// One figure.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Position of the panel.
    pub panel: usize,
    /// The protocol.
    pub protocol: &'static str,
    /// Where.
    pub at: At,
    /// What.
    pub metric: Metric,
}

/// What a ratio should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// This, or more.
    AtLeast(f64),
    /// This, or less.
    AtMost(f64),
    /// This, give or take a tenth of it.
    About(f64),
}

/// How far from it something still is about a number: a tenth, because papers round as much.
const ABOUT: f64 = 0.1;

/// A ratio with the places that papers print.
fn printed(ratio: f64) -> f64 {
    (ratio * 100.0).round() / 100.0
}

impl Bound {
    /// Whether a ratio is what it should be.
    #[must_use]
    pub fn holds(self, ratio: f64) -> bool {
        match self {
            Self::AtLeast(least) => printed(ratio) >= least,
            Self::AtMost(most) => printed(ratio) <= most,
            Self::About(number) => (ratio - number).abs() <= ABOUT * number,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(number) => write!(f, "at least {number}"),
            Self::AtMost(number) => write!(f, "at most {number}"),
            Self::About(number) => write!(f, "about {number}"),
        }
    }
}

/// What a paper says of a figure, as a ratio.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// In words.
    pub text: &'static str,
    /// What is divided.
    pub of: Value,
    /// By what.
    pub by: Value,
    /// What the ratio should be.
    pub bound: Bound,
    /// Where it does not hold in virtual time: what is known of the reason; empty if nothing is.
    pub because: &'static str,
}

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It does; the ratio.
    Holds(f64),
    /// It does not; the ratio.
    Fails(f64),
    /// Something that it is about was not measured.
    Unknown,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds(_) => f.write_str("holds"),
            Self::Fails(_) => f.write_str("does not hold"),
            Self::Unknown => f.write_str("not measured"),
        }
    }
}

impl Verdict {
    /// The ratio, if there is one.
    #[must_use]
    pub const fn ratio(self) -> Option<f64> {
        match self {
            Self::Holds(ratio) | Self::Fails(ratio) => Some(ratio),
            Self::Unknown => None,
        }
    }
}

/// A claim and what came of it.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// What came of it.
    pub verdict: Verdict,
    /// Why it does not hold, if it does not and that is known; else empty.
    pub because: &'static str,
}

impl Judged {
    /// As one line of JSON, without a line end.
    #[must_use]
    pub fn json(&self, figure: &str, is_virtual: bool) -> String {
        let line = serde_json::json!({
            "figure": figure,
            "virtual": is_virtual,
            "statement": self.claim.text,
            "ratio": self.verdict.ratio(),
            "expected": self.claim.bound.to_string(),
            "verdict": self.verdict.to_string(),
        });
        line.to_string()
    }
}

fn at<'a>(
    panel: &'a Panel,
    protocol: &'static str,
    at: At,
    measurements: &Measurements,
) -> Option<&'a Point> {
    match at {
        At::Point(label) => panel.points.iter().find(|point| point.label == label),
        At::Peak => measurements.peak(protocol, panel.points.iter()),
        At::PeakOf(other) => measurements.as_much_as(protocol, other, panel.points.iter()),
        At::PeakAt(label, other) => {
            measurements.as_much_as(protocol, other, panel.points.iter().filter(|point| point.label == label))
        }
    }
}

impl Value {
    fn of(&self, figure: &Figure, measurements: &Measurements) -> Option<f64> {
        let panel = figure.panels.get(self.panel)?;
        let point = at(panel, self.protocol, self.at, measurements)?;
        let samples = measurements.shown(panel, self.protocol, point);
        Spread::of(samples.iter().filter_map(|sample| self.metric.of(sample))).map(|spread| spread.median)
    }
}

impl Figure {
    /// Every claim, and whether it holds here.
    #[must_use]
    pub fn judge(&self, measurements: &Measurements) -> Vec<Judged> {
        let verdict = |claim: &Claim| {
            let ratio = claim.of.of(self, measurements).zip(claim.by.of(self, measurements));
            match ratio.filter(|(_, by)| *by > 0.0).map(|(of, by)| of / by) {
                Some(ratio) if claim.bound.holds(ratio) => Verdict::Holds(ratio),
                Some(ratio) => Verdict::Fails(ratio),
                None => Verdict::Unknown,
            }
        };
        let judged = |claim: &Claim| {
            let verdict = verdict(claim);
            let is_explained = matches!(verdict, Verdict::Fails(_)) && measurements.is_virtual();
            Judged { claim: *claim, verdict, because: if is_explained { claim.because } else { "" } }
        };
        self.claims.iter().map(judged).collect()
    }
}
