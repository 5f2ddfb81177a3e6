//! What a process tells of itself over HTTP: a dashboard for people, `/metrics` for Prometheus, `/livez` and `/readyz` for whoever
//! starts and ends processes.
//!
//! A thread of its own accepts connections, and each has a thread for a moment, so that a slow or silent client keeps nobody
//! waiting. Nothing is counted for it: the event loop is asked when somebody asks, and answers in its next turn. So `/livez`
//! fails if the loop stands still, and a process that nobody asks pays nothing.

mod dashboard;
mod exposition;
mod health;
mod host;
mod places;
mod server;
mod snapshot;
mod told;

pub use exposition::{CONTENT_TYPE, exposition};
pub use health::not_ready;
pub use server::{ANSWER_TIMEOUT, CONNECTIONS_MAX, Server};
pub use snapshot::snapshot;
pub use told::{
    Answer, Distribution, Member, MemberReport, Members, Peer, ReplicaActivity, Source, ToBe, Told,
    TraceActivity, Way,
};
