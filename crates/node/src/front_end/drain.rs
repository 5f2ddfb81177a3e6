//! How a process that was told to stop takes leave of its Redis clients.
//!
//! What they have in flight is answered; commands that come later are refused with an error that says so. A connection
//! is closed when nothing of it is unanswered and it has sent nothing for a moment: so a client that waits for its last
//! reply, or is about to read it, has it before the connection ends.

use std::collections::HashMap;
use std::time::Duration;

use syros_types::Instant;

/// A connection that has sent nothing for so long is quiet: a few round trips of a network.
const QUIET: Duration = Duration::from_millis(50);

/// How often connections are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The end of a process, once it has begun.
#[derive(Debug)]
pub(super) struct Drain {
    patience: Duration,
    /// When what is unanswered is given up; `None`: the process is not to stop.
    until: Option<Instant>,
    look_at: Instant,
    /// By address: commands received so far, and since when that has not changed.
    seen: HashMap<u64, (u64, Instant)>,
}

impl Drain {
    /// For a process that gives its clients so long when it stops.
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, until: None, look_at: Instant::NEVER, seen: HashMap::new() }
    }

    /// The process stops.
    pub(super) fn begin(&mut self, now: Instant) {
        self.until = Some(now.after(self.patience));
    }

    pub(super) const fn is_stopping(&self) -> bool {
        self.until.is_some()
    }

    /// True if clients have had the time they are given.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now >= until)
    }

    /// The connections are to be looked at again soon.
    pub(super) fn look_again(&mut self, now: Instant) {
        self.look_at = now.after(LOOK_INTERVAL);
    }

    /// When to look at the connections again.
    pub(super) const fn deadline(&self) -> Instant {
        self.look_at
    }

    /// Looks at the connection with this address, which has received so many commands and `is_busy` if something of it is
    /// unanswered, unsent or unread. True if it can be closed.
    pub(super) fn is_quiet(&mut self, now: Instant, address: u64, commands: u64, is_busy: bool) -> bool {
        let (before, since) = *self.seen.entry(address).or_insert((commands, now));
        let is_busy = is_busy || before != commands;
        if is_busy {
            self.seen.insert(address, (commands, now));
        }
        !is_busy && now.since(since) >= QUIET
    }
}
