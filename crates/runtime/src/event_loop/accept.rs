//! Accepting connections.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Registry, Token};
use syros_net::{Connection, Limits, TlsSession};
use syros_node::{ClientSource, TooManyFromAddress};
use syros_resp::Identity;
use syros_types::Instant;

use super::{EventLoop, REDIS_LISTENER, REDIS_TLS_LISTENER, REPLICA_LISTENER};
use crate::config::GREETING_TIMEOUT;
use crate::connection::{ConnectionEntry, ConnectionKind, OpenConnection};
use crate::socket::{ListenError, configure, configure_link, is_exhausted, listen};
use crate::tls_handshakes::{Accepted, Greeted, Guard, TlsHandshakes};

/// Connections accepted from one listener in one turn; those that are there already have work to do.
const ACCEPTS_PER_TURN: usize = 64;

/// When the system has no file descriptors left, accepting is tried again after this long.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

/// Limits of a Redis connection's buffers.
const REDIS: Limits = Limits {
    // One whole request, and the beginning of the next.
    frame_bytes_max: syros_resp::limits::REQUEST_BYTES_MAX + syros_resp::limits::LINE_BYTES_MAX,
    backlog_bytes_max: syros_resp::limits::REPLY_BYTES_PAUSE,
};

/// A listening socket.
pub(crate) struct Listener {
    socket: TcpListener,
    pub(crate) address: SocketAddr,
    /// A connection may be waiting: an event said so, and none has since been missing.
    pub(crate) is_ready: bool,
    /// Accepting is pointless before this.
    again_at: Instant,
    /// Who comes has to show itself by TLS first.
    guard: Option<Guard>,
}

impl Listener {
    pub(crate) fn open(
        address: SocketAddr,
        purpose: &'static str,
        registry: &Registry,
        token: Token,
        guard: Option<Guard>,
    ) -> Result<Self, ListenError> {
        let mut socket = listen(address, purpose)?;
        let failed = |source| ListenError { address, purpose, source };
        registry.register(&mut socket, token, mio::Interest::READABLE).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address, is_ready: false, again_at: Instant(0), guard })
    }

    /// The same socket, for a thread that accepts while no event loop does.
    pub(crate) fn duplicate(&self) -> io::Result<std::net::TcpListener> {
        rustix::io::dup(&self.socket).map(std::net::TcpListener::from).map_err(Into::into)
    }

    const fn wants_to_accept(&self) -> bool {
        self.is_ready && self.again_at.0 == 0
    }
}

impl EventLoop {
    /// The listener with this token, if the process has it.
    pub(super) const fn listener(&mut self, token: Token) -> Option<&mut Listener> {
        match token {
            REDIS_LISTENER => self.redis_listener.as_mut(),
            REDIS_TLS_LISTENER => self.redis_tls_listener.as_mut(),
            _ => self.replica_listener.as_mut(),
        }
    }

    /// True if a connection may be waiting that can be accepted at once.
    pub(super) fn wants_to_accept(&self) -> bool {
        self.listeners().any(Listener::wants_to_accept)
    }

    /// When to try again to accept what could not be.
    pub(super) fn accept_deadline(&self) -> Instant {
        let deadline = |listener: &Listener| {
            if listener.is_ready { listener.again_at } else { Instant::NEVER }
        };
        self.listeners().map(deadline).min().unwrap_or(Instant::NEVER)
    }

    fn listeners(&self) -> impl Iterator<Item = &Listener> {
        [&self.redis_listener, &self.redis_tls_listener, &self.replica_listener].into_iter().flatten()
    }

    /// Accepts connections that wait.
    pub(super) fn accept_waiting(&mut self) {
        for token in [REDIS_LISTENER, REDIS_TLS_LISTENER, REPLICA_LISTENER] {
            let guard = self.listener(token).and_then(|listener| listener.guard);
            for _ in 0..ACCEPTS_PER_TURN {
                let Some((stream, peer)) = self.accept(token) else { break };
                let accepted = Accepted { listener: token, stream, peer };
                match (guard, &self.tls_handshakes) {
                    (None, _) => self.admit(accepted, None),
                    (Some(guard), Some(handshakes)) => handshakes.begin(accepted, guard),
                    // Nobody can show who he is any more.
                    (Some(_), None) => {}
                }
            }
        }
        for _ in 0..ACCEPTS_PER_TURN {
            let Some(Greeted { accepted, session }) =
                self.tls_handshakes.as_ref().and_then(TlsHandshakes::pop)
            else {
                return;
            };
            // Not if the port was closed meanwhile.
            if self.listener(accepted.listener).is_some() {
                self.admit(accepted, session);
            }
        }
        // There may be more, and no other event tells of them.
        let _ = self.waker.wake();
    }

    /// Accepts the next connection of a listener, if there is one.
    pub(super) fn accept(&mut self, token: Token) -> Option<(TcpStream, SocketAddr)> {
        let now = self.now.instant;
        let listener = self.listener(token)?;
        if !listener.is_ready || listener.again_at > now {
            return None;
        }
        listener.again_at = Instant(0);
        match listener.socket.accept() {
            Ok(accepted) => return Some(accepted),
            Err(error) if error.kind() == ErrorKind::WouldBlock => listener.is_ready = false,
            Err(error) if is_exhausted(&error) => {
                // The connection stays in the queue; trying at once would only burn the processor.
                listener.again_at = now.after(EXHAUSTED_PAUSE);
                let node = self.node();
                tracing::warn!(node, error = %error, "cannot accept a connection");
            }
            // The connection was gone before it was accepted; there may be others.
            Err(_) => {}
        }
        None
    }

    /// Takes in a connection that was accepted.
    fn admit(&mut self, accepted: Accepted, session: Option<TlsSession>) {
        let Accepted { listener, mut stream, peer } = accepted;
        let is_redis = listener != REPLICA_LISTENER;
        // Other replicas always get in: without them there is nothing to serve clients with. Who comes to their port
        // is counted when it has said who it is.
        let source = ClientSource::from(peer.ip());
        let counted = if is_redis { self.count_redis_client(source, peer) } else { Ok(()) };
        if let Err(refusal) = counted {
            // A courtesy; if the socket does not take it, never mind.
            let _ = match session {
                None => stream.write(refusal.as_bytes()).map(drop),
                Some(session) => session.send_last(refusal.as_bytes(), &mut stream),
            };
            return;
        }
        let (index, address) = self.table.reserve();
        let configured = if is_redis { configure(&stream) } else { configure_link(&stream) };
        let local = stream.local_addr();
        let limits = if is_redis { REDIS } else { Limits::NODE };
        let opened = configured
            .and_then(|()| Connection::register(stream, limits, self.poll.registry(), Token(index), session));
        let net = match opened {
            Ok(net) => net,
            Err(error) => {
                let node = self.node();
                tracing::warn!(node, peer = %peer, error = %error, "lost a connection while it was taken in");
                if is_redis {
                    self.client_addresses.leave(source);
                }
                return self.table.release(index);
            }
        };
        let kind = if is_redis {
            let local_address = local.map(|local| local.to_string()).unwrap_or_default();
            let id = self.statistics.next_connection();
            let identity = Identity { id, address: peer.to_string(), local_address };
            self.clients += 1;
            let mut redis = self.front_end.new_connection(identity, self.now);
            if net.peer_certificate().is_some() {
                redis.note_certificate();
            }
            self.front_end.open(address, redis);
            ConnectionKind::Redis
        } else {
            self.greetings.push(self.now.instant.after(GREETING_TIMEOUT), address);
            self.make_room_for_unidentified();
            self.unidentified.push_back(address);
            ConnectionKind::Greeting(Box::default())
        };
        let mut open = OpenConnection::new(net, kind, address, Some(peer));
        open.counted = is_redis.then_some(source);
        self.table.fill(index, ConnectionEntry::Open(open));
        // Its first bytes may have come before it was registered.
        self.queue(index);
    }

    /// Counts a Redis client by its address; what it is told if there is no place for it.
    fn count_redis_client(&mut self, source: ClientSource, peer: SocketAddr) -> Result<(), String> {
        let (node, limit) = (self.node(), self.description.clients_max.get());
        let refusal = if self.clients >= limit {
            tracing::warn!(node, peer = %peer, limit, "refused a connection of a Redis client: as many as may be are open");
            "-ERR max number of clients reached\r\n".to_owned()
        } else {
            let limit = self.description.clients_per_address_max.get();
            let Err(refused) = self.client_addresses.enter(source, limit) else { return Ok(()) };
            let TooManyFromAddress { open, limit, .. } = refused;
            tracing::warn!(
                node,
                peer = %peer,
                open,
                limit,
                "refused a connection of a Redis client: as many as may be are open from its address"
            );
            self.statistics.rejected_by_address.set(self.statistics.rejected_by_address.get() + 1);
            format!("-ERR max number of clients reached for this address: {refused}\r\n")
        };
        self.statistics.rejected.set(self.statistics.rejected.get() + 1);
        Err(refusal)
    }

    /// Forgets the connections whose other end has said who it is, and closes the oldest one whose other end has not, if
    /// there are as many as there may be.
    pub(super) fn make_room_for_unidentified(&mut self) {
        if self.unidentified.len() < self.descriptors.unidentified {
            return;
        }
        let table = &mut self.table;
        self.unidentified
            .retain(|address| table.find(*address).is_some_and(|index| table.is_unidentified(index)));
        if self.unidentified.len() < self.descriptors.unidentified {
            return;
        }
        let oldest = self.unidentified.pop_front().and_then(|address| self.table.find(address));
        if let Some(index) = oldest {
            self.refuse(index, "it has not said who it is, and others wait to");
        }
    }
}
