//! What Redis clients are told while a node reads back what its disk holds: that it does, as Redis tells them.
//!
//! The event loop does not run yet; a thread of its own answers meanwhile. When the node is ready, its connections are
//! closed: none of the commands on them was executed. All but a SUBSCRIBE, and what stands behind one, have been answered. Clients
//! send it again on their next connection; some that are told an error never do.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use syros_resp::{Connection, Context, Identity, ServerInfo, ServerReport, Shared, Unavailable};

use crate::clock::Clock;

/// How often the thread looks for input: what clients wait for takes seconds, if it is noticed at all.
const PAUSE: Duration = Duration::from_millis(5);

/// Connections at a time; further ones wait in the system's queue. They are no use yet.
const CLIENTS_MAX: usize = 256;

/// A request longer than this is answered before it has come as a whole, and its connection is closed.
const REQUEST_BYTES_MAX: usize = 64 << 10;

/// Pieces of input that are taken from one client before the next one's turn, and before it is noticed that the node is ready: who
/// sends without end gets no more of the thread than others.
const PIECES_PER_TURN: usize = 16;

/// Replies that a client has not taken: with more, it is not read from.
const REPLY_BYTES_MAX: usize = 64 << 10;

/// Answers Redis clients until it is dropped.
#[derive(Debug)]
pub(crate) struct Loading {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Loading {
    /// Accepts connections of these listeners, which nobody else does meanwhile and which do not block. Those of the second one
    /// speak TLS, and are closed at once: their clients find a node that is ready sooner than by waiting for this one.
    pub(crate) fn start(listeners: [Option<TcpListener>; 2], clock: Clock) -> io::Result<Self> {
        let is_over = Arc::<AtomicBool>::default();
        let theirs = Arc::clone(&is_over);
        let thread = std::thread::Builder::new().name("syros-loading".to_owned());
        let thread = thread.spawn(move || serve(&listeners, clock, &theirs))?;
        Ok(Self { is_over, thread: Some(thread) })
    }
}

impl Loading {
    /// As dropping it, for who has no time to wait: the thread ends after its turn.
    pub(crate) fn end(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread = None;
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It would have panicked, and told so.
            let _ = thread.join();
        }
    }
}

/// What INFO tells of a node that is not ready.
struct NotReady(u16);

impl ServerInfo for NotReady {
    fn report(&self) -> ServerReport {
        ServerReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process_id: std::process::id(),
            tcp_port: self.0,
            status: "loading".to_owned(),
            is_loading: true,
            ..ServerReport::default()
        }
    }

    fn reset_statistics(&self) {}
}

struct Client {
    stream: TcpStream,
    redis: Connection,
    input: Vec<u8>,
}

fn serve([plain, tls]: &[Option<TcpListener>; 2], clock: Clock, is_over: &AtomicBool) {
    let port =
        plain.as_ref().and_then(|listener| listener.local_addr().ok()).map_or(0, |address| address.port());
    let info = NotReady(port);
    let mut clients: Vec<Client> = Vec::new();
    // Who may come in is not known yet.
    let shared = Arc::<Shared>::default();
    shared.forget_users();
    let mut accepted = 0;
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        while !is_last
            && clients.len() < CLIENTS_MAX
            && let Some(Ok((stream, peer))) = plain.as_ref().map(TcpListener::accept)
        {
            accepted += 1;
            let local_address = stream.local_addr().map(|local| local.to_string()).unwrap_or_default();
            let identity = Identity { id: accepted, address: peer.to_string(), local_address };
            if stream.set_nonblocking(true).is_ok() {
                let redis = Connection::with_shared(identity, clock.now().wall, Arc::clone(&shared));
                clients.push(Client { stream, redis, input: Vec::new() });
            }
        }
        while !is_last && let Some(Ok((refused, _))) = tls.as_ref().map(TcpListener::accept) {
            drop(refused);
        }
        let context = Context { now: clock.now().wall, info: &info, unavailable: Some(Unavailable::Loading) };
        clients.retain_mut(|client| client.serve(&context).is_ok_and(|goes_on| goes_on));
        if is_last {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

impl Client {
    /// Answers what has come. False when there is no more to say.
    fn serve(&mut self, context: &Context<'_>) -> io::Result<bool> {
        let mut piece = [0; 4096];
        let mut goes_on = true;
        for _ in 0..PIECES_PER_TURN {
            if self.redis.output().len() >= REPLY_BYTES_MAX || self.input.len() >= REQUEST_BYTES_MAX {
                break;
            }
            match self.stream.read(&mut piece) {
                Ok(0) => {
                    goes_on = false;
                    break;
                }
                Ok(count) => self.input.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            let consumed = self.redis.receive(&self.input, context);
            self.input.drain(..consumed);
        }
        while !self.redis.output().is_empty() {
            match self.stream.write(self.redis.output()) {
                Ok(count) => self.redis.sent(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(goes_on),
                Err(error) => return Err(error),
            }
        }
        if self.input.len() >= REQUEST_BYTES_MAX {
            self.stream.write_all(b"-LOADING Redis is loading the dataset in memory\r\n")?;
            return Ok(false);
        }
        Ok(goes_on && !self.redis.is_finished())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn started() -> (Loading, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let loading = Loading::start([Some(listener), None], Clock::start()).unwrap();
        (loading, address)
    }

    fn connect(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    #[test]
    fn commands_are_answered_and_not_taken() {
        let (loading, address) = started();
        let mut stream = connect(address);
        stream.write_all(b"PING\r\nSET k v\r\nSELECT 0\r\nQUIT\r\n").unwrap();
        let mut replies = String::new();
        stream.read_to_string(&mut replies).unwrap();
        let refused = "-LOADING Redis is loading the dataset in memory\r\n";
        assert_eq!(replies, format!("{refused}{refused}+OK\r\n+OK\r\n"));
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"INFO persistence\r\n").unwrap();
        let mut head = [0; 40];
        stream.read_exact(&mut head).unwrap();
        assert!(String::from_utf8_lossy(&head).contains("loading:1"), "{head:?}");
        drop(loading);
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
    }

    /// Found by an adversary: a client that gets an error for its SUBSCRIBE does not subscribe again when it is connected anew.
    #[test]
    fn a_subscribe_is_not_refused() {
        let (loading, address) = started();
        let mut stream = connect(address);
        stream.write_all(b"SELECT 0\r\nSUBSCRIBE c\r\nPSUBSCRIBE c*\r\nSSUBSCRIBE c\r\nPING\r\n").unwrap();
        let mut other = connect(address);
        other.write_all(b"PUBLISH c m\r\n").unwrap();
        let mut reply = [0; 8];
        other.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"-LOADING");
        drop(loading);
        let mut replies = String::new();
        stream.read_to_string(&mut replies).unwrap();
        assert_eq!(replies, "+OK\r\n");
    }

    /// Found by an adversary: empty lines have no reply, and the thread read on for as long as they came.
    #[test]
    fn who_sends_without_end_does_not_keep_the_node() {
        let (loading, address) = started();
        let is_over = Arc::new(AtomicBool::new(false));
        let floods: Vec<JoinHandle<()>> = (0..2)
            .map(|_| {
                let is_over = Arc::clone(&is_over);
                let mut stream = TcpStream::connect(address).unwrap();
                std::thread::spawn(move || {
                    let lines = b"\r\n".repeat(1 << 20);
                    // Until it is closed at the other end.
                    while !is_over.load(Ordering::Relaxed) && stream.write_all(&lines).is_ok() {}
                })
            })
            .collect();
        let mut stream = connect(address);
        stream.write_all(b"PING\r\n").unwrap();
        let mut reply = [0; 8];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"-LOADING");
        // It ends though nobody who floods has ended.
        drop(loading);
        is_over.store(true, Ordering::Relaxed);
        floods.into_iter().for_each(|flood| flood.join().unwrap());
    }
}
