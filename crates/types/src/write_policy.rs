//! How a client wants its updates to be sent.

use crate::by_name::by_name;

/// Which way an update goes that the fast quorum could complete. All are as safe; they differ in whom they
/// wait for. Updates that need the leader go to it whatever the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WritePolicy {
    /// Whichever of the others has been faster of late (Skyros 6), and to the leader for as long as it says that all wait for
    /// cores, and that the group does more that way.
    #[default]
    Auto,
    /// To all replicas: one round trip to the fast quorum.
    Fast,
    /// To the leader and to as many others as make the fast quorum with it, the nearest ones: the same round trip with
    /// fewer messages, by nobody's leave to be slow. The leader passes it on to the rest.
    Thrifty,
    /// To the leader, which orders it at once: a round trip to it, and one from it to a majority.
    Leader,
}

impl WritePolicy {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Fast, Self::Thrifty, Self::Leader];

    /// Its name, in configuration and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fast => "fast",
            Self::Thrifty => "thrifty",
            Self::Leader => "leader",
        }
    }
}

by_name!(
    WritePolicy,
    /// A name that no write policy has.
    UnknownWritePolicy,
    "a write policy is one of auto, fast, thrifty and leader"
);
