//! What an event loop shares of a connection with other threads: the way out.

use crate::outbound::{FlushOutcome, Outbound};
use mio::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A socket, and what is to be sent on it before anything else.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
    /// Held during a write, so that what different threads send is not mixed.
    outbound: Mutex<Outbound>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, outbound: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Outbound> {
        // Nothing panics while it holds the lock.
        self.outbound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What waits, and whether that is because the socket is full.
    pub(crate) fn state(&self) -> (UnsentBytes, bool) {
        let outbound = self.lock();
        (UnsentBytes::of(&outbound), outbound.is_blocked())
    }

    /// The socket takes output again. What waits for that.
    pub(crate) fn unblock(&self) -> UnsentBytes {
        let mut outbound = self.lock();
        outbound.unblock();
        UnsentBytes::of(&outbound)
    }

    /// At most one write, of what there is and then of `fresh`, which it empties. Beside the outcome: the
    /// bytes written, if there was a write, and those that are left.
    pub(crate) fn flush(&self, fresh: &mut Vec<u8>) -> (FlushOutcome, Option<usize>, UnsentBytes) {
        let mut outbound = self.lock();
        outbound.take(fresh);
        let (outcome, written) = outbound.write_to(&mut &self.stream);
        (outcome, written, UnsentBytes::of(&outbound))
    }
}

/// What lies with a socket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnsentBytes {
    /// Bytes that the socket has not taken yet.
    pub(crate) bytes: usize,
    /// Bytes of memory that their buffer takes.
    pub(crate) memory_bytes: usize,
}

impl UnsentBytes {
    const fn of(outbound: &Outbound) -> Self {
        Self { bytes: outbound.backlog(), memory_bytes: outbound.memory_bytes() }
    }
}

/// A way for another thread than the event loop's to send on a connection, for as long as that is open.
#[derive(Clone, Debug)]
pub struct Outlet(Weak<Socket>);

impl Outlet {
    pub(crate) fn new(socket: &Arc<Socket>) -> Self {
        Self(Arc::downgrade(socket))
    }

    /// Sends whole frames, behind what the socket has not taken of earlier ones, with at most one write. What it does
    /// not take now is left to the event loop: an event tells that of the room, or of the failure.
    pub fn send(&self, frames: &[u8]) {
        let Some(socket) = self.0.upgrade() else { return };
        let mut outbound = socket.lock();
        outbound.append(frames);
        // Whatever comes of it comes to the event loop as well.
        let _ = outbound.write_to(&mut &socket.stream);
    }
}
