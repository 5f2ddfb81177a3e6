//! How things fail, each way with a name of its own.

use core::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use syros_commands::{CommandError, Malformed as MalformedCommand};
use syros_protocol::client::Busy;
use syros_protocol::message::Refusal;
use syros_types::{FastQuorum, GroupId, InvalidGroupSize, ReplicaId};
use syros_wire::{FrameError, HelloError, Malformed};

/// Why an operation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The replicas did not take it. It has had no effect and never will.
    Refused(Refusal),
    /// There was no answer in time. An update may have taken effect, or may still do so.
    Unknown,
    /// There was no answer in time to a read, or the update was never sent. It has had no effect.
    TimedOut,
    /// Too many operations are in flight. It was not sent.
    Busy(Busy),
    /// No replica could be reached in the time allowed. It has had no effect.
    Disconnected,
    /// The client's I/O thread has ended. An update that was in flight may have taken effect.
    Closed,
    /// It is no valid command. It was not sent.
    Command(CommandError),
    /// Its bytes are no operation. It was not sent.
    Operation(MalformedCommand),
    /// It was executed, with an error for its result, such as `ERR value is not an integer or out of range`.
    Execution(String),
    /// The result is of another kind than the command should have: a replica of another release.
    UnexpectedReply,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => write!(f, "refused: {refusal}"),
            Self::Unknown => f.write_str("no answer in time: the update may or may not take effect"),
            Self::TimedOut => f.write_str("no answer in time; there was no effect"),
            Self::Busy(busy) => write!(f, "busy: {busy}"),
            Self::Disconnected => f.write_str("no replica can be reached; there was no effect"),
            Self::Closed => f.write_str("the client is closed"),
            Self::Command(error) => write!(f, "{error}"),
            Self::Operation(error) => write!(f, "no operation: {error}"),
            Self::Execution(text) => f.write_str(text),
            Self::UnexpectedReply => f.write_str("the reply is not of the kind that the command has"),
        }
    }
}

impl core::error::Error for Error {}

/// Why a replica cannot be talked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The connection failed, or could not be made.
    Io(ErrorKind),
    /// There is no TLS session.
    Tls(TlsProblem),
    /// The replica closed the connection.
    Closed,
    /// Connection and handshake took too long.
    TimedOut,
    /// The handshake failed.
    Hello(HelloError),
    /// The replica speaks this older version of the wire format; the next connection is made in that.
    Older(u16),
    /// Something else than a handshake came first.
    NoHello,
    /// The other side is no replica.
    NotReplica,
    /// The address belongs to another member of the group: addresses must be in the group's order.
    WrongReplica {
        /// Who answered.
        found: ReplicaId,
        /// Who should have.
        expected: ReplicaId,
    },
    /// The group has another number of replicas than there are addresses.
    GroupSize {
        /// Replicas, as the replica says.
        found: usize,
        /// Addresses given.
        expected: usize,
    },
    /// The replica has another fast quorum mode than the first one that answered.
    FastQuorum {
        /// Its mode.
        found: FastQuorum,
        /// The first one's.
        expected: FastQuorum,
    },
    /// It answers for another group.
    Group(GroupId),
    /// The bytes received are no frames.
    Frame(FrameError),
    /// A frame holds no message.
    Malformed(Malformed),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(kind) => write!(f, "{kind}"),
            Self::Tls(problem) => write!(f, "{problem}"),
            Self::Closed => f.write_str("closed by the replica"),
            Self::TimedOut => f.write_str("no handshake in time"),
            Self::Hello(error) => write!(f, "{error}"),
            Self::Older(version) => {
                write!(f, "it speaks wire format version {version}; connecting anew in that")
            }
            Self::NoHello => f.write_str("the handshake is missing"),
            Self::NotReplica => f.write_str("the other side is no replica"),
            Self::WrongReplica { found, expected } => {
                write!(f, "{found} answers where {expected} should: addresses must be in the group's order")
            }
            Self::GroupSize { found, expected } => {
                write!(f, "the group has {found} replicas, but {expected} addresses were given")
            }
            Self::FastQuorum { found, expected } => {
                write!(f, "fast quorum mode {found} here, {expected} at another replica")
            }
            Self::Group(found) => write!(f, "it answers for group {}, and group 0 was asked", found.0),
            Self::Frame(error) => write!(f, "{error}"),
            Self::Malformed(error) => write!(f, "malformed message: {error}"),
        }
    }
}

impl core::error::Error for LinkError {}

impl From<std::io::Error> for LinkError {
    fn from(error: std::io::Error) -> Self {
        let of_session = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        of_session.map_or(Self::Io(error.kind()), |problem| Self::Tls(TlsProblem::of(problem)))
    }
}

/// Why there is no TLS session with a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsProblem {
    /// It does not speak TLS.
    NotSpoken,
    /// It does not take this client's certificate, or there is none that it would take; by the name of the alert in RFC 8446.
    Refused(&'static str),
    /// Its certificate is no longer valid, or not valid yet.
    Expired,
    /// Its certificate is of no authority that this client believes.
    UnknownAuthority,
    /// Its certificate does not say that it is a node of this cluster.
    NotNode,
    /// Anything else.
    Other,
}

impl TlsProblem {
    pub(crate) fn of(error: &rustls::Error) -> Self {
        use rustls::{CertificateError, Error};
        match error {
            Error::InvalidMessage(_) => Self::NotSpoken,
            Error::AlertReceived(alert) => Self::Refused(alert.as_str().unwrap_or("an unknown alert")),
            Error::InvalidCertificate(
                CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. },
            ) => Self::Expired,
            // The second: one of that name is believed, and it is another one.
            Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
                Self::UnknownAuthority
            }
            Error::General(_) => Self::NotNode,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSpoken => f.write_str("it does not speak TLS"),
            Self::Refused(alert) => write!(f, "it refuses this client's certificate: {alert}"),
            Self::Expired => f.write_str("its certificate is no longer valid, or not yet"),
            Self::UnknownAuthority => {
                f.write_str("its certificate is of no authority that this client believes")
            }
            Self::NotNode => f.write_str("its certificate does not say that it is a node of this cluster"),
            Self::Other => f.write_str("there is no TLS session with it"),
        }
    }
}

impl From<HelloError> for LinkError {
    fn from(error: HelloError) -> Self {
        Self::Hello(error)
    }
}

/// Why a client could not be made.
#[derive(Debug)]
pub enum ConnectError {
    /// The number of addresses is no size of a group.
    GroupSize(InvalidGroupSize),
    /// The addresses of the replica at this position could not be found.
    Resolve {
        /// Position in the list of addresses.
        position: usize,
        /// What the resolver said.
        error: std::io::Error,
    },
    /// The system refused what an event loop or a thread needs.
    System(std::io::Error),
    /// No replica answered in time; of every one the address tried last, and the last error.
    NoReplica(Vec<(SocketAddr, Option<LinkError>)>),
    /// The client's I/O thread has ended.
    Closed,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GroupSize(error) => write!(f, "{error}: give the address of every replica"),
            Self::Resolve { position, error } => write!(f, "address of replica {position}: {error}"),
            Self::System(error) => write!(f, "{error}"),
            Self::NoReplica(replicas) => {
                f.write_str("no replica can be reached")?;
                for (address, error) in replicas {
                    match error {
                        Some(error) => write!(f, "; {address}: {error}")?,
                        None => write!(f, "; {address}: no answer")?,
                    }
                }
                Ok(())
            }
            Self::Closed => f.write_str("the client is closed"),
        }
    }
}

impl core::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::GroupSize(error) => Some(error),
            Self::Resolve { error, .. } | Self::System(error) => Some(error),
            Self::NoReplica(_) | Self::Closed => None,
        }
    }
}
