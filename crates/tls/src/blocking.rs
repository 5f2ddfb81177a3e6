//! Connections of programs that wait.

use crate::credentials::Credentials;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Error, Read, Result, Write};
use std::net::TcpStream;

/// A connection to a node, encrypted or not, used by a thread that waits.
#[derive(Debug)]
pub enum BlockingStream {
    /// As it goes over the network.
    Plain(TcpStream),
    /// Encrypted.
    Encrypted(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl BlockingStream {
    /// A connection over this socket, encrypted if there are credentials. The handshake takes place with the first write or
    /// read.
    ///
    /// # Errors
    /// None is expected.
    pub fn new(socket: TcpStream, credentials: Option<&Credentials>) -> Result<Self> {
        let Some(credentials) = credentials else { return Ok(Self::Plain(socket)) };
        let session = credentials.connect().map_err(Error::other)?;
        Ok(Self::Encrypted(Box::new(StreamOwned::new(session, socket))))
    }

    /// As [`Self::new`], to where a node or a gateway listens for Redis clients.
    ///
    /// # Errors
    /// None is expected.
    pub fn to_front_end(socket: TcpStream, credentials: Option<&Credentials>) -> Result<Self> {
        let Some(credentials) = credentials else { return Ok(Self::Plain(socket)) };
        let session = credentials.connect_to_front_end().map_err(Error::other)?;
        Ok(Self::Encrypted(Box::new(StreamOwned::new(session, socket))))
    }

    /// The socket, to set its timeouts.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Encrypted(stream) => &stream.sock,
        }
    }
}

impl Read for BlockingStream {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Encrypted(stream) => stream.read(buffer),
        }
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Encrypted(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Encrypted(stream) => stream.flush(),
        }
    }
}
