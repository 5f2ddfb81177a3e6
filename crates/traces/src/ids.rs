//! Ids of traces and spans, and which operations are traced: pure functions of an operation's id, which all nodes compute alike.
//!
//! They are XXH3 of a fixed layout of bytes. Whoever changes the layout, the hash or a number of [`Stage`] has to change
//! [`DERIVATION_VERSION`] with it: spans of two versions then belong to different traces, instead of to one that looks broken.

use std::fmt;

use syros_types::OperationId;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The version of what this module computes. It is hashed with everything.
pub const DERIVATION_VERSION: u8 = 1;

/// What a trace is of: hashed, so that a read and an update never share a trace.
const UPDATE: u8 = 1;
const READ: u8 = 2;

/// The id of a trace; never 0, which OpenTelemetry reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(u128);

impl TraceId {
    /// The trace of an update. Session ids are unique within a cluster only, so the cluster is hashed, too.
    #[must_use]
    pub fn of_update(cluster: u64, id: OperationId) -> Self {
        Self::of(UPDATE, [cluster, id.session.0, id.sequence])
    }

    /// The trace of the read with this number that a front end has sent. Messages of reads name no session, so only the front
    /// end traces reads, and `process`, a random number of its process, tells it from all others.
    #[must_use]
    pub fn of_read(process: u64, number: u64) -> Self {
        Self::of(READ, [process, number, 0])
    }

    fn of(kind: u8, numbers: [u64; 3]) -> Self {
        let mut bytes = [0; 26];
        (bytes[0], bytes[1]) = (DERIVATION_VERSION, kind);
        for (place, number) in bytes[2..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        Self(xxh3_128(&bytes).max(1))
    }

    /// The part that decides about sampling: the last 56 bits, as OpenTelemetry's consistent probability sampling has it.
    const fn randomness(self) -> u64 {
        self.0 as u64 & (Sampling::ALL_VALUES - 1)
    }
}

/// 32 hexadecimal digits, as OTLP and W3C write it.
impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The id of a span within its trace; never 0, which OpenTelemetry reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId(u64);

/// 16 hexadecimal digits, as OTLP and W3C write it.
impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a span is of. The numbers are hashed: none is ever used for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Stage {
    /// The whole operation, at the node or gateway where its client is connected: the root of the trace.
    FrontEnd = 1,
    /// What one replica has to do with an update.
    Replica = 2,
    /// An update's record in the durability log becomes durable at a replica.
    Accept = 3,
    /// An update waits at a replica for its place in the log.
    Order = 4,
    /// The record of an update's log entry becomes durable at a replica.
    Append = 5,
    /// A log entry waits until a replica knows that it is committed.
    Commit = 6,
    /// A committed entry waits until a replica has executed it.
    Execute = 7,
    /// A replica's answer waits until it may leave.
    Answer = 8,
}

impl Stage {
    /// Each, in the order of its declaration.
    pub const ALL: [Self; 8] = [
        Self::FrontEnd,
        Self::Replica,
        Self::Accept,
        Self::Order,
        Self::Append,
        Self::Commit,
        Self::Execute,
        Self::Answer,
    ];

    /// The name of such a span. That of the root is the name of the command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FrontEnd => "operation",
            Self::Replica => "replica",
            Self::Accept => "accept",
            Self::Order => "order",
            Self::Append => "append",
            Self::Commit => "commit",
            Self::Execute => "execute",
            Self::Answer => "answer",
        }
    }
}

/// The span of a stage at a node. An operation has one front end, so all nodes know the root whatever node it is at: `node`
/// does not count there. `repetition` tells apart what a node does more than once, such as to answer.
#[must_use]
pub fn span_of(trace: TraceId, node: u64, stage: Stage, repetition: u8) -> SpanId {
    let node = if stage == Stage::FrontEnd { 0 } else { node };
    let mut bytes = [0; 27];
    (bytes[0], bytes[1], bytes[2]) = (DERIVATION_VERSION, stage as u8, repetition);
    bytes[3..19].copy_from_slice(&trace.0.to_le_bytes());
    bytes[19..].copy_from_slice(&node.to_le_bytes());
    SpanId(xxh3_64(&bytes).max(1))
}

/// The parent of the span of a stage at a node; `None` for the root.
#[must_use]
pub fn parent_of(trace: TraceId, node: u64, stage: Stage) -> Option<SpanId> {
    match stage {
        Stage::FrontEnd => None,
        Stage::Replica => Some(span_of(trace, node, Stage::FrontEnd, 0)),
        Stage::Accept | Stage::Order | Stage::Append | Stage::Commit | Stage::Execute | Stage::Answer => {
            Some(span_of(trace, node, Stage::Replica, 0))
        }
    }
}

/// Which operations are traced. The operations of a smaller share are among those of a larger one, so nodes that are
/// configured differently agree about those of the smallest share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// Operations whose randomness is less than this are not traced.
    threshold: u64,
}

impl Sampling {
    /// How many values the randomness of a trace may have.
    const ALL_VALUES: u64 = 1 << 56;

    /// Traces this share of all operations; `None` if it is no number from 0 to 1.
    #[must_use]
    pub fn of_share(share: f64) -> Option<Self> {
        // Exact where it matters: both ends of the range. A float has 53 of the 56 bits.
        let skipped = ((1.0 - share) * Self::ALL_VALUES as f64).round();
        (0.0..=1.0).contains(&share).then_some(Self { threshold: skipped as u64 })
    }

    /// True if this operation is traced.
    #[must_use]
    pub const fn takes(self, trace: TraceId) -> bool {
        trace.randomness() >= self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use syros_types::SessionId;

    fn id(session: u64, sequence: u64) -> OperationId {
        OperationId { session: SessionId(session), sequence }
    }

    /// Golden values. Nodes of two builds that computed different ones would export pieces of traces: see [`DERIVATION_VERSION`].
    #[test]
    fn ids_are_fixed_for_ever() {
        let trace = TraceId::of_update(199, id(17, 4));
        let read = TraceId::of_read(0x1234_5678_9abc_def0, 9);
        let spans = Stage::ALL.map(|stage| span_of(trace, 3, stage, 0).to_string());
        assert_eq!((DERIVATION_VERSION, trace.to_string(), read.to_string(), spans), golden());
    }

    fn golden() -> (u8, String, String, [String; 8]) {
        let (trace, read) = ("b1f184455d241cf0926c067f75c578ef", "46fe995d261e7955b44d62929503db97");
        let spans = [
            "eb65cb711523356a",
            "567e04d3e4afa817",
            "9931e56f5a7eb541",
            "b825ebce7ddcdc90",
            "974322cba18f5d19",
            "17005834685fb764",
            "5149dd69ae3bb720",
            "7891ad0ed77920c9",
        ];
        (1, trace.to_owned(), read.to_owned(), spans.map(str::to_owned))
    }

    #[test]
    fn ids_differ_by_everything_that_they_are_of() {
        let traces = [
            TraceId::of_update(1, id(2, 3)),
            TraceId::of_update(2, id(2, 3)),
            TraceId::of_update(1, id(3, 3)),
            TraceId::of_update(1, id(2, 2)),
            TraceId::of_read(1, 2),
            TraceId::of_read(2, 2),
            TraceId::of_read(1, 3),
        ];
        assert_eq!(traces.iter().collect::<BTreeSet<_>>().len(), traces.len());
        let mut spans = BTreeSet::new();
        for trace in traces {
            for node in 0..3 {
                for stage in Stage::ALL {
                    spans.extend((0..2).map(|repetition| span_of(trace, node, stage, repetition)));
                }
            }
        }
        // The root is the same at all nodes.
        assert_eq!(spans.len(), traces.len() * (3 * 7 + 1) * 2);
    }

    #[test]
    fn every_parent_is_a_span_of_the_trace() {
        let trace = TraceId::of_update(1, id(2, 3));
        for stage in Stage::ALL {
            let parent = parent_of(trace, 7, stage);
            let expected = match stage {
                Stage::FrontEnd => None,
                // Whatever node the client is connected to.
                Stage::Replica => Some(span_of(trace, 8, Stage::FrontEnd, 0)),
                _ => Some(span_of(trace, 7, Stage::Replica, 0)),
            };
            assert_eq!(parent, expected, "{stage:?}");
        }
    }

    #[test]
    fn the_share_that_is_asked_for_is_traced() {
        let taken = |share: f64| {
            let sampling = Sampling::of_share(share).unwrap();
            (0..100_000).filter(|sequence| sampling.takes(TraceId::of_update(9, id(5, *sequence)))).count()
        };
        assert_eq!((taken(0.0), taken(1.0)), (0, 100_000));
        for (share, least, most) in [(0.5, 49_000, 51_000), (0.01, 900, 1_100), (0.001, 60, 140)] {
            assert!((least..=most).contains(&taken(share)), "{share}: {}", taken(share));
        }
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Sampling::of_share(wrong), None);
        }
    }

    #[test]
    fn a_larger_share_traces_what_a_smaller_one_does() {
        let [small, large] = [0.01, 0.3].map(|share| Sampling::of_share(share).unwrap());
        let traces = (0..10_000).map(|sequence| TraceId::of_update(9, id(5, sequence)));
        assert!(traces.filter(|trace| small.takes(*trace)).all(|trace| large.takes(trace)));
    }
}
