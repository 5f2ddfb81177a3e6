//! The search: stateright's breadth-first checker over the states of a [`World`], and its report.

use crate::describe;
use crate::machine::{WARM_KEY, key_name};
use crate::setup::Setup;
use crate::world::{Action, State, World};
use stateright::{Checker as _, HasDiscoveries, Model, Property};
use std::time::{Duration, Instant};
use syros_protocol::message::RoleName;

const LINEARIZABLE: &str = "clients see one copy of the data";
const AGREEMENT: &str = "committed logs agree";
const NO_FAILURE: &str = "no assertion fails";

impl World {
    /// A leader that will be able to answer, and what a read issued now will return there, where that
    /// contradicts what the clients have been told.
    fn contradiction(&self, state: &State) -> Option<String> {
        let operations = self.operations();
        if !state.history.is_linearizable(operations, None) {
            return Some("what the clients were told contradicts itself".to_owned());
        }
        let members = self.setup.members as u8;
        for leader in 0..members {
            let view = self.node_view(state, leader);
            let Some(reads) = view.pending_reads.filter(|_| view.failure.is_none()) else { continue };
            // Those who can still follow it: a read that waits for them will be answered.
            let followers = (0..members).filter(|other| {
                let theirs = self.node_view(state, *other);
                *other != leader
                    && theirs.failure.is_none()
                    && (theirs.view < view.view
                        || (theirs.view == view.view && theirs.role != RoleName::Recovering))
            });
            if followers.count() < usize::from(members / 2) {
                continue;
            }
            if !state.history.is_linearizable(operations, Some(reads)) {
                let values: Vec<String> = (0..WARM_KEY)
                    .map(|key| format!("{} {}", key_name(key), reads[usize::from(key)]))
                    .collect();
                return Some(format!(
                    "replica {leader} leads view {}, and a read there now returns {}",
                    view.view,
                    values.join(", ")
                ));
            }
        }
        None
    }

    /// Two members that have committed different things under one number.
    fn disagreement(&self, state: &State) -> Option<String> {
        let members = self.setup.members as u8;
        for one in 0..members {
            for other in one + 1..members {
                let (a, b) = (self.node_view(state, one), self.node_view(state, other));
                let both = a.committed.len().min(b.committed.len());
                if both > 0 && a.committed[both - 1] != b.committed[both - 1] {
                    return Some(format!("replicas {one} and {other} have committed different entries"));
                }
            }
        }
        None
    }

    /// What is wrong with a state, if anything is.
    pub(crate) fn wrong(&self, state: &State) -> Option<String> {
        self.failure(state).or_else(|| self.disagreement(state)).or_else(|| self.contradiction(state))
    }

    fn failure(&self, state: &State) -> Option<String> {
        (0..self.setup.members as u8).find_map(|member| {
            let failure = self.node_view(state, member).failure.clone()?;
            Some(format!("replica {member}: {failure}"))
        })
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        self.starts.clone()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        World::actions(self, state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.step(state, action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(LINEARIZABLE, |world: &Self, state| world.contradiction(state).is_none()),
            Property::always(AGREEMENT, |world: &Self, state| world.disagreement(state).is_none()),
            Property::always(NO_FAILURE, |world: &Self, state| world.failure(state).is_none()),
        ]
    }
}

/// A way in which a model goes wrong.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// Steps from the start of the search.
    pub steps: usize,
    /// All of it, readable.
    pub text: String,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Different states reached.
    pub states: usize,
    /// Longest path taken, in steps.
    pub depth: usize,
    /// Different states of single members, of clients, and different messages.
    pub parts: [usize; 3],
    /// How long it took.
    pub time: Duration,
    /// True if every state within the bounds was visited.
    pub exhausted: bool,
    /// What went wrong, if anything did.
    pub counterexample: Option<Counterexample>,
}

pub(crate) fn search(setup: Setup) -> Report {
    let begun = Instant::now();
    let transitions_max = setup.transitions_max;
    // An assertion of a core that fails is a finding, told with its trace; the hook would print it at once.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let checker = World::new(setup)
        .checker()
        .threads(1)
        .target_state_count(transitions_max)
        .finish_when(HasDiscoveries::Any)
        .spawn_bfs()
        .join();
    std::panic::set_hook(hook);
    let found = checker.discoveries().into_iter().min_by_key(|(name, _)| *name);
    let counterexample = found.map(|(property, path)| {
        let steps = path.into_vec();
        Counterexample { steps: steps.len() - 1, text: tell(checker.model(), property, &steps) }
    });
    let [nodes, clients, envelopes, _] = checker.model().table_sizes();
    Report {
        states: checker.unique_state_count(),
        depth: checker.max_depth().saturating_sub(1),
        parts: [nodes, clients, envelopes],
        time: begun.elapsed(),
        exhausted: counterexample.is_none() && checker.state_count() < transitions_max,
        counterexample,
    }
}

fn tell(world: &World, property: &str, steps: &[(State, Option<Action>)]) -> String {
    let mut lines = vec![format!("violated: {property}")];
    let (first, last) = (&steps[0].0, &steps[steps.len() - 1].0);
    let members = world.setup.members as u8;
    if !world.setup.script.is_empty() {
        lines.push("the search began at:".to_owned());
        lines.extend((0..members).map(|member| describe::member(world, first, member)));
        lines.push(describe::history(world, first));
    }
    for (number, (state, action)) in steps.iter().enumerate() {
        if let Some(action) = action {
            lines.push(format!("{:3}. {}", number + 1, describe::action(world, state, *action)));
        }
    }
    lines.push("which leads to:".to_owned());
    lines.extend((0..members).map(|member| describe::member(world, last, member)));
    lines.push(describe::history(world, last));
    lines.push(world.wrong(last).unwrap_or_default());
    lines.join("\n")
}
