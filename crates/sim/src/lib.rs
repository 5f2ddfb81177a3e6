//! Deterministic simulation of Syros: the real replica and client cores, the real write-ahead log and
//! the real engine, under a virtual network, virtual clocks and virtual disks.
//!
//! One thread, one event queue, one seed. Everything random is drawn from the seed, nothing depends on
//! the order of a hash table, so a seed is a complete description of a run: running it again gives the
//! same events in the same order, byte for byte ([`SeedReport::trace_hash`]).
//!
//! A seed draws a world ([`Swarm`]), lives through a safety phase in which things break
//! ([`NemesisSettings`](swarm::NemesisSettings)), then through a liveness phase in which everything is
//! repaired and has to get going again, and is judged: were the clients told a linearizable story, did
//! the replicas agree at every step ([`invariants`]), and are they equal in the end?
//!
//! [`Scenario`] plays scripted situations in the same world.
#![forbid(unsafe_code)]

mod adapter;
mod asked;
pub mod client;
pub mod clock;
mod copies_ledger;
mod engine_threads;
pub mod families;
pub mod geo;
pub mod history;
pub mod invariants;
pub mod journal;
mod liveness;
mod message_ledger;
pub mod network;
mod permanent_faults;
pub mod process;
mod redis_host;
mod resp_client;
mod rot;
pub mod scenario;
pub mod scheduler;
mod seeds;
mod service;
mod sim_stores;
mod stale;
pub mod stories;
pub mod swarm;
pub mod tally;
pub mod trace;
mod users_ledger;
mod verdict;
pub mod workload;
mod world;

pub use scenario::{Node, Play, Scenario};
pub use seeds::{Options, SeedReport, Shown, Summary, replay_command, run_planted, run_seed, run_swarm};
pub use swarm::Swarm;
pub use tally::Tally;
pub use world::World;
