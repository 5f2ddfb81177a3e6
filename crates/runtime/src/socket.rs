//! Sockets as this process wants them, and what may go wrong in getting them.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

/// Connections that wait to be accepted. Redis's default is 511; the system lowers what it will not allow.
const BACKLOG: i32 = 1024;

/// A silent connection is probed after this long: its other end may be gone without a word.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);

/// Time between probes, and their number: a dead peer is noticed within a minute.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 5;

/// What was sent to another replica must be acknowledged within this time; else the connection is given
/// up and made anew. Keepalive does not probe while something is unacknowledged.
const LINK_UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(10);

/// Listening on an address failed.
#[derive(Debug)]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// For whom it was to be.
    pub purpose: &'static str,
    /// What the system said.
    pub source: io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, purpose, source } = self;
        if source.kind() == ErrorKind::AddrInUse {
            return write!(
                f,
                "port {} of {} (for {purpose}) is in use already",
                address.port(),
                address.ip()
            );
        }
        write!(f, "cannot listen on {address} (for {purpose}): {source}")
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Listens on `address`. A port that an earlier process used a moment ago is taken over.
pub(crate) fn listen(address: SocketAddr, purpose: &'static str) -> Result<TcpListener, ListenError> {
    let open = || {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(TcpListener::from_std(socket.into()))
    };
    open().map_err(|source| ListenError { address, purpose, source })
}

/// Sends small messages at once, and notices a peer that is gone.
pub(crate) fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}

/// What [`configure`] does, for a connection to another replica.
pub(crate) fn configure_link(stream: &TcpStream) -> io::Result<()> {
    configure(stream)?;
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "fuchsia"))]
    SockRef::from(stream).set_tcp_user_timeout(Some(LINK_UNACKNOWLEDGED_MAX))?;
    Ok(())
}

/// True if no connection can be accepted for want of something that others must first give back.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}
