//! Connections of programs that wait.

use crate::credentials::Credentials;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Error, ErrorKind, Read, Result, Write};
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
            Self::Encrypted(stream) => {
                let result = stream.read(buffer);
                result.map_err(|error| explained(error, stream.conn.is_handshaking()))
            }
        }
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Encrypted(stream) => {
                let result = stream.write(bytes);
                result.map_err(|error| explained(error, stream.conn.is_handshaking()))
            }
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Encrypted(stream) => {
                let result = stream.flush();
                result.map_err(|error| explained(error, stream.conn.is_handshaking()))
            }
        }
    }
}

/// Why TLS has failed, where that means that the other end speaks none.
fn explained(error: Error, is_handshaking: bool) -> Error {
    let kind = error.kind();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match (inner, kind) {
        (Some(rustls::Error::InvalidMessage(_)), _) if is_handshaking => Error::new(
            kind,
            "it does not speak TLS, and this end of the connection does: name a port with TLS, or leave out --tls",
        ),
        (_, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
            if is_handshaking =>
        {
            Error::new(
                kind,
                "it closed the connection within the TLS handshake: the port may be one without TLS, or the certificate may not be \
                 accepted there (its log says why)",
            )
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::explained;
    use rustls::InvalidMessage;
    use std::io::{Error, ErrorKind};

    #[test]
    fn who_speaks_no_tls_is_told_from_other_failures() {
        let garbage =
            || Error::new(ErrorKind::InvalidData, rustls::Error::from(InvalidMessage::InvalidContentType));
        assert!(explained(garbage(), true).to_string().starts_with("it does not speak TLS"));
        assert!(!explained(garbage(), false).to_string().starts_with("it does not speak TLS"), "it did");
        let closed = explained(ErrorKind::UnexpectedEof.into(), true);
        assert!(closed.to_string().contains("within the TLS handshake"), "{closed}");
        // What else callers tell apart.
        assert_eq!(closed.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(
            explained(ErrorKind::WouldBlock.into(), true).to_string(),
            Error::from(ErrorKind::WouldBlock).to_string()
        );
    }
}
