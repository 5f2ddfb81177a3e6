//! A connection: a socket and its two buffers.

use crate::counters::Counters;
use crate::inbound::{Inbound, ReadOutcome};
use crate::outbound::FlushOutcome;
use crate::outlet::{Outlet, Socket, UnsentBytes};
use crate::tls::TlsSession;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::Result;
use std::net::SocketAddr;
use std::sync::Arc;
use syros_types::limits::FRAME_BYTES_MAX;
use syros_wire::{CLIENT_FRAME_BYTES_MAX, FRAME_OVERHEAD_BYTES, Frame, FrameError};

/// Limits of a connection's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest frame that may come, in bytes after its length field.
    pub frame_bytes_max: usize,
    /// Output that the socket has not taken, in bytes, from which on the connection counts as clogged.
    /// One message may go above it, so that any can be sent.
    pub backlog_bytes_max: usize,
}

impl Limits {
    /// A connection that a client made. Its requests are bounded by the largest operation; a client that
    /// does not read its answers may hold 16 MiB of them, about a second's worth on a fast network.
    pub const CLIENT: Self =
        Self { frame_bytes_max: CLIENT_FRAME_BYTES_MAX, backlog_bytes_max: 16 * 1024 * 1024 };

    /// A connection between nodes, or of a client to a node: any frame may come. The peer is trusted to
    /// read; one that has stopped for longer than 64 MiB of messages gets the later ones by asking again.
    pub const NODE: Self = Self { frame_bytes_max: FRAME_BYTES_MAX, backlog_bytes_max: 64 * 1024 * 1024 };
}

/// A connected socket and its buffers. Does at most one system call at a time, only when told to. (A TLS session may write in the
/// midst of a read, which it does for its handshake.)
#[derive(Debug)]
pub struct Connection {
    socket: Arc<Socket>,
    is_encrypted: bool,
    inbound: Inbound,
    /// Output since the last flush. What was not taken then lies with the socket.
    fresh: Vec<u8>,
    /// What lay with the socket when that was looked at last.
    left: UnsentBytes,
    /// The socket was full then, and no event has said otherwise since.
    is_blocked: bool,
    limits: Limits,
    /// A read may find something.
    is_readable: bool,
    /// The peer has shut down its side, or the socket failed: reads must go on until they say so.
    is_read_closed: bool,
    counters: Counters,
}

impl Connection {
    /// Takes over a stream that was accepted, and registers it for events with `token`. With a session, all that goes
    /// through it is encrypted.
    ///
    /// # Errors
    /// Whatever the system says; the stream is closed then.
    pub fn register(
        mut stream: TcpStream,
        limits: Limits,
        registry: &Registry,
        token: Token,
        tls: Option<TlsSession>,
    ) -> Result<Self> {
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Self::adopt(stream, limits, tls)
    }

    /// Takes over a stream that is registered for reading and writing already, as
    /// [`Dialing`](crate::Dialing) leaves it. With a session, all that goes through it is encrypted.
    ///
    /// # Errors
    /// Whatever the system says; the stream is closed then.
    pub fn adopt(stream: TcpStream, limits: Limits, tls: Option<TlsSession>) -> Result<Self> {
        // Every write is a batch already: holding it back for more would only cost time.
        stream.set_nodelay(true)?;
        let is_encrypted = tls.is_some();
        Ok(Self {
            socket: Arc::new(Socket::new(stream, tls)),
            is_encrypted,
            // Room for one whole frame, wherever it begins.
            inbound: Inbound::new(limits.frame_bytes_max.saturating_add(2 * FRAME_OVERHEAD_BYTES)),
            fresh: Vec::new(),
            left: UnsentBytes::default(),
            is_blocked: false,
            limits,
            // Something may have come before the registration; the first read finds out.
            is_readable: true,
            is_read_closed: false,
            counters: Counters::default(),
        })
    }

    /// Takes note of an event of this connection.
    pub fn on_event(&mut self, event: &mio::event::Event) {
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.is_readable = true;
        }
        if event.is_read_closed() || event.is_error() {
            self.is_read_closed = true;
        }
        if event.is_writable() || event.is_write_closed() || event.is_error() {
            self.left = self.socket.unblock();
            self.is_blocked = false;
        }
    }

    /// True if a read may find something: an event said so, and no read has since found the socket empty.
    #[must_use]
    pub const fn is_readable(&self) -> bool {
        self.is_readable
    }

    /// True if an event said that the other end sends no more: what it has sent may not have been read yet.
    #[must_use]
    pub const fn is_read_closed(&self) -> bool {
        self.is_read_closed
    }

    /// Bytes by which the next read will let the input buffer grow first: whoever has a budget for that looks before.
    #[must_use]
    pub fn growth_ahead(&mut self) -> usize {
        self.inbound.growth_ahead()
    }

    /// Bytes of memory that both buffers take, in use or not.
    #[must_use]
    pub const fn memory_bytes(&self) -> usize {
        self.inbound.memory_bytes() + self.fresh.capacity() + self.left.memory_bytes
    }

    /// Gives up a large input buffer that is empty.
    pub fn give_back(&mut self) {
        self.inbound.give_back();
    }

    /// One read. The time that counts as the arrival of what it finds must be taken *after* it.
    pub fn read(&mut self) -> ReadOutcome {
        if self.is_encrypted {
            return self.read_encrypted();
        }
        self.counters.reads += 1;
        let (outcome, room) = self.inbound.read_from(&mut &self.socket.stream);
        match outcome {
            ReadOutcome::Received(count) => {
                self.counters.bytes_in += count as u64;
                // epoll(7): a short read of a stream socket says that it was emptied. If its end is known
                // to follow, there will be no other event for it.
                self.is_readable = count == room || self.is_read_closed;
            }
            ReadOutcome::Nothing | ReadOutcome::Closed | ReadOutcome::Failed(_) => self.is_readable = false,
            ReadOutcome::Full => {}
        }
        outcome
    }

    /// As [`Self::read`]. What comes along may grow the input buffer once more than [`Self::growth_ahead`] says, by no more
    /// than one read.
    fn read_encrypted(&mut self) -> ReadOutcome {
        let mut way_out = self.socket.lock();
        let Some(tls) = way_out.tls() else { return ReadOutcome::Nothing };
        let (outcome, has_more) =
            tls.read_into(&mut self.inbound, &mut &self.socket.stream, &mut self.counters);
        self.is_readable = has_more || (self.is_read_closed && matches!(outcome, ReadOutcome::Received(_)));
        if matches!(outcome, ReadOutcome::Closed | ReadOutcome::Failed(_)) {
            self.is_readable = false;
        }
        // Its part of a handshake, or why it fails.
        way_out.answer(&self.socket.stream);
        outcome
    }

    /// The certificate of the other end, if it has shown one; as DER.
    #[must_use]
    pub fn peer_certificate(&self) -> Option<Vec<u8>> {
        let mut way_out = self.socket.lock();
        let chain = way_out.tls()?.session().peer_certificates()?;
        chain.first().map(|certificate| certificate.to_vec())
    }

    /// True if a TLS session encrypts all that goes through the connection.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Takes the next frame off what has been received, if it is there whole.
    ///
    /// # Errors
    /// [`FrameError`] if the bytes are no frame, or it is above the limit: the connection is of no more use.
    pub fn next_frame(&mut self) -> std::result::Result<Option<Frame<'_>>, FrameError> {
        self.inbound.next_frame(self.limits.frame_bytes_max)
    }

    /// What has been received and not been consumed, for protocols without frames.
    #[must_use]
    pub fn received(&self) -> &[u8] {
        self.inbound.received()
    }

    /// Drops the first `count` bytes received.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn consume(&mut self, count: usize) {
        self.inbound.consume(count);
    }

    /// The inbound half, for input that is answered straight from its buffer.
    pub const fn inbound(&mut self) -> &mut Inbound {
        &mut self.inbound
    }

    /// The buffer to append output to, and nothing else: whole frames, if the connection has an outlet.
    pub const fn outbound(&mut self) -> &mut Vec<u8> {
        &mut self.fresh
    }

    /// A way for another thread to send on this connection; none while the socket is full. What it is given and the
    /// socket does not take shows in [`Connection::backlog`] from the next event, flush or outlet on.
    #[must_use]
    pub fn outlet(&mut self) -> Option<Outlet> {
        (self.left, self.is_blocked) = self.socket.state();
        (!self.is_blocked).then(|| Outlet::new(&self.socket))
    }

    /// Bytes of output that the socket has not taken yet.
    #[must_use]
    pub const fn backlog(&self) -> usize {
        self.fresh.len() + self.left.bytes
    }

    /// True if output has gathered beyond the limit: the peer does not read. Who serves a client stops
    /// reading from it until this ends; who sends messages that are sent again anyway drops them.
    #[must_use]
    pub const fn is_clogged(&self) -> bool {
        self.backlog() > self.limits.backlog_bytes_max
    }

    /// True if a flush would do something: there is output, and the socket is not known to be full.
    #[must_use]
    pub const fn wants_flush(&self) -> bool {
        self.backlog() > 0 && !self.is_blocked
    }

    /// At most one write of all that is to be sent.
    pub fn flush(&mut self) -> FlushOutcome {
        let (outcome, written, left) = self.socket.flush(&mut self.fresh);
        self.left = left;
        self.is_blocked = matches!(outcome, FlushOutcome::Blocked);
        if let Some(count) = written {
            self.counters.writes += 1;
            self.counters.bytes_out += count as u64;
        }
        outcome
    }

    /// The other end.
    ///
    /// # Errors
    /// Whatever the system says, such as that there is none any more.
    pub fn peer_address(&self) -> Result<SocketAddr> {
        self.socket.stream.peer_addr()
    }

    /// When this connection is closed, the system drops what the other end has not taken. Otherwise it keeps that for minutes, in
    /// memory that nobody counts, for an end that may never take it: thousands of such ends slow down every connection of the
    /// machine.
    ///
    /// # Errors
    /// Whatever the system says.
    pub fn drop_untaken(&self) -> Result<()> {
        socket2::SockRef::from(&self.socket.stream).set_linger(Some(std::time::Duration::ZERO))
    }

    /// What the connection has done so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }
}
