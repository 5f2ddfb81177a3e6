//! Accepting connections, and finding out who is there.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Registry, Token};
use syros_net::{Connection, Limits};
use syros_protocol::client;
use syros_resp::Identity;
use syros_types::Instant;
use syros_wire::{Channel, Hello, HelloError, Member, Sender, put_frame};

use crate::config::GREETING_TIMEOUT;
use crate::connection::{Entry, Kind, Open};
use crate::event_loop::{EventLoop, REDIS_LISTENER, REPLICA_LISTENER};
use crate::socket::{ListenError, configure, configure_link, is_exhausted, listen};

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

/// A handshake is a few dozen bytes. Whatever is longer is none.
const GREETING_BYTES_MAX: usize = 256;

/// A listening socket.
pub(crate) struct Listener {
    socket: TcpListener,
    pub(crate) address: SocketAddr,
    /// A connection may be waiting: an event said so, and none has since been missing.
    pub(crate) is_ready: bool,
    /// Accepting is pointless before this.
    again_at: Instant,
}

impl Listener {
    pub(crate) fn open(
        address: SocketAddr,
        purpose: &'static str,
        registry: &Registry,
        token: Token,
    ) -> Result<Self, ListenError> {
        let mut socket = listen(address, purpose)?;
        let failed = |source| ListenError { address, purpose, source };
        registry.register(&mut socket, token, mio::Interest::READABLE).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address, is_ready: false, again_at: Instant(0) })
    }

    const fn wants_to_accept(&self) -> bool {
        self.is_ready && self.again_at.0 == 0
    }
}

impl EventLoop {
    /// The listener with this token, if the process has it.
    pub(crate) const fn listener(&mut self, token: Token) -> Option<&mut Listener> {
        match token {
            REDIS_LISTENER => self.redis_listener.as_mut(),
            _ => self.replica_listener.as_mut(),
        }
    }

    /// True if a connection may be waiting that can be accepted at once.
    pub(crate) fn wants_to_accept(&self) -> bool {
        [&self.redis_listener, &self.replica_listener].into_iter().flatten().any(Listener::wants_to_accept)
    }

    /// When to try again to accept what could not be.
    pub(crate) fn accept_deadline(&self) -> Instant {
        let deadline = |listener: &Listener| {
            if listener.is_ready { listener.again_at } else { Instant::NEVER }
        };
        let listeners = [&self.redis_listener, &self.replica_listener];
        listeners.into_iter().flatten().map(deadline).min().unwrap_or(Instant::NEVER)
    }

    /// Accepts connections that wait.
    pub(crate) fn accept_waiting(&mut self) {
        for token in [REDIS_LISTENER, REPLICA_LISTENER] {
            for _ in 0..ACCEPTS_PER_TURN {
                let Some((stream, peer)) = self.accept(token) else { break };
                self.admit(token, stream, peer);
            }
        }
    }

    fn accept(&mut self, token: Token) -> Option<(TcpStream, SocketAddr)> {
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
                self.complaints.warn(now, format_args!("cannot accept a connection: {error}"));
            }
            // The connection was gone before it was accepted; there may be others.
            Err(_) => {}
        }
        None
    }

    /// Takes in a connection that was accepted.
    fn admit(&mut self, token: Token, mut stream: TcpStream, peer: SocketAddr) {
        let is_redis = token == REDIS_LISTENER;
        // Other replicas always get in: without them there is nothing to serve clients with.
        let limit = if is_redis { self.clients_max } else { self.clients_max + self.links.len() };
        if self.clients >= limit {
            let problem = format_args!("refused a connection of {peer}: {limit} are open");
            self.complaints.warn(self.now.instant, problem);
            if is_redis {
                // A courtesy; if the socket does not take it, never mind.
                let _ = stream.write(b"-ERR max number of clients reached\r\n");
            }
            return;
        }
        let (index, address) = self.table.reserve();
        let configured = if is_redis { configure(&stream) } else { configure_link(&stream) };
        let local = stream.local_addr();
        let limits = if is_redis { REDIS } else { Limits::NODE };
        let opened = configured
            .and_then(|()| Connection::register(stream, limits, self.poll.registry(), Token(index)));
        let net = match opened {
            Ok(net) => net,
            Err(error) => {
                self.complaints.warn(self.now.instant, format_args!("lost a connection of {peer}: {error}"));
                return self.table.release(index);
            }
        };
        let kind = if is_redis {
            let local_address = local.map(|local| local.to_string()).unwrap_or_default();
            let id = self.front.statistics.next_connection();
            let identity = Identity { id, address: peer.to_string(), local_address };
            Kind::Redis(Box::new(syros_resp::Connection::new(identity, self.now.wall)))
        } else {
            self.greetings.push(self.now.instant.after(GREETING_TIMEOUT), address);
            Kind::Greeting { dialed: None }
        };
        self.clients += 1;
        self.table.fill(index, Entry::Open(Open::new(net, kind, address, Some(peer))));
        // Its first bytes may have come before it was registered.
        self.queue(index);
    }

    /// The other end says who it is. True if it did, and its messages may follow.
    pub(crate) fn handle_greeting(&mut self, index: usize) -> Result<bool, String> {
        let Some(open) = self.table.open_mut(index) else { return Ok(false) };
        let Kind::Greeting { dialed } = open.kind else { return Ok(true) };
        let inbound = open.net.inbound();
        let frame = inbound.next_frame(GREETING_BYTES_MAX).map_err(|_| HelloError::NotSyros.to_string())?;
        let Some(frame) = frame else { return Ok(false) };
        if frame.channel != Channel::Handshake {
            return Err(HelloError::NotSyros.to_string());
        }
        let hello = Hello::decode(frame.payload);
        if dialed.is_none() && !matches!(hello, Err(HelloError::NotSyros)) {
            // Even if we refuse it: so it learns why.
            let ours = self.hello;
            put_frame(open.net.outbound(), Channel::Handshake, |out| ours.encode(out));
            self.soil(index);
        }
        let hello = hello.map_err(|error| error.to_string());
        let welcome = hello.and_then(|hello| {
            hello.check_cluster(self.hello.cluster).map_err(|error| error.to_string())?;
            self.welcome(index, dialed, hello)
        });
        match welcome {
            Err(problem) if dialed.is_none() => {
                // It is closed when it has got our side of the handshake.
                self.complain(index, &problem);
                if let Some(open) = self.table.open_mut(index) {
                    open.is_closing = true;
                }
                Ok(false)
            }
            result => result.map(|()| true),
        }
    }

    fn welcome(
        &mut self,
        index: usize,
        dialed: Option<syros_types::ReplicaId>,
        hello: Hello,
    ) -> Result<(), String> {
        let member = match (hello.sender, dialed) {
            (Sender::Client, None) => {
                if let Some(open) = self.table.open_mut(index) {
                    open.kind = Kind::Client;
                }
                return Ok(());
            }
            (Sender::Client, Some(replica)) => return Err(format!("{replica} says that it is a client")),
            (Sender::Replica(member), _) => member,
        };
        self.check_member(member, dialed)?;
        if dialed.is_none() {
            // It counted as a client until now.
            self.clients -= 1;
        }
        if let Some(older) = self.links[member.replica.index()].connection {
            self.close(older, "it has connected anew");
        }
        let Some(open) = self.table.open_mut(index) else { return Ok(()) };
        open.kind = Kind::Link(member.replica);
        let peer = open.peer.map_or_else(String::new, |peer| format!(" at {peer}"));
        log::info!("connected to {}{peer}", member.replica);
        let link = &mut self.links[member.replica.index()];
        link.connection = Some(index);
        link.note_success();
        self.front.client.handle(self.now, client::Event::Connected(member.replica));
        Ok(())
    }

    /// Checks what a node says of itself against what we know of the cluster.
    fn check_member(&self, member: Member, dialed: Option<syros_types::ReplicaId>) -> Result<(), String> {
        let Member { replica, group, fast_quorum } = member;
        let (size, ours) = (group.size(), self.links.len());
        if size != ours {
            return Err(format!("{replica} says that the cluster has {size} replicas; here it has {ours}"));
        }
        if fast_quorum != self.description.fast_quorum {
            return Err(format!(
                "{replica} says that the fast quorum is {fast_quorum}; here it is {}",
                self.description.fast_quorum
            ));
        }
        if let Some(dialed) = dialed
            && dialed != replica
        {
            return Err(format!("{replica} is where {dialed} should be; is the list of replicas in order?"));
        }
        if dialed.is_none() {
            let me = match self.hello.sender {
                Sender::Replica(member) => member.replica,
                Sender::Client => return Err("a gateway is not connected to".to_owned()),
            };
            if replica <= me {
                return Err(format!(
                    "it says that it is {replica}; this is {me}, which connects to lower ids"
                ));
            }
        }
        Ok(())
    }

    fn complain(&mut self, index: usize, problem: &str) {
        let peer = self.table.open_mut(index).and_then(|open| open.peer);
        let peer = peer.map_or_else(|| "a client".to_owned(), |peer| peer.to_string());
        self.complaints.warn(self.now.instant, format_args!("refused {peer}: {problem}"));
    }
}
