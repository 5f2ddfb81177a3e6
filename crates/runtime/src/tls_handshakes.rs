//! TLS handshakes of connections that others make, on a thread of their own.
//!
//! A handshake computes for a tenth of a millisecond or more, and whoever reaches a port may begin as many as it likes. So the event
//! loop gets a connection only when its handshake is over. The thread also looks now and then whether the certificate has
//! been renewed.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, TrySendError, channel, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::ServerConnection;
use syros_net::TlsSession;
use syros_tls::Credentials;

use crate::config::GREETING_TIMEOUT;

/// Connections that wait for the thread to take them at most; further ones are closed. It takes them as fast as it computes.
const WAITING_MAX: usize = 256;

/// How often the files of the certificate are looked at.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);

/// With less left than this, the log says that a certificate ends soon, and says it again as often.
const EXPIRY_WARNING: Duration = Duration::from_secs(14 * 86_400);
const EXPIRY_REMINDER: Duration = Duration::from_secs(86_400);

const WAKER: Token = Token(0);

/// Kinds of ports: for Redis clients, and for nodes.
const PORTS: usize = 2;

/// First byte of a connection that begins with a TLS handshake (RFC 8446, 5.1: the type of its record).
const HANDSHAKE_RECORD: u8 = 0x16;

/// Who may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Redis clients, with TLS.
    Redis,
    /// Nodes and Syros clients, with TLS.
    Nodes,
    /// Nodes and Syros clients, with TLS or without.
    NodesOrPlain,
}

impl Guard {
    /// Handshakes at one port never keep those at the other one waiting: each has half of the places.
    const fn port(self) -> usize {
        match self {
            Self::Redis => 0,
            Self::Nodes | Self::NodesOrPlain => 1,
        }
    }
}

/// A connection that was accepted.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// The listener's token.
    pub(crate) listener: Token,
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
}

/// A connection whose handshake is over.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) accepted: Accepted,
    /// None of a connection without TLS, where that is allowed.
    pub(crate) session: Option<TlsSession>,
}

/// The way to the thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TlsHandshakes {
    /// By port.
    begun: [SyncSender<(Accepted, Guard)>; PORTS],
    ended: Receiver<Greeted>,
    waker: Waker,
}

impl TlsHandshakes {
    /// Starts the thread. It wakes the event loop when a handshake is over.
    pub(crate) fn start(
        node: Option<u8>,
        credentials: Arc<Credentials>,
        event_loop: Arc<Waker>,
        handshakes_max: usize,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let (begun_by_clients, from_clients) = sync_channel(WAITING_MAX);
        let (begun_by_nodes, from_nodes) = sync_channel(WAITING_MAX);
        let (outgoing, ended) = channel();
        let mut worker = Worker {
            node,
            credentials,
            poll,
            event_loop,
            incoming: [from_clients, from_nodes],
            outgoing,
            handshakes_max: (handshakes_max / PORTS).max(1),
            pending: HashMap::new(),
            counts: [0; PORTS],
            order: Default::default(),
            last_token: WAKER.0,
            refresh_at: Instant::now(),
            remind_at: Instant::now(),
        };
        std::thread::Builder::new().name("tls".to_owned()).spawn(move || worker.run())?;
        Ok(Self { begun: [begun_by_clients, begun_by_nodes], ended, waker })
    }

    /// Leaves a connection with the thread; closes it if too many wait there.
    pub(crate) fn begin(&self, accepted: Accepted, guard: Guard) {
        if let Err(TrySendError::Full((Accepted { peer, .. }, _))) =
            self.begun[guard.port()].try_send((accepted, guard))
        {
            tracing::warn!(peer = %peer, limit = WAITING_MAX, "closed a connection: too many wait to begin a TLS handshake");
        }
        // The thread ends only with us.
        let _ = self.waker.wake();
    }

    /// A connection whose handshake is over.
    pub(crate) fn pop(&self) -> Option<Greeted> {
        self.ended.try_recv().ok()
    }
}

impl Drop for TlsHandshakes {
    fn drop(&mut self) {
        self.begun = std::array::from_fn(|_| sync_channel(0).0);
        let _ = self.waker.wake();
    }
}

/// A handshake under way.
struct Pending {
    accepted: Accepted,
    guard: Guard,
    /// None before the first byte has come, where that tells whether it is TLS.
    session: Option<ServerConnection>,
    until: Instant,
}

/// What has come of a handshake.
enum Step {
    Waits,
    Over,
    Failed(String),
}

struct Worker {
    node: Option<u8>,
    credentials: Arc<Credentials>,
    poll: Poll,
    event_loop: Arc<Waker>,
    incoming: [Receiver<(Accepted, Guard)>; PORTS],
    outgoing: Sender<Greeted>,
    /// At a time, of each port. Beyond, the oldest one is given up.
    handshakes_max: usize,
    pending: HashMap<usize, Pending>,
    /// How many are pending, by port.
    counts: [usize; PORTS],
    /// By port, in the order in which they began; some have ended.
    order: [VecDeque<usize>; PORTS],
    last_token: usize,
    refresh_at: Instant,
    remind_at: Instant,
}

impl Worker {
    fn run(&mut self) {
        let mut events = Events::with_capacity(256);
        loop {
            let deadlines: [_; PORTS] = std::array::from_fn(|port| self.deadline(port));
            let wake_at = deadlines.into_iter().flatten().fold(self.refresh_at, Instant::min);
            let timeout = wake_at.saturating_duration_since(Instant::now());
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return,
                _ => {}
            }
            // As many of the one port as of the other.
            loop {
                let taken: [_; PORTS] = std::array::from_fn(|port| self.incoming[port].try_recv());
                if taken.iter().all(|taken| matches!(taken, Err(TryRecvError::Empty))) {
                    break;
                }
                for taken in taken {
                    match taken {
                        Ok((accepted, guard)) => self.begin(accepted, guard),
                        Err(TryRecvError::Empty) => {}
                        Err(TryRecvError::Disconnected) => return,
                    }
                }
            }
            for event in &events {
                self.go_on(event.token().0);
            }
            self.give_up_late();
            self.refresh();
        }
    }

    fn begin(&mut self, mut accepted: Accepted, guard: Guard) {
        let port = guard.port();
        if self.counts[port] >= self.handshakes_max
            && let Some(oldest) = self.pop_oldest(port)
        {
            self.log_failure(
                oldest.accepted.peer,
                "it takes long with its TLS handshake, and others wait to begin theirs",
            );
        }
        self.last_token += 1;
        let token = self.last_token;
        let interests = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut accepted.stream, Token(token), interests) {
            return self.log_failure(accepted.peer, &error.to_string());
        }
        let until = Instant::now() + GREETING_TIMEOUT;
        self.pending.insert(token, Pending { accepted, guard, session: None, until });
        self.counts[port] += 1;
        self.order[port].push_back(token);
        // Its first bytes may have come before it was registered.
        self.go_on(token);
    }

    fn go_on(&mut self, token: usize) {
        let Some(pending) = self.pending.get_mut(&token) else { return };
        match pending.step(&self.credentials) {
            Step::Waits => {}
            Step::Failed(problem) => {
                if let Some(failed) = self.remove(token) {
                    self.log_failure(failed.accepted.peer, &problem);
                }
            }
            Step::Over => {
                let Some(Pending { mut accepted, session, .. }) = self.remove(token) else { return };
                if let Err(error) = self.poll.registry().deregister(&mut accepted.stream) {
                    return self.log_failure(accepted.peer, &error.to_string());
                }
                let session = session.map(TlsSession::new);
                // If nobody takes it, the process ends.
                if self.outgoing.send(Greeted { accepted, session }).is_ok() {
                    let _ = self.event_loop.wake();
                }
            }
        }
    }

    fn remove(&mut self, token: usize) -> Option<Pending> {
        let removed = self.pending.remove(&token)?;
        self.counts[removed.guard.port()] -= 1;
        Some(removed)
    }

    /// Until when the oldest one of a port has to end.
    fn deadline(&mut self, port: usize) -> Option<Instant> {
        while let Some(token) = self.order[port].front() {
            if let Some(oldest) = self.pending.get(token) {
                return Some(oldest.until);
            }
            self.order[port].pop_front();
        }
        None
    }

    fn give_up_late(&mut self) {
        let now = Instant::now();
        for port in 0..PORTS {
            while self.deadline(port).is_some_and(|until| until <= now) {
                if let Some(late) = self.pop_oldest(port) {
                    self.log_failure(late.accepted.peer, "it has not ended its TLS handshake in time");
                }
            }
        }
    }

    fn pop_oldest(&mut self, port: usize) -> Option<Pending> {
        self.deadline(port)?;
        let token = self.order[port].pop_front()?;
        self.remove(token)
    }

    fn log_failure(&self, peer: SocketAddr, problem: &str) {
        tracing::warn!(node = self.node, peer = %peer, error = problem, "refused a connection: no TLS session");
    }

    /// Looks whether the certificate has been renewed.
    fn refresh(&mut self) {
        let now = Instant::now();
        if now < self.refresh_at {
            return;
        }
        self.refresh_at = now + REFRESH_INTERVAL;
        let node = self.node;
        match self.credentials.refresh() {
            Ok(false) => {}
            Ok(true) => {
                self.remind_at = now;
                let days = self.time_left().as_secs() / 86_400;
                tracing::info!(
                    node,
                    days,
                    "the files for TLS have changed: new connections go by what they have now"
                );
            }
            Err(error) => tracing::warn!(
                node,
                error = %error,
                "the files for TLS have changed, and cannot be used: new connections go by what they had before"
            ),
        }
        let left = self.time_left();
        if left < EXPIRY_WARNING && now >= self.remind_at {
            self.remind_at = now + EXPIRY_REMINDER;
            let hours = left.as_secs() / 3600;
            tracing::warn!(
                node,
                hours,
                "the certificate of this process ends soon: renew its files, which needs no restart"
            );
        }
    }

    fn time_left(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let expires = u64::try_from(self.credentials.expires()).unwrap_or(0);
        Duration::from_secs(expires).saturating_sub(now)
    }
}

impl Pending {
    /// Goes on as far as it can without waiting.
    fn step(&mut self, credentials: &Credentials) -> Step {
        if self.session.is_none() {
            if self.guard == Guard::NodesOrPlain {
                let mut first = [0];
                match self.accepted.stream.peek(&mut first) {
                    Ok(0) => return Step::Failed("it has closed the connection".to_owned()),
                    Ok(_) if first[0] != HANDSHAKE_RECORD => return Step::Over,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Step::Waits,
                    Err(error) => return Step::Failed(error.to_string()),
                }
            }
            let session = match self.guard {
                Guard::Redis => credentials.accept_redis(),
                Guard::Nodes | Guard::NodesOrPlain => credentials.accept_node(),
            };
            match session {
                Ok(session) => self.session = Some(session),
                Err(error) => return Step::Failed(error.to_string()),
            }
        }
        let Some(session) = &mut self.session else { return Step::Waits };
        match shake_hands(session, &mut self.accepted.stream) {
            Ok(true) => Step::Over,
            Ok(false) => Step::Waits,
            Err(error) => Step::Failed(describe(&error)),
        }
    }
}

/// Reads and writes as far as the socket goes along. True if the handshake is over.
fn shake_hands(session: &mut ServerConnection, stream: &mut TcpStream) -> io::Result<bool> {
    let would_block = |error: &io::Error| error.kind() == ErrorKind::WouldBlock;
    loop {
        while session.wants_write() {
            match session.write_tls(stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What is left goes out with what the event loop sends.
                Err(error) if would_block(&error) => return Ok(!session.is_handshaking()),
                Err(error) => return Err(error),
            }
        }
        if !session.is_handshaking() {
            return Ok(true);
        }
        match session.read_tls(stream) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if would_block(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
        if let Err(error) = session.process_new_packets() {
            // The other end learns why, if the socket takes that.
            let _ = session.write_tls(stream);
            return Err(io::Error::new(ErrorKind::InvalidData, error));
        }
    }
}

/// Why a handshake has failed, for those who look for the reason.
fn describe(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidMessage(_)) => {
            format!("{error}: it does not speak TLS, as it has to on this port")
        }
        _ if error.kind() == ErrorKind::UnexpectedEof => {
            "it closed the connection within its TLS handshake".to_owned()
        }
        _ => error.to_string(),
    }
}
