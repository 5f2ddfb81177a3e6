//! Model checking: the real drivers and cores under every order of events, within bounds.
//!
//! A model is a small cluster: members, clients, the operations they issue, and how often timers end,
//! messages are duplicated, replicas restart. The search visits every state that can follow, the
//! shortest paths first, and asks of each one: could one copy of the data have answered the clients
//! like that, do the committed logs agree, did an assertion fail? `docs/MODEL.md` says what is modelled
//! and what is not.
#![forbid(unsafe_code)]

mod catalogue;
mod client;
mod describe;
mod history;
mod machine;
mod mixed;
mod node;
mod script_step;
mod search;
mod setup;
#[cfg(test)]
mod tests;
mod world;

pub use catalogue::Model;
pub use search::{Counterexample, Report};
pub use syros_protocol::replica::PlantedBug;

/// Every model.
#[must_use]
pub fn models() -> Vec<Model> {
    [catalogue::models(), mixed::models()].concat()
}
