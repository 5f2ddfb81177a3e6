//! What a script consists of: see [`Setup::script`](crate::setup::Setup::script).

use syros_protocol::message::Peer;
use syros_types::{ReplicaId, ReplicaSet};

/// A member or a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Member(u8),
    Client(u64),
}

/// One step of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScriptStep {
    /// A client is given its next operation.
    Invoke(u8),
    /// The message of this name from here to there arrives; of several the one that was thought of last.
    Deliver(&'static str, End, End),
    /// A member looks at its timers.
    Tick(u8),
    /// A member's next timer ends.
    Timeout(u8),
    /// A follower moves to the next view.
    Move(u8),
    /// A leader wants these members to be active.
    Activate(u8, ReplicaSet),
    /// A leader has the members changed.
    Reconfigure(u8),
    /// A new node starts.
    Newcome(u8),
    /// A client loses its connection to a member for good.
    Disconnect(u8, u8),
    /// What is on its way between members is lost.
    LoseAmongMembers,
    /// What other members have sent to this one is lost.
    LoseTo(u8),
    /// Time passes.
    Pass,
    /// Everything is delivered until nothing is left to do.
    Quiesce,
    /// Everything on its way is lost.
    Lose,
}

impl End {
    pub(crate) const fn peer(self) -> Peer {
        match self {
            Self::Member(member) => Peer::Replica(ReplicaId(member)),
            Self::Client(client) => Peer::Client(client),
        }
    }
}
