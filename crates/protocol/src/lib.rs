//! The core of Syros: replica and client as state machines that cannot do I/O.
//!
//! | papers' term | here |
//! |---|---|
//! | consensus log (Skyros 4.1), log (VR 4) | [`log::Log`] |
//! | durability log, d-log (Skyros 4.1) | [`durability_log::DurabilityLog`] |
//! | op-number, commit-number (VR 4) | [`OpNumber`](syros_types::OpNumber), `commit` |
//! | client-table (VR 4), completion records (RIFL) | [`sessions::Sessions`] |
//! | supermajority, f + ceil(f/2) + 1 (Skyros 4.2) | [`Group::supermajority`](syros_types::Group) |
//! | RecoverDurabilityLog (Skyros Figure 6) | [`recovery::recover`], with another rule |
//!
//! Both machines have one shape: `handle(now, event)`, then drain `poll()`, and call again no later
//! than `deadline()`. They own no clock, no socket, no file, no thread and no source of randomness;
//! `no_std` proves it. The same code runs in the server, the simulator and the model checker.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

/// Whether the known-wrong variants are compiled in that the simulator must find. A release build of the server refuses
/// to be built with them.
pub const HAS_PLANTED_BUGS: bool = cfg!(feature = "planted-bugs");

pub mod agreement;
pub mod client;
pub mod digests;
pub mod durability_log;
#[cfg(feature = "model")]
pub mod fingerprint;
pub mod formation;
mod hash;
pub mod history;
pub mod log;
pub mod log_copy;
pub mod message;
pub mod record;
pub mod recovery;
pub mod replica;
pub mod sessions;
