//! What an experiment is, whether it runs in virtual time or with real processes: what clients ask for
//! ([`Workload`], and [`OperationStream`] with all the kinds of operations of a [`Blend`]),
//! what CPU costs where time is virtual ([`Cost`]); and what came of it ([`Row`]). Which protocol is measured
//! ([`Protocol`](syros_types::Protocol)) and where replicas and clients are (`syros_regions`) are settings of servers, too.

#![forbid(unsafe_code)]

mod blend;
mod cost;
mod distribution;
mod error;
mod operations;
mod row;
mod workload;

pub use blend::{Blend, Blends, OperationKind, Part, ReadLatest};
pub use cost::{Cost, InvalidCost};
pub use distribution::{Distribution, KeyChoice};
pub use error::InvalidWorkload;
pub use operations::{APPENDS_PER_KEY, OperationStream, Records, SCAN_RECORDS_MAX, WorkloadOperation};
pub use row::{Measured, Paths, Row, VirtualRun};
pub use workload::{Asked, Mix, Workload};
