//! The handshake: the first frame in each direction of a connection.

use crate::error::Malformed;
use crate::parts::fast_quorum_tag;
use crate::primitive::{Reader, Writer};
use crate::tag;
use core::fmt;
use syros_types::{FastQuorum, Group, ReplicaId};

/// Version of the wire format that this code speaks.
pub const VERSION: u16 = 4;

/// What every handshake starts with.
const MAGIC: [u8; 4] = *b"SYRS";

/// The cluster id of a client that takes any cluster. No cluster has it.
pub const ANY_CLUSTER: u64 = 0;

/// What a process says of itself when a connection is made. Magic and version come first in every
/// version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hello {
    /// The cluster the sender belongs to, or (a client) looks for; [`ANY_CLUSTER`] for any.
    pub cluster: u64,
    /// Who sends it.
    pub sender: Sender,
}

/// Who sends a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    /// A client, or a gateway on its own.
    Client,
    /// A node.
    Replica(Member),
}

/// What a node says of itself. All nodes of a cluster must agree on everything but `replica`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its position in the group.
    pub replica: ReplicaId,
    /// The group.
    pub group: Group,
    /// The cluster's fast quorum mode.
    pub fast_quorum: FastQuorum,
}

/// Why a handshake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloError {
    /// The other side speaks another protocol.
    NotSyros,
    /// The other side speaks another version of the wire format.
    Version {
        /// Its version.
        theirs: u16,
        /// This process's version.
        ours: u16,
    },
    /// The other side belongs to another cluster.
    Cluster {
        /// Its cluster.
        theirs: u64,
        /// This process's cluster.
        ours: u64,
    },
    /// The bytes after the version make no sense.
    Malformed(Malformed),
}

impl fmt::Display for HelloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSyros => f.write_str("peer does not speak the Syros protocol"),
            Self::Version { theirs, ours } => {
                write!(f, "peer speaks wire format version {theirs}, this process speaks {ours}")
            }
            Self::Cluster { theirs, ours } => {
                write!(f, "peer belongs to cluster {theirs:016x}, this process to cluster {ours:016x}")
            }
            Self::Malformed(malformed) => write!(f, "malformed handshake: {malformed}"),
        }
    }
}

impl core::error::Error for HelloError {}

impl From<Malformed> for HelloError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

impl Hello {
    /// Appends the encoding.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        let writer = Writer::new(out).fixed(self.cluster);
        match self.sender {
            Sender::Client => writer.byte(tag::sender::CLIENT),
            Sender::Replica(Member { replica, group, fast_quorum }) => {
                // A group has at most 7 members.
                let writer = writer.byte(tag::sender::REPLICA).byte(replica.0).byte(group.size() as u8);
                writer.byte(fast_quorum_tag(fast_quorum))
            }
        };
    }

    /// The handshake that `bytes` encode.
    ///
    /// # Errors
    /// [`HelloError`], in this order: not this protocol, another version, malformed.
    pub fn decode(bytes: &[u8]) -> Result<Self, HelloError> {
        let Some(([magic @ .., low, high], rest)) = bytes.split_first_chunk::<6>() else {
            return Err(HelloError::NotSyros);
        };
        if *magic != MAGIC {
            return Err(HelloError::NotSyros);
        }
        let theirs = u16::from_le_bytes([*low, *high]);
        if theirs != VERSION {
            return Err(HelloError::Version { theirs, ours: VERSION });
        }
        let mut reader = Reader::new(rest);
        let cluster = reader.fixed()?;
        let sender = match reader.byte()? {
            tag::sender::CLIENT => Sender::Client,
            tag::sender::REPLICA => Sender::Replica(decode_member(&mut reader)?),
            tag => return Err(Malformed::Tag { what: "sender", tag }.into()),
        };
        reader.end()?;
        Ok(Self { cluster, sender })
    }

    /// Checks that the sender of this handshake belongs to the receiver's cluster, `ours`. Either may
    /// be [`ANY_CLUSTER`], if it is a client.
    ///
    /// # Errors
    /// [`HelloError::Cluster`] if not.
    pub const fn check_cluster(&self, ours: u64) -> Result<(), HelloError> {
        let theirs = self.cluster;
        let is_any = ours == ANY_CLUSTER || (theirs == ANY_CLUSTER && matches!(self.sender, Sender::Client));
        if is_any || theirs == ours { Ok(()) } else { Err(HelloError::Cluster { theirs, ours }) }
    }
}

fn decode_member(reader: &mut Reader<'_>) -> Result<Member, Malformed> {
    let replica = reader.byte()?;
    let size = reader.byte()?;
    let group = Group::new(usize::from(size)).map_err(|_| Malformed::OutOfRange {
        what: "group size",
        value: u64::from(size),
        limit: 7,
    })?;
    if replica >= size {
        let (value, limit) = (u64::from(replica), u64::from(size) - 1);
        return Err(Malformed::OutOfRange { what: "replica", value, limit });
    }
    Ok(Member { replica: ReplicaId(replica), group, fast_quorum: reader.fast_quorum()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Hello {
        let member = Member {
            replica: ReplicaId(2),
            group: Group::new(5).unwrap(),
            fast_quorum: FastQuorum::Supermajority,
        };
        Hello { cluster: 0x0102_0304_0506_0708, sender: Sender::Replica(member) }
    }

    fn encoded(hello: &Hello) -> Vec<u8> {
        let mut out = Vec::new();
        hello.encode(&mut out);
        out
    }

    #[test]
    fn handshakes_have_golden_bytes_and_come_back() {
        let client = Hello { cluster: ANY_CLUSTER, sender: Sender::Client };
        assert_eq!(encoded(&client), *b"SYRS\x04\0\0\0\0\0\0\0\0\0\x01");
        assert_eq!(encoded(&member()), *b"SYRS\x04\0\x08\x07\x06\x05\x04\x03\x02\x01\x02\x02\x05\x02");
        for hello in [client, member()] {
            assert_eq!(Hello::decode(&encoded(&hello)), Ok(hello));
        }
    }

    #[test]
    fn other_protocols_and_versions_are_refused_by_name() {
        assert_eq!(Hello::decode(b"*1\r\n$4\r\nPING"), Err(HelloError::NotSyros));
        assert_eq!(Hello::decode(b""), Err(HelloError::NotSyros));
        let error = Hello::decode(b"SYRS\x07\0whatever").unwrap_err();
        assert_eq!(error, HelloError::Version { theirs: 7, ours: 4 });
        assert_eq!(error.to_string(), "peer speaks wire format version 7, this process speaks 4");
    }

    #[test]
    fn bad_handshakes_are_refused() {
        let good = encoded(&member());
        for length in 6..good.len() {
            assert_eq!(Hello::decode(&good[..length]), Err(HelloError::Malformed(Malformed::Truncated)));
        }
        let with = |index: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[index] = byte;
            Hello::decode(&bytes)
        };
        let out_of_range = |what, value, limit| Err(Malformed::OutOfRange { what, value, limit }.into());
        assert_eq!(with(14, 9), Err(Malformed::Tag { what: "sender", tag: 9 }.into()));
        assert_eq!(with(15, 5), out_of_range("replica", 5, 4));
        assert_eq!(with(16, 4), out_of_range("group size", 4, 7));
        assert_eq!(with(17, 0), Err(Malformed::Tag { what: "fast quorum mode", tag: 0 }.into()));
        let longer = [&good[..], &[0]].concat();
        assert_eq!(Hello::decode(&longer), Err(Malformed::Trailing { bytes: 1 }.into()));
    }

    #[test]
    fn clusters_must_agree() {
        let mut hello = member();
        assert_eq!(hello.check_cluster(hello.cluster), Ok(()));
        assert_eq!(hello.check_cluster(ANY_CLUSTER), Ok(()));
        let refused = Err(HelloError::Cluster { theirs: hello.cluster, ours: 5 });
        assert_eq!(hello.check_cluster(5), refused);
        hello.cluster = ANY_CLUSTER;
        assert_eq!(hello.check_cluster(5), Err(HelloError::Cluster { theirs: 0, ours: 5 }));
        hello.sender = Sender::Client;
        assert_eq!(hello.check_cluster(5), Ok(()));
    }
}
