//! Judges the system from outside, as data, and shares no code with what it judges.
//!
//! - [`history`] and [`linearizability`]: was there an order of the operations, within their real
//!   times, in which one copy of the data would have given the same answers?
//! - [`recovery`]: does a rule that rebuilds the durability log in a view change keep every completed
//!   update and every real-time order, whatever the surviving replicas hold?
//! - [`sequential`]: the sequential meaning of operations; [`collections`]: of those on collections;
//!   [`transfer`]: of those that take from one key and give to another.
#![forbid(unsafe_code)]

pub mod collections;
pub mod history;
pub mod linearizability;
mod output;
pub mod recovery;
pub mod sequential;
pub mod transfer;
pub mod value;
