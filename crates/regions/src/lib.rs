//! Where replicas and clients are ([`Regions`]), what the line from one region to another is like ([`Line`]), and when
//! what is sent on it arrives ([`Traffic`]). The relay between real processes and the simulator use the same lines.

#![forbid(unsafe_code)]

mod line;
mod regions;

pub use line::{Line, Traffic};
pub use regions::{Problem, Regions};
