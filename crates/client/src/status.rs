//! Asking one replica how it is doing.

use core::fmt;
use core::time::Duration;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;
use syros_protocol::message::{Message, StatusReport};
use syros_types::ReplicaId;
use syros_wire::{
    ANY_CLUSTER, Channel, FrameError, Hello, HelloError, Malformed, Sender, decode_client_message, put_frame,
    put_message_frame, split_frame,
};

/// Longest frame expected, in bytes: a status report has fewer than 200.
const FRAME_BYTES_MAX: usize = 4096;

/// Why there is no status report.
#[derive(Debug)]
pub enum StatusError {
    /// The replica cannot be reached, closed the connection, or did not answer in time.
    Io(Error),
    /// The handshake failed.
    Hello(HelloError),
    /// The bytes received are no frames.
    Frame(FrameError),
    /// A frame holds no message.
    Malformed(Malformed),
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Hello(error) => write!(f, "{error}"),
            Self::Frame(error) => write!(f, "{error}"),
            Self::Malformed(error) => write!(f, "malformed message: {error}"),
        }
    }
}

impl core::error::Error for StatusError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(match self {
            Self::Io(error) => error,
            Self::Hello(error) => error,
            Self::Frame(error) => error,
            Self::Malformed(error) => error,
        })
    }
}

impl From<Error> for StatusError {
    fn from(error: Error) -> Self {
        Self::Io(error)
    }
}

/// Asks the replica at `address`, whichever cluster it belongs to, for its status, and blocks until it
/// answers or `timeout` is over.
///
/// # Errors
/// [`StatusError`]: the replica cannot be reached, is none, or does not answer in time.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let report = syros_client::status("127.0.0.1:7000".parse()?, std::time::Duration::from_secs(1))?;
/// println!("{} of view {}, applied {}", report.role, report.view, report.applied);
/// # Ok(())
/// # }
/// ```
pub fn status(address: SocketAddr, timeout: Duration) -> Result<StatusReport, StatusError> {
    ask(address, &[Message::StatusRequest], timeout)
}

/// Asks the replica at `address`, if it leads, to let the member `to` lead, and blocks until it answers
/// with its status or `timeout` is over. It does so only if `to` has answered it lately; whether `to` leads
/// in the end, its own status tells.
///
/// # Errors
/// As [`status`].
pub fn hand_over(address: SocketAddr, to: ReplicaId, timeout: Duration) -> Result<StatusReport, StatusError> {
    ask(address, &[Message::HandOver { to }, Message::StatusRequest], timeout)
}

/// Sends some messages and waits for a status report.
fn ask(address: SocketAddr, messages: &[Message], timeout: Duration) -> Result<StatusReport, StatusError> {
    let until = Instant::now() + timeout;
    let left = || {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Error::from(ErrorKind::TimedOut)) } else { Ok(left) }
    };
    let mut stream = TcpStream::connect_timeout(&address, left()?)?;
    let mut out = Vec::new();
    let hello = Hello { cluster: ANY_CLUSTER, sender: Sender::Client };
    put_frame(&mut out, Channel::Handshake, |out| hello.encode(out));
    messages.iter().for_each(|message| put_message_frame(&mut out, Channel::Client, message));
    stream.set_write_timeout(Some(left()?))?;
    stream.write_all(&out)?;

    let mut received = Vec::new();
    let mut piece = [0; FRAME_BYTES_MAX];
    loop {
        while let Some((frame, length)) =
            split_frame(&received, FRAME_BYTES_MAX).map_err(StatusError::Frame)?
        {
            if frame.channel == Channel::Handshake {
                Hello::decode(frame.payload).map_err(StatusError::Hello)?;
            } else if let Message::Status(report) =
                decode_client_message(frame.payload).map_err(StatusError::Malformed)?
            {
                return Ok(*report);
            }
            received.drain(..length);
        }
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut piece) {
            Ok(0) => return Err(StatusError::Io(ErrorKind::UnexpectedEof.into())),
            Ok(count) => received.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // What the system calls a timeout of a socket.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(StatusError::Io(ErrorKind::TimedOut.into()));
            }
            Err(error) => return Err(StatusError::Io(error)),
        }
    }
}
