//! What an experiment is, whether it runs in virtual time or with real processes: the regions that replicas
//! and clients are in and the lines between them ([`Regions`], [`Line`]), what clients ask for
//! ([`Workload`], and [`Steps`] with all the kinds of operations of a [`Blend`]), the protocol that is measured ([`Protocol`]),
//! what CPU costs where time is virtual ([`Cost`]); and what came of it ([`Row`]).

#![forbid(unsafe_code)]

mod blend;
mod cost;
mod distribution;
mod error;
mod line;
mod protocol;
mod regions;
mod row;
mod steps;
mod workload;

pub use blend::{Blend, Blends, Kind, Part, ReadLatest};
pub use cost::{Cost, InvalidCost};
pub use distribution::{Distribution, KeyChoice};
pub use error::InvalidWorkload;
pub use line::{Line, Traffic};
pub use protocol::{Execution, Protocol, UnknownProtocol};
pub use regions::{Problem, Regions};
pub use row::{Measured, Paths, Row, VirtualRun};
pub use steps::{APPENDS_PER_KEY, Records, SCAN_RECORDS_MAX, Step, Steps};
pub use workload::{Asked, Mix, Workload};
