//! The protocols of the papers, by their names: settings of one implementation. The configuration of a server names one,
//! and so do simulations and measurements.

use crate::{FastQuorum, ReadPolicy, WritePolicy};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// In which order updates are executed by an engine that could execute several at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// One after the other.
    Serial,
    /// Those of different keys at the same time.
    Parallel,
}

/// A protocol: which updates need the leader only, what makes a quorum, whom reads ask, how updates are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Its name, as papers have it.
    pub name: &'static str,
    /// Which updates take one round trip, and what makes the fast quorum.
    pub fast_quorum: FastQuorum,
    /// How updates are sent that could be fast.
    pub writes: WritePolicy,
    /// Whom reads ask.
    pub reads: ReadPolicy,
    /// How engines execute that have threads.
    pub execution: Execution,
    /// Most updates in one Prepare, if it is not the usual number.
    pub batch: Option<u16>,
    /// One replica only, whatever the number is otherwise.
    pub is_alone: bool,
}

const fn protocol(
    name: &'static str,
    fast_quorum: FastQuorum,
    writes: WritePolicy,
    reads: ReadPolicy,
    execution: Execution,
) -> Protocol {
    Protocol { name, fast_quorum, writes, reads, execution, batch: None, is_alone: false }
}

impl Protocol {
    /// Every one that there is.
    pub const ALL: [Self; 13] = {
        use Execution::{Parallel, Serial};
        use FastQuorum::{Commutative, Majority, Mixed, NilextOrCommutative, Supermajority};
        [
            // No replication: what it is to cost nothing against.
            Self {
                is_alone: true,
                ..protocol("unreplicated", Majority, WritePolicy::Leader, ReadPolicy::Leader, Parallel)
            },
            // Viewstamped Replication, or Multi-Paxos; the leader sends each update by itself.
            Self {
                batch: Some(1),
                ..protocol("vr-nobatch", Supermajority, WritePolicy::Leader, ReadPolicy::Leader, Serial)
            },
            // The same in batches.
            protocol("vr", Supermajority, WritePolicy::Leader, ReadPolicy::Leader, Serial),
            // The same with parallel execution, as CBASE does it.
            protocol("vr-pe", Supermajority, WritePolicy::Leader, ReadPolicy::Leader, Parallel),
            // The same with reads of a majority (Paxos Quorum Reads).
            protocol("pqr", Supermajority, WritePolicy::Leader, ReadPolicy::Quorum, Serial),
            protocol("skyros", Supermajority, WritePolicy::Fast, ReadPolicy::Leader, Serial),
            protocol("skyros-comm", NilextOrCommutative, WritePolicy::Fast, ReadPolicy::Leader, Serial),
            protocol("curp-c", Commutative, WritePolicy::Fast, ReadPolicy::Leader, Serial),
            // The paper's.
            protocol("syros", Supermajority, WritePolicy::Fast, ReadPolicy::Quorum, Serial),
            // IONIA without its reads.
            protocol("ionia-lr", Supermajority, WritePolicy::Fast, ReadPolicy::Leader, Parallel),
            protocol("ionia", Supermajority, WritePolicy::Fast, ReadPolicy::Meta, Parallel),
            // As by default, but only overwrites take one round trip.
            protocol("majority", Majority, WritePolicy::Auto, ReadPolicy::Auto, Parallel),
            // What this project does if it is told nothing.
            protocol("default", Mixed, WritePolicy::Auto, ReadPolicy::Auto, Parallel),
        ]
    };

    /// The number of replicas, if so many are asked for.
    #[must_use]
    pub const fn replicas(&self, asked: usize) -> usize {
        if self.is_alone { 1 } else { asked }
    }
}

impl Default for Protocol {
    fn default() -> Self {
        // The last one.
        Self::ALL[Self::ALL.len() - 1]
    }
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

impl core::error::Error for UnknownProtocol {}

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
    use alloc::string::ToString;

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
