//! A connection to a server that speaks the Redis protocol, used by a thread that waits.

use std::io::{BufRead as _, BufReader, Error, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use syros_client::Credentials;
use syros_resp::{ReceivedReply, read_reply};
use syros_tls::BlockingStream;

use super::patient::{INTERVAL, Patient};
use crate::redis_command::put_command;
use crate::wrong_port::{instead_of_redis, is_of_other_port};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a reply may take, and how long nothing may be taken of what is sent. Nodes answer after `operation-timeout` at the
/// latest; what a server has in one value may take its time.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Most memory for a reply that is read as a whole: what SCAN answers has keys of any length.
const REPLY_BYTES_MAX: u64 = 1 << 30;

/// Memory for what has been received.
const READ_BYTES: usize = 256 << 10;

/// Who connects, and how.
#[derive(Clone, Default)]
pub(super) struct Login {
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) credentials: Option<Arc<Credentials>>,
}

/// A connection.
pub(super) struct Connection {
    pub(super) input: BufReader<Patient<BlockingStream>>,
}

impl Connection {
    /// Connects, and logs in. The error says to whom.
    pub(super) fn open(address: &str, login: &Login) -> Result<Self, String> {
        let failed = |error: Error| format!("cannot connect to {address}: {error}");
        let socket = connect(address).map_err(failed)?;
        let stream = BlockingStream::to_front_end(socket, login.credentials.as_deref()).map_err(failed)?;
        let stream = Patient::new(stream, address.to_owned(), ANSWER_TIMEOUT);
        let mut connection = Self { input: BufReader::with_capacity(READ_BYTES, stream) };
        connection.check_protocol().map_err(failed)?;
        if let Some(password) = &login.password {
            let words = [Some("AUTH"), login.user.as_deref(), Some(password)];
            let words: Vec<&[u8]> = words.into_iter().flatten().map(str::as_bytes).collect();
            if let ReceivedReply::Error(error) = connection.ask(&words).map_err(failed)? {
                return Err(format!("{address} refuses user and password: {error}"));
            }
        }
        match connection.ask(&[b"PING"]).map_err(failed)? {
            ReceivedReply::Error(error) if error.starts_with("NOAUTH") => Err(format!(
                "{address} wants a password: {error} (syros import --help says where it is to be)"
            )),
            // Others are over some time.
            _ => Ok(connection),
        }
    }

    /// Whether a server for Redis clients is there, as its first answer shows.
    fn check_protocol(&mut self) -> Result<(), Error> {
        let mut bytes = Vec::new();
        put_command(&mut bytes, &[b"PING"]);
        let sent = self.send(&bytes);
        let first = match self.input.fill_buf() {
            Ok(first) => first,
            // A port that closes connections may do so before it has taken anything.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => &[],
            Err(error) => return Err(error),
        };
        if let Some(problem) = instead_of_redis(first) {
            return Err(Error::new(ErrorKind::InvalidData, problem));
        }
        sent?;
        match self.reply()? {
            // It closes the connection.
            ReceivedReply::Error(error) if error.starts_with("DENIED") || is_of_other_port(&error) => {
                Err(Error::other(error))
            }
            // Those who want a password say so again when they are asked for something else.
            _ => Ok(()),
        }
    }

    /// One command, and its reply.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<ReceivedReply, Error> {
        let mut bytes = Vec::new();
        put_command(&mut bytes, words);
        self.send(&bytes)?;
        self.reply()
    }

    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let stream = self.input.get_mut();
        stream.write_all(bytes)?;
        stream.flush()
    }

    pub(super) fn reply(&mut self) -> Result<ReceivedReply, Error> {
        read_reply(&mut self.input, REPLY_BYTES_MAX).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Error::new(ErrorKind::UnexpectedEof, "it closed the connection"),
            _ => error,
        })
    }
}

fn connect(address: &str) -> Result<TcpStream, Error> {
    let addresses: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
    let mut failed = Error::from(ErrorKind::NotFound);
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(INTERVAL))?;
                socket.set_write_timeout(Some(INTERVAL))?;
                return Ok(socket);
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}
