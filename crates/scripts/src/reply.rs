//! What commands answer to a script, and what a script answers.

use crate::native::VALUE_UNITS;

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// No value.
    Nil,
    /// A short status.
    Status(Vec<u8>),
    /// An error: its code and its message.
    Error(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A string of any bytes.
    Bulk(Vec<u8>),
    /// A number of floating point.
    Double(f64),
    /// Yes or no. Only a script that has chosen RESP3 answers it.
    Boolean(bool),
    /// An integer of any length, as decimal digits.
    BigNumber(Vec<u8>),
    /// A string, and three letters that say of what kind it is.
    Verbatim(Vec<u8>, Vec<u8>),
    /// Several replies.
    Array(Vec<Reply>),
    /// Names with values: without RESP3 an array in which they alternate.
    Map(Vec<(Reply, Reply)>),
    /// Several pairs: without RESP3 an array in which their parts alternate, with it one of arrays.
    Pairs(Vec<(Reply, Reply)>),
    /// Members of a set: without RESP3 an array.
    Set(Vec<Reply>),
}

impl Reply {
    /// About how much work it is to make values of it: each part costs something, and its bytes.
    pub(crate) fn weight(&self) -> u64 {
        const EACH: u64 = VALUE_UNITS as u64;
        let of_bytes = |bytes: &[u8]| EACH + (bytes.len() / 16) as u64;
        match self {
            Self::Nil | Self::Integer(_) | Self::Double(_) | Self::Boolean(_) => EACH,
            Self::Status(bytes) | Self::Error(bytes) | Self::Bulk(bytes) | Self::BigNumber(bytes) => {
                of_bytes(bytes)
            }
            Self::Verbatim(kind, bytes) => of_bytes(kind) + of_bytes(bytes),
            Self::Array(parts) | Self::Set(parts) => EACH + parts.iter().map(Self::weight).sum::<u64>(),
            Self::Map(pairs) | Self::Pairs(pairs) => {
                EACH + pairs.iter().map(|(first, second)| first.weight() + second.weight()).sum::<u64>()
            }
        }
    }
}
