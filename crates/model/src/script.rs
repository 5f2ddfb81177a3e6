//! What happens before a search begins: some counterexamples lie so deep that the search has to start
//! part of the way down. A script takes the same steps as the search.

use crate::world::{Action, State, World};
use syros_protocol::message::Peer;
use syros_types::ReplicaId;

/// A member or a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Member(u8),
    Client(u64),
}

/// One step of a script.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
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
    /// A client loses its connection to a member for good.
    Disconnect(u8, u8),
    /// What is on its way between members is lost.
    LoseAmongMembers,
    /// What other members have sent to this one is lost.
    LoseTo(u8),
    /// Time passes.
    Pass,
    /// Everything is delivered until nothing is left to do.
    Settle,
    /// Everything on its way is lost.
    Lose,
}

impl End {
    const fn peer(self) -> Peer {
        match self {
            Self::Member(member) => Peer::Replica(ReplicaId(member)),
            Self::Client(client) => Peer::Client(client),
        }
    }
}

impl Step {
    /// # Panics
    /// If the step is not possible: the script does not fit the protocol any more.
    pub(crate) fn take(&self, world: &World, state: &mut State) {
        let action = match *self {
            Self::Invoke(client) => Action::Invoke(client),
            Self::Deliver(wanted, from, to) => {
                let matching = state.network.iter().copied().rfind(|number| {
                    let envelope = world.envelope(*number);
                    envelope.message.name() == wanted
                        && envelope.from == from.peer()
                        && envelope.to == to.peer()
                });
                Action::Deliver(matching.unwrap_or_else(|| panic!("{self:?}: there is no such message")))
            }
            Self::Tick(member) => Action::Tick(member),
            Self::Timeout(member) => Action::Timeout(member),
            Self::Move(member) => Action::Move(member),
            Self::Pass => Action::Pass,
            Self::Settle => return world.settle(state),
            Self::Disconnect(client, member) => {
                return world.disconnect(state, client.into(), member);
            }
            Self::LoseAmongMembers => {
                return state.network.retain(|number| {
                    let envelope = world.envelope(*number);
                    [envelope.from, envelope.to].iter().any(|end| matches!(end, Peer::Client(_)))
                });
            }
            Self::LoseTo(member) => {
                let end = End::Member(member).peer();
                return state.network.retain(|number| {
                    let envelope = world.envelope(*number);
                    envelope.to != end || matches!(envelope.from, Peer::Client(_))
                });
            }
            Self::Lose => return state.network.clear(),
        };
        match world.step(state, action) {
            Some(next) => *state = next,
            None => panic!("{self:?} changes nothing"),
        }
    }
}
