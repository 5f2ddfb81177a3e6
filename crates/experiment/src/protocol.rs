//! The protocols that can be measured: settings of one implementation.

use core::fmt;
use core::str::FromStr;
use syros_types::{FastQuorum, ReadPolicy, WritePolicy};

/// A protocol: which updates need the leader only, what makes a quorum, and whom reads ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Its name, as papers have it.
    pub name: &'static str,
    /// What makes the fast quorum.
    pub fast_quorum: FastQuorum,
    /// How updates are sent that could be fast.
    pub writes: WritePolicy,
    /// Whom reads ask.
    pub reads: ReadPolicy,
}

const fn protocol(
    name: &'static str,
    fast_quorum: FastQuorum,
    writes: WritePolicy,
    reads: ReadPolicy,
) -> Protocol {
    Protocol { name, fast_quorum, writes, reads }
}

impl Protocol {
    /// Every one that there is.
    pub const ALL: [Self; 6] = [
        // Viewstamped Replication, or Multi-Paxos.
        protocol("vr", FastQuorum::Supermajority, WritePolicy::Leader, ReadPolicy::Leader),
        // The same with reads of a majority (Paxos Quorum Reads).
        protocol("pqr", FastQuorum::Supermajority, WritePolicy::Leader, ReadPolicy::Quorum),
        protocol("skyros", FastQuorum::Supermajority, WritePolicy::Fast, ReadPolicy::Leader),
        // The paper's.
        protocol("syros", FastQuorum::Supermajority, WritePolicy::Fast, ReadPolicy::Quorum),
        protocol("ionia", FastQuorum::Supermajority, WritePolicy::Fast, ReadPolicy::Meta),
        // What this project does if it is told nothing.
        protocol("default", FastQuorum::Majority, WritePolicy::Auto, ReadPolicy::Auto),
    ];
}

/// What a way to write begins with, after a protocol's name.
const WRITES: &str = "writes=";

/// A name that no protocol has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProtocol(pub String);

impl fmt::Display for UnknownProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Protocol::ALL.iter().map(|protocol| protocol.name).collect();
        write!(
            f,
            "there is no protocol '{}'; there are {}, each also with another way to read or to write, as in \
             default+quorum or skyros+writes=auto",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for UnknownProtocol {}

impl fmt::Display for Protocol {
    /// As it can be read again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        let Some(known) = Self::ALL.iter().find(|known| known.name == self.name) else { return Ok(()) };
        if known.reads != self.reads {
            write!(f, "+{}", self.reads)?;
        }
        if known.writes != self.writes {
            write!(f, "+{}{}", WRITES, self.writes)?;
        }
        Ok(())
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    /// A name, also with another way to read or to write: `default+quorum`, `skyros+writes=auto`.
    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        let unknown = || UnknownProtocol(text.to_owned());
        let mut parts = text.split('+');
        let name = parts.next().unwrap_or_default();
        let found = Self::ALL.into_iter().find(|protocol| protocol.name.eq_ignore_ascii_case(name));
        let mut protocol = found.ok_or_else(unknown)?;
        for other in parts {
            match other.strip_prefix(WRITES) {
                Some(writes) => protocol.writes = writes.parse().map_err(|_| unknown())?,
                None => protocol.reads = other.parse().map_err(|_| unknown())?,
            }
        }
        Ok(protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for protocol in Protocol::ALL {
            assert_eq!(protocol.to_string().parse(), Ok(protocol));
        }
        let quorum: Protocol = "default+quorum".parse().unwrap();
        assert_eq!((quorum.reads, quorum.to_string().as_str()), (ReadPolicy::Quorum, "default+quorum"));
        let both = "vr+meta+writes=auto".parse::<Protocol>().unwrap();
        assert_eq!((both.writes, both.to_string().as_str()), (WritePolicy::Auto, "vr+meta+writes=auto"));
        for text in ["", "raft", "default+", "default+near", "+quorum", "default+writes=", "vr+writes=meta"] {
            let error = text.parse::<Protocol>().unwrap_err().to_string();
            assert!(error.contains("skyros"), "{error}");
        }
    }
}
