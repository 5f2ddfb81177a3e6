//! What can be wrong with bytes.

use core::fmt;
use syros_types::OtherConfiguration;
use syros_types::varint::InvalidVarint;

/// Why bytes are no message, no record, or no handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// They end inside a value.
    Truncated,
    /// They go on after the last value.
    Trailing {
        /// How many bytes are left over.
        bytes: usize,
    },
    /// No such tag.
    Tag {
        /// What was to be decoded.
        what: &'static str,
        /// The tag found.
        tag: u8,
    },
    /// A variable-length number has more than 64 bits, or needless bytes at its end.
    Number,
    /// A length or count is above its limit.
    TooLong {
        /// What is too long.
        what: &'static str,
        /// The length or count found.
        length: u64,
        /// The largest one allowed.
        limit: u64,
    },
    /// A number that must fit into fewer bits.
    OutOfRange {
        /// What is out of range.
        what: &'static str,
        /// The number found.
        value: u64,
        /// The largest one allowed.
        limit: u64,
    },
    /// The state machine does not know the operation in a log entry.
    Operation,
    /// An address of a node that is no text.
    Address,
    /// The name of an engine that is none.
    Engine,
    /// A member whose node has no number.
    NoNode,
    /// A record of another configuration.
    Configuration(OtherConfiguration),
    /// A message that only replicas send each other, where clients' messages and their answers are expected.
    NotForClients {
        /// Its tag.
        tag: u8,
    },
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end inside a value"),
            Self::Trailing { bytes } => write!(f, "{bytes} bytes follow the last value"),
            Self::Tag { what, tag } => write!(f, "{tag} is no tag of a {what}"),
            Self::Number => f.write_str("a variable-length number is longer than it needs or may be"),
            Self::TooLong { what, length, limit } => {
                write!(f, "{what}: {length} is above the limit of {limit}")
            }
            Self::OutOfRange { what, value, limit } => {
                write!(f, "{what}: {value} is out of range, the largest is {limit}")
            }
            Self::Operation => f.write_str("a log entry holds bytes that are no operation"),
            Self::Engine => f.write_str("the name of an engine is not printable text"),
            Self::Address => f.write_str("the address of a node is no text"),
            Self::NoNode => f.write_str("a member's node has number 0"),
            Self::Configuration(other) => write!(f, "a record of another configuration: {other}"),
            Self::NotForClients { tag } => write!(f, "message {tag} travels between replicas only"),
        }
    }
}

impl core::error::Error for Malformed {}

impl From<OtherConfiguration> for Malformed {
    fn from(other: OtherConfiguration) -> Self {
        Self::Configuration(other)
    }
}

impl From<InvalidVarint> for Malformed {
    fn from(error: InvalidVarint) -> Self {
        match error {
            InvalidVarint::Truncated => Self::Truncated,
            InvalidVarint::TooLong => Self::Number,
        }
    }
}
