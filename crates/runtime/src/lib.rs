//! The processes of Syros: a node (one replica with a Redis front end, or with a state machine of
//! somebody's own and without that) and a gateway (a front end alone). Everything here is I/O around the state machines of
//! `syros-node`; nothing decides what a message means.
//!
//! One thread runs the event loop; others write and sync the log, write and read snapshots, look up host
//! names, and look for rot on the disk. An engine on disk has threads of its own, which execute and read.
#![forbid(unsafe_code)]

mod clock;
mod config;
mod connection;
mod descriptors;
mod directory;
mod discover;
mod disk_engine;
mod disk_space;
mod disk_threads;
mod durable_sender;
mod event_loop;
mod execution;
mod handshake;
mod info;
mod inquiries;
mod inspect;
mod load_meter;
mod loading;
mod local_replica;
mod long_replies;
mod machine_memory;
mod members;
mod memory_engine;
mod node;

mod entries_thread;
mod other_members;
mod recover;
mod reserve;
mod restore;
mod scrub;
mod slow_reads;
mod snapshots;
mod socket;
mod start_error;
mod statistics;
mod stop;
mod store;
mod tls;
mod tls_config;
mod tls_handshakes;
mod trace;
mod traces;
mod yield_policy;

pub use config::{
    EngineConfig, EngineKind, FirstStart, FrontConfig, GREETING_TIMEOUT, GatewayConfig, NodeConfig,
    REDIS_ADDRESS, StoreConfig, describe, replica_config,
};
pub use directory::{
    DIRECTORY_FORMAT, DataDirectory, DirectoryError, Identity, durability_name, durability_named,
    fast_quorum_named, read_formation, read_identity,
};
pub use discover::DiscoverError;
pub use inspect::{Inspection, Records, SetAside, Usage, inspect};
pub use node::{GatewayNode, Node};
pub use recover::{RecoverError, RecoveryPlan, Stamp, Survivor};
pub use restore::{RestoreError, Restored, restore};
pub use socket::ListenError;
pub use start_error::{LogError, NotWanted, StartError};
pub use stop::Stopper;
pub use store::StoreError;
pub use syros_commands::acl::hide_passwords;
pub use syros_protocol::replica::Durability;
pub use syros_resp::DebugAccess;
pub use syros_tls::{ClientCertificates, Files as TlsFiles};
pub use syros_traces::{
    ATTRIBUTES_MAX as TRACE_ATTRIBUTES_MAX, Endpoint as TraceEndpoint, Sampling as TraceSampling,
    TEXT_BYTES_MAX as TRACE_TEXT_BYTES_MAX, TraceSettings, parse_attribute as parse_trace_attribute,
};
pub use syros_types::{FastQuorum, ReplicaId};
pub use syros_wire::{Secret, SecretLength};
pub use tls_config::{NodesTls, TlsConfig};
