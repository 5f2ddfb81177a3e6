//! What cluster a gateway is to serve: asked before anything else, so it may wait for the answer.

use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use syros_tls::{BlockingStream, Credentials};
use syros_types::ConfigurationEpoch;
use syros_wire::{Channel, Frame, HANDSHAKE_BYTES_MAX, Hello, Member, Sender, put_frame, split_frame};

use crate::tls::LinksTls;

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
    tls: Option<&LinksTls>,
) -> Result<(u64, Member), DiscoverError> {
    let deadline = Instant::now() + timeout;
    loop {
        let mut problems = Vec::new();
        for (position, address) in replicas.iter().enumerate() {
            let mut attempts = LinksTls::attempts(tls).map(|credentials| ask(address, cluster, credentials));
            let first = attempts.next().unwrap_or_else(|| Err("it cannot be asked".to_owned()));
            match first.or_else(|problem| attempts.next().unwrap_or(Err(problem))) {
                Ok((cluster, member)) => {
                    let (size, replica) = (member.settings.group.size(), member.declaration.replica);
                    // One that has grown or shrunk tells where its nodes are.
                    let is_first = member.declaration.epoch == ConfigurationEpoch::FIRST;
                    let problem = if size != replicas.len() && is_first {
                        Some(format!("the cluster has {size} replicas"))
                    } else if replica.index() != position {
                        Some(format!("it is {replica}, and is listed in place {position}"))
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

/// Asks the process that listens at `address` (`host:port`) who it is.
fn ask(address: &str, cluster: u64, credentials: Option<&Credentials>) -> Result<(u64, Member), String> {
    let mut last = "it has no address".to_owned();
    for candidate in address.to_socket_addrs().map_err(|error| error.to_string())? {
        match TcpStream::connect_timeout(&candidate, ANSWER_TIMEOUT) {
            Ok(socket) => {
                let stream = BlockingStream::new(socket, credentials).map_err(|error| error.to_string())?;
                return greet(stream, cluster);
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

fn greet(mut stream: BlockingStream, cluster: u64) -> Result<(u64, Member), String> {
    let mut out = Vec::new();
    let ours = Hello { cluster, nonce: None, sender: Sender::Client };
    put_frame(&mut out, Channel::Handshake, |out| ours.encode(out));
    let payload = exchange(&mut stream, &out)?;
    let theirs = Hello::decode(&payload).map_err(|error| error.to_string())?;
    theirs.check_cluster(cluster).map_err(|error| error.to_string())?;
    match theirs.sender {
        Sender::Replica(member) => Ok((theirs.cluster, *member)),
        Sender::Client => Err("it is no replica".to_owned()),
    }
}

/// Sends our side of the handshake and waits for the other.
fn exchange(stream: &mut BlockingStream, ours: &[u8]) -> Result<Vec<u8>, String> {
    let mut send = || {
        stream.socket().set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.socket().set_write_timeout(Some(ANSWER_TIMEOUT))?;
        stream.write_all(ours)
    };
    send().map_err(|error| error.to_string())?;
    let mut received = Vec::new();
    let mut buffer = [0; 512];
    loop {
        match split_frame(&received, HANDSHAKE_BYTES_MAX).map_err(|error| error.to_string())? {
            Some((Frame { channel: Channel::Handshake, payload, .. }, _)) => return Ok(payload.to_vec()),
            Some(_) => return Err("it does not begin with a handshake".to_owned()),
            None => {}
        }
        match stream.read(&mut buffer) {
            Ok(0) => return Err("it closed the connection".to_owned()),
            Ok(count) => received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(format!(
                    "no answer within {ANSWER_TIMEOUT:?} (nodes are asked at their ports for each other, listen.replicas, and not at \
                     those for Redis clients)"
                ));
            }
            Err(error) => return Err(error.to_string()),
        }
    }
}
