//! The end of a process: another replica leads, clients get what they wait for, and the log is written out.

use std::io;
use std::time::Duration;

use mio::Events;
use syros_protocol::replica;

use super::EventLoop;

/// When a leader stops, another one has to lead within this time.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(1);

/// When a process stops, what it has done is written out within this time.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

impl EventLoop {
    /// Lets another replica lead before this one goes, so that nobody has to find out.
    pub(super) fn hand_over(&mut self, events: &mut Events) -> io::Result<()> {
        let Some(local) = &mut self.local else { return Ok(()) };
        if !local.replica().is_leader() {
            return Ok(());
        }
        self.now = self.clock.now();
        local.handle(self.now, replica::Event::StepDown);
        let deadline = self.now.instant.after(HAND_OVER_TIMEOUT);
        while self.local.as_ref().is_some_and(|local| !local.replica().is_normal())
            && self.now.instant < deadline
        {
            self.turn(events)?;
        }
        Ok(())
    }

    /// Answers what Redis clients have in flight before the process ends: no new connections; commands that come now
    /// are refused; a connection without anything unanswered is closed when it has been quiet for a moment.
    pub(super) fn drain_clients(&mut self, events: &mut Events) -> io::Result<()> {
        self.redis_listener = None;
        self.redis_tls_listener = None;
        self.now = self.clock.now();
        self.front_end.begin_drain(self.now);
        loop {
            self.now = self.clock.now();
            let mut open = 0;
            for index in 0..self.table.len() {
                match self.is_quiet(index) {
                    None => {}
                    Some(false) => open += 1,
                    Some(true) => self.close(index, "this node is stopping"),
                }
            }
            if open == 0 {
                return Ok(());
            }
            if self.front_end.is_drain_over(self.now) {
                tracing::warn!(
                    node = self.node(),
                    connections = open,
                    "this node stops, and cuts connections of Redis clients whose commands have no answer yet"
                );
                return Ok(());
            }
            self.front_end.look_again(self.now);
            self.turn(events)?;
        }
    }

    /// Whether the Redis connection at this place can be closed when the process stops; `None` if there is none.
    pub(super) fn is_quiet(&mut self, index: usize) -> Option<bool> {
        let open = self.table.open_mut(index).filter(|open| open.is_redis())?;
        let has_bytes = open.net.backlog() > 0 || open.is_queued || !open.net.received().is_empty();
        Some(self.front_end.is_quiet(self.now, open.address, has_bytes))
    }

    /// Writes the log out, and sends what waited for it.
    pub(super) fn shut_down(&mut self) {
        let deadline = self.clock.now().instant.after(SHUTDOWN_TIMEOUT);
        while self.local.as_ref().is_some_and(|local| !local.is_drained()) && self.now.instant < deadline {
            std::thread::sleep(Duration::from_millis(1));
            self.now = self.clock.now();
            if let Some(local) = &mut self.local {
                local.on_progress(self.now);
                local.execute(self.now);
            }
            self.dispatch_outputs();
        }
        self.flush();
        let Some(local) = self.local.take() else { return };
        let (node, reason) = (local.me.0, self.stop.reason());
        match local.close() {
            Ok(()) => tracing::info!(node, reason = %reason, "this node has stopped"),
            Err(error) => {
                tracing::error!(node, reason = %reason, error = %error, "this node has stopped, and its log had failed");
            }
        }
    }
}
