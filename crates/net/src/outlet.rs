//! What an event loop shares of a connection with other threads: the way out.

use crate::outbound::{FlushOutcome, Outbound};
use crate::tls::TlsSession;
use mio::net::TcpStream;
use std::io::Result;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A socket, and what is to be sent on it before anything else.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) stream: TcpStream,
    /// Held during a write, so that what different threads send is not mixed.
    way_out: Mutex<WayOut>,
}

/// What is to be sent, and what encrypts it.
#[derive(Debug, Default)]
pub(crate) struct WayOut {
    outbound: Outbound,
    tls: Option<TlsSession>,
}

impl WayOut {
    /// Takes over output behind what there is: encrypted, if the connection is. Leaves an empty buffer.
    fn take(&mut self, fresh: &mut Vec<u8>) -> Result<()> {
        match &mut self.tls {
            None => self.outbound.take(fresh),
            Some(tls) => {
                tls.encrypt(fresh, self.outbound.sink())?;
                crate::outbound::empty(fresh);
            }
        }
        Ok(())
    }

    /// As [`Self::take`], of output that is not given up.
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match &mut self.tls {
            None => self.outbound.append(bytes),
            Some(tls) => tls.encrypt(bytes, self.outbound.sink())?,
        }
        Ok(())
    }

    /// At most one write.
    fn write_to(&mut self, stream: &TcpStream) -> (FlushOutcome, Option<usize>) {
        self.outbound.write_to(&mut &*stream)
    }

    /// The session that decrypts what comes; `None` if the connection is not encrypted.
    pub(crate) const fn tls(&mut self) -> Option<&mut TlsSession> {
        self.tls.as_mut()
    }

    /// Sends what the session itself has to say, such as its part of a handshake, with at most one write. What the
    /// socket does not take, and whether it failed, an event tells.
    pub(crate) fn answer(&mut self, stream: &TcpStream) {
        if let Some(tls) = &mut self.tls
            && tls.has_answer()
        {
            tls.take_answer(self.outbound.sink());
            let _ = self.write_to(stream);
        }
    }

    const fn unsent(&self) -> UnsentBytes {
        let tls = match &self.tls {
            Some(tls) => tls.memory_bytes(),
            None => 0,
        };
        UnsentBytes { bytes: self.outbound.backlog(), memory_bytes: self.outbound.memory_bytes() + tls }
    }
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, tls: Option<TlsSession>) -> Self {
        Self { stream, way_out: Mutex::new(WayOut { outbound: Outbound::default(), tls }) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, WayOut> {
        // Nothing panics while it holds the lock.
        self.way_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What waits, and whether that is because the socket is full.
    pub(crate) fn state(&self) -> (UnsentBytes, bool) {
        let way_out = self.lock();
        (way_out.unsent(), way_out.outbound.is_blocked())
    }

    /// The socket takes output again. What waits for that.
    pub(crate) fn unblock(&self) -> UnsentBytes {
        let mut way_out = self.lock();
        way_out.outbound.unblock();
        way_out.unsent()
    }

    /// At most one write, of what there is and then of `fresh`, which it empties. Beside the outcome: the
    /// bytes written, if there was a write, and those that are left.
    pub(crate) fn flush(&self, fresh: &mut Vec<u8>) -> (FlushOutcome, Option<usize>, UnsentBytes) {
        let mut way_out = self.lock();
        let (outcome, written) = match way_out.take(fresh) {
            Ok(()) => way_out.write_to(&self.stream),
            Err(error) => (FlushOutcome::Failed(error), None),
        };
        (outcome, written, way_out.unsent())
    }
}

impl Drop for Socket {
    /// Tells the other end of an encrypted connection that it ends here, if the socket takes that: else the other end has
    /// to ask itself whether somebody has cut off what was to come.
    fn drop(&mut self) {
        let way_out = self.way_out.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(tls) = &mut way_out.tls {
            tls.end();
            way_out.answer(&self.stream);
        }
    }
}

/// What lies with a socket.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnsentBytes {
    /// Bytes that the socket has not taken yet.
    pub(crate) bytes: usize,
    /// Bytes of memory that their buffer takes, and what encrypts them.
    pub(crate) memory_bytes: usize,
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
        let mut way_out = socket.lock();
        // Whatever comes of it comes to the event loop as well.
        if way_out.append(frames).is_ok() {
            let _ = way_out.write_to(&socket.stream);
        }
    }
}
