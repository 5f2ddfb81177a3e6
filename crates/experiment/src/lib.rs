//! What an experiment is, whether it runs in virtual time or with real processes: what clients ask for
//! ([`Workload`], and [`Steps`] with all the kinds of operations of a [`Blend`]),
//! what CPU costs where time is virtual ([`Cost`]); and what came of it ([`Row`]). Which protocol is measured
//! ([`Protocol`](syros_types::Protocol)) and where replicas and clients are (`syros_regions`) are settings of servers, too.

#![forbid(unsafe_code)]

mod blend;
mod cost;
mod distribution;
mod error;
mod row;
mod steps;
mod workload;

pub use blend::{Blend, Blends, Kind, Part, ReadLatest};
pub use cost::{Cost, InvalidCost};
pub use distribution::{Distribution, KeyChoice};
pub use error::InvalidWorkload;
pub use row::{Measured, Paths, Row, VirtualRun};
pub use steps::{APPENDS_PER_KEY, Records, SCAN_RECORDS_MAX, Step, Steps};
pub use workload::{Asked, Mix, Workload};
