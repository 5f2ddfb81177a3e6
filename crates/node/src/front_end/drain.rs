//! How a process that was told to stop takes leave of its Redis clients.
//!
//! What they have in flight is answered; commands that come later are refused with an error that says so. A connection
//! is closed when nothing of it is unanswered and it has sent nothing for a moment: so a client that waits for its last
//! reply, or is about to read it, has it before the connection ends. One that asks all the time gets errors for a second, time
//! enough to send what it is about to send and to read all answers, and looks for another node then.

use std::collections::HashMap;
use std::time::Duration;

use syros_types::Instant;

/// A connection that has sent nothing for so long is quiet: a few round trips of a network.
const QUIET: Duration = Duration::from_millis(50);

/// A connection that never pauses is closed so long after the first command that came too late, when nothing of it is unanswered.
const REFUSED: Duration = Duration::from_secs(1);

/// How often connections are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// The end of a process, once it has begun.
#[derive(Debug)]
pub(super) struct Drain {
    patience: Duration,
    /// When what is unanswered is given up; `None`: the process is not to stop.
    until: Option<Instant>,
    look_at: Instant,
    seen: HashMap<u64, Seen>,
}

/// A connection, as it was seen since the end began.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Commands received when it was first looked at: those that came later have been refused.
    at_first: u64,
    /// When the first of those had come.
    refused: Option<Instant>,
    /// Commands received so far.
    commands: u64,
    /// Since when nothing has been unanswered, and no command has come.
    since: Instant,
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
        let seen = self.seen.entry(address).or_insert(Seen {
            at_first: commands,
            refused: None,
            commands,
            since: now,
        });
        if is_busy || seen.commands != commands {
            *seen = Seen { commands, since: now, ..*seen };
        }
        if commands > seen.at_first {
            seen.refused.get_or_insert(now);
        }
        let is_told = seen.refused.is_some_and(|refused| now.since(refused) >= REFUSED);
        !is_busy && (is_told || now.since(seen.since) >= QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant(millis * 1_000_000)
    }

    #[test]
    fn a_connection_ends_when_it_is_quiet_or_has_been_refused_commands_for_a_second() {
        let mut drain = Drain::new(Duration::from_secs(5));
        drain.begin(at(0));
        // The first waits for a reply until 30 ms; the second asks every 10 ms.
        assert!(!drain.is_quiet(at(0), 1, 7, true) && !drain.is_quiet(at(10), 1, 7, true));
        assert!(!drain.is_quiet(at(30), 1, 7, true) && !drain.is_quiet(at(70), 1, 7, false));
        assert!(drain.is_quiet(at(80), 1, 7, false));
        let ends = (0..500).find(|look| drain.is_quiet(at(look * 10), 2, 9 + look, look % 2 == 0));
        assert_eq!(ends, Some(101), "all of it is answered");
    }
}
