//! Asking one replica how it is doing.

use core::fmt;
use core::time::Duration;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;
use syros_protocol::formation::Stage;
use syros_protocol::message::{Describe, Message, StatusReport};
use syros_tls::{BlockingStream, Credentials};
use syros_types::limits::FRAME_BYTES_MAX;
use syros_types::{ConfigurationId, FastQuorum, Group, ReplicaId, View};
use syros_wire::{
    ANY_CLUSTER, CLIENT_FRAME_BYTES_MAX, Channel, FrameError, HandshakeMessage, Hello, HelloError, Malformed,
    Nonce, Secret, Sender, Side, decode_client_message, decode_message, put_frame, put_message_frame,
    split_frame, version_of,
};

/// So many bytes are read at a time.
const READ_BYTES: usize = 64 << 10;

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
    /// The node has no replica yet: its cluster is being formed.
    Forming,
    /// The nodes have a secret, and this can only be asked by who knows it.
    SecretNeeded,
    /// The nodes have another secret, or none.
    OtherSecret,
    /// The node does not take the connection, for this reason.
    Refused(String),
    /// The certificate is not that of an administrator or a node: the node closed the connection.
    NotAdministrator,
    /// The node closed the connection before it said anything, as one does that expects TLS of somebody who begins without.
    ClosedAtOnce {
        /// The connection was encrypted.
        is_encrypted: bool,
    },
    /// The node speaks an older version of the wire format than what it is asked for needs.
    TooOld {
        /// The newest version that it speaks.
        version: u16,
        /// The version that knows of it.
        needed: u16,
    },
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Hello(error) => write!(f, "{error}"),
            Self::Frame(error) => write!(f, "{error}"),
            Self::Malformed(error) => write!(f, "malformed message: {error}"),
            Self::Forming => {
                f.write_str("it is not in a cluster yet; its log says for which nodes it waits, and why")
            }
            Self::ClosedAtOnce { is_encrypted: false } => {
                f.write_str("it closed the connection before it said anything: if the nodes speak TLS, --tls is needed")
            }
            Self::ClosedAtOnce { is_encrypted: true } => f.write_str(
                "it closed the connection before it said anything: its log says why",
            ),
            Self::SecretNeeded => {
                f.write_str("the cluster has a secret, and only who knows it may ask for that")
            }
            Self::OtherSecret => {
                f.write_str("it does not prove that it knows the secret: it has another, or none")
            }
            Self::Refused(reason) => write!(f, "it refuses the connection: {reason}"),
            Self::NotAdministrator => f.write_str(
                "it closed the connection: only administrators and nodes may ask for that, as their certificates say",
            ),
            Self::TooOld { version, needed } => write!(
                f,
                "it speaks version {version} of the wire format, and this needs version {needed}: its build is too old"
            ),
        }
    }
}

impl core::error::Error for StatusError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Hello(error) => Some(error),
            Self::Frame(error) => Some(error),
            Self::Malformed(error) => Some(error),
            Self::Forming
            | Self::SecretNeeded
            | Self::OtherSecret
            | Self::ClosedAtOnce { .. }
            | Self::NotAdministrator
            | Self::Refused(_)
            | Self::TooOld { .. } => None,
        }
    }
}

impl From<Error> for StatusError {
    fn from(error: Error) -> Self {
        Self::Io(error)
    }
}

/// With what a program shows a replica that it may ask: nothing, unless the cluster wants more.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access<'a> {
    /// The cluster's secret, if the nodes have one.
    pub secret: Option<&'a Secret>,
    /// Certificate and authorities, if the nodes speak TLS.
    pub credentials: Option<&'a Credentials>,
}

/// The numbers of a report, by the names under which they are told.
#[must_use]
pub fn numbers(report: &StatusReport) -> [(&'static str, u64); 17] {
    let view = View(report.view);
    [
        ("view", view.number()),
        ("epoch", view.epoch().0),
        ("op", report.op_number),
        ("commit", report.commit),
        ("applied", report.applied),
        ("dlog", report.dlog_length),
        ("sessions", report.sessions),
        ("log_bytes", report.log_bytes),
        ("fast_updates", report.fast_updates),
        ("slow_updates", report.slow_updates),
        ("conflicts", report.conflicts),
        ("fast_reads", report.fast_reads),
        ("slow_reads", report.slow_reads),
        ("refused", report.refused),
        ("view_changes", report.view_changes),
        ("silent_ms", report.silent_ms),
        ("divergences", report.divergences),
    ]
}

/// Asks the replica at `address`, whichever cluster it belongs to, for its status, and blocks until it
/// answers or `timeout` is over.
///
/// # Errors
/// [`StatusError`]: the replica cannot be reached, is none, or does not answer in time.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use syros_client::{Access, status};
/// let report = status("127.0.0.1:7000".parse()?, Access::default(), std::time::Duration::from_secs(1))?;
/// println!("{} of view {}, applied {}", report.role, report.view, report.applied);
/// # Ok(())
/// # }
/// ```
pub fn status(
    address: SocketAddr,
    access: Access<'_>,
    timeout: Duration,
) -> Result<StatusReport, StatusError> {
    // Whoever is let in may ask for this: it needs no secret.
    let access = Access { secret: None, ..access };
    StatusConnection::begin(&Message::StatusRequest, address, timeout, access)?.ask(&[Message::StatusRequest])
}

/// Asks the replica at `address`, if it leads, to let the member `to` lead, and blocks until it answers
/// with its status or `timeout` is over. It does so only if `to` has answered it lately; whether `to` leads
/// in the end, its own status tells. Where the cluster has a secret, only who knows it may ask; where nodes speak TLS, only
/// administrators and nodes.
///
/// # Errors
/// As [`status`]; [`StatusError::SecretNeeded`] and [`StatusError::OtherSecret`].
pub fn hand_over(
    address: SocketAddr,
    to: ReplicaId,
    access: Access<'_>,
    timeout: Duration,
) -> Result<StatusReport, StatusError> {
    order(Message::HandOver { to }, address, access, timeout)
}

/// Asks the replica at `address`, if it leads, to let the group go by `mode` from its next view on, and blocks until it answers
/// with its status or `timeout` is over. It does so only if the group's mode may become that one
/// ([`FastQuorum::may_become`]); by which mode the group goes in the end, its status tells. Where the cluster has a secret,
/// only who knows it may ask; where nodes speak TLS, only administrators and nodes.
///
/// # Errors
/// As [`status`]; [`StatusError::SecretNeeded`] and [`StatusError::OtherSecret`]; [`StatusError::TooOld`] if the replica does
/// not know how to change the mode.
pub fn change_mode(
    address: SocketAddr,
    mode: FastQuorum,
    access: Access<'_>,
    timeout: Duration,
) -> Result<StatusReport, StatusError> {
    order(Message::ChangeMode { mode }, address, access, timeout)
}

/// Asks the replica at `address`, if it leads, to let the group have so many members, two less than it has, and blocks until it
/// answers with its status or `timeout` is over. The members with the highest numbers go. A leader that would be one of them
/// lets another member lead first, and has to be asked again, as any leader has that cannot do it just then. Which size the
/// group has in the end, its members' status tells. Where the cluster has a secret, only who knows it may ask; where nodes
/// speak TLS, only administrators and nodes.
///
/// # Errors
/// As [`status`]; [`StatusError::SecretNeeded`] and [`StatusError::OtherSecret`]; [`StatusError::TooOld`] if the replica does
/// not know how.
pub fn shrink(
    address: SocketAddr,
    to: Group,
    access: Access<'_>,
    timeout: Duration,
) -> Result<StatusReport, StatusError> {
    order(Message::Shrink { to }, address, access, timeout)
}

/// Whether the replica at `address` can go by a mode that is not the one its group was made with: older builds cannot.
///
/// # Errors
/// As [`status`]; [`StatusError::TooOld`] if it cannot.
pub fn knows_changes_of_mode(
    address: SocketAddr,
    access: Access<'_>,
    timeout: Duration,
) -> Result<(), StatusError> {
    let change = Message::ChangeMode { mode: FastQuorum::default() };
    StatusConnection::begin(&change, address, timeout, Access { secret: None, ..access }).map(drop)
}

/// Has a replica do something that only those may ask for who know the secret, and waits for its status.
fn order(
    message: Message,
    address: SocketAddr,
    access: Access<'_>,
    timeout: Duration,
) -> Result<StatusReport, StatusError> {
    let conversation = StatusConnection::begin_authorized(&message, address, timeout, access)?;
    match conversation.ask(&[message, Message::StatusRequest]) {
        Err(StatusError::Io(error))
            if error.kind() == ErrorKind::UnexpectedEof && access.credentials.is_some() =>
        {
            Err(StatusError::NotAdministrator)
        }
        answer => answer,
    }
}

/// A connection to one replica, used by one thread that waits.
pub(crate) struct StatusConnection {
    stream: BlockingStream,
    received: Vec<u8>,
    until: Instant,
    /// The cluster of the replica.
    cluster: u64,
    /// The group of the replica, as frames name it.
    configuration: ConfigurationId,
    /// The replica has a secret.
    needs_secret: bool,
}

impl StatusConnection {
    /// Connects, and speaks the oldest version of the wire format that knows `message`. With a secret, both sides prove that
    /// they know it.
    pub(crate) fn begin(
        message: &Message,
        address: SocketAddr,
        timeout: Duration,
        Access { secret, credentials }: Access<'_>,
    ) -> Result<Self, StatusError> {
        let version = version_of(message);
        let until = Instant::now() + timeout;
        let stream = BlockingStream::new(TcpStream::connect_timeout(&address, timeout)?, credentials)?;
        let mut this = Self {
            stream,
            received: Vec::new(),
            until,
            cluster: ANY_CLUSTER,
            configuration: ConfigurationId::FIRST,
            needs_secret: false,
        };
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce).map_err(|error| StatusError::Io(Error::other(error.to_string())))?;
        let hello = Hello { cluster: ANY_CLUSTER, nonce: secret.map(|_| nonce), sender: Sender::Client };
        let mut ours = Vec::new();
        hello.encode_as(version, &mut ours);
        this.send(|out| put_frame(out, Channel::Handshake, |out| out.extend_from_slice(&ours)))?;
        let theirs = this.receive(|channel, payload| match channel {
            Channel::Handshake => Some(Ok(payload.to_vec())),
            Channel::Client | Channel::Replica | Channel::FrontEnd => {
                Some(Err(StatusError::Hello(HelloError::NotSyros)))
            }
        });
        let theirs = theirs.map_err(|error| match error {
            StatusError::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
                StatusError::ClosedAtOnce { is_encrypted: credentials.is_some() }
            }
            other => other,
        })?;
        let hello = Hello::decode(&theirs).map_err(StatusError::Hello)?;
        this.cluster = hello.cluster;
        let spoken = Hello::version_of_answer(&theirs);
        if spoken < version {
            return Err(StatusError::TooOld { version: spoken, needed: version });
        }
        if let Sender::Replica(member) = &hello.sender
            && !matches!(member.declaration.stage, Stage::Acting(_))
        {
            return Err(StatusError::Forming);
        }
        if let Sender::Replica(member) = &hello.sender {
            this.configuration.group = member.group;
        }
        this.needs_secret = hello.nonce.is_some();
        let Some(secret) = secret else { return Ok(this) };
        if !this.needs_secret {
            return Err(StatusError::OtherSecret);
        }
        let proof = HandshakeMessage::Proof(secret.prove(Side::Dialer, &ours, &theirs));
        this.send(|out| put_frame(out, Channel::Handshake, |out| proof.encode(out)))?;
        let step = this.receive(|channel, payload| {
            (channel == Channel::Handshake)
                .then(|| HandshakeMessage::decode(payload).map_err(StatusError::Malformed))
        });
        match step {
            Ok(HandshakeMessage::Welcome(Some(proof)))
                if secret.verify(&proof, Side::Acceptor, &ours, &theirs) =>
            {
                Ok(this)
            }
            // Whoever does not believe us closes the connection.
            Ok(_) => Err(StatusError::OtherSecret),
            Err(StatusError::Io(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                Err(StatusError::OtherSecret)
            }
            Err(error) => Err(error),
        }
    }

    /// The cluster of the replica.
    pub(crate) const fn cluster(&self) -> u64 {
        self.cluster
    }

    /// As [`Self::begin`], for what only those may ask who may administer the cluster.
    pub(crate) fn begin_authorized(
        message: &Message,
        address: SocketAddr,
        timeout: Duration,
        access: Access<'_>,
    ) -> Result<Self, StatusError> {
        let connection = Self::begin(message, address, timeout, access)?;
        connection.check_access(access)?;
        Ok(connection)
    }

    /// Fails if only those may ask for more who know the secret, and this is not one of them. Whether a certificate is enough, the
    /// replica says.
    const fn check_access(&self, access: Access<'_>) -> Result<(), StatusError> {
        let shows_something = access.secret.is_some() || access.credentials.is_some();
        if self.needs_secret && !shows_something { Err(StatusError::SecretNeeded) } else { Ok(()) }
    }

    /// Whoever waits has so much time from now on.
    pub(crate) fn allow(&mut self, timeout: Duration) {
        self.until = Instant::now() + timeout;
    }

    /// Sends some messages and waits for a status report.
    fn ask(mut self, messages: &[Message]) -> Result<StatusReport, StatusError> {
        self.converse(messages, |message| match message {
            Message::Status(report) => Some(*report),
            _ => None,
        })
    }

    /// Sends some messages and waits until `wanted` makes something of an answer.
    pub(crate) fn converse<T>(
        &mut self,
        messages: &[Message],
        wanted: impl FnMut(Message) -> Option<T>,
    ) -> Result<T, StatusError> {
        self.converse_in(messages, CLIENT_FRAME_BYTES_MAX, decode_client_message, wanted)
    }

    /// As [`Self::converse`], where an answer may have entries of the log in it, whose operations `describe` knows.
    pub(crate) fn converse_about_entries<T>(
        &mut self,
        messages: &[Message],
        describe: Describe,
        wanted: impl FnMut(Message) -> Option<T>,
    ) -> Result<T, StatusError> {
        // What a view change has recovered is one entry.
        self.converse_in(messages, FRAME_BYTES_MAX, |payload| decode_message(payload, describe), wanted)
    }

    fn converse_in<T>(
        &mut self,
        messages: &[Message],
        frame_bytes_max: usize,
        decode: impl Fn(&[u8]) -> Result<Message, Malformed>,
        mut wanted: impl FnMut(Message) -> Option<T>,
    ) -> Result<T, StatusError> {
        let configuration = self.configuration;
        self.send(|out| {
            let put = |message| put_message_frame(out, Channel::Client, configuration, message);
            messages.iter().for_each(put);
        })?;
        self.receive_within(frame_bytes_max, |channel, payload| {
            if channel == Channel::Handshake {
                let HandshakeMessage::Refused(reason) = HandshakeMessage::decode(payload).ok()? else {
                    return None;
                };
                return Some(Err(StatusError::Refused(reason)));
            }
            match decode(payload) {
                Ok(message) => wanted(message).map(Ok),
                Err(error) => Some(Err(StatusError::Malformed(error))),
            }
        })
    }

    fn left(&self) -> Result<Duration, Error> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(Error::from(ErrorKind::TimedOut)) } else { Ok(left) }
    }

    fn send(&mut self, put: impl FnOnce(&mut Vec<u8>)) -> Result<(), StatusError> {
        let mut out = Vec::new();
        put(&mut out);
        let left = self.left()?;
        let socket = self.stream.socket();
        // A handshake reads, too.
        socket.set_write_timeout(Some(left))?;
        socket.set_read_timeout(Some(left))?;
        Ok(self.stream.write_all(&out)?)
    }

    /// Receives frames until `wanted` makes something of one.
    fn receive<T>(
        &mut self,
        wanted: impl FnMut(Channel, &[u8]) -> Option<Result<T, StatusError>>,
    ) -> Result<T, StatusError> {
        self.receive_within(CLIENT_FRAME_BYTES_MAX, wanted)
    }

    fn receive_within<T>(
        &mut self,
        frame_bytes_max: usize,
        mut wanted: impl FnMut(Channel, &[u8]) -> Option<Result<T, StatusError>>,
    ) -> Result<T, StatusError> {
        let mut piece = vec![0; READ_BYTES];
        loop {
            while let Some((frame, length)) =
                split_frame(&self.received, frame_bytes_max).map_err(StatusError::Frame)?
            {
                let found = wanted(frame.channel, frame.payload);
                self.received.drain(..length);
                if let Some(found) = found {
                    return found;
                }
            }
            self.stream.socket().set_read_timeout(Some(self.left()?))?;
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(StatusError::Io(ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.received.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What the system calls a timeout of a socket.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(StatusError::Io(ErrorKind::TimedOut.into()));
                }
                Err(error) => return Err(StatusError::Io(error)),
            }
        }
    }
}
