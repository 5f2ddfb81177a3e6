//! Linearizability (Herlihy and Wing, 1990) of a history: is there one order of the operations, each
//! somewhere within its real time, in which one copy of the data would have given the same answers?
//!
//! The search is Wing and Gong's, just in time and with the memory of visited configurations of Lowe
//! ("Testing for linearizability", 2017), separately for every set of keys that no operation joins
//! to other keys. `search` says what else keeps it short.

mod component;
mod constraints;
mod explain;
mod placeable;
mod search;
mod values;

use crate::history::History;
use component::Component;
use search::{Answer, Effort, Search};

/// A budget of steps that takes a few seconds and some hundred megabytes at the very most; ordinary
/// histories of a thousand operations need a few thousand steps.
pub const STEPS_DEFAULT: u64 = 20_000_000;

/// What can be said of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is such an order.
    Linearizable,
    /// There is none.
    Violation {
        /// The keys whose operations have none, with all keys that operations join to them.
        keys: Vec<u32>,
        /// The longest part that has an order, and what cannot follow it. For people.
        explanation: String,
    },
    /// The budget did not suffice. Not a pass: whoever asks should look at the history, or ask again
    /// with a larger budget.
    Undecided {
        /// The keys in question.
        keys: Vec<u32>,
        /// Steps taken on them.
        steps: u64,
    },
}

/// Judges a history with [`STEPS_DEFAULT`] steps for every component of its keys.
#[must_use]
pub fn check(history: &History) -> Verdict {
    check_within(history, STEPS_DEFAULT)
}

/// Judges a history with at most `steps` attempts to place an operation, for every component of its
/// keys. A violation of one component outweighs doubts about another.
#[must_use]
pub fn check_within(history: &History, steps: u64) -> Verdict {
    let mut doubt = None;
    for component in Component::split(history) {
        match judge(&component, steps) {
            Verdict::Linearizable => {}
            Verdict::Undecided { keys, steps } => doubt = doubt.or(Some(Verdict::Undecided { keys, steps })),
            violation @ Verdict::Violation { .. } => return violation,
        }
    }
    doubt.unwrap_or(Verdict::Linearizable)
}

fn judge(component: &Component<'_>, steps: u64) -> Verdict {
    // First without the unknown operations that nobody seems to have noticed. An order found without
    // them is an order; only if there is none do they have to be tried too.
    let likely = if component.has_unknown() { steps / 2 } else { steps };
    let mut found = Search::run(component, Effort::Likely, likely);
    let mut spent = 0;
    if component.has_unknown() && matches!(found.answer, Answer::NoLikelyOrder | Answer::OutOfSteps) {
        spent = found.steps;
        found = Search::run(component, Effort::Everything, steps.saturating_sub(spent));
    }
    let keys = component.keys.clone();
    match found.answer {
        Answer::Order => Verdict::Linearizable,
        Answer::NoOrder | Answer::NoLikelyOrder => {
            Verdict::Violation { keys, explanation: explain::explain(component, &found.farthest) }
        }
        Answer::OutOfSteps => Verdict::Undecided { keys, steps: spent + found.steps },
    }
}
