//! How a client wants its reads to be answered.

use crate::by_name::by_name;

/// Which replicas answer a read. All but [`Self::Stale`] are linearizable; they differ in whom they wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReadPolicy {
    /// Whichever of the linearizable ones promises the earliest answer.
    #[default]
    Auto,
    /// The leader, under its lease.
    Leader,
    /// Any one replica gives the value, the leader says whether that is new enough (IONIA 4.3).
    Meta,
    /// A majority (Syros 4.3, PQR): needs neither the leader nor a lease.
    Quorum,
    /// Any one replica, which may be behind.
    Stale,
}

impl ReadPolicy {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Leader, Self::Meta, Self::Quorum, Self::Stale];

    /// Its name, in configuration and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Leader => "leader",
            Self::Meta => "meta",
            Self::Quorum => "quorum",
            Self::Stale => "stale",
        }
    }
}

by_name!(
    ReadPolicy,
    /// A name that no read policy has.
    UnknownReadPolicy,
    "a read policy is one of auto, leader, meta, quorum and stale"
);
