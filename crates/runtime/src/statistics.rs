//! Counters of a process's clients, for INFO.

use std::cell::Cell;

use syros_wire::FrameError;

/// Counters of INFO. Cells, because whoever asks for them may reset them while the front end is lent out.
#[derive(Default)]
pub(crate) struct Statistics {
    /// Connections accepted since the start.
    connections: Cell<u64>,
    connections_at_reset: Cell<u64>,
    /// Connections of Redis clients refused since the last reset, because there were as many as may be.
    pub(crate) rejected: Cell<u64>,
    /// Connections of clients of both kinds refused since the last reset, because there were as many from their address as
    /// may be. Those of Redis clients count above, too.
    pub(crate) rejected_by_address: Cell<u64>,
    /// Commands received since the last reset.
    pub(crate) commands: Cell<u64>,
    /// Frames that were damaged on their way, since the last reset.
    pub(crate) damaged_frames: Cell<u64>,
    /// Subscribers whose connections were closed because they did not take their messages, since the last reset.
    pub(crate) subscribers_closed: Cell<u64>,
}

impl Statistics {
    /// Counts a connection, and returns its number.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.set(self.connections.get() + 1);
        self.connections.get()
    }

    /// Connections accepted since the last reset.
    pub(crate) fn connections_since_reset(&self) -> u64 {
        self.connections.get() - self.connections_at_reset.get()
    }

    /// What came is no frame: counts it if it was damaged on its way.
    pub(crate) fn no_frame(&self, error: FrameError) -> String {
        if matches!(error, FrameError::Checksum { .. }) {
            self.damaged_frames.set(self.damaged_frames.get() + 1);
        }
        error.to_string()
    }

    pub(crate) fn reset(&self) {
        self.damaged_frames.set(0);
        self.rejected.set(0);
        self.rejected_by_address.set(0);
        self.subscribers_closed.set(0);
        self.connections_at_reset.set(self.connections.get());
        self.commands.set(0);
    }
}
