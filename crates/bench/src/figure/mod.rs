//! The figures of the papers, as data: what each of them shows, with which load, what the paper says of it
//! ([`catalogue`]); what was measured in its place ([`Measurements`]), how that relates to what the paper says
//! ([`Verdict`]), and drawings of it ([`svg`], [`page()`], [`chapter`]).

mod catalogue;
mod claim;
mod draw;
mod measurements;
mod page;
mod table;

pub use catalogue::{catalogue, names};
pub use claim::{At, Bound, Claim, Judged, Value, Verdict};
pub use draw::svg;
pub use measurements::{Cell, Measurements};
pub use page::{chapter, page};
pub use table::{claims_text, text};

use crate::compare::Metric;
use serde::Serialize;

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Ganesan et al., SOSP 2021.
    Skyros,
    /// Skyros with quorum reads.
    Syros,
    /// Xu et al., FAST 2024.
    Ionia,
    /// Park and Ousterhout, NSDI 2019.
    Curp,
}

impl Paper {
    /// As it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skyros => "Skyros",
            Self::Syros => "Syros",
            Self::Ionia => "IONIA",
            Self::Curp => "CURP",
        }
    }
}

/// Where replicas keep data, and what that takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Storage {
    /// In memory.
    #[default]
    Memory,
    /// On disk, with the engine that this project has for that. There is none in virtual time.
    Disk,
    /// Emulated: each replica answers [`SLOW_READS`] reads a second, one after the other; [`SLOW_READS_VIRTUAL`] in
    /// virtual time. Updates cost it nothing.
    Slow,
}

/// Reads a second of a real replica whose storage is slow: so few that the processors of one machine are not the limit.
pub const SLOW_READS: u32 = 2_000;

/// The same in virtual time, in which each replica has a machine.
pub const SLOW_READS_VIRTUAL: u32 = 20_000;

/// What clients ask for, and whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load {
    /// As `syros-lab bench compare` names workloads.
    pub workload: String,
    /// As it names distributions.
    pub distribution: &'static str,
    /// Clients, in closed loops.
    pub clients: usize,
    /// Records.
    pub keys: u64,
    /// Replicas, unless the protocol has but one.
    pub replicas: usize,
    /// Regions that come with the program; `None`: all are in one place.
    pub regions: Option<&'static str>,
    /// Where replicas keep data.
    pub storage: Storage,
    /// In virtual time, how much longer each way may take, in microseconds.
    pub jitter_us: u64,
    /// Bytes for the leader's history of changes, if not as many as usual.
    pub history: Option<u64>,
    /// Followers that have failed before; only where all are in one place.
    pub failed: usize,
}

impl Load {
    /// Ten clients and five replicas, uniform keys.
    fn of(workload: impl Into<String>) -> Self {
        Self {
            workload: workload.into(),
            distribution: "uniform",
            clients: 10,
            keys: 100_000,
            replicas: 5,
            regions: None,
            storage: Storage::Memory,
            jitter_us: 0,
            history: None,
            failed: 0,
        }
    }
}

/// A place on the axis across.
#[derive(Clone, Debug)]
pub struct Point {
    /// What it is called where places have names; points of one name are a sweep.
    pub label: String,
    /// Where it is, where that is a number.
    pub x: f64,
    /// What is measured there.
    pub load: Load,
}

impl Point {
    fn at(x: f64, load: Load) -> Self {
        Self { label: format!("{x}"), x, load }
    }

    fn named(label: impl Into<String>, load: Load) -> Self {
        Self { label: label.into(), x: 0.0, load }
    }
}

/// How a panel is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// A line for each protocol and metric, over what the points differ in.
    Lines {
        /// What that is, with its unit.
        across: &'static str,
        /// It goes by logarithms.
        is_log: bool,
    },
    /// The metric over the throughput; points are numbers of clients.
    Curve,
    /// A bar for each protocol at each point.
    Bars {
        /// What the points differ in.
        across: &'static str,
    },
    /// A bar for each protocol and name of points: where this protocol has the most throughput under them, and where the
    /// others have as much.
    AtPeakOf(&'static str),
    /// Which share of the operations of a kind, or of all, took how long, at the only point.
    Distribution(Option<&'static str>),
}

/// One plot of a figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Its title.
    pub title: &'static str,
    /// How it is drawn.
    pub shape: Shape,
    /// What is drawn; of bars, the first one.
    pub metrics: &'static [Metric],
    /// The names of the protocols.
    pub protocols: &'static [&'static str],
    /// All of them.
    pub points: Vec<Point>,
}

impl Panel {
    /// With some of the points only: enough to see that everything works, not what the figure is about.
    fn shorten(&mut self) {
        let mut labels: Vec<String> = Vec::new();
        for point in &self.points {
            if !labels.contains(&point.label) {
                labels.push(point.label.clone());
            }
        }
        let kept: Vec<&String> =
            [labels.first(), labels.get(labels.len() / 2), labels.last()].into_iter().flatten().collect();
        // Of a sweep, too.
        let mut seen = std::collections::BTreeMap::<String, usize>::new();
        self.points.retain(|point| {
            let count = seen.entry(point.label.clone()).or_default();
            *count += 1;
            kept.contains(&&point.label) && *count <= 2
        });
    }
}

/// A figure of a paper.
#[derive(Clone, Debug)]
pub struct Figure {
    /// As it is called here: the paper, and its number there.
    pub name: &'static str,
    /// The paper.
    pub paper: Paper,
    /// Its section about it.
    pub section: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What the paper says of it.
    pub statement: &'static str,
    /// The plots; none if it is not reproduced.
    pub panels: Vec<Panel>,
    /// What the paper says, as ratios.
    pub claims: Vec<Claim>,
    /// What is not as in the paper, and what is known of the reasons.
    pub differs: &'static str,
    /// What is not reproduced of it, and why; empty if nothing.
    pub missing: &'static str,
}

impl Figure {
    /// The same with some of its points only.
    #[must_use]
    pub fn quick(mut self) -> Self {
        self.panels.iter_mut().for_each(Panel::shorten);
        self
    }

    /// Everything that it takes: each protocol under each load once.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        for panel in &self.panels {
            for point in &panel.points {
                for protocol in panel.protocols {
                    let cell = Cell { protocol, load: point.load.clone() };
                    if !cells.contains(&cell) {
                        cells.push(cell);
                    }
                }
            }
        }
        cells
    }

    /// Its number and title.
    #[must_use]
    pub fn heading(&self) -> String {
        let number = self.name.split_once('-').map_or(self.name, |(_, number)| number);
        format!("{}, figure {number}: {}", self.paper.name(), self.title)
    }
}
