//! Whose data a directory holds.

use std::fmt;

use syros_protocol::replica::Durability;
use syros_types::{FastQuorum, Group, ReplicaId, mix};

use crate::config::EngineKind;

/// The backup that a group began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BackupId(pub(crate) u64);

impl BackupId {
    /// The id of a cluster that was made from this backup, if the nodes' configuration said `configured` then. Nodes that were
    /// made from another backup, or from none, have another one, and so has every node that was there before the backup.
    #[must_use]
    pub(crate) const fn cluster(self, configured: u64) -> u64 {
        // A number that a configuration file can have.
        match mix(configured ^ mix(self.0)) >> 1 {
            // No cluster has it.
            0 => 1,
            cluster => cluster,
        }
    }
}

/// Whose data a directory holds, and what may never change about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster; never 0.
    pub cluster: u64,
    /// The member of the cluster.
    pub replica: ReplicaId,
    /// The cluster's size.
    pub group: Group,
    /// The cluster's fast quorum mode.
    pub fast_quorum: FastQuorum,
    /// When this replica's acknowledgements leave.
    pub durability: Durability,
    /// What executes its log.
    pub engine: EngineKind,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} of {} of cluster {:016x} (made with fast quorum {}, durability {}, engine {})",
            self.replica,
            self.group.size(),
            self.cluster,
            self.fast_quorum,
            durability_name(self.durability),
            self.engine
        )
    }
}

/// The name of a durability as configuration and identity files spell it.
#[must_use]
pub const fn durability_name(durability: Durability) -> &'static str {
    durability.name()
}

/// The durability with this name.
#[must_use]
pub fn durability_named(name: &str) -> Option<Durability> {
    [Durability::Fsync, Durability::Replicated].into_iter().find(|&d| durability_name(d) == name)
}

/// The fast quorum mode with this name.
#[must_use]
pub fn fast_quorum_named(name: &str) -> Option<FastQuorum> {
    FastQuorum::ALL.into_iter().find(|mode| mode.name() == name)
}
