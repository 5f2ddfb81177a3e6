//! Making a connection without waiting for it.

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;

/// A connection that is being made.
#[derive(Debug)]
pub struct Dialing {
    stream: TcpStream,
}

/// How far a connection is.
#[derive(Debug)]
pub enum Progress {
    /// Not there yet: another event will come, or the caller's patience ends.
    Pending(Dialing),
    /// It is there. The stream is registered already, with the token and interests that
    /// [`Connection::adopt`](crate::Connection::adopt) expects.
    Connected(TcpStream),
    /// It cannot be made.
    Failed(Error),
}

impl Dialing {
    /// Starts to connect to `address`; events for it will have `token`.
    ///
    /// # Errors
    /// Whatever the system says at once, such as that there is no route or no free port.
    pub fn start(address: SocketAddr, registry: &Registry, token: Token) -> Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self { stream })
    }

    /// How far it is. To be asked after every event with its token.
    #[must_use]
    pub fn progress(self) -> Progress {
        match self.stream.take_error() {
            Ok(Some(error)) | Err(error) => return Progress::Failed(error),
            Ok(None) => {}
        }
        match self.stream.peer_addr() {
            // A socket that connects to a port of its own host may get that very port: it is then
            // connected to itself, and keeps a restarting server from binding its address.
            Ok(peer) if self.stream.local_addr().is_ok_and(|local| local == peer) => {
                Progress::Failed(Error::new(ErrorKind::AddrInUse, "connected to itself"))
            }
            Ok(_) => Progress::Connected(self.stream),
            Err(error) if error.kind() == ErrorKind::NotConnected => Progress::Pending(self),
            Err(error) => Progress::Failed(error),
        }
    }
}
