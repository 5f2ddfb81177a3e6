//! Plain values shared by every other crate: identifiers, time, timestamps, quorum arithmetic,
//! operation classes, footprints, limits and the names of protocols. No I/O, no clock, no randomness: `no_std`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod by_name;
mod class;
mod configuration;
mod database;
mod eviction;
mod fast_rule;
mod hash;
mod ids;
pub mod limits;
mod prng;
mod protocol;
mod quorum;
mod read_policy;
mod replica_set;
pub mod room;
mod subscription;
mod time;
pub mod varint;
mod window;
mod write_policy;

pub use class::{Class, Description, Footprint};
pub use configuration::{
    Configuration, ConfigurationId, GroupId, Incarnation, NodeId, OtherConfiguration, Reconfiguration, Roster,
};
pub use database::Database;
pub use eviction::{EvictionOrder, EvictionPolicy, EvictionSettings, UnknownEvictionPolicy};
pub use fast_rule::FastRule;
pub use hash::{fold, key_hash, key_hash_in};
pub use ids::{ConfigurationEpoch, OpNumber, OperationId, ReplicaId, SessionId, View};
pub use prng::{Prng, mix};
pub use protocol::{Execution, Protocol, UnknownProtocol};
pub use quorum::{Admission, FastQuorum, Group, InvalidGroupSize, Strength};
pub use read_policy::{ReadPolicy, UnknownReadPolicy};
pub use replica_set::ReplicaSet;
pub use subscription::SubscriptionKind;
pub use time::{Instant, Now, Timestamp, WallTime, micros};
pub use window::Window;
pub use write_policy::{UnknownWritePolicy, WritePolicy};
