//! Load on a cluster, and what it costs.
//!
//! [`run`] keeps a fixed number of operations in flight (a closed loop): every writer waits for its
//! answer, then sends the next. All sessions are driven by the calling thread, so that the load
//! generator takes as little as possible of the machine it often shares with the replicas. Besides
//! throughput and latency it reports the CPU time that the replicas, and it itself, spent on an
//! operation: where everything shares a machine, that is what decides.
//!
//! [`failover()`] starts a cluster of processes, has its leader fail again and again, and measures how long
//! nothing can be written.
//!
//! [`compare`] puts the same load on clusters of several protocols, in turns, and relates what it cost them.
//!
//! [`peers`] puts it on etcd and Redis too, through their own protocols.
//!
//! [`figure`] has the figures of the papers as data, and draws what was measured in their place.
//!
//! [`geo`] has clusters and clients in regions that are far from each other, as the crate `syros-relay` makes them.
#![forbid(unsafe_code)]

mod clients;
pub mod cluster;
pub mod compare;
mod error;
mod failover;
pub mod figure;
mod fleet;
pub mod geo;
mod load;
mod options;
pub mod peers;
mod process;
mod report;

pub use error::Error;
pub use failover::{FailoverError, FailoverOptions, FailoverReport, Fault, Round, failover};
pub use load::run;
pub use options::Options;
pub use report::{CpuUse, Failures, Latency, Load, Report};
