//! Asking a replica who it is, and what it is doing: short conversations that may wait.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use syros_protocol::message::{Message, StatusReport};
use syros_wire::{
    CLIENT_FRAME_BYTES_MAX, Channel, Frame, Hello, Member, Sender, decode_client_message, put_frame,
    put_message_frame, split_frame,
};

/// An answer that takes longer is given up.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between rounds of asking everybody.
const ROUND_PAUSE: Duration = Duration::from_millis(200);

/// Why no replica told what cluster this is.
#[derive(Debug)]
pub struct DiscoverError {
    /// What each of those asked said in the last round.
    pub problems: Vec<String>,
}

impl fmt::Display for DiscoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no replica can be used: {}", self.problems.join("; "))
    }
}

impl std::error::Error for DiscoverError {}

/// Asks the replicas in turn what cluster this is, until one tells.
pub(crate) fn discover(
    replicas: &[String],
    cluster: u64,
    timeout: Duration,
) -> Result<(u64, Member), DiscoverError> {
    let deadline = Instant::now() + timeout;
    loop {
        let mut problems = Vec::new();
        for (position, address) in replicas.iter().enumerate() {
            match Conversation::open(address, cluster) {
                Ok(Conversation { cluster, member, .. }) => {
                    let problem = if member.group.size() != replicas.len() {
                        Some(format!("the cluster has {} replicas", member.group.size()))
                    } else if member.replica.index() != position {
                        Some(format!("it is {}, and is listed in place {position}", member.replica))
                    } else {
                        None
                    };
                    match problem {
                        None => return Ok((cluster, member)),
                        Some(problem) => problems.push(format!("{address}: {problem}")),
                    }
                }
                Err(problem) => problems.push(format!("{address}: {problem}")),
            }
        }
        if Instant::now() + ROUND_PAUSE > deadline {
            return Err(DiscoverError { problems });
        }
        std::thread::sleep(ROUND_PAUSE);
    }
}

/// Asks the replica that listens at `address` (`host:port`) what it is doing.
///
/// # Errors
/// What went wrong, in words.
pub fn query_status(address: &str) -> Result<StatusReport, String> {
    let mut conversation = Conversation::open(address, syros_wire::ANY_CLUSTER)?;
    let mut out = Vec::new();
    put_message_frame(&mut out, Channel::Client, &Message::StatusRequest);
    conversation.stream.write_all(&out).map_err(|error| error.to_string())?;
    loop {
        let payload = conversation.receive(Channel::Client)?;
        if let Message::Status(report) = decode_client_message(&payload).map_err(|error| error.to_string())? {
            return Ok(*report);
        }
    }
}

/// A connection to a replica that has said who it is.
struct Conversation {
    stream: TcpStream,
    received: Vec<u8>,
    cluster: u64,
    member: Member,
}

impl Conversation {
    fn open(address: &str, cluster: u64) -> Result<Self, String> {
        let mut last = "it has no address".to_owned();
        let found = address.to_socket_addrs().map_err(|error| error.to_string())?;
        for candidate in found {
            match TcpStream::connect_timeout(&candidate, ANSWER_TIMEOUT) {
                Ok(stream) => return Self::greet(stream, cluster),
                Err(error) => last = error.to_string(),
            }
        }
        Err(last)
    }

    fn greet(stream: TcpStream, cluster: u64) -> Result<Self, String> {
        let prepare = || {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
            stream.set_write_timeout(Some(ANSWER_TIMEOUT))
        };
        prepare().map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        let hello = Hello { cluster, sender: Sender::Client };
        put_frame(&mut out, Channel::Handshake, |out| hello.encode(out));
        let mut stream = stream;
        stream.write_all(&out).map_err(|error| error.to_string())?;
        let mut received = Vec::new();
        let payload = receive(&mut stream, &mut received, Channel::Handshake)?;
        let theirs = Hello::decode(&payload).map_err(|error| error.to_string())?;
        theirs.check_cluster(cluster).map_err(|error| error.to_string())?;
        match theirs.sender {
            Sender::Replica(member) => Ok(Self { stream, received, cluster: theirs.cluster, member }),
            Sender::Client => Err("it is no replica".to_owned()),
        }
    }

    fn receive(&mut self, channel: Channel) -> Result<Vec<u8>, String> {
        receive(&mut self.stream, &mut self.received, channel)
    }
}

/// The payload of the next frame, which must be on `channel`.
fn receive(stream: &mut TcpStream, received: &mut Vec<u8>, channel: Channel) -> Result<Vec<u8>, String> {
    let mut buffer = [0; 4096];
    loop {
        match split_frame(received, CLIENT_FRAME_BYTES_MAX).map_err(|error| error.to_string())? {
            Some((Frame { channel: found, payload }, length)) if found == channel => {
                let payload = payload.to_vec();
                received.drain(..length);
                return Ok(payload);
            }
            Some((Frame { channel: found, .. }, _)) => {
                return Err(format!("it sent a frame on channel {found:?} instead of {channel:?}"));
            }
            None => {}
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Err("it closed the connection".to_owned()),
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(format!("no answer within {ANSWER_TIMEOUT:?}"));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}
