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
    /// The message of this name from here to there arrives.
    Deliver(&'static str, End, End),
    /// A member looks at its timers.
    Tick(u8),
    /// A follower moves to the next view.
    Move(u8),
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
                let matching = state.network.iter().copied().find(|number| {
                    let envelope = world.envelope(*number);
                    envelope.message.name() == wanted
                        && envelope.from == from.peer()
                        && envelope.to == to.peer()
                });
                Action::Deliver(matching.unwrap_or_else(|| panic!("{self:?}: there is no such message")))
            }
            Self::Tick(member) => Action::Tick(member),
            Self::Move(member) => Action::Move(member),
            Self::Pass => Action::Pass,
            Self::Settle => return world.settle(state),
            Self::Lose => return state.network.clear(),
        };
        match world.step(state, action) {
            Some(next) => *state = next,
            None => panic!("{self:?} changes nothing"),
        }
    }
}
