//! What a process tells of itself over HTTP: `/metrics` for Prometheus, `/livez` and `/readyz` for whoever starts and ends
//! processes.
//!
//! A thread of its own accepts connections, and each has a thread for a moment, so that a slow or silent client keeps nobody
//! waiting. Nothing is counted for it: the event loop is asked when somebody asks, and answers in its next turn. So `/livez`
//! fails if the loop stands still, and a process that nobody asks pays nothing.

mod exposition;
mod health;
mod server;

pub use exposition::{CONTENT_TYPE, exposition};
pub use health::not_ready;
pub use server::{ANSWER_TIMEOUT, CONNECTIONS_MAX, Server};

use std::sync::Arc;
use syros_resp::{ServerReport, Statistics};

/// What the event loop says when it is asked.
#[derive(Clone, Debug)]
pub struct Told {
    /// How the process is.
    pub report: ServerReport,
    /// What its connections have done.
    pub statistics: Arc<Statistics>,
}

/// What has come of asking the event loop.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It answered.
    Told(Box<Told>),
    /// There is no loop yet: the process reads back what its disk holds, or starts anew.
    Starting,
    /// It did not answer within [`ANSWER_TIMEOUT`].
    Silent,
}
