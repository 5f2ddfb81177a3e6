//! What a replica tells of itself.

use core::fmt;
use syros_types::FastQuorum;

/// What a replica tells of itself; the content of `syros status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusReport {
    /// Position in the group.
    pub replica: u8,
    /// Members of the group.
    pub replicas: u8,
    /// `leader`, `follower`, `view-change` or `recovering`.
    pub role: RoleName,
    /// The fast quorum mode.
    pub fast_quorum: FastQuorum,
    /// Current view.
    pub view: u64,
    /// Last op number in the log.
    pub op_number: u64,
    /// Last committed op number.
    pub commit: u64,
    /// Last applied op number.
    pub applied: u64,
    /// Updates in the durability log.
    pub dlog_length: u64,
    /// Registered sessions.
    pub sessions: u64,
    /// Bytes held by log and durability log.
    pub log_bytes: u64,
    /// Updates accepted into the durability log and acknowledged in one round trip.
    pub fast_updates: u64,
    /// Updates answered with `Conflict`.
    pub conflicts: u64,
    /// Updates the leader ordered before it answered.
    pub slow_updates: u64,
    /// Reads answered at once.
    pub fast_reads: u64,
    /// Reads that waited for ordering or for leadership to be confirmed.
    pub slow_reads: u64,
    /// Operations refused, for whatever reason.
    pub refused: u64,
    /// View changes this replica entered since it started.
    pub view_changes: u64,
    /// Milliseconds since the replica last knew of a working majority that it is part of
    /// ([`Replica::quorum_contact`](crate::replica::Replica::quorum_contact)).
    pub silent_ms: u64,
    /// It is longer than a leader that has a majority is ever silent: nobody leads, as far as this replica knows.
    pub no_quorum: bool,
    /// The disk is full or has failed: the replica takes no updates.
    pub disk_failed: bool,
    /// Segments of the log of which members had different digests while this replica led.
    pub divergences: u64,
    /// Its state is known not to be that of the majority. It answers no reads.
    pub diverged: bool,
}

/// The role a status report names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RoleName {
    /// Normal, and leads the view.
    Leader,
    /// Normal, follows.
    Follower,
    /// Between views.
    #[default]
    ViewChange,
    /// Lost its memory and waits for a new view.
    Recovering,
}

impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Leader => "leader",
            Self::Follower => "follower",
            Self::ViewChange => "view-change",
            Self::Recovering => "recovering",
        })
    }
}
