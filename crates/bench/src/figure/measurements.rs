//! What was measured.

use super::{Load, Panel, Point, Shape, Storage};
use crate::compare::{Comparison, Entry, Facts, Line, Metric, Sample, Spread};
use serde::Serialize;
use std::collections::BTreeMap;
use syros_experiment::Blend;

/// What is measured: a protocol under a load.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The protocol's name.
    pub protocol: &'static str,
    /// The load.
    pub load: Load,
}

/// Who had the most, and who as much as that: within this share of it.
const AS_MUCH: f64 = 0.98;

/// What was measured, of any number of figures.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    /// In virtual time: what is known of why a statement does not hold is about that.
    is_virtual: bool,
    samples: BTreeMap<Cell, Vec<Sample>>,
    /// Why some could not be.
    skipped: BTreeMap<Cell, String>,
}

/// A sample as one line of JSON, without a line end.
#[derive(Debug, Serialize)]
struct FigureLine<'a> {
    figure: &'a str,
    #[serde(rename = "virtual")]
    is_virtual: bool,
    storage: Storage,
    regions: Option<&'static str>,
    history_bytes: Option<u64>,
    #[serde(flatten)]
    line: Line<'a>,
}

impl Measurements {
    /// Nothing yet.
    #[must_use]
    pub fn new(is_virtual: bool) -> Self {
        Self { is_virtual, ..Self::default() }
    }

    /// Everything is measured in virtual time.
    #[must_use]
    pub const fn is_virtual(&self) -> bool {
        self.is_virtual
    }

    /// Whether this has been measured, or cannot be.
    #[must_use]
    pub fn has(&self, cell: &Cell) -> bool {
        self.samples.contains_key(cell) || self.skipped.contains_key(cell)
    }

    /// Another round of something.
    pub fn add(&mut self, cell: &Cell, sample: Sample) {
        self.samples.entry(cell.clone()).or_default().push(sample);
    }

    /// It cannot be measured, and why.
    pub fn skip(&mut self, cell: &Cell, reason: String) {
        self.skipped.insert(cell.clone(), reason);
    }

    /// The rounds of something; none if it was not measured.
    #[must_use]
    pub fn samples(&self, cell: &Cell) -> &[Sample] {
        self.samples.get(cell).map_or(&[], Vec::as_slice)
    }

    /// True if nothing has been measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Operations that failed, in everything.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.samples.values().flatten().map(|sample| sample.failed).sum()
    }

    /// Why something of these panels was not measured; each reason once.
    #[must_use]
    pub fn reasons(&self, panels: &[Panel]) -> Vec<&str> {
        let mut reasons: Vec<&str> = Vec::new();
        for (cell, reason) in &self.skipped {
            let is_of = |panel: &Panel| {
                panel.protocols.contains(&cell.protocol)
                    && panel.points.iter().any(|point| point.load == cell.load)
            };
            if panels.iter().any(is_of) && !reasons.contains(&reason.as_str()) {
                reasons.push(reason);
            }
        }
        reasons
    }

    /// What a protocol came to at a point.
    #[must_use]
    pub fn spread(&self, protocol: &'static str, point: &Point, metric: Metric) -> Option<Spread> {
        let cell = Cell { protocol, load: point.load.clone() };
        Spread::of(self.samples(&cell).iter().filter_map(|sample| metric.of(sample)))
    }

    /// The same, its median.
    pub(super) fn median(&self, protocol: &'static str, point: &Point, metric: Metric) -> Option<f64> {
        self.spread(protocol, point, metric).map(|spread| spread.median)
    }

    /// The point at which a protocol has the most throughput.
    pub(super) fn peak<'a>(
        &self,
        protocol: &'static str,
        points: impl Iterator<Item = &'a Point>,
    ) -> Option<&'a Point> {
        let of = |point: &Point| self.median(protocol, point, Metric::Throughput);
        let measured = points.filter_map(|point| Some((point, of(point)?)));
        measured.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(point, _)| point)
    }

    /// The point with the least latency of all at which a protocol has as much throughput as another one at its peak.
    pub(super) fn as_much_as<'a>(
        &self,
        protocol: &'static str,
        other: &'static str,
        points: impl Iterator<Item = &'a Point> + Clone,
    ) -> Option<&'a Point> {
        let peak = self.peak(other, points.clone())?;
        if protocol == other {
            return Some(peak);
        }
        let wanted = AS_MUCH * self.median(other, peak, Metric::Throughput)?;
        let does = |point: &&Point| {
            self.median(protocol, point, Metric::Throughput).is_some_and(|throughput| throughput >= wanted)
        };
        let latency = |point: &Point| self.median(protocol, point, Metric::Mean).unwrap_or(f64::MAX);
        points.filter(does).min_by(|one, other| latency(one).total_cmp(&latency(other)))
    }

    /// The samples of a protocol at a point, as a panel shows them.
    pub(super) fn shown(&self, panel: &Panel, protocol: &'static str, point: &Point) -> Vec<Sample> {
        let mut samples = self.samples(&Cell { protocol, load: point.load.clone() }).to_vec();
        if let Shape::Distribution(Some(kind)) = panel.shape {
            for sample in &mut samples {
                sample.latency = sample.kinds.get(kind).cloned().unwrap_or_default();
            }
        }
        samples
    }

    /// The groups of bars of a panel, or its only distribution: one for each name of points.
    pub(super) fn groups(&self, panel: &Panel) -> Vec<Comparison> {
        let mut labels: Vec<&str> = Vec::new();
        for point in &panel.points {
            if !labels.contains(&point.label.as_str()) {
                labels.push(&point.label);
            }
        }
        let group = |label: &str| {
            let points = panel.points.iter().filter(|point| point.label == label);
            let entries = panel.protocols.iter().map(|protocol| {
                let point = match panel.shape {
                    Shape::AtPeakOf(other) => self.as_much_as(protocol, other, points.clone()),
                    _ => points.clone().next(),
                };
                let samples = point.map(|point| self.shown(panel, protocol, point)).unwrap_or_default();
                let replicas = point.map_or(0, |point| point.load.replicas);
                Entry { protocol: (*protocol).to_owned(), replicas, samples }
            });
            let clients = points.clone().next().map_or(0, |point| point.load.clients);
            Comparison {
                workload: label.to_owned(),
                distribution: String::new(),
                clients,
                entries: entries.collect(),
                baseline: 0,
            }
        };
        labels.into_iter().map(group).collect()
    }

    /// One sample of a figure as a line of JSON, without a line end; rounds are counted from 1.
    #[must_use]
    pub fn json(
        figure: &str,
        is_virtual: bool,
        facts: &Facts,
        cell: &Cell,
        round: usize,
        sample: &Sample,
    ) -> String {
        let Load { workload, distribution, clients, replicas, storage, regions, history, .. } = &cell.load;
        // Some workloads have a distribution of their own.
        let choice = workload.parse::<Blend>().ok().zip(distribution.parse().ok());
        let distribution = choice
            .map_or_else(|| (*distribution).to_owned(), |(blend, asked)| blend.choice(asked).to_string());
        let line =
            Line::new(facts, (workload, &distribution, *clients), (cell.protocol, *replicas), round, sample);
        let (storage, regions, history_bytes) = (*storage, *regions, *history);
        let line = FigureLine { figure, is_virtual, storage, regions, history_bytes, line };
        serde_json::to_string(&line).expect("numbers and texts are always JSON")
    }
}
