//! Why a replica would not take an operation.

use core::fmt;

/// Why a replica would not take an operation. It left no trace there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The timestamp is further ahead of the replica's clock than allowed.
    ClockSkew,
    /// The session never existed or has expired.
    UnknownSession,
    /// The session has already been told the answer of this operation.
    Stale,
    /// The bytes are no operation, or of a class that does not belong on this path.
    Malformed,
    /// The log or durability log has reached its limit in memory.
    LogFull,
    /// Too much is waiting.
    Overloaded,
    /// The disk refused a write; the replica takes no updates.
    DiskFailed,
    /// The state would take more memory than it may ([`Description::growth`](syros_types::Description::growth)). The replica takes no copy of it in this view.
    OutOfMemory,
    /// The disk is nearly full, and the operation would make the state grow. The replica takes no copy of it in this view.
    DiskFull,
    /// The replica takes part in no view at present, or has no such entry in its log: others may do.
    NotNormal,
    /// The replica is not active in its view ([`FastRule::active`](syros_types::FastRule::active)): it keeps no durability log.
    NotActive,
    /// The replica holds another operation under this id. One of the two is not what its client sent, or two clients use
    /// one session.
    OtherOperation,
    /// The connection has not shown that the session is its own.
    NotAttached,
    /// The operation has been executed, and the replicas did not keep what it returned.
    ReplyDropped,
}

impl Refusal {
    /// Each, in the order of its declaration.
    pub const ALL: [Self; 14] = [
        Self::ClockSkew,
        Self::UnknownSession,
        Self::Stale,
        Self::Malformed,
        Self::LogFull,
        Self::Overloaded,
        Self::DiskFailed,
        Self::OutOfMemory,
        Self::DiskFull,
        Self::NotNormal,
        Self::NotActive,
        Self::OtherOperation,
        Self::NotAttached,
        Self::ReplyDropped,
    ];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClockSkew => "clock-skew",
            Self::UnknownSession => "unknown-session",
            Self::Stale => "stale",
            Self::Malformed => "malformed",
            Self::LogFull => "log-full",
            Self::Overloaded => "overloaded",
            Self::DiskFailed => "disk-failed",
            Self::OutOfMemory => "out-of-memory",
            Self::DiskFull => "disk-full",
            Self::NotNormal => "not-normal",
            Self::NotActive => "not-active",
            Self::OtherOperation => "other-operation",
            Self::NotAttached => "not-attached",
            Self::ReplyDropped => "reply-dropped",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ClockSkew => "the timestamp is too far ahead of the replica's clock",
            Self::UnknownSession => "the session is unknown or has expired",
            Self::Stale => "the session has already acknowledged this operation",
            Self::Malformed => "the operation is malformed",
            Self::LogFull => "the log has reached its memory limit",
            Self::Overloaded => "overloaded, retry later",
            Self::DiskFailed => "the disk of the replica failed",
            Self::OutOfMemory => "the data has reached its memory limit, 'memory.maxmemory'",
            Self::DiskFull => {
                "the replica's disk is nearly full: less than 'disk.reserve' is free, or too few inodes, or the engine has no room for a merge of its files"
            }
            Self::NotNormal => "the replica takes part in no view at present, or lacks an entry",
            Self::NotActive => "the replica keeps no durability log in this view",
            Self::OtherOperation => "another operation has this id",
            Self::NotAttached => "the connection has not shown that the session is its own",
            Self::ReplyDropped => "the operation was executed, and its reply was not kept",
        })
    }
}
