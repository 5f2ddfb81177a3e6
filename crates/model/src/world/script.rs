//! What happens before a search begins: some counterexamples lie so deep that the search has to start
//! part of the way down. A script takes the same steps as the search.

use super::{Action, State, World};
use crate::step::{End, Step};
use syros_protocol::message::Peer;

impl World {
    /// Where the search begins.
    pub(super) fn run_script(&self, mut state: State) -> State {
        for step in self.setup.script {
            self.take(step, &mut state);
        }
        state.budget = self.setup.budget;
        // The last turns of the warming up are nobody's turns yet.
        state.acted = 0;
        state
    }

    /// # Panics
    /// If the step is not possible: the script does not fit the protocol any more.
    fn take(&self, step: &Step, state: &mut State) {
        let action = match *step {
            Step::Invoke(client) => Action::Invoke(client),
            Step::Deliver(wanted, from, to) => {
                let matching = state.network.iter().copied().rfind(|number| {
                    let envelope = self.envelope(*number);
                    envelope.message.name() == wanted
                        && envelope.from == from.peer()
                        && envelope.to == to.peer()
                });
                Action::Deliver(matching.unwrap_or_else(|| panic!("{step:?}: there is no such message")))
            }
            Step::Tick(member) => Action::Tick(member),
            Step::Timeout(member) => Action::Timeout(member),
            Step::Move(member) => Action::Move(member),
            Step::Pass => Action::Pass,
            Step::Quiesce => return self.quiesce(state),
            Step::Disconnect(client, member) => {
                return self.disconnect(state, client.into(), member);
            }
            Step::LoseAmongMembers => {
                return state.network.retain(|number| {
                    let envelope = self.envelope(*number);
                    [envelope.from, envelope.to].iter().any(|end| matches!(end, Peer::Client(_)))
                });
            }
            Step::LoseTo(member) => {
                let end = End::Member(member).peer();
                return state.network.retain(|number| {
                    let envelope = self.envelope(*number);
                    envelope.to != end || matches!(envelope.from, Peer::Client(_))
                });
            }
            Step::Lose => return state.network.clear(),
        };
        match self.step(state, action) {
            Some(next) => *state = next,
            None => panic!("{step:?} changes nothing"),
        }
    }
}
