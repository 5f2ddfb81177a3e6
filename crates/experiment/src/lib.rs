//! What an experiment is, whether it runs in virtual time or with real processes: the regions that replicas
//! and clients are in and the lines between them ([`Regions`], [`Line`]), what clients ask for
//! ([`Workload`]), the protocol that is measured ([`Protocol`]); and what came of it ([`Row`]).

mod line;
mod protocol;
mod regions;
mod row;
mod workload;

pub use line::{Line, Traffic};
pub use protocol::{Execution, Protocol, UnknownProtocol};
pub use regions::{Problem, Regions};
pub use row::{Measured, Paths, Row};
pub use workload::{Asked, Distribution, InvalidWorkload, Mix, Workload};
