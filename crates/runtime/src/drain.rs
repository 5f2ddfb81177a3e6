//! How a process that was told to stop takes leave of its Redis clients.
//!
//! What they have in flight is answered; commands that come later are refused with an error that says so. A connection
//! is closed when nothing of it is unanswered and it has sent nothing for a moment: so a client that waits for its last
//! reply, or is about to read it, has it before the connection ends.

use std::collections::HashMap;
use std::time::Duration;

use syros_types::Instant;

use crate::connection::{Kind, Open};

/// A connection that has sent nothing for so long is quiet: a few round trips of a network.
const QUIET: Duration = Duration::from_millis(50);

/// How often connections are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Whether a connection can be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quiet {
    /// It is not a Redis client's.
    NotOurs,
    /// Something is unanswered, or it has just sent something.
    No,
    /// Nobody will miss it.
    Yes,
}

/// The end of a process, once it has begun.
#[derive(Debug)]
pub(crate) struct Drain {
    patience: Duration,
    /// When what is unanswered is given up; `None`: the process is not to stop.
    until: Option<Instant>,
    look_at: Instant,
    /// By address: commands received so far, and since when that has not changed.
    seen: HashMap<u64, (u64, Instant)>,
}

impl Drain {
    /// For a process that gives its clients so long when it stops.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { patience, until: None, look_at: Instant::NEVER, seen: HashMap::new() }
    }

    /// The process stops.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.until = Some(now.after(self.patience));
    }

    pub(crate) const fn is_stopping(&self) -> bool {
        self.until.is_some()
    }

    /// True if clients have had the time they are given.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now >= until)
    }

    /// The connections are to be looked at again soon.
    pub(crate) fn look_again(&mut self, now: Instant) {
        self.look_at = now.after(LOOK_INTERVAL);
    }

    /// When to look at the connections again.
    pub(crate) const fn deadline(&self) -> Instant {
        self.look_at
    }

    /// Looks at a connection.
    pub(crate) fn judge(&mut self, now: Instant, open: &mut Open) -> Quiet {
        let Kind::Redis(redis) = &open.kind else { return Quiet::NotOurs };
        let is_idle = redis.outstanding() == 0 && redis.output().is_empty() && open.net.backlog() == 0;
        let commands = redis.commands();
        let (before, since) = *self.seen.entry(open.address).or_insert((commands, now));
        let is_busy = !is_idle || open.is_queued || !open.net.received().is_empty() || before != commands;
        if is_busy {
            self.seen.insert(open.address, (commands, now));
        }
        if !is_busy && now.since(since) >= QUIET { Quiet::Yes } else { Quiet::No }
    }
}
