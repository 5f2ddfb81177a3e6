//! What happens before a search begins: some counterexamples lie so deep that the search has to start
//! part of the way down. A script takes the same steps as the search.

use super::{Action, State, World};
use crate::script_step::{End, ScriptStep};
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
    fn take(&self, step: &ScriptStep, state: &mut State) {
        let action = match *step {
            ScriptStep::Invoke(client) => Action::Invoke(client),
            ScriptStep::Deliver(wanted, from, to) => {
                let matching = state.network.iter().copied().rfind(|number| {
                    let envelope = self.envelope(*number);
                    envelope.message.name() == wanted
                        && envelope.from == from.peer()
                        && envelope.to == to.peer()
                });
                Action::Deliver(matching.unwrap_or_else(|| panic!("{step:?}: there is no such message")))
            }
            ScriptStep::Tick(member) => Action::Tick(member),
            ScriptStep::Timeout(member) => Action::Timeout(member),
            ScriptStep::Move(member) => Action::Move(member),
            ScriptStep::Activate(member, active) => Action::Activate(member, active),
            ScriptStep::Reconfigure(member) => Action::Reconfigure(member),
            ScriptStep::Newcome(member) => Action::Newcome(member),
            ScriptStep::Pass => Action::Pass,
            ScriptStep::Quiesce => return self.quiesce(state),
            ScriptStep::Disconnect(client, member) => {
                return self.disconnect(state, client.into(), member);
            }
            ScriptStep::LoseAmongMembers => {
                return state.network.retain(|number| {
                    let envelope = self.envelope(*number);
                    [envelope.from, envelope.to].iter().any(|end| matches!(end, Peer::Client(_)))
                });
            }
            ScriptStep::LoseTo(member) => {
                let end = End::Member(member).peer();
                return state.network.retain(|number| {
                    let envelope = self.envelope(*number);
                    envelope.to != end || matches!(envelope.from, Peer::Client(_))
                });
            }
            ScriptStep::Lose => return state.network.clear(),
        };
        match self.step(state, action) {
            Some(next) => *state = next,
            None => panic!("{step:?} changes nothing"),
        }
    }
}
